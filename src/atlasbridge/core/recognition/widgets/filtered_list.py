"""A line to type into and what matches it: a fuzzy finder, a list with completions.

Sees rows right below (or above) the line of which one is lit, or a count like `3/120` beside it.  Against: words alone,
a full-screen program without a count.  Answered by arrows, or by the number where rows are counted.
"""

from __future__ import annotations

from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import Asked
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.list_finding import ARROWS_CHOOSE, menu_finding
from atlasbridge.core.recognition.widgets.list_rows import COUNTER, HINT_ROW, Item, Menu, find_numbered, odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View

_TYPED_RULE = MenuRule("typed-list", choose="digit_enter")


def find_counted(view: View) -> Menu | None:
    """A fuzzy finder that marks by colour alone: a line to type into, beside it a count, then the matches."""
    for step in (-1, 1):
        count = view.row + step
        if 0 <= count < len(view.lines) and COUNTER.match(unframed(view.lines)[count]):
            items = _matches(view, count, step)
            current = odd_one(view, [(item.row, item.col) for item in items]) if len(items) >= 2 else -1
            if current >= 0:
                return Menu(tuple(items), current, "colour", upwards=step < 0)
    return None


def _matches(view: View, count: int, step: int) -> list[Item]:
    items: list[Item] = []
    for at in range(count + step, len(view.lines) if step > 0 else -1, step):
        text = unframed(view.lines)[at]
        if not text.strip():
            break
        items.append(Item(at, len(text) - len(text.lstrip()), text.strip()))
    return items


def find_below(view: View) -> Menu | None:
    """A list directly under the line with the cursor, of which one row is coloured: what a filter offers."""
    items: list[Item] = []
    for at, text in enumerate(unframed(view.lines)[view.row + 1 :], view.row + 1):
        col = len(text) - len(text.lstrip())
        if not text.strip() or HINT_ROW.match(text) or (items and col != items[0].col):
            break
        items.append(Item(at, col, text.strip()))
    current = odd_one(view, [(item.row, item.col) for item in items]) if len(items) >= 2 else -1
    return Menu(tuple(items), current, "colour") if current >= 0 else None


def recognise_filtered(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A line to type into, and below it what matches: a list with a highlight, or numbers to type."""
    asked = view.before_cursor().strip()
    if not asked or view.alternate:
        return None
    menu = find_below(view)
    if menu and (len(asked) > 3 or _is_reversed(view, menu)):
        return menu_finding(view, menu, ARROWS_CHOOSE, Asked(asked, view.row), dialect)
    counted = find_numbered(view, dialect.pointers) if len(asked) > 3 else None
    if counted and view.row < counted.top <= view.row + 2 and view.bottom() - counted.bottom <= numbers.LAST_ROWS:
        return menu_finding(view, counted, _TYPED_RULE, Asked(asked, view.row), dialect)
    return None


def _is_reversed(view: View, menu: Menu) -> bool:
    current = menu.items[menu.current]
    return bool(view.style(current.row, current.col) & REVERSE)
