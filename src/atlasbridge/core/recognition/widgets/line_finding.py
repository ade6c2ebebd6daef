"""A line that asks, as a prompt: its words and those above it, what is filled in, its default and its limits."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition.asked import compact, context_above, stands_alone
from atlasbridge.core.recognition.asking_line import Line
from atlasbridge.core.recognition.finding import Facts, Finding, typed_line
from atlasbridge.core.recognition.widgets.shell_line import is_bare
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
