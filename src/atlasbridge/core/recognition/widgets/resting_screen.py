"""Pagers, editors and other full-screen programs: the line in which they ask, or, at rest, that a person must look.

They ask in a bar, in the last row, or apart near the foot.
"""

from __future__ import annotations

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import Step, When
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, steady
from atlasbridge.core.recognition.finding import Facts, Finding, cut, without_drawing
from atlasbridge.core.recognition.widgets.line_finding import BACKSPACE, Line, line_finding
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_ASKED_BELOW = lazy(r"^(?P<ask>\W{0,3}[^\W\d_][^:?]{1,60}(?:\[[^\]]*\])?[:?])\s(?P<filled>\S.*)?$")


def has_bar(view: View) -> bool:
    """A reversed bar in the last row, with the cursor in it: a pager that does without a screen of its own."""
    return view.row == len(view.lines) - 1 and bool(view.style(view.row, 0) & REVERSE)


def whole_screen(view: View, facts: Facts, dialect: Dialect) -> Finding:
    """A full-screen program at rest of which nothing is known: a person must look."""
    name = f" ({facts.command})" if facts.command else ""
    row = min(view.row, max(0, view.bottom()))
    text = view.text()
    found = Finding("whole-screen" + name, PromptType.TYPE_UNKNOWN, numbers.LOOK, _glimpse(view, row), "", row)
    views = facts.command in dialect.screen_programs or facts.command in dialect.quiet_programs
    return replace(found, core=steady(dialect, text), line_mode=False, question=text, orders=views)


def _glimpse(view: View, row: int) -> str:
    """What stands around the cursor, as much as fits; from the cursor on where it is high up, else up to it."""
    above, below = (without_drawing("\n".join(lines)) for lines in (view.lines[:row], view.lines[row:]))
    return below[:EXCERPT_LIMIT].strip() if len(below) >= EXCERPT_LIMIT else cut(f"{above}\n{below}") or view.text()


def recognise_footer(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """Full-screen programs ask in a bar, or in the very last row: `File Name to Write: out.txt`."""
    bar = bool(view.style(view.row, 0) & REVERSE) or view.row == len(view.lines) - 1 or _stands_apart(view)
    asked = _ASKED_BELOW.match(view.before_cursor()) if bar and view.cursor_visible else None
    if asked is None:
        return None
    filled = asked["filled"] or ""
    line = Line(asked["ask"].strip(), view.row)
    found = line_finding(view, line, facts, "footer", PromptType.TYPE_FREE_TEXT, numbers.LIKELY)
    clear = (Step(BACKSPACE * len(filled), When.REDRAWN),) if filled else ()
    return replace(found, excerpt=found.core, question=found.core, line_mode=False, filled=filled, text_steps=clear)


def _stands_apart(view: View) -> bool:
    """Near the foot of the screen, with nothing right above and below it but frames."""
    beside = [view.lines[at] for at in (view.row - 1, view.row + 1) if 0 <= at < len(view.lines)]
    return view.row >= len(view.lines) - numbers.EDGE_ROWS and all(is_drawn(line) for line in beside)
