"""What the tool asks, verbatim, and cut to the room a chat has: what is left out is always counted.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atlasbridge.channels.transcript import last_answer
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Confidence, Prompt, PromptType, Subject, SubjectKind

LAST_OUTPUT = 2000  # characters of a screen that is shown for want of a question
LEAST_QUOTE = 40
HINT = "The tool says, in its output"
EFFECTS = "effects"  # of a prompt's constraints, as `core.policy.effects` writes them
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


# What a card says for each effect of `core.policy.effects`: alone, and with its target.
EFFECT_WORDS = {
    "runs_downloaded": ("runs downloaded code", ""),
    "runs_hidden": ("runs code that cannot be read here", ""),
    "deletes": ("deletes files", ""),
    "deletes_with": ("deletes", "deletes with {target}"),
    "formats": ("overwrites a disk", "overwrites the disk {target}"),
    "discards": ("discards changes", ""),
    "force_pushes": ("force-pushes", "force-pushes to {target}"),
    "pushes": ("pushes", "pushes to {target}"),
    "publishes": ("publishes", "publishes with {target}"),
    "sends": ("sends data", "sends data to {target}"),
    "runs_on": ("runs commands on another host", "runs commands on {target}"),
    "as_root": ("runs as root", ""),
    "turns_off": ("restarts or turns off the computer", ""),
    "deploys": ("changes a deployment", "changes a deployment with {target}"),
    "overwrites": ("overwrites files", "overwrites {target}"),
    "stops": ("stops processes", ""),
    "permissions": ("changes permissions", ""),
    "schedules": ("schedules a job", ""),
    "installs": ("installs packages", ""),
    "downloads": ("downloads", "downloads from {target}"),
}
MOST_EFFECTS, TARGET_LIMIT = 4, 80


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
    above: int = 0  # lines of output above the question that are no part of it, and are not sent

    @property
    def is_cut(self) -> bool:
        return self.shown < self.total


def is_ambiguous(prompt: Prompt) -> bool:
    """Whether the person is first asked what to do at all."""
    unsure = prompt.confidence is Confidence.LOW and not prompt.choices
    return prompt.type is PromptType.TYPE_UNKNOWN or unsure


def quotes_of(prompt: Prompt) -> list[Quote]:
    """Subject and question as the tool has them, whole; never empty, since a quotation of nothing cannot be shown."""
    question, above = _question(prompt)
    screen = escape_controls(prompt.screen).rstrip()
    if not prompt.secret and screen and is_ambiguous(prompt):
        question, above = screen[-EXCERPT_LIMIT:], 0
    elif not prompt.secret and screen and prompt.idle:
        question, above = last_words(screen)[-LAST_OUTPUT:], 0
    elif not prompt.secret and screen and not prompt.question and _is_cut(prompt.excerpt):
        question, above = screen, 0  # nothing else says all that is asked
    subject = escape_controls(prompt.subject.shown).rstrip() if prompt.subject else ""
    hint = [Quote(HINT, escape_controls(prompt.says))] if prompt.says.strip() else []
    if not subject or prompt.subject is None:
        return [Quote("", question or "(the screen shows no text)", above=above), *hint]
    about = [Quote(_caption(prompt.subject), subject)]
    if question and not _holds(subject, question):
        about.append(Quote("On the screen", question, above=above))
    return [*about, *hint]


def last_words(screen: str) -> str:
    """What a finished agent said last, without its logo, its input box and the lines around that."""
    rows = last_answer(screen.split("\n"))
    return "\n".join(rows).strip("\n") or screen


def _question(prompt: Prompt) -> tuple[str, int]:
    """All of it, and what explains the choices; and how many lines of output above it were left out."""
    question = escape_controls(prompt.question or prompt.excerpt).strip("\n").rstrip()
    asked = asked_part(question) if prompt.line_mode and not prompt.idle else question
    above = len([row for row in question.removesuffix(asked).split("\n") if row.strip()])
    explained = [f"{choice.label}: {choice.detail}" for choice in prompt.choices if choice.detail]
    return "\n\n".join(part for part in (asked, escape_controls("\n".join(explained))) if part), above


def asked_text(prompt: Prompt) -> str:
    """What must have been read before somebody answers, as one text: the subject, the question, what explains it."""
    question, _ = _question(prompt)
    subject = escape_controls(prompt.subject.shown).strip() if prompt.subject else ""
    return f"{subject}\n\n{question}" if subject and subject not in question else question


def lines_above(prompt: Prompt) -> int:
    """How many lines of output above the question `asked_text` leaves out."""
    return _question(prompt)[1]


def asked_part(text: str) -> str:
    """Of a text that ends with a question, the part that belongs to it: its sentence, a few lines right above it, and a
    list with its heading.  Lines of a log are no part of it."""
    rows = text.split("\n")
    first = len(rows) - 1
    while first > 0 and len(rows) - first <= NEAR_ROWS:
        if not rows[first - 1].strip():
            if first < 2 or _says_what("\n".join(rows[first:])):
                break
            first -= 1
            continue
        run = _same_shape(rows, first - 1)
        if run >= LOG_ROWS:
            break
        first -= 1
    listed = _heading_above(rows, first)
    return "\n".join(rows[listed:]).strip("\n")


NEAR_ROWS = 4  # above the line that asks
LOG_ROWS = 3  # so many lines that begin alike are a log or a list
LIST_ROWS = 40
_NUMBERS = re.compile(r"\d+")


def _says_what(text: str) -> bool:
    """Whether it can be understood without what stands above it, as "Enter a value:" cannot."""
    return "?" in text and sum(char.isalpha() for char in text) > LEAST_QUOTE


def _same_shape(rows: Sequence[str], last: int) -> int:
    """How many rows up to `last` begin alike."""
    shape = _shape(rows[last])
    first = last
    while first >= 0 and rows[first].strip() and _shape(rows[first]) == shape:
        first -= 1
    return last - first


def _shape(row: str) -> tuple[int, str]:
    """How far it is set in, and its first word, in which any number is as good as another."""
    return len(row) - len(row.lstrip()), _NUMBERS.sub("0", row.strip().partition(" ")[0])


def _heading_above(rows: Sequence[str], first: int) -> int:
    """The row of a line such as "These files will be deleted:" when nothing but its list stands below it; else
    `first`."""
    for at in range(first - 1, max(-1, first - LIST_ROWS), -1):
        if not rows[at].strip():
            break
        if rows[at].rstrip().endswith(":") and len(rows[at].split()) > 1:
            return at
    return first


def fit_quotes(quotes: list[Quote], room: int, size: Size) -> list[Quote]:
    """As much of each as there is room for, the first ones first; each knows how much of it is shown."""
    out, left = [], room
    for place, quote in enumerate(quotes):
        reserved = LEAST_QUOTE * (len(quotes) - place - 1)
        text = cut_to(quote.text, max(LEAST_QUOTE, left - reserved), size)
        shown = len(quote.text) if text == quote.text else len(text) - 1
        out.append(Quote(quote.caption, text, shown, len(quote.text), quote.above))
        left -= size(text)
    return out


def count_missing(quotes: list[Quote], rest: str) -> str:
    """ "" when everything is shown; else how much of how much, and where the rest is."""
    counted = [f"{quote.shown:,} of {quote.total:,} characters" for quote in quotes if quote.is_cut]
    above = sum(quote.above for quote in quotes)
    counted += [f"{above} {'line' if above == 1 else 'lines'} of output above it not sent"] if above else []
    return f"⚠ {'; '.join(counted)}; the rest: {rest}" if counted else ""


def render_effects(prompt: Prompt) -> str:
    """What the command does, from its parse; "": nothing of it is known."""
    told = prompt.constraints.get(EFFECTS)
    known = [one for one in told if isinstance(one, dict) and one.get("kind") in EFFECT_WORDS] if told else []
    said = [_say_effect(str(one["kind"]), str(one.get("target") or "")) for one in known[:MOST_EFFECTS]]
    return f"⚠ {' · '.join(said)}" if said else ""


def _say_effect(kind: str, target: str) -> str:
    alone, with_target = EFFECT_WORDS[kind]
    named = escape_controls(target, keep_lines=False)[:TARGET_LIMIT]
    return with_target.format(target=named) if named and with_target else alone


def warn_incomplete(prompt: Prompt) -> str:
    """What a person must know about what they read: a part is missing, or it is only what the tool drew."""
    missing = prompt.constraints.get("missing_lines")
    if prompt.constraints.get("disagrees"):
        return "⚠ What the tool announced and what its screen shows are not the same. Only No can be answered."
    if not prompt.asked_whole and isinstance(missing, int) and missing > 0:
        return f"⚠ Not whole: {missing} line{'s are' if missing > 1 else ' is'} missing."
    if not prompt.asked_whole:
        return "⚠ This may not be all of it: a part was cut, or stands above it on the screen."
    if prompt.subject is None or prompt.subject.complete or not prompt.subject.shown:
        return ""
    return "As the tool drew it: tabs, invisible characters and its line breaks cannot be told from here."


def title_whole(prompt: Prompt) -> str:
    """Over everything there is to read: it says so where that is not all."""
    return "All of it:" if prompt.asked_whole else "All that could be read of it; a part is missing:"


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
