"""Rows that count from 1 and have no pointer.

A list only where a dialect says so, or where one of them has a bar and a hint says that arrows choose.
"""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import question_above, question_in_box
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import (
    ARROWS,
    WRAPPED,
    Item,
    Menu,
    column_of,
    item_of,
    read_row,
    row_pattern,
    verbatim,
    walk,
)
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_RULE = MenuRule("lit-numbers", score=numbers.SURE)


def find_numbered(view: View, pointers: str) -> Menu | None:
    """The lowest rows that count from 1, with no pointer: only a dialect can say that they are a menu."""
    pattern = row_pattern(pointers)
    rows = [WRAPPED if at - 1 in view.joined else row for at, row in enumerate(unframed(view.lines))]
    for at in range(len(rows) - 1, -1, -1):
        start = read_row(pattern, rows[at])
        if start and start["number"]:
            above = walk(rows, pattern, range(at - 1, -1, -1), column_of(start), True, bool(start["box"]))
            items = [*reversed(above), item_of(at, start)]
            if len(items) >= 2 and _counts(items) and items[0].number == "1":
                current = odd_one(view, [(item.row, item.col) for item in items])
                return verbatim(view, Menu(tuple(items), current, "colour"))
    return None


def _counts(items: list[Item]) -> bool:
    numbers = [int(item.number) for item in items]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def recognise_lit_numbers(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_numbered(view, dialect.pointers)
    if menu is None or any(item.pointed for item in menu.items) or _is_typed(view, menu):
        return None
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip()]
    if not any(ARROWS.search(row) for row in below[: numbers.KEYS_ROWS]):
        return None
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    found = menu_finding(view, menu, _RULE, asked, dialect)
    if menu.current >= 0:
        return found
    return replace(found, type=PromptType.TYPE_UNKNOWN, choices=(), text_steps=(), constraints={})


def _is_typed(view: View, menu: Menu) -> bool:
    """The cursor stands behind a line below the list that asks for its number."""
    return view.cursor_visible and view.row > menu.bottom and view.before_cursor().rstrip().endswith((":", "?"))
