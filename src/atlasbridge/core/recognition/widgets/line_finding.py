"""A line that asks, as a prompt: its words and those above it, what is filled in, its default and its limits.

Also which lines ask nothing: those of something that takes commands, where what is typed is run.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import compact, context_above, stands_alone
from atlasbridge.core.recognition.asking_line import Line
from atlasbridge.core.recognition.finding import Facts, Finding, typed_line
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

BACKSPACE = b"\x7f"  # the one key that every field knows
_LIMIT = lazy(
    r"(?:max(?:imum|\.)?(?: of)?|up to|at most|limit:?)\s*(\d{1,4})\s*(?:char|letter|digit|symbol)"
    r"|(\d{1,2})[- ]letter code",
    re.IGNORECASE,
)
_RANGE = lazy(r"[\[(](\d{1,4})\s*(?:-|–|\.\.|to)\s*(\d{1,4})(?:,[^\])]*)?[\])]")
_DEFAULT = lazy(r"(?:\bdefault:?\s+|[\[(](?:default:?\s*)?)([^\]\[()]{1,60})[\])]\s*[:?>]?\s*$", re.IGNORECASE)


def line_finding(view: View, line: Line, facts: Facts, rule: str, kind: PromptType, score: float) -> Finding:
    row = view.line_start(view.row) if line.detached else line.row
    asked = context_above(view, line.row, line.text)
    found = Finding(rule, kind, score, compact(asked.near), line.text, row, question=asked.text, whole=asked.whole)
    found = replace(found, alone=stands_alone(view, line.row), bare=is_bare(line.text))
    found = replace(
        found, line_mode=facts.canonical is not False, constraints=limits(line.text), detached=line.detached
    )
    if line.filled:
        found = replace(found, filled=line.filled, text_steps=(Step(BACKSPACE * len(line.filled), When.DRAINED),))
    return found


def typed_key(key: str, facts: Facts) -> tuple[Step, ...]:
    """A raw program may take a single key at once: then an Enter behind it would answer the next prompt."""
    if facts.one_key and len(key) == 1:
        return (Step(key.encode()),)
    if facts.canonical is False and len(key) == 1:
        return (Step(key.encode(), When.MAY_LEAVE), Step(ENTER))
    return typed_line(key)


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


_BARE = lazy(r"^\W*$")
_REPL = lazy(
    r"(?:irb|pry|iex|ghci|node|sqlite|mysql|psql|gdb|lldb|i?pdb)\b\S{0,40}>$|\((?:gdb|lldb|i?pdb)\)$|In \[\d{1,6}\]:$"
    r"|irb\(\S{1,40}>$|\w{1,40}[=-][>#]$",
    re.IGNORECASE,
)
_SHELL_MARKS = ("$", "%", "#", "❯", "➜", "λ", ">>>", "...", "=>")


def is_bare(question: str) -> bool:
    """A mark and nothing else: a shell, a calculator or a program that takes anything."""
    return _BARE.match(question) is not None or is_shell(question)


def is_shell(question: str) -> bool:
    """The line of something that takes commands: what is typed there is run."""
    short = len(question) <= numbers.LONGEST_SHELL and len(question.split()) <= 3
    return short and (question.endswith(_SHELL_MARKS) or _REPL.match(question) is not None)
