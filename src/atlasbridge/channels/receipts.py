"""The outcome of a prompt as its title shows it: the answer, by whom, and when; and the display names of people.

Names come from the configuration, otherwise from the messages that people send; the hub stores them. They are used in
messages only; decisions use ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from atlasbridge.channels.excerpt import in_a_line
from atlasbridge.channels.language import Reader, at_time, hub_says, known_language, say_label, t
from atlasbridge.core.clock import parse_iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.answer import KEY_LABELS, SECRET_LABEL
from atlasbridge.core.prompt.model import Choice, Prompt, PromptRecord, PromptState, PromptType, Receipt

ANSWER_LIMIT = 60
HEAD_CHARS = 8
STILL_OPEN = ("reminder", "postponed", "snoozed", "revoked")
STAGES = {
    "received": ("📨", "received, being typed"),
    "typed": ("⌨", "typed"),
    "answered_elsewhere": ("📨", "received, being typed"),
    "still_there": ("⚠", "typed, but the question is still there. Check the terminal"),
    "first_key": ("⌨", "the tool took the first key, the rest was not typed"),
}
WITHDRAWN = {
    "It was answered at the terminal.": "answered at the terminal",
    "The tool moved on.": "the tool moved on",
    "It was answered.": "answered",
    "The tool has ended.": "the tool has ended",
    "The session has crashed.": "the session has crashed",
}
TIMER_TYPED = "nobody answered: a timer typed {answer}"
_BY_WHOM = re.compile(r", answered by [^\n]*\.$")
_YES = {"y": "Yes", "yes": "Yes", "n": "No", "no": "No", "enter": "Enter", "cancel": "Cancel"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`again`: the tool still waits, so the prompt can be raised again."""

    title: str
    detail: str = ""
    again: bool = False


def is_end(receipt: Receipt) -> bool:
    """Whether the prompt can no longer be answered."""
    return receipt.stage not in STILL_OPEN


def render_answer(prompt: Prompt, value: str) -> str:
    """An answer in readable form: the label of its choice, or the text in quotation marks."""
    word = _default_of(prompt) if value.lower() == "default" else value
    found = find_choice(prompt, word)
    if found is not None:
        return _short(say_label(found.value, found.label))
    several = [find_choice(prompt, one) for one in word.split(",")]
    labels = [say_label(one.value, one.label) for one in several if one is not None]
    if prompt.constraints.get("multi_select"):
        return _short(", ".join(labels) if len(labels) == len(several) else word)
    if word == SECRET_LABEL:
        return t("a secret")
    if word in KEY_LABELS.values():
        return word
    if word.lower() in _YES and prompt.type is not PromptType.TYPE_FREE_TEXT:
        return t(_YES[word.lower()])
    return f"“{_short(word)}”" if word else "Enter"


def refuses(prompt: Prompt, value: str) -> bool:
    word = _default_of(prompt) if value.lower() == "default" else value
    found = find_choice(prompt, word)
    return found.refuses if found is not None else word.lower() in ("n", "no")


def find_choice(prompt: Prompt, value: str) -> Choice | None:
    """Find a choice by value, by label, or by both as the records write them: "2. Yes, always"."""
    exact = [one for one in prompt.choices if value in (one.value, one.label, f"{one.value}. {one.label}")]
    low = value.lower()
    near = [choice for choice in prompt.choices if low in (choice.value.lower(), choice.label.lower())]
    return next(iter(exact or near), None)


def render_outcome(record: PromptRecord, receipt: Receipt, answer: str, who: str, at: float, again: bool) -> Outcome:
    """`answer` is the given value if it is known; `who` is the display name of the person."""
    prompt, moment = record.prompt, at_time(at)
    detail = render_anchor(receipt)
    if is_timer(receipt.by or record.decided_by) or receipt.stage in ("expired", "default_typed"):
        return _timed_out(record, receipt, detail, again)
    match receipt.stage:
        case "withdrawn":
            known = WITHDRAWN.get(receipt.sentence, "")
            sentence = t(known) if known else hub_says(receipt.sentence)
            return Outcome(f"↩ {escape_controls(sentence, keep_lines=False)} · {moment}", detail)
        case "canceled":
            return Outcome(f"✖ {t('left as it is')}{_by(who)} · {moment}", detail)
        case "failed":
            return Outcome(f"⚠ {escape_controls(hub_says(receipt.sentence), keep_lines=False)}", detail)
    said = render_answer(prompt, answer) if answer else t("answered")
    mark, stage = STAGES.get(receipt.stage, ("🛑" if answer and refuses(prompt, answer) else "✅", ""))
    told = f"{t(stage)}. {detail}".strip(" .") if stage else detail
    return Outcome(f"{mark} {said}{_by(who)} · {moment}", told)


def timer_typed(record: PromptRecord, receipt: Receipt) -> bool:
    """Whether a timer gave the answer. A timer without a default only lets the prompt expire."""
    typed = bool(receipt.answer or record.decided_value) or receipt.stage != "expired"
    return is_timer(receipt.by or record.decided_by) and typed


