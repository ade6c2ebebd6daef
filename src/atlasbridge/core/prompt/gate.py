"""The reply gate: decides whether a reply is allowed to answer a prompt. Pure; the first failing reason wins, in the
order of `Refusal`.

`decide_reply` is the only entry. It decides about one reply and one record as given. The store's guard (`Ledger.claim`)
ensures that nothing changed between the decision and its record, and explains a refusal with the same sentences.
"""

from __future__ import annotations

import re
from hmac import compare_digest
from typing import Final

from atlasbridge.core.clock import local_time
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.answer import TIMER, call_person, decide_answer, quote_answer
from atlasbridge.core.prompt.model import OPEN, Answer, InboundReply, PromptRecord, PromptState, Refusal, Reject
from atlasbridge.core.values import frozen

SHORT_ID: Final = 8  # shortest prefix of an id that a channel can send
SHORT_NONCE: Final = 16  # 64 bits, which fits into a Telegram button
LEAVE: Final = "leave"
LEAVES: Final = frozenset({LEAVE, "cancel"})  # the second is the name in earlier versions, and of our buttons
_OWN_CANCEL = lazy(r"\bcancel\b", re.IGNORECASE)
KEY_CHANNELS: Final = frozenset({"local"})

OTHER_USER: Final = "other_user"  # such a caller can ask and read here, but not decide
UNTRACED: Final = "untraced"  # a value of `InboundReply.inside_session`: the origin is unknown


@frozen
class Cancel:
    """The decision to leave a prompt as it is: nothing is typed, and nobody else can answer it."""


def decide_reply(
    record: PromptRecord | None, reply: InboundReply, *, allowed: bool, now: float, private: bool = False
) -> Answer | Cancel | Reject:
    """Decides about a reply: sender, prompt, time, and its meaning.

    `private`: the channel declares that nothing it shows leaves this machine.
    """
    refusal = refuse_reply(record, reply, allowed=allowed, now=now, private=private)
    if refusal is not None or record is None:
        return refusal or UNKNOWN
    if _cancels(record, reply):
        own = reply.value.strip().lower() != LEAVE and not reply.nonce and _OWN_CANCEL.search(record.prompt.screen)
        return _WHICH_CANCEL if own else Cancel()
    return decide_answer(record.prompt, reply.value, as_text=reply.as_text, as_keys=reply.as_keys)


def refuse_reply(
    record: PromptRecord | None, reply: InboundReply, *, allowed: bool, now: float, private: bool = False
) -> Reject | None:
    """Checks everything except the value, which a fleet server leaves to the machine's own hub."""
    if record is None or not _names(record.prompt_id, reply.prompt_id):
        return UNKNOWN
    if reply.session_id and not _names(record.session_id, reply.session_id):
        return _WRONG_SESSION
    if reply.inside_session:
        return refuse_inside_session(reply.inside_session)
    if not allowed:
        return Reject(Refusal.NOT_ALLOWED, "You are not on the list of people who are allowed to answer.")
    if record.prompt.secret and not private:
        sentence = "Chats do not accept secrets: answer in a terminal or on the page of its machine."
        return Reject(Refusal.NOT_ALLOWED, sentence)
    if reply.as_keys and reply.channel not in KEY_CHANNELS:
        return Reject(Refusal.NOT_ALLOWED, "Only a terminal on this machine can send raw keys.")
    return refuse_moment(record, nonce=reply.nonce, now=now)


def refuse_inside_session(inside_session: str) -> Reject:
    """Refuses a program inside a session: only a person decides."""
    if inside_session == OTHER_USER:
        return Reject(Refusal.NOT_ALLOWED, "Only the hub's own user can decide; this comes from another user.")
    if inside_session == UNTRACED:
        return Reject(Refusal.SELF, "AtlasBridge cannot tell who sends this; run it from a terminal of your own.")
    return Reject(
        Refusal.SELF,
        f"This comes from inside session {inside_session[:SHORT_ID]}, and only a person can decide: "
        "use a terminal that was not started there, the page or a chat.",
    )


def _cancels(record: PromptRecord, reply: InboundReply) -> bool:
    """Whether the reply is the word that leaves a prompt alone, unless the prompt itself offers that word as a
    choice."""
    word = reply.value.strip().lower()
    if reply.as_text or reply.as_keys or word not in LEAVES:
        return False
    return not any(word in (choice.value.lower(), choice.label.lower()) for choice in record.prompt.choices)


def refuse_claim(record: PromptRecord | None, *, session_id: str, nonce: str, now: float) -> Reject:
    """Why the store's guard did not match, in the gate's order and with its sentences."""
    if record is None:
        return UNKNOWN
    if record.session_id != session_id:
        return _WRONG_SESSION
    return refuse_moment(record, nonce=nonce, now=now) or Reject(Refusal.NOT_OPEN, "It is no longer open.")


def refuse_moment(record: PromptRecord, *, nonce: str, now: float) -> Reject | None:
    """Checks nonce, deadline and state."""
    if nonce and not nonce_matches(record.nonce, nonce):
        return Reject(Refusal.BAD_NONCE, "This reply does not carry the key of that prompt.")
    if nonce and record.nonce_used:
        return Reject(Refusal.BAD_NONCE, fate(record))
    if record.state is PromptState.EXPIRED or now >= record.deadline:
        return Reject(Refusal.EXPIRED, fate(record) if record.state not in OPEN else "It has expired.")
    if record.state not in OPEN:
        return Reject(Refusal.NOT_OPEN, fate(record))
    return None


def nonce_matches(whole: str, given: str) -> bool:
    """A channel can send only the beginning of the nonce, if it is long enough."""
    if not SHORT_NONCE <= len(given) <= len(whole):
        return False
    return compare_digest(whole[: len(given)].encode(), given.encode())


def fate(record: PromptRecord) -> str:
    """The outcome of a prompt in one sentence."""
    match record.state:
        case _ if record.decided_by == TIMER and record.decided_value:
            return f"Nobody answered in time; the safe default {quote_answer(record.decided_value)} was taken."
        case PromptState.REPLY_RECEIVED | PromptState.INJECTED | PromptState.RESOLVED:
            return f"It was already answered {describe_decision(record)}."
        case PromptState.EXPIRED:
            return "It has expired."
        case PromptState.WITHDRAWN:
            return "It is no longer on the screen."
        case PromptState.CANCELED:
            return f"{call_person(record.decided_by)} left it alone."
        case PromptState.FAILED:
            return "This prompt can no longer be answered."
        case PromptState.CREATED | PromptState.ROUTED | PromptState.AWAITING_REPLY:
            return "It is open."


def describe_decision(record: PromptRecord) -> str:
    """Which answer, by whom, from where and when, for a person whose reply came too late."""
    answer = f"with {quote_answer(record.decided_value)} " if record.decided_value else ""
    at = f" at {local_time(record.decided_at, '%H:%M:%S %Z')}" if record.decided_at else ""
    return f"{answer}by {call_person(record.decided_by, record.decided_from)}{at}"


def _names(full: str, given: str) -> bool:
    return len(given) >= SHORT_ID and full.startswith(given)


_WHICH_CANCEL: Final = Reject(
    Refusal.BAD_VALUE,
    'The program shows a Cancel of its own. Answer "leave" to leave this alone, or press the program\'s own: "esc" is '
    "its key in most programs.",
)
UNKNOWN: Final = Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")
_WRONG_SESSION: Final = Reject(Refusal.WRONG_SESSION, "That prompt belongs to another session.")
