"""The line that asks, without the answer that is filled in already, and the prompt it makes with the words above it.

Also which lines ask nothing: those of something that takes commands, where what is typed is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When, named_key
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.finding import Facts, Finding, compact, typed_line
from atlasbridge.core.recognition.question import context_above, stands_alone
from atlasbridge.core.recognition.widgets.inline_choices import inline_choices
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

BACKSPACE = b"\x7f"  # the one key that every field knows
_LIMIT = lazy(
    r"(?:max(?:imum|\.)?(?: of)?|up to|at most|limit:?)\s*(\d{1,4})\s*(?:char|letter|digit|symbol)"
    r"|(\d{1,2})[- ]letter code",
    re.IGNORECASE,
)
_RANGE = lazy(r"[\[(](\d{1,4})\s*(?:-|–|\.\.|to)\s*(\d{1,4})(?:,[^\])]*)?[\])]")
_DEFAULT = lazy(r"(?:\bdefault:?\s+|[\[(](?:default:?\s*)?)([^\]\[()]{1,60})[\])]\s*[:?>]?\s*$", re.IGNORECASE)
BARE = lazy(r"^\W*$")
_REPL = lazy(
    r"(?:irb|pry|iex|ghci|node|sqlite|mysql|psql|gdb|lldb|i?pdb)\b\S{0,40}>$|\((?:gdb|lldb|i?pdb)\)$|In \[\d{1,6}\]:$"
    r"|irb\(\S{1,40}>$|\w{1,40}[=-][>#]$",
    re.IGNORECASE,
)
_SHELL_MARKS = ("$", "%", "#", "❯", "➜", "λ", ">>>", "...", "=>")
_ASK_ENDS = lazy(r"(?:(?<=^#)|(?<=..))[:?>]\s++(?=[^\s'\"])")  # `Name: `, with a value behind it
_CHOICE_BEHIND = lazy(r"^(?P<asked>.{2,}[\])]\s+)(?P<word>\w+)$")
_BRACKETS = "[](){}<>"
_BEGUN = lazy(r"\w{1,20}")
_ANGLED = lazy(r"<[^<>]+>\s*$")
_ANSWER_SO_FAR = lazy(r"(?<!\s)\s++[‣›»·…]\s*+(?:true|false|yes|no)?\s*+$", re.IGNORECASE)


def line_finding(view: View, line: Line, facts: Facts, rule: str, kind: PromptType, score: float) -> Finding:
    row = view.line_start(view.row) if line.detached else line.row
    asked = context_above(view, line.row, line.text)
    found = Finding(rule, kind, score, compact(asked.near), line.text, row, question=asked.text, whole=asked.whole)
    found = replace(found, alone=stands_alone(view, line.row), bare=is_bare(line.text), detached=line.detached)
    found = replace(found, line_mode=facts.canonical is not False, constraints=limits(line.text))
    if line.filled:
        found = replace(found, filled=line.filled, text_steps=(Step(BACKSPACE * len(line.filled), When.DRAINED),))
    return found


def typed_key(key: str, facts: Facts) -> tuple[Step, ...]:
    """A raw program may take a single key at once: then an Enter behind it would answer the next prompt."""
    if facts.canonical is False and (named := named_key(key)):
        return (Step(named),)
    if facts.one_key and len(key) == 1:
        return (Step(key.encode()),)
    if facts.canonical is False and len(key) == 1:
        return (Step(key.encode(), When.MAY_LEAVE), Step(ENTER))
    return typed_line(key, facts.canonical is False)


def limits(text: str) -> dict[str, object]:
    """Limits that the question itself names."""
    out: dict[str, object] = {}
    size = _LIMIT.search(text)
    if size:
        out["max_length"] = int(size[1] or size[2])
    span = _RANGE.search(text)
    if span and int(span[1]) < int(span[2]):
        out["min_choice"], out["max_choice"] = int(span[1]), int(span[2])
    return out


def default_in(text: str) -> str:
    match = _DEFAULT.search(text)
    value = match[1].strip() if match else ""
    return "" if _LIMIT.search(value) or re.search(r"[/|,]|^\d+\s*-\s*\d+$", value) else value


def secret_finding(view: View, line: Line, score: float, rule: str) -> Finding:
    found = line_finding(view, line, Facts(), rule, PromptType.TYPE_FREE_TEXT, score)
    return replace(found, constraints={**found.constraints, "secret": True})


def is_bare(question: str) -> bool:
    """A mark and nothing else: a shell, a calculator or a program that takes anything."""
    return BARE.match(question) is not None or is_shell(question)


def is_shell(question: str) -> bool:
    """The line of something that takes commands: what is typed there is run."""
    return len(question.split()) <= 3 and (question.endswith(_SHELL_MARKS) or _REPL.match(question) is not None)


@frozen
class Line:
    """The line that asks: its text without what is already filled in, and where it stands."""

    text: str
    row: int
    filled: str = ""
    detached: bool = False  # the cursor stands on an empty line below it


def asking_line(view: View, facts: Facts) -> Line | None:
    """The logical line of the cursor; on an empty line the last line above it that says something."""
    before = view.before_cursor()
    start = view.line_start(view.row)
    if not view.cursor_visible and facts.canonical is False:
        before = _ANSWER_SO_FAR.sub("", view.lines[view.row])  # a hidden cursor says nothing
    if not is_drawn(before):
        filled = _prefilled(before) if facts.canonical is False and not before.endswith(" ") else None
        value = (filled["value"] or filled["word"]) if filled else ""
        if filled and value[-1] not in ":?>])…%#$" and not before.endswith("...") and _may_be_filled(filled):
            return Line((filled["ask"] or filled["asked"]).strip(), start, value)
        above = view.lines[start - 1].strip() if start and facts.canonical is False and before.startswith("  ") else ""
        if above.endswith(("?", ":")) and before.strip()[-1] not in ":?>])…%#$":
            return Line(above, start - 1, before.strip())  # a field of its own below the question
        return _below_its_question(view, before, start, facts) or Line(before.strip(), start)
    told = view.after_cursor()  # a field and nothing else: what it says may be typed is all that is asked
    return _last_words(view, view.row) or (Line(told, view.row) if told else None)


def _prefilled(text: str) -> Mapping[str, str] | None:
    """A question with a value behind it, which has no brackets: what is asked and the value."""
    after = max(map(text.rfind, _BRACKETS))
    ends = [found.end() for found in _ASK_ENDS.finditer(text, max(0, after))]
    if ends and ends[-1] > after:
        return {"ask": text[: ends[-1]], "value": text[ends[-1] :], "asked": "", "word": ""}
    found = _CHOICE_BEHIND.match(text)
    return {"ask": "", "value": "", **found.groupdict()} if found else None


def _below_its_question(view: View, before: str, start: int, facts: Facts) -> Line | None:
    """A letter or a word alone, below a question that ended its own line: the answer to it, half typed."""
    word = before.strip()
    if facts.canonical is not False or not view.cursor_visible or not _BEGUN.fullmatch(word):
        return None
    asked = _last_words(view, start)
    asks = asked is not None and (len(word) == 1 or asked.text.endswith(("?", ")", "]")))
    return replace(asked, filled=word) if asked and asks else None


def _last_words(view: View, row: int) -> Line | None:
    for at in range(row - 1, -1, -1):
        if not is_drawn(view.lines[at]):
            start = view.line_start(at)
            return Line(view.joined_text(start, at + 1).strip(), start, detached=True)
    return None


def _may_be_filled(found: Mapping[str, str]) -> bool:
    """Behind choices in brackets only one of them stands by itself; other words go on with the sentence, as they do
    behind a key in angles (`Type <RET> for more`)."""
    if found["ask"] and _ANGLED.search(found["ask"]):
        return False
    offered = inline_choices(found["asked"]) if found["asked"] else []
    return not offered or found["word"].lower() in (word.strip("[]()").lower() for word in offered)
