"""The tool's question, verbatim and cut to the space of a chat. Omitted text is always counted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from atlasbridge.channels.language import t
from atlasbridge.channels.transcript import marked_answer
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import (
    EXCERPT_LIMIT,
    Confidence,
    Prompt,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
)

LAST_OUTPUT = 2000  # characters of an agent's last answer that its notice quotes
LEAST_QUOTE = 40
SAYS = "The tool says, in its output"
EFFECTS = "effects"  # key in a prompt's constraints, written by `core.policy.effects`
Size = Callable[[str], int]


# The text on a card for each effect of `core.policy.effects`: alone, and with its target.
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
ABOVE = "1 line of output above it not sent|{count} lines of output above it not sent"
DISAGREES = "What the tool announced does not match its screen. You can only answer No."
MOST_EFFECTS, TARGET_LIMIT = 4, 80


class KindWords(NamedTuple):
    """How a kind of subject is named: above its quote, in a headline, and in the title of a card whose first quote is
    what it names, so that nothing is said twice."""

    caption: str
    verb: str
    wants: str


KIND_WORDS = {
    SubjectKind.COMMAND: KindWords("Command", "Run {text}", "{name} wants to run:"),
    SubjectKind.EDIT: KindWords("Change", "Change {text}", "{name} wants to change {text}:"),
    SubjectKind.FETCH: KindWords("Page", "Fetch {text}", "{name} wants to fetch:"),
    SubjectKind.PLAN: KindWords("Plan", "Plan: {text}", "{name} asks you to approve a plan:"),
    SubjectKind.QUESTION: KindWords("Question", "{text}", "{name} asks:"),
    SubjectKind.TOOL: KindWords("Call", "Call {text}", "{name} wants to call:"),
    SubjectKind.TRUST: KindWords("Asks for trust in", "Trust {text}", "{name} asks you to trust:"),
}


@dataclass(frozen=True, slots=True)
class Quote:
    """A piece of the tool's own text. `total` is its full length in characters."""

    caption: str
    text: str
    shown: int = 0
    total: int = 0
    above: int = 0  # lines of output above the question that are unrelated and not sent

    @property
    def is_cut(self) -> bool:
        return self.shown < self.total


def is_ambiguous(prompt: Prompt) -> bool:
    """Whether the person is asked first what to do."""
    unsure = prompt.confidence is Confidence.LOW and not prompt.choices
    return prompt.type is PromptType.TYPE_UNKNOWN or unsure


def quotes_of(prompt: Prompt, titled: bool = False) -> list[Quote]:
    """Return subject and question verbatim and complete. The list is never empty, because a chat cannot show an empty
    quote. `titled`: for a card, whose title names the subject; what its screen says besides is behind "Show all"."""
    question, above = _question(prompt)
    screen = escape_controls(prompt.screen).rstrip()
    if not prompt.secret and screen and is_ambiguous(prompt):
        question, above = screen[-EXCERPT_LIMIT:], 0
    elif not prompt.secret and screen and prompt.idle:
        question, above = last_words(screen), 0
    elif not prompt.secret and screen and not prompt.question and _is_cut(prompt.excerpt):
        question, above = screen, 0  # no other text contains the whole question
    subject = escape_controls(prompt.subject.shown).rstrip() if prompt.subject else ""
    hint = [Quote(t(SAYS), says)] if (says := more_said(prompt, question)) else []
    if not subject or prompt.subject is None:
        return [Quote("", question or t("(the screen shows no text)"), above=above), *hint]
    about = [Quote("" if titled and names_subject(prompt) else _caption(prompt.subject), subject)]
    if question and not _holds(subject, question) and not (titled and _is_enough(prompt)):
        about.append(Quote(t("On the screen"), question, above=above))
    return [*about, *hint]


def names_subject(prompt: Prompt) -> bool:
    """Whether a card's title says what is quoted below it."""
    about = prompt.subject
    return about is not None and bool(about.shown.strip()) and len(about.targets) < 2


def _is_enough(prompt: Prompt) -> bool:
    """Whether the tool itself told the whole subject, so that its screen can only repeat it."""
    about = prompt.subject
    told = about is not None and about.complete and about.source is not SubjectSource.SCREEN
    return told and names_subject(prompt) and not prompt.constraints.get("disagrees")


def more_said(prompt: Prompt, question: str) -> str:
    """What the tool says of itself beside its question; "" if it only repeats what is shown anyway."""
    about = prompt.subject
    targets = (about.shown, *about.targets) if about is not None else ()
    told = "\n".join([question, *targets, *(choice.label for choice in prompt.choices)])
    return "" if _is_enough(prompt) or _is_told(prompt.says, told) else escape_controls(prompt.says).strip()


