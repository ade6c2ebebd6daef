"""Processes a reply: rate limit, gate, claim, typing. The audit entry is written before typing; a refusal has one
sentence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from atlasbridge.core.audit.passkeys import Passkeys
from atlasbridge.core.clock import RateWindow
from atlasbridge.core.daemon.parts import HubParts, HubSettings
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.receipts import RefusalLog, decision_of
from atlasbridge.core.errors import StoreError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.approval import PROOF, QUORUM, agrees, describe_votes, quorum_of
from atlasbridge.core.prompt.gate import UNKNOWN, Cancel, decide_reply, refuse_inside_session
from atlasbridge.core.prompt.model import (
    OPEN,
    Answer,
    InboundReply,
    PromptRecord,
    PromptState,
    Receipt,
    Refusal,
    Reject,
)
from atlasbridge.core.prompt.redact import redact_outgoing
from atlasbridge.core.routing.policy import PolicySettings, decide_allowed, is_listed
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.store.prompts import Decider, RequestRecord, stored_value
from atlasbridge.core.values import replace

log = logging.getLogger(__name__)

REQUEST_KEY_LIMIT = 128
UNRECORDED_LIMIT = 1_000


class ReplyService:
    def __init__(self, hub: HubParts, life: PromptLife, settings: HubSettings, refusals: RefusalLog) -> None:
        self.hub = hub
        self._life = life
        self._refusals = refusals
        self.settings = settings
        self._recent = RateWindow(settings.rate_limit_per_minute)
        # refusals that could not be written to disk; they count anyway
        self._unrecorded_refusals: dict[str, Reject] = {}
        self.passkeys = Passkeys(hub.ledger, hub.clock, hub.router.notify)
        self.person_of: Callable[[str], str] = lambda identity: identity  # the person behind an identity; "": unknown

    async def reply(self, reply: InboundReply) -> Receipt | Reject:
        """Returns when the keys are typed, or with the reason why they are not."""
        record = await self._find(reply)
        try:
            outcome = await self.hub.rounds.take(lambda: self._act(reply), urgent=True)
        except StoreError as error:
            # a failed write of other replies in the same round does not refuse this one
            known = self._earlier_outcome(reply)
            if known is None:
                return self._refused(record, reply, Reject(Refusal.UNAVAILABLE, _NOT_RECORDED.format(error)))
            outcome = known
        match outcome:
            case Receipt() | Reject():
                return outcome
            case RequestRecord():
                return await self._repeat_outcome(self.hub.ledger.prompt(reply.prompt_id), reply, outcome.prompt_id)
        typed = await self._await_typed(reply.prompt_id, outcome)
        return self._refused(record, reply, typed) if isinstance(typed, Reject) else typed

    def _act(self, reply: InboundReply) -> asyncio.Future[Receipt | Reject] | RequestRecord | Receipt | Reject:
        """Runs from the gate to the order without awaiting, so that no other reply can interfere.

        The order is sent when the claim is on disk. Returns the host's future result, or the outcome of an identical
        earlier request.
        """
        if (known := self._earlier_outcome(reply)) is not None:
            return known
        record = self.hub.ledger.prompt(reply.prompt_id)
        outcome = _NOT_KNOWN if reply.only_known else self._claim(record, reply)
        if record is None or isinstance(outcome, Reject):
            return self._refused(record, reply, outcome)
        if isinstance(outcome, Receipt):
            return outcome
        word = self.hub.hosts.result(record.prompt_id)
        self.hub.hosts.order(record, outcome, reply.identity)
        return word

    def _earlier_outcome(self, reply: InboundReply) -> RequestRecord | Reject | None:
        """The outcome of an identical earlier request."""
        if not reply.request_key:
            return None
        if told := self._unrecorded_refusals.get(_request(reply)):
            return told
        known = self.hub.ledger.request(_request(reply))
        return known and (known.refusal or known)

    def judge(self, reply: InboundReply) -> tuple[PromptRecord, Answer] | Reject:
        """Decides what this reply would be if it were given now. Claims nothing; a refusal is recorded as usual."""
        record = self.hub.ledger.prompt(reply.prompt_id)
        decision = self._decide(record, reply)
        if record is None or not isinstance(decision, Answer):
            refusal = decision if isinstance(decision, Reject) else _NO_LATER_CANCEL
            return self._refused(record, reply, refusal)
        if refused := self.passkeys.refuse_early(record, decision):
            return self._refused(record, reply, refused)
        return record, decision

    def refuse_person(self, record: PromptRecord, reply: InboundReply) -> Reject | None:
        """Checks whether this sender is allowed to decide this prompt. Returns None if so."""
        if reply.inside_session:
            return refuse_inside_session(reply.inside_session)
        if not self._allowed(record, reply):
            return Reject(Refusal.NOT_ALLOWED, "You are not on the list of people who are allowed to answer.")
        return None

    def refuse_stranger(self, reply: InboundReply) -> Reject | None:
        """The same check for requests without a prompt, such as a queued instruction."""
        if reply.inside_session:
            return refuse_inside_session(reply.inside_session)
        people = self.hub.router.policy.allowed.get(reply.channel, frozenset())
        if reply.channel == LOCAL or people is None or reply.identity in people:
            return None
        return Reject(Refusal.NOT_ALLOWED, "You are not on the list of people who are allowed to answer.")

    def _decide(self, record: PromptRecord | None, reply: InboundReply) -> Answer | Cancel | Reject:
        if record is not None and self._too_fast(record, reply):
            return Reject(Refusal.RATE_LIMITED, "Too many replies to this session within a minute; wait a little.")
        allowed, now = self._allowed(record, reply), self.hub.clock.now()
        private = not self.hub.router.remote(reply.channel)
        decision = decide_reply(record, reply, allowed=allowed, now=now, private=private)
        if record is not None and isinstance(decision, Answer) and record.prompt.constraints.get("disagrees"):
            return Reject(Refusal.BAD_VALUE, _ONLY_NO) if agrees(record.prompt, decision) else decision
        return decision

    async def _await_typed(self, prompt_id: str, word: asyncio.Future[Receipt | Reject]) -> Receipt | Reject:
        try:
            async with asyncio.timeout(self.settings.type_timeout_s):
                return await asyncio.shield(word)
        except TimeoutError:
            record = self.hub.ledger.prompt(prompt_id)
        return _GONE if record is None else self._life.receipts.make("received", _NO_WORD, record)

    async def _repeat_outcome(
        self, asked: PromptRecord | None, reply: InboundReply, prompt_id: str
    ) -> Receipt | Reject:
        """Handles a repeated request: returns the outcome of the prompt that it decided."""
        if asked is None or asked.prompt_id != prompt_id:
            return Reject(Refusal.BAD_NONCE, "The key of this request was used for another one.")
        receipts = self._life.receipts
        match asked.state:
            case PromptState.REPLY_RECEIVED:
                return await self._await_typed(prompt_id, self.hub.hosts.result(prompt_id))
            case PromptState.CANCELED:
                return receipts.canceled(asked)
            case PromptState.INJECTED | PromptState.RESOLVED:
                return receipts.typed(asked)
            case PromptState.FAILED if (given := self.hub.ledger.reply(prompt_id)) and given.injected_at:
                return receipts.typed(asked)
            case _:
                return _GONE

    async def _find(self, reply: InboundReply) -> PromptRecord | None:
        """Returns the prompt once its session is connected: a reply can arrive before a host has reconnected."""
        record = self.hub.ledger.prompt(reply.prompt_id)
        if record is None or record.state not in OPEN or self.hub.hosts.get(record.session_id) is not None:
            return record
        await self.hub.hosts.wait(record.session_id, self.settings.host_patience_s)
        return self.hub.ledger.prompt(record.prompt_id)

    def _claim(self, record: PromptRecord | None, reply: InboundReply) -> Answer | Receipt | Reject:
        decision = self._decide(record, reply)
        if record is None or isinstance(decision, Reject):
            return decision if isinstance(decision, Reject) else UNKNOWN
        if isinstance(decision, Cancel):
            return self._cancel(record, reply)
        if self.hub.hosts.get(record.session_id) is None:
            return Reject(Refusal.UNAVAILABLE, "The session is not connected to the hub right now; try again.")
        proven = PROOF in record.prompt.constraints
        signed = self.passkeys.check(record, reply, decision) if proven else {}
        if isinstance(signed, Reject):
            return signed
        if QUORUM in record.prompt.constraints:
            return self._vote(record, reply, decision, signed)
        if self.hub.router.remote(reply.channel):
            # an accepted answer does not count towards the limit, because each prompt takes only one
            self._recent.forget_last(record.session_id)
        return self._write(record, reply, decision, replace(_decider(reply), noted=signed))

    def _vote(
        self, record: PromptRecord, reply: InboundReply, answer: Answer, signed: dict[str, Any]
    ) -> Answer | Receipt | Reject:
        """Counts one approval of several. The last one needed decides; a denial by anybody ends the prompt at once."""
        quorum = quorum_of(record.prompt.constraints)
        if not agrees(record.prompt, answer):
            return self._write(record, reply, answer, _decider(reply))
        person = self.person_of(reply.identity)
        if quorum.approvals > 1 and not person:
            return Reject(Refusal.NOT_ALLOWED, _WHOSE.format(quorum.approvals, reply.identity))
        if not quorum.admits(person):
            allowed = ", ".join(quorum.person)
            return Reject(Refusal.NOT_ALLOWED, f"The rule {quorum.rule!r} requires approval from {allowed}.")
        wanted = f"{answer.kind.value}:{answer.value}"
        try:
            noted = {"kind": answer.kind.value, "value": stored_value(record, answer), **signed} if signed else None
            cast = self.hub.ledger.vote(record, person, reply.identity, wanted, noted)
        except StoreError as error:
            return Reject(Refusal.UNAVAILABLE, f"Your vote was not counted, because it could not be recorded: {error}.")
        agreed = self._agreed(cast, wanted)
        if quorum.missing(agreed):
            sentence = describe_votes(quorum, agreed)
            self.hub.stream.publish(
                "reply.voted", session_id=record.session_id, prompt_id=record.prompt_id, by=person, sentence=sentence
            )
            self.hub.router.update(record, Receipt("reminder", sentence, reply.identity))
            return Receipt("voted", sentence, reply.identity)
        request = _request(reply) if reply.request_key else ""
        decider = Decider(", ".join(agreed), reply.place, request=request, noted=signed)
        return self._write(record, reply, answer, decider)

    def _agreed(self, cast: list[tuple[str, str]], wanted: str) -> list[str]:
        """The people behind these votes as they are known now. A renamed person still counts once, a person who is no
        longer allowed to answer does not count, and only each person's last vote counts."""
        last: dict[str, tuple[str, str]] = {}
        for identity, answer in cast:
            if person := self.person_of(identity) if is_still_allowed(identity, self.hub.router.policy) else "":
                last[person.casefold()] = (person, answer)
        return sorted(person for person, answer in last.values() if answer == wanted)

    def _cancel(self, record: PromptRecord, reply: InboundReply) -> Receipt | Reject:
        try:
            return self._life.cancel(record.prompt_id, _decider(reply)) or _LATE
        except StoreError as error:
            return Reject(Refusal.UNAVAILABLE, f"Nothing was changed, because it could not be recorded: {error}.")

    def _write(self, record: PromptRecord, reply: InboundReply, answer: Answer, decider: Decider) -> Answer | Reject:
        try:
            claimed = self.hub.ledger.claim(record.prompt_id, record.session_id, reply.nonce or None, answer, decider)
        except StoreError as error:
            return Reject(Refusal.UNAVAILABLE, _NOT_RECORDED.format(error))
        if isinstance(claimed, Reject):
            return claimed
        self.hub.stream.publish(
            "reply.received",
            session_id=record.session_id,
            prompt_id=record.prompt_id,
            channel=reply.channel,
            value=None if record.prompt.secret else redact_outgoing(answer.value or answer.kind.value),
            **decision_of(claimed),
        )
        self.hub.router.update(claimed, self._life.receipts.received(claimed), answered_in=reply.channel)
        return answer

    def _allowed(self, record: PromptRecord | None, reply: InboundReply) -> bool:
        if reply.channel == LOCAL:
            return True  # the socket has verified that it is the same user
        if record is None or reply.as_keys:
            return False
        return decide_allowed(
            reply.channel,
            reply.identity,
            remote=self.hub.router.remote(reply.channel),
            prompt=record.prompt,
            settings=self.hub.router.policy,
        )

    def _too_fast(self, record: PromptRecord, reply: InboundReply) -> bool:
        if not self.hub.router.remote(reply.channel):
            return False
        self._recent.limit = self.settings.rate_limit_per_minute
        return self._recent.admit(record.session_id, self.hub.clock.now()) > 0

    def _refused(self, record: PromptRecord | None, reply: InboundReply, why: Answer | Receipt | Reject) -> Reject:
        refusal = why if isinstance(why, Reject) else UNKNOWN
        ids = {
            "session_id": record.session_id if record else "",
            "prompt_id": record.prompt_id if record else escape_controls(reply.prompt_id[:64], keep_lines=False),
        }
        self.hub.stream.publish(
            "reply.refused", **ids, reason=refusal.reason.value, sentence=refusal.sentence, by=reply.identity
        )
        self._refusals.record(refusal.reason, reply.identity, **ids)
        if reply.request_key and record is not None:
            self._keep(reply, record.prompt_id, refusal)
        return refusal

    def _keep(self, reply: InboundReply, prompt_id: str, refusal: Reject) -> None:
        try:
            self.hub.ledger.keep_refusal(_request(reply), prompt_id, refusal)
        except StoreError as error:
            log.error("what a request was told could not be recorded: %s", error)
            self._unrecorded_refusals[_request(reply)] = refusal
            if len(self._unrecorded_refusals) > UNRECORDED_LIMIT:
                del self._unrecorded_refusals[next(iter(self._unrecorded_refusals))]

    def close(self) -> None:
        self._refusals.close_window()

    def forget(self, session_id: str) -> None:
        self._recent.forget(session_id)


