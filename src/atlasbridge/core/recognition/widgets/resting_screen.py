"""Pagers, editors and other full-screen programs at rest of which nothing else is known: a person must look."""

from __future__ import annotations

from atlasbridge.core.prompt.model import EXCERPT_LIMIT, PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding, cut
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def has_bar(view: View) -> bool:
    """A reversed bar in the last row, with the cursor in it: a pager that does without a screen of its own."""
    return view.row == len(view.lines) - 1 and bool(view.style(view.row, 0) & REVERSE)


def whole_screen(view: View, facts: Facts, dialect: Dialect) -> Finding:
    """A full-screen program at rest of which nothing is known: a person must look."""
    name = f" ({facts.command})" if facts.command else ""
    row = min(view.row, max(0, view.bottom()))
    text = view.text()
    found = Finding("whole-screen" + name, PromptType.TYPE_UNKNOWN, numbers.LOOK, _glimpse(view, row), text, row)
    return replace(found, line_mode=False, question=text, orders=facts.command in dialect.screen_programs)


def _glimpse(view: View, row: int) -> str:
    """What stands around the cursor, as much as fits; from the cursor on where it is high up, else up to it."""
    below = [line.rstrip() for line in view.lines[row:] if not is_drawn(line)]
    above = [line.rstrip() for line in view.lines[:row] if not is_drawn(line)]
    if sum(map(len, below)) + len(below) >= EXCERPT_LIMIT:
        return "\n".join(below)[:EXCERPT_LIMIT].strip()
    return cut("\n".join([*above, *below]))
