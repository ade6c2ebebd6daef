"""Choices side by side in one row, and what a filter offers right below the line that is typed into.

Says only what stands there; lists with a pointer or marks are left to `menu`, what a choice means to `recognise_menu`.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition.dialect import compiled
from atlasbridge.core.recognition.menu import HINT_ROW, Item, Menu, odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View

_MARKED = lazy(r"([●○◉◯])\s*([^●○◉◯/]+?)\s*(?=/|[●○◉◯]|\s{2,}|$)")
_TOGGLE = lazy(r"[›»…‣]\s*(\w[\w ]{0,20}?)\s+/\s+(\w[\w ]{0,20})\s*$")
_SWITCH = lazy(r"^\?\s.*\s(Yes)\s?/\s?(No)\s*$", re.IGNORECASE)  # one of them is lit, and no cursor is shown


def find_across(view: View, labels: str) -> Menu | None:
    """The lowest row with two or more of these labels side by side."""
    for at in range(view.bottom(), -1, -1):
        found = [Item(at, match.start(), match.group()) for match in compiled(labels).finditer(view.lines[at])]
        if len(found) >= 2:
            return Menu(tuple(found), odd_one(view, [(at, item.col) for item in found]), "colour")
    return None


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


def find_row(view: View) -> Menu | None:
    """Choices side by side in the lowest row that has them: `● Yes / ○ No`, or `no / yes` behind an arrow."""
    for at in range(view.bottom(), max(-1, view.bottom() - 6), -1):
        marked = [Item(at, m.start(2), m[2].strip(), box=m[1]) for m in _MARKED.finditer(view.lines[at])]
        if len(marked) >= 2:
            filled = [place for place, item in enumerate(marked) if item.box in "●◉"]
            return Menu(tuple(marked), filled[0] if len(filled) == 1 else -1, "radio")
        toggle = _TOGGLE.search(view.lines[at]) or (None if view.cursor_visible else _SWITCH.search(view.lines[at]))
        if toggle:
            pair = [Item(at, toggle.start(1), toggle[1]), Item(at, toggle.start(2), toggle[2])]
            return Menu(tuple(pair), odd_one(view, [(at, item.col) for item in pair]), "colour")
    return None
