"""Rows that count from 1 and have no pointer: only a dialect, or a line that asks for a number, makes them a list."""

from __future__ import annotations

from atlasbridge.core.recognition.widgets.list_labels import verbatim
from atlasbridge.core.recognition.widgets.list_rows import (
    WRAPPED,
    Item,
    Menu,
    column_of,
    item_of,
    read_row,
    row_pattern,
    walk,
)
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View


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