def _is_told(hint: str, shown: str) -> bool:
    """Whether a hint of the tool only repeats words that are shown anyway, behind a word of its own and maybe cut."""
    about = re.sub(r"\w+…$", "", hint.partition(": ")[2])
    return bool(about) and set(re.findall(r"\w+", about)) <= set(re.findall(r"\w+", shown))


def last_words(screen: str) -> str:
    """The last text of an idle agent, without its logo, its input box and the lines around it."""
    answer = "\n".join(marked_answer(screen.split("\n"))).strip("\n")
    return answer[-LAST_OUTPUT:] or screen[-EXCERPT_LIMIT:]  # of a shell or a REPL: the rest can be any output


def _question(prompt: Prompt) -> tuple[str, int]:
    """Return the question with the explanation of its choices, and the number of output lines above it that were
    omitted."""
    question = escape_controls(prompt.question or prompt.excerpt).strip("\n").rstrip()
    asked = asked_part(question) if prompt.line_mode and not prompt.idle else question
    above = len([row for row in question.removesuffix(asked).split("\n") if row.strip()])
    explained = [f"{choice.label}: {choice.detail}" for choice in prompt.choices if choice.detail]
    return "\n\n".join(part for part in (asked, escape_controls("\n".join(explained))) if part), above


def asked_text(prompt: Prompt) -> str:
    """The text that a person must read before answering: the subject, the question and its explanation."""
    if prompt.idle and prompt.screen.strip() and not prompt.secret:
        return last_words(escape_controls(prompt.screen).rstrip())
    question, _ = _question(prompt)
    subject = escape_controls(prompt.subject.shown).strip() if prompt.subject else ""
    return f"{subject}\n\n{question}" if subject and subject not in question else question


def lines_above(prompt: Prompt) -> int:
    """Return how many lines of output above the question `asked_text` omits."""
    return _question(prompt)[1]


def asked_part(text: str) -> str:
    """Return the part of a text that belongs to the question at its end: its sentence, a few lines directly above it,
    and a list with its heading. Log lines are not part of it."""
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


NEAR_ROWS = 4  # rows directly above the line with the question
LOG_ROWS = 3  # this many lines with the same start are a log or a list
LIST_ROWS = 40
_NUMBERS = re.compile(r"\d+")


def _says_what(text: str) -> bool:
    """Whether the line can be understood without the lines above it; "Enter a value:" cannot."""
    return "?" in text and sum(char.isalpha() for char in text) > LEAST_QUOTE


def _same_shape(rows: Sequence[str], last: int) -> int:
    """Return how many rows up to `last` start alike."""
    shape = _shape(rows[last])
    first = last
    while first >= 0 and rows[first].strip() and _shape(rows[first]) == shape:
        first -= 1
    return last - first


def _shape(row: str) -> tuple[int, str]:
    """The indentation and the first word of a row; all numbers count as equal."""
    return len(row) - len(row.lstrip()), _NUMBERS.sub("0", row.strip().partition(" ")[0])


def _heading_above(rows: Sequence[str], first: int) -> int:
    """Return the row of a heading such as "These files will be deleted:" if no empty line separates it from the list;
    otherwise `first`."""
    for at in range(first - 1, max(-1, first - LIST_ROWS), -1):
        if not rows[at].strip():
            break
        if rows[at].rstrip().endswith(":") and len(rows[at].split()) > 1:
            return at
    return first


def fit_quotes(quotes: list[Quote], room: int, size: Size) -> list[Quote]:
    """Cut the quotes to the available space, the first ones first. Each knows how much of it is shown."""
    out, left = [], room
    for place, quote in enumerate(quotes):
        reserved = LEAST_QUOTE * (len(quotes) - place - 1)
        text = cut_to(quote.text, max(LEAST_QUOTE, left - reserved), size)
        shown = len(quote.text) if text == quote.text else len(text) - 1
        out.append(Quote(quote.caption, text, shown, len(quote.text), quote.above))
        left -= size(text)
    return out


def count_missing(quotes: list[Quote], rest: str) -> str:
    """Say how much is shown and where the rest is; "" if everything is shown."""
    cut = [quote for quote in quotes if quote.is_cut]
    counted = [t("{shown} of {total} characters", shown=f"{one.shown:,}", total=f"{one.total:,}") for one in cut]
    above = sum(quote.above for quote in quotes)
    counted += [t(ABOVE, count=above)] if above else []
    return f"⚠ {'; '.join(counted)}; {t('the rest: {where}', where=rest)}" if counted else ""


