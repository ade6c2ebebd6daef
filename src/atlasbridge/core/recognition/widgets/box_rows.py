"""Rows that begin with a box: check boxes and radio boxes.

Sees rows of one column that begin with `[ ]`, `( )`, `☐`, `◉` …; for: a colour, the cursor, a star in
front of one, else the only mark.  Against: a single row, other columns.
Whether several may be marked is `Menu.several`; the keys are `list_steps`.
"""

from __future__ import annotations

import re

from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.widgets.list_rows import (
    BOXES,
    WRAPPED,
    Item,
    Menu,
    honest,
    item_of,
    read_row,
)
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def find_box_rows(view: View, rows: list[str], pattern: re.Pattern[str], below: int = -1) -> Menu | None:
    """Rows that all begin with a mark: the filled one, or the one in another colour, is where the keys go."""
    block: list[Item] = []
    for at in range(len(rows) - 1, below, -1):
        if rows[at] == WRAPPED:
            continue
        match = read_row(pattern, rows[at])
        marked = match and (match["box"] or (match["pointer"] and match["pointer"] in BOXES))
        if match and marked and (not block or abs(item_of(at, match).col - block[-1].col) <= numbers.GROUP_INDENT):
            block.append(_with_its_box(item_of(at, match), match))
        elif len(block) >= 2:
            break
        elif rows[at].strip():
            block = []
    if len(block) < 2:
        return None
    items = tuple(honest(list(reversed(block))))
    filled = [at for at, item in enumerate(items) if item.checked]
    odd = odd_one(view, [(item.row, item.col) for item in items])
    here = [at for at, item in enumerate(items) if item.row == view.row and view.cursor_visible]
    if odd >= 0 or here:
        return Menu(items, odd if odd >= 0 else here[0], "radio")
    return Menu(items, filled[0] if len(filled) == 1 else -1, "mark")


def _with_its_box(item: Item, match: re.Match[str]) -> Item:
    box = item.box or match["pointer"] or ""
    return replace(item, pointed=False, box=box)
