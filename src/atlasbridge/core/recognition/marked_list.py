"""Lists whose only sign is on one of their rows: a bullet in front of it, or the bar of a fuzzy finder behind it.

Which of them may be believed, and which keys take a choice, is left to `recognise_menu`.
"""

from __future__ import annotations

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition.menu import Item, Menu, odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View

NEAR_ROWS = 2  # what may stand below such a list: a hint
LONGEST_LABEL = 60
_MARKED = lazy(r"^\s*(?:[*+•●]|[-=]{1,2}>|>{2,3})\s*(?P<label>\w.*)$")
_COUNTED = lazy(r"^\s*\d+/\d+(?:\s|$)")


def find_marked(view: View) -> Menu | None:
    """`* Java` above `  Rust` and `  Go`: the lowest row with a mark, and the rows that begin where its words begin.

    Only where the cursor is hidden or stands in the list: `git branch` marks one of its rows as well.
    """
    lowest = view.bottom()
    for at in range(lowest, -1, -1):
        match = _MARKED.match(unframed(view.lines)[at])
        if match is None:
            continue
        column = match.start("label")
        above = _aligned(view, range(at - 1, -1, -1), column)
        below = _aligned(view, range(at + 1, lowest + 1), column)
        items = (*reversed(above), Item(at, column, match["label"].strip(), pointed=True), *below)
        inside = items[0].row <= view.row <= items[-1].row
        if len(items) >= 2 and lowest - items[-1].row <= NEAR_ROWS and (inside or not view.cursor_visible):
            return Menu(items, len(above), "pointer")
        return None
    return None


def _aligned(view: View, order: range, column: int) -> list[Item]:
    found: list[Item] = []
    for at in order:
        text = unframed(view.lines)[at]
        label = text.strip()
        if not label or len(text) - len(text.lstrip()) != column or len(label) > LONGEST_LABEL:
            break
        found.append(Item(at, column, label))
    return found


def find_counted(view: View) -> Menu | None:
    """A fuzzy finder that marks by colour alone: a line to type into, beside it a count, then the matches."""
    for step in (-1, 1):
        count = view.row + step
        if 0 <= count < len(view.lines) and _COUNTED.match(unframed(view.lines)[count]):
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