def render_effects(prompt: Prompt) -> str:
    """Describe what the command does, from its parsed form; "" if nothing is known."""
    told = prompt.constraints.get(EFFECTS)
    known = [one for one in told if isinstance(one, dict) and one.get("kind") in EFFECT_WORDS] if told else []
    said = [_say_effect(str(one["kind"]), str(one.get("target") or "")) for one in known[:MOST_EFFECTS]]
    return f"⚠ {' · '.join(said)}" if said else ""


def _say_effect(kind: str, target: str) -> str:
    alone, with_target = EFFECT_WORDS[kind]
    named = escape_controls(target, keep_lines=False)[:TARGET_LIMIT]
    return t(with_target, target=named) if named and with_target else t(alone)


UNTOLD = (
    "Incomplete: AtlasBridge cannot tell how many lines are missing. "
    "Check the session before you approve; a taller window, or detaching the session, can show more."
)
HIDDEN_ROWS = (
    "Incomplete: the tool hides 1 row, and more can be missing."
    "|Incomplete: the tool hides {count} rows, and more can be missing."
)


def warn_incomplete(prompt: Prompt) -> str:
    """Warn the reader if a part is missing, or if the text is only what the tool drew on the screen."""
    if prompt.idle:
        return ""  # there is nothing to approve
    missing = prompt.constraints.get("missing_lines")
    if prompt.constraints.get("disagrees"):
        return f"⚠ {t(DISAGREES)}"
    if not prompt.asked_whole and isinstance(missing, int) and missing > 0:
        return f"⚠ {t('Incomplete: 1 line is missing.|Incomplete: {count} lines are missing.', count=missing)}"
    if not prompt.asked_whole and (hidden := prompt.constraints.get("hidden_rows")):
        return f"⚠ {t(HIDDEN_ROWS, count=hidden)}"
    if not prompt.asked_whole:
        return f"⚠ {t(UNTOLD)}"
    if prompt.subject is None or prompt.subject.complete or not prompt.subject.shown:
        return ""
    return t("As the tool drew it: tabs, invisible characters and its own line breaks cannot be seen here.")


def title_whole(prompt: Prompt) -> str:
    """The title above the whole text; it says so if the text is incomplete."""
    return t("The whole text:") if prompt.asked_whole else t("Everything that could be read; part of it is missing:")


def whole_text(prompt: Prompt) -> str:
    """The whole text about this prompt, for "show more"."""
    screen = escape_controls(prompt.screen).rstrip()
    subject = escape_controls(prompt.subject.shown).rstrip() if prompt.subject else ""
    quotes = [
        one for one in quotes_of(prompt) if not subject or one.text == subject or not _is_within(one.text, screen)
    ]
    parts = [f"{quote.caption}:\n{quote.text}" if quote.caption else quote.text for quote in quotes]
    if screen and not any(screen in part for part in parts):
        parts.append(f"{t('The screen')}:\n{screen}" if prompt.subject is not None else screen)
    return "\n\n".join(parts) if prompt.subject is not None or not screen else parts[-1]


def _is_within(text: str, screen: str) -> bool:
    """Whether the screen shows each line of the text, wherever it breaks its rows."""
    shown = "".join(screen.split())
    return all("".join(line.split()) in shown for line in text.split("\n"))


def cut_to(text: str, room: int, size: Size = len) -> str:
    """Cut to at most `room` in the chat's units, with a mark at the cut."""
    if size(text) <= room:
        return text
    low, high = 0, min(len(text), max(0, room - 1))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) < room else (low, middle - 1)
    return text[:low] + "…"


def in_a_line(text: str, room: int) -> str:
    """A text of a tool or a person as a part of our own line."""
    return cut_to(_flat(text) or "?", room)


def _caption(subject: Subject) -> str:
    target = _flat(", ".join(subject.targets))[:120]
    folder = _flat(subject.folder)[-80:]
    where = f" · {target}" if target else f" {t('in {folder}', folder=folder)}" if folder else ""
    return t(KIND_WORDS[subject.kind].caption) + where


def _is_cut(excerpt: str) -> bool:
    return len(excerpt) >= EXCERPT_LIMIT - 1 or excerpt.rstrip().endswith("…")


def _holds(subject: str, question: str) -> bool:
    return all(line.strip() in subject for line in question.splitlines())


def _flat(text: str) -> str:
    return escape_controls(text, keep_lines=False).strip()