def render_fate(record: PromptRecord, who: str) -> str:
    """Describe in a few words what happened to a prompt that was not shown here."""
    match record.state:
        case PromptState.EXPIRED if not record.decided_by or not (record.decided_value or record.prompt.safe_default):
            return t("nobody answered, nothing was typed")
        case _ if is_timer(record.decided_by):
            return t(TIMER_TYPED, answer=_default_said(record))
        case PromptState.WITHDRAWN:
            return t("it is no longer on the screen")
        case PromptState.CANCELED:
            return f"{t('left as it is')}{_by(who)}"
        case PromptState.FAILED:
            return t("it could not be answered")
        case PromptState.CREATED | PromptState.ROUTED | PromptState.AWAITING_REPLY:
            return t("still waiting")
    said = render_answer(record.prompt, record.decided_value) if record.decided_value else t("answered")
    return f"{said}{_by(who)}"


def render_anchor(receipt: Receipt) -> str:
    """The head of the audit log at the time of the decision. A saved message can later prove that the log was not
    rewritten."""
    count, _, head = receipt.audit_head.rpartition(":")
    return f"{t('audit')} {count or '?'}:{head[:HEAD_CHARS]}" if head else ""


def _timed_out(record: PromptRecord, receipt: Receipt, detail: str, again: bool) -> Outcome:
    if not timer_typed(record, receipt):
        waits = (
            t("nobody answered in time: still waiting") if again else t("nobody answered in time: nothing was typed")
        )
        return Outcome(f"⌛ {waits}", detail, again)
    said = _default_said(record)
    match receipt.stage:
        case "still_there":
            told = t("nobody answered: a timer typed {answer}, but the question is still there", answer=said)
            return Outcome(f"⚠ {told}", detail)
        case "failed" | "withdrawn":
            why = escape_controls(hub_says(receipt.sentence), keep_lines=False)
            return Outcome(f"⏱ {t('nobody answered in time: {why}', why=why)}", detail)
        case "expired":
            return Outcome(f"⏱ {t('nobody answered: a timer is typing {answer}', answer=said)}", detail)
    return Outcome(f"⏱ {t(TIMER_TYPED, answer=said)}", detail)


def _default_said(record: PromptRecord) -> str:
    typed = record.decided_value or ("default" if record.prompt.safe_default else "")
    return render_answer(record.prompt, typed) if typed else t("the default")


def _default_of(prompt: Prompt) -> str:
    return "enter" if prompt.safe_default in ("\r", "\n") else prompt.safe_default


def _by(who: str) -> str:
    return f" · {who}" if who else ""


def _short(text: str) -> str:
    return in_a_line(text, ANSWER_LIMIT)


# The display names of people, and what their service says of them.

NAME_LIMIT = 40
TIMER = "auto:"
PLACES = {
    "cli": "a terminal",
    "local": "a terminal",
    "web": "the page",
    "grant": "a standing answer",
    "ntfy": "a phone",
}


class People:
    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._names: dict[str, str] = {}

    def learn(self, person_id: str, name: object, language: object = "", zone: object = "") -> None:
        """`person_id` is the part of an identity after the channel's name. Some services know the rest, too."""
        known = escape_controls(str(name or ""), keep_lines=False).strip()[:NAME_LIMIT]
        if known and self._names.get(person_id) != known:
            self._names[person_id] = known
            self._hub_api.remember(_key(self._channel, person_id), known)

        tells = f"{known_language(language)} {zone or ''}".strip()
        if tells and self._hub_api.recall(key := f"{self._channel}.reads.{person_id}") != tells:
            self._hub_api.remember(key, tells)

    def reads(self, identity: str) -> Reader:
        """What the service says of the language and the time zone of this person."""
        tells = self._hub_api.recall(f"{self._channel}.reads.{identity.partition(':')[2]}") if identity else ""
        language, _, zone = tells.partition(" ")
        return Reader(known_language(language), zone)

    def name(self, person_id: str) -> str:
        return self._names.get(person_id) or self._hub_api.recall(_key(self._channel, person_id))

    def call(self, identity: str) -> str:
        """Return a known name, otherwise a place; an id only as the last resort."""
        if given := self._hub_api.name_of(identity):
            return given
        channel, _, person_id = identity.partition(":")
        known = self.name(person_id) if channel == self._channel else self._hub_api.recall(_key(channel, person_id))
        return known or (t(PLACES[channel]) if channel in PLACES else "") or escape_controls(identity, keep_lines=False)

    def outcome(
        self, record: PromptRecord, receipt: Receipt, now: float, given: str = "", again: bool = False
    ) -> Outcome:
        """The outcome with the name of the person who decided. `given` is an answer that only the channel knows."""
        by, at = receipt.by or record.decided_by, receipt.at or record.decided_at
        answer = receipt.answer or record.decided_value or given
        return render_outcome(record, receipt, answer, self.call(by) if by else "", parse_iso(at) if at else now, again)

    def own(self, sentence: str) -> str:
        """What became of somebody's own answer, for them: they know who answered."""
        return _BY_WHOM.sub(".", sentence)

    def rename(self, sentence: str, identity: str) -> str:
        """Replace the identity in the sentence by a name."""
        return sentence.replace(identity, self.call(identity)) if identity else sentence


def is_timer(identity: str) -> bool:
    return identity.startswith(TIMER)


def _key(channel: str, person_id: str) -> str:
    return f"{channel}.name.{person_id}"
