"""A list whose only sign is a bullet in front of one row.

Believed only of a program that reads, with words above it: text uses bullets as well.  Answered by arrows.
"""

from __future__ import annotations

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import Asked, question_above
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.list_finding import ARROWS_CHOOSE, menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View

_BULLETED = lazy(r"^\s*(?:[*+•●]|[-=]{1,2}>|>{2,3})\s*(?P<label>\w.*)$")


def find_marked(view: View) -> Menu | None:
    """`* Java` above `  Rust` and `  Go`: the lowest row with a mark, and the rows that begin where its words begin.

    Only where the cursor is hidden or stands in the list: `git branch` marks one of its rows as well.
    """
    lowest = view.bottom()
    for at in range(lowest, -1, -1):
        match = _BULLETED.match(unframed(view.lines)[at])
        if match is None:
            continue
        column = match.start("label")
        above = _aligned(view, range(at - 1, -1, -1), column)
        below = _aligned(view, range(at + 1, lowest + 1), column)
        items = (*reversed(above), Item(at, column, match["label"].strip(), pointed=True), *below)
        inside = items[0].row <= view.row <= items[-1].row
        if (
            len(items) >= 2
            and lowest - items[-1].row <= numbers.BULLET_FOOT_ROWS
            and (inside or not view.cursor_visible)
        ):
            return Menu(items, len(above), "pointer")
        return None
    return None


def _aligned(view: View, order: range, column: int) -> list[Item]:
    found: list[Item] = []
    for at in order:
        text = unframed(view.lines)[at]
        label = text.strip()
        if not label or len(text) - len(text.lstrip()) != column or len(label) > numbers.LONGEST_BULLETED:
            break
        found.append(Item(at, column, label))
    return found


def recognise_bulleted(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A mark that text uses as well: only of a program that reads, and with words above it."""
    menu = find_marked(view) if facts.reading else None
    asked = question_above(view, menu.top) if menu else Asked()
    return menu_finding(view, menu, ARROWS_CHOOSE, asked, dialect) if menu and asked.text else None
