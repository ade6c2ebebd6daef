"""What the tool asks, verbatim, and cut to the room a chat has: what is left out is always counted.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Confidence, Prompt, PromptType, Subject, SubjectKind

LAST_OUTPUT = 2000  # characters of a screen that is shown for want of a question
LEAST_QUOTE = 40
HINT = "The tool says, in its output"
Size = Callable[[str], int]
CAPTIONS = {
    SubjectKind.COMMAND: "Command",
    SubjectKind.EDIT: "Change",
    SubjectKind.FETCH: "Page",
    SubjectKind.PLAN: "Plan",
    SubjectKind.QUESTION: "Question",
    SubjectKind.TOOL: "Call",
    SubjectKind.TRUST: "To be trusted",
}


VERBS = {
    SubjectKind.COMMAND: "Run ",
    SubjectKind.EDIT: "Change ",
    SubjectKind.FETCH: "Fetch ",
    SubjectKind.PLAN: "Plan: ",
    SubjectKind.TOOL: "Call ",
    SubjectKind.TRUST: "Trust ",
}


@dataclass(frozen=True, slots=True)
class Quote:
    """A piece of the tool's own text; `total` is how long it is whole, as the chat counts."""

    caption: str
    text: str
    shown: int = 0
    total: int = 0

    @property
    def is_cut(self) -> bool:
        return self.shown < self.total


def is_ambiguous(prompt: Prompt) -> bool:
    """Whether the person is first asked what to do at all."""
    unsure = prompt.confidence is Confidence.LOW and not prompt.choices
    return prompt.type is PromptType.TYPE_UNKNOWN or unsure


def quotes_of(prompt: Prompt) -> list[Quote]:
    """Subject and question as the tool has them, whole; never empty, since a quotation of nothing cannot be shown."""
    question = _question(prompt)
    screen = escape_controls(prompt.screen).rstrip()
    cut = not prompt.question and _is_cut(prompt.excerpt)
    if not prompt.secret and screen and (cut or prompt.idle or is_ambiguous(prompt)):
        question = screen if not (prompt.idle or is_ambiguous(prompt)) else screen[-LAST_OUTPUT:]
    subject = escape_controls(prompt.subject.shown).rstrip() if prompt.subject else ""
    hint = [Quote(HINT, escape_controls(prompt.says))] if prompt.says.strip() else []
    if not subject or prompt.subject is None:
        return [Quote("", question or "(the screen shows no text)"), *hint]
    about = [Quote(_caption(prompt.subject), subject)]
    if question and not _holds(subject, question):
        about.append(Quote("On the screen", question))
    return [*about, *hint]


def _question(prompt: Prompt) -> str:
    """All of it, and what explains the choices."""
    question = escape_controls(prompt.question or prompt.excerpt).strip("\n").rstrip()
    explained = [f"{choice.label}: {choice.detail}" for choice in prompt.choices if choice.detail]
    return "\n\n".join(part for part in (question, escape_controls("\n".join(explained))) if part)


def fit_quotes(quotes: list[Quote], room: int, size: Size) -> list[Quote]:
    """As much of each as there is room for, the first ones first; each knows how much of it is shown."""
    out, left = [], room
    for place, quote in enumerate(quotes):
        reserved = LEAST_QUOTE * (len(quotes) - place - 1)
        text = cut_to(quote.text, max(LEAST_QUOTE, left - reserved), size)
        shown = len(quote.text) if text == quote.text else len(text) - 1
        out.append(Quote(quote.caption, text, shown, len(quote.text)))
        left -= size(text)
    return out


def count_missing(quotes: list[Quote], rest: str) -> str:
    """ "" when everything is shown; else how much of how much, and where the rest is."""
    cut = [quote for quote in quotes if quote.is_cut]
    if not cut:
        return ""
    counted = "; ".join(f"{quote.shown:,} of {quote.total:,} characters" for quote in cut)
    return f"⚠ {counted}; the rest: {rest}"


def warn_incomplete(prompt: Prompt) -> str:
    """What a person must know about what they read: a part is missing, or it is only what the tool drew."""
    if not prompt.asked_whole:
        return "⚠ This may not be all of it: a part was cut, or stands above it on the screen."
    if prompt.subject is None or prompt.subject.complete or not prompt.subject.shown:
        return ""
    return "As the tool drew it: tabs, invisible characters and its line breaks cannot be told from here."


def whole_text(prompt: Prompt) -> str:
    """Everything there is to read about this prompt, for "show more"."""
    parts = [f"{quote.caption}:\n{quote.text}" if quote.caption else quote.text for quote in quotes_of(prompt)]
    screen = escape_controls(prompt.screen).rstrip()
    if screen and not any(screen in part for part in parts):
        parts.append(f"Screen:\n{screen}" if prompt.subject is not None else screen)
    return "\n\n".join(parts) if prompt.subject is not None or not screen else parts[-1]


def first_line(prompt: Prompt) -> str:
    """How the question begins, on one line: what a notification shows.  Of a command with more lines it says so."""
    subject = prompt.subject
    if subject is not None and subject.shown.strip() and subject.kind is not SubjectKind.QUESTION:
        if subject.kind in (SubjectKind.EDIT, SubjectKind.FETCH) and subject.targets:
            return _flat(", ".join(subject.targets))
        first, *more = [line for line in subject.shown.splitlines() if line.strip()]
        return _flat(first) + (" …" if more else "")
    lines = [flat for line in prompt.excerpt.splitlines() if (flat := _flat(line))]
    asking = [line for line in lines if "?" in line]
    return (asking or lines or ["?"])[0]


def ask_verb(prompt: Prompt) -> str:
    """Our own word for what is asked, to stand before the quotation."""
    told = prompt.subject is not None and prompt.subject.shown.strip()
    return VERBS.get(prompt.subject.kind, "") if prompt.subject is not None and told else ""


def cut_to(text: str, room: int, size: Size) -> str:
    """At most `room` as the chat counts, with a mark where it ends."""
    if size(text) <= room:
        return text
    low, high = 0, min(len(text), max(0, room - 1))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) < room else (low, middle - 1)
    return text[:low] + "…"


def _caption(subject: Subject) -> str:
    target = _flat(", ".join(subject.targets))[:120]
    folder = _flat(subject.folder)[-80:]
    where = f" · {target}" if target else f" in {folder}" if folder else ""
    return CAPTIONS[subject.kind] + where


def _is_cut(excerpt: str) -> bool:
    return len(excerpt) >= EXCERPT_LIMIT - 1 or excerpt.rstrip().endswith("…")


def _holds(subject: str, question: str) -> bool:
    return all(line.strip() in subject for line in question.splitlines())


def _flat(text: str) -> str:
    return escape_controls(text, keep_lines=False).strip()
