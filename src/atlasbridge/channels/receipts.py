"""The outcome of a prompt as its title shows it: the answer, by whom, and when. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass

from atlasbridge.channels.people import is_timer
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.answer import KEY_LABELS, SECRET_LABEL
from atlasbridge.core.prompt.model import Choice, Prompt, PromptRecord, PromptState, PromptType, Receipt

ANSWER_LIMIT = 60
HEAD_CHARS = 8
STILL_OPEN = ("reminder", "postponed", "snoozed", "revoked")
STAGE_WORDS = {
    "received": "received, being typed",
    "typed": "typed",
    "answered_elsewhere": "received, being typed",
    "still_there": "typed, but the question is still there. Look at the terminal",
    "first_key": "the tool took the first key, the rest was not typed",
}
STAGE_MARKS = {"received": "📨", "answered_elsewhere": "📨", "typed": "⌨", "still_there": "⚠", "first_key": "⌨"}
WITHDRAWN = {
    "It was answered at the terminal.": "answered at the terminal",
    "The tool moved on.": "the tool moved on",
    "It was answered.": "answered",
    "The tool has ended.": "the tool has ended",
    "The session has crashed.": "the session has crashed",
}
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


def render_moment(wall: float) -> str:
    return time.strftime("%H:%M", time.localtime(wall))


def render_answer(prompt: Prompt, value: str) -> str:
    """An answer in readable form: the label of its choice, or the text in quotation marks."""
    word = _default_of(prompt) if value.lower() == "default" else value
    found = find_choice(prompt, word)
    if found is not None:
        return _short(found.label)
    several = [find_choice(prompt, one) for one in word.split(",")]
    if prompt.constraints.get("multi_select"):
        return _short(", ".join(one.label for one in several if one is not None) if all(several) else word)
    if word == SECRET_LABEL:
        return "a secret"
    if word in KEY_LABELS.values():
        return word
    if word.lower() in _YES and prompt.type is not PromptType.TYPE_FREE_TEXT:
        return _YES[word.lower()]
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
    prompt, moment = record.prompt, render_moment(at)
    detail = render_anchor(receipt)
    if is_timer(receipt.by or record.decided_by) or receipt.stage in ("expired", "default_typed"):
        return _timed_out(record, receipt, detail, again)
    match receipt.stage:
        case "withdrawn":
            sentence = WITHDRAWN.get(receipt.sentence, receipt.sentence)
            return Outcome(f"↩ {escape_controls(sentence, keep_lines=False)} · {moment}", detail)
        case "canceled":
            return Outcome(f"✖ left as it is{_by(who)} · {moment}", detail)
        case "failed":
            return Outcome(f"⚠ {escape_controls(receipt.sentence, keep_lines=False)}", detail)
    said = render_answer(prompt, answer) if answer else "answered"
    mark = STAGE_MARKS.get(receipt.stage) or ("🛑" if answer and refuses(prompt, answer) else "✅")
    stage = STAGE_WORDS.get(receipt.stage, "")
    return Outcome(f"{mark} {said}{_by(who)} · {moment}", f"{stage}. {detail}".strip(" .") if stage else detail)


def timer_typed(record: PromptRecord, receipt: Receipt) -> bool:
    """Whether a timer gave the answer. A timer without a default only lets the prompt expire."""
    typed = bool(receipt.answer or record.decided_value) or receipt.stage != "expired"
    return is_timer(receipt.by or record.decided_by) and typed


def render_fate(record: PromptRecord, who: str) -> str:
    """Describe in a few words what happened to a prompt that was not shown here."""
    match record.state:
        case PromptState.EXPIRED if not record.decided_by or not (record.decided_value or record.prompt.safe_default):
            return "nobody answered, nothing was typed"
        case _ if is_timer(record.decided_by):
            return f"nobody answered: a timer typed {_default_said(record)}"
        case PromptState.WITHDRAWN:
            return "it is no longer on the screen"
        case PromptState.CANCELED:
            return f"left as it is{_by(who)}"
        case PromptState.FAILED:
            return "it could not be answered"
        case PromptState.CREATED | PromptState.ROUTED | PromptState.AWAITING_REPLY:
            return "it still waits"
    said = render_answer(record.prompt, record.decided_value) if record.decided_value else "answered"
    return f"{said}{_by(who)}"


def render_anchor(receipt: Receipt) -> str:
    """The head of the audit log at the time of the decision. A saved message can later prove that the log was not
    rewritten."""
    count, _, head = receipt.audit_head.rpartition(":")
    return f"audit {count or '?'}:{head[:HEAD_CHARS]}" if head else ""


def _timed_out(record: PromptRecord, receipt: Receipt, detail: str, again: bool) -> Outcome:
    if not timer_typed(record, receipt):
        waits = "still waiting" if again else "nothing was typed"
        return Outcome(f"⌛ nobody answered in time: {waits}", detail, again)
    said = _default_said(record)
    match receipt.stage:
        case "still_there":
            return Outcome(f"⚠ nobody answered: a timer typed {said}, but the question is still there", detail)
        case "failed" | "withdrawn":
            return Outcome(f"⏱ nobody answered in time: {escape_controls(receipt.sentence, keep_lines=False)}", detail)
        case "expired":
            return Outcome(f"⏱ nobody answered: a timer is typing {said}", detail)
    return Outcome(f"⏱ nobody answered: a timer typed {said}", detail)


def _default_said(record: PromptRecord) -> str:
    typed = record.decided_value or ("default" if record.prompt.safe_default else "")
    return render_answer(record.prompt, typed) if typed else "the default"


def _default_of(prompt: Prompt) -> str:
    return "enter" if prompt.safe_default in ("\r", "\n") else prompt.safe_default


def _by(who: str) -> str:
    return f" · {who}" if who else ""


def _short(text: str) -> str:
    flat = escape_controls(text, keep_lines=False).strip() or "?"
    return flat if len(flat) <= ANSWER_LIMIT else flat[: ANSWER_LIMIT - 1] + "…"
