"""A list inside a box of a full-screen program: rows of which exactly one is coloured, or which have boxes."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition.asked import Asked
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.frames import Frame, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_NO_ROW = lazy(r"[─━═_-]+|[↑↓▲▼^v]?\s*\([+-]\)(?:\s+\d+%)?")  # rules, and the marks of a list that scrolls
_SCROLL_MARK = lazy(r"(?<=\S)\s{2,}+[\^v↑↓▲▼▮▯▒░█#]$")
_BRANCH = lazy(r"^(?:[│├└╰|]\s*+[─╌-]*+\s*+)++")  # of a tree, in front of what grows there
BOX_LIST = MenuRule("box-list")


def find_list(view: View, frame: Frame, buttons: list[Item]) -> Menu | None:
    """Rows in the box of which exactly one is coloured differently: a list with its highlight."""
    last = buttons[0].row if buttons else frame.bottom
    rows: list[Item] = []
    groups: list[list[Item]] = []
    for at in range(frame.top + 1, last):
        row = unframed(view.lines)[at][frame.left + 1 : frame.right]
        text = row.strip()
        column = frame.left + 1 + len(row) - len(row.lstrip())
        if text and not _NO_ROW.fullmatch(text):
            rows.append(_list_item(at, column, text))
        elif rows:
            groups.append(rows)
            rows = []
    groups.append(rows)
    for group in map(_without_bar, reversed(groups)):
        if len(group) >= 2:
            current = _current_row(view, group)
            if current >= 0 and _same_width(group) and not any("│" in item.label for item in group):
                return Menu(tuple(group), current, "colour")
    return None


def _without_bar(group: list[Item]) -> list[Item]:
    """Without the marks of a scroll bar, which stand in one column behind the labels."""
    marks = [_SCROLL_MARK.search(item.label) for item in group]
    ends = {item.col + len(item.label) for item, mark in zip(group, marks, strict=True) if mark}
    if len(ends) != 1 or sum(mark is not None for mark in marks) < 2:
        return group
    return [replace(item, label=_SCROLL_MARK.sub("", item.label)) for item in group]


def _current_row(view: View, group: list[Item]) -> int:
    """By colour; among rows with boxes also by the cursor, or by the one that is marked."""
    current = odd_one(view, [(item.row, item.col) for item in group])
    if not all(item.box for item in group):
        return current
    here = [at for at, item in enumerate(group) if item.row == view.row]
    marked = [at for at, item in enumerate(group) if item.checked]
    return here[0] if here else current if current >= 0 else marked[0] if len(marked) == 1 else 0


def _list_item(at: int, column: int, text: str) -> Item:
    box = re.match(r"(\[[ xX*]\]|\([ xX*]\))\s*(.*)", text)
    label = _BRANCH.sub("", box[2] if box else text).strip()
    col = column + text.index(label) if label else column
    return Item(at, col, label or text, box=box[1] if box else "")


def _same_width(group: list[Item]) -> bool:
    columns = {item.col for item in group}
    return len(columns) == 1 or all(len(item.label) < 24 for item in group)


def focused_list(view: View, listed: Menu, text: str, frame: Frame, dialect: Dialect) -> Finding:
    """prompt_toolkit's lists: Enter only marks; the focus must go to the first button and Enter again."""
    found = menu_finding(view, listed, BOX_LIST, Asked(text, frame.top), dialect)
    leave = (Step(b"\t", When.CHANGED), Step(ENTER))
    if found.constraints.get("multi_select"):
        return replace(found, end_steps=leave)
    choices = tuple(
        replace(choice, steps=(*(step for step in choice.steps[:-1]), Step(b" ", When.DRAINED), *leave))
        if choice.steps
        else choice
        for choice in found.choices
    )
    return replace(found, choices=choices)
