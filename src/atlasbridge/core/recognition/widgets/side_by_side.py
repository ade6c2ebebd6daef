"""Choices in one row: `● Yes / ○ No`, or `no / yes` behind an arrow, one of them lit.  Answered by left and right."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.asked import Asked, question_above
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_RADIO_IN_A_ROW = lazy(r"([●○◉◯])\s*([^●○◉◯/]+?)\s*(?=/|[●○◉◯]|\s{2,}|$)")
_TOGGLE = lazy(r"[›»…‣]\s*(\w[\w ]{0,20}?)\s+/\s+(\w[\w ]{0,20})\s*$")
_SWITCH = lazy(r"^\?\s.*\s(Yes)\s?/\s?(No)\s*$", re.IGNORECASE)  # one of them is lit, and no cursor is shown
_ROW_RULE = MenuRule("side-by-side", across=True)


def find_across(view: View, labels: str) -> Menu | None:
    """The lowest row with two or more of these labels side by side."""
    for at in range(view.bottom(), -1, -1):
        found = [Item(at, match.start(), match.group()) for match in compiled(labels).finditer(view.lines[at])]
        if len(found) >= 2:
            return Menu(tuple(found), odd_one(view, [(at, item.col) for item in found]), "colour")
    return None


def find_row(view: View) -> Menu | None:
    """Choices side by side in the lowest row that has them: `● Yes / ○ No`, or `no / yes` behind an arrow."""
    for at in range(view.bottom(), max(-1, view.bottom() - 6), -1):
        marked = [Item(at, m.start(2), m[2].strip(), box=m[1]) for m in _RADIO_IN_A_ROW.finditer(view.lines[at])]
        if len(marked) >= 2:
            filled = [place for place, item in enumerate(marked) if item.box in "●◉"]
            return Menu(tuple(marked), filled[0] if len(filled) == 1 else -1, "radio")
        toggle = _TOGGLE.search(view.lines[at]) or (None if view.cursor_visible else _SWITCH.search(view.lines[at]))
        if toggle:
            pair = [Item(at, toggle.start(1), toggle[1]), Item(at, toggle.start(2), toggle[2])]
            return Menu(tuple(pair), odd_one(view, [(at, item.col) for item in pair]), "colour")
    return None


def recognise_side_by_side(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_row(view)
    if menu is None:
        return None
    asked = question_above(view, menu.top)
    if menu.how == "colour":  # the question stands in the same row
        asked = Asked(view.lines[menu.top].strip(), menu.top)
    found = menu_finding(view, menu, _ROW_RULE, asked, dialect)
    names = [item.label.lower() for item in menu.items]
    if sorted(names) != ["no", "yes"]:
        return found
    choices = tuple(replace(choice, value=choice.label.lower()[0]) for choice in found.choices)
    return replace(found, type=PromptType.TYPE_YES_NO, choices=choices)
