"""An answer as people read it, in receipts and records: the words of the choice, never the value of a secret."""

from __future__ import annotations

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import Answer, AnswerKind, Prompt, PromptType
from atlasbridge.core.prompt.redact import redact

LABEL_LIMIT = 200
SECRET_LABEL = "(a secret)"
HERE = "cli:local"  # a command of this machine, whoever typed it
TIMER = "auto:timeout"  # who decided, where nobody did in time
KEY_LABELS = {"enter": "Enter key", "esc": "Esc key", "ctrl-c": "Ctrl-C key"}
_PLAIN = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "Enter"}


def label_answer(prompt: Prompt, answer: Answer) -> str:
    """What is kept and told of an answer; a long text is cut, and says so."""
    if prompt.secret:
        return SECRET_LABEL
    flat = escape_controls(redact(_words(prompt, answer)), keep_lines=False)
    return flat if len(flat) <= LABEL_LIMIT else f"{flat[: LABEL_LIMIT - 1]}…"


def _words(prompt: Prompt, answer: Answer) -> str:
    key = "enter" if answer.kind is AnswerKind.ENTER else answer.value if answer.kind is AnswerKind.KEYS else ""
    if key in KEY_LABELS and prompt.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN):
        return KEY_LABELS[key]  # not the word, which could have been typed as well
    match answer.kind:
        case AnswerKind.YES | AnswerKind.NO | AnswerKind.ENTER:
            plain = _PLAIN[answer.kind]
            return _choice_words(prompt, plain) or plain
        case AnswerKind.CHOICE:
            return _choice_words(prompt, answer.value) or answer.value
        case AnswerKind.CHOICES:
            values = [value for value in answer.value.split(",") if value]
            return ", ".join(_choice_words(prompt, value) or value for value in values) or "none"
        case _:
            return answer.value


def _choice_words(prompt: Prompt, value: str) -> str:
    """ "2. No, and tell Claude" where the tool counts; a letter that only repeats its label says nothing more."""
    for choice in prompt.choices:
        if choice.value == value:
            same = value == choice.label or choice.label[:1].lower() == value.lower()
            return choice.label if same else f"{value}. {choice.label}"
    return ""


def call_person(identity: str, place: str = "", name: str = "") -> str:
    """In a sentence: by name where one is known.  Of a command of this machine its place says all that is known."""
    if identity == HERE and not name:
        return f"a person at {place or 'this machine'}"
    who = name or identity or "somebody"
    return f"{who} ({place})" if place else who


def quote_answer(label: str) -> str:
    """In a sentence: quoted, but what stands for a secret is no quotation."""
    if label in KEY_LABELS.values():
        return f"the {label}"
    return "a secret" if label == SECRET_LABEL else f'"{label}"'