_NOT_RECORDED = "Nothing was typed, because it could not be recorded: {}."
_NO_WORD = "Accepted and recorded, but the session has not confirmed yet that it was typed. Check the session."
_LATE = Reject(Refusal.NOT_OPEN, "This prompt is no longer open.")
_NOT_KNOWN = Reject(Refusal.NOT_ALLOWED, "It never arrived, and by now this person is not allowed to answer.")

_NO_LATER_CANCEL = Reject(Refusal.BAD_VALUE, "Leaving it alone cannot be scheduled: do it now.")
_ONLY_NO = (
    "What the tool announced does not match its screen: you can only refuse it from here. "
    "To allow it, use its terminal (atlasbridge attach)."
)
_WHOSE = (
    "{} different people must approve, and AtlasBridge does not know whose identity {} is: two identities can belong "
    "to one person. Add it under [[people]] in config.toml. A refusal counts anyway."
)
_GONE = Reject(Refusal.STALE, "It was accepted, but the prompt ended before the session confirmed that it was typed.")


def is_still_allowed(identity: str, policy: PolicySettings) -> bool:
    channel = identity.partition(":")[0]
    return channel in ("cli", LOCAL) or is_listed(channel, identity, policy)


def _decider(reply: InboundReply) -> Decider:
    return Decider(reply.identity, reply.place, request=_request(reply) if reply.request_key else "")


def _request(reply: InboundReply) -> str:
    """The key includes channel and identity, so that one person's key never matches another's."""
    return f"{reply.channel}/{reply.identity}/{reply.request_key[:REQUEST_KEY_LIMIT]}"
