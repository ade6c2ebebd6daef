"""Choices in one row: `● Yes / ○ No`, or `no / yes` behind an arrow, one of them lit.  Answered by left and right."""

from __future__ import annotations

import re
from collections import Counter

from atlasbridge.core import vocabulary
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import Asked, question_above
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import refuses
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu, odd_one
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.style import is_dull
from atlasbridge.core.screen.view import BACKGROUND, View
from atlasbridge.core.values import replace

_RADIO_IN_A_ROW = lazy(r"([●○◉◯])\s*([^●○◉◯/]+?)\s*(?=/|[●○◉◯]|\s{2,}|$)")
_ASKS = lazy(r"[?:›»…‣]\s*$")
_LIT_RUN = lazy(r"^\s*+(?:\S++(?:\s{1,10}(?=\S))?)+")
_APART = lazy(r"\S++(?: \S++)*+")
_TOGGLE = lazy(r"[›»…‣]\s*(\w[\w ]{0,20}?)\s+/\s+(\w[\w ]{0,20})\s*$")
_SWITCH = lazy(r"^\?\s.*\s(Yes)\s?/\s?(No)\s*$", re.IGNORECASE)  # one of them is lit, and no cursor is shown
_WHEEL = lazy("[⠁-⣿]")  # turns beside what a tool does, not in what it asks
_ROW_RULE = MenuRule("side-by-side", across=True)


def find_across(view: View, labels: str) -> Menu | None:
    """The lowest row with two or more of these labels side by side."""
    for at in range(view.bottom(), -1, -1):
        found = [_labelled(at, match) for match in compiled(labels).finditer(view.lines[at])]
        if len(found) >= 2:
            return Menu(tuple(found), _lit_label(view, at, found), "colour")
    return None


def _lit_label(view: View, at: int, found: list[Item]) -> int:
    """The one that looks different from all others; of two the one that has not the ground of the row they stand in."""
    if len(found) == 2:
        taken = {col for item in found for col in range(item.col - 1, item.col + len(item.label) + 1)}
        first, last = found[0].col - 3, found[-1].col + len(found[-1].label) + 3
        around = [col for col in range(max(0, first), min(view.cols, last)) if col not in taken]
        ground = Counter(view.style(at, col) >> BACKGROUND for col in around).most_common(1)[0][0]
        off = [place for place, item in enumerate(found) if view.style(at, item.col) >> BACKGROUND != ground]
        if len(off) == 1:
            return off[0]
    return odd_one(view, [(at, item.col) for item in found])


def _labelled(at: int, match: re.Match[str]) -> Item:
    """The groups `label` and `key`, where the pattern has them: `[y] Approve`."""
    named = match.groupdict()
    start = match.start("label") if "label" in named else match.start()
    return Item(at, start, named.get("label") or match.group(), named.get("key") or "")


def find_row(view: View) -> Menu | None:
    """Choices side by side in the lowest row that has them: `● Yes / ○ No`, or `no / yes` behind an arrow."""
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        marked = [Item(at, m.start(2), m[2].strip(), box=m[1]) for m in _RADIO_IN_A_ROW.finditer(view.lines[at])]
        worded = all(any(map(str.isalnum, item.label)) for item in marked)  # a scale has bars between its marks
        if len(marked) >= 2 and worded and _begins_the_row(view, at, marked[0].box):
            filled = [place for place, item in enumerate(marked) if item.box in "●◉"]
            return Menu(tuple(marked), filled[0] if len(filled) == 1 else -1, "radio")
        toggle = _TOGGLE.search(view.lines[at]) or (None if view.cursor_visible else _SWITCH.search(view.lines[at]))
        if toggle:
            pair = [Item(at, toggle.start(1), toggle[1]), Item(at, toggle.start(2), toggle[2])]
            return Menu(tuple(pair), odd_one(view, [(at, item.col) for item in pair]), "colour")
    return None


def _begins_the_row(view: View, at: int, mark: str) -> bool:
    """Nothing but a bar or the question itself stands in front: behind other words it is a mode in a status row."""
    before = view.lines[at].partition(mark)[0]
    return not any(map(str.isalnum, before)) or _ASKS.search(before) is not None


def find_lit_words(view: View) -> Menu | None:
    """Words apart from each other near the foot, one of them on a ground of its own: `Allow once   Reject`."""
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.FOOT_ROWS), -1):
        row = unframed(view.lines)[at]
        run = _LIT_RUN.match(row)
        words = [Item(at, one.start(), one.group()) for one in _APART.finditer(row[: run.end()])] if run else []
        grounds = [view.style(at, item.col) >> BACKGROUND for item in words]
        alone = [place for place, ground in enumerate(grounds) if grounds.count(ground) == 1]
        if len(words) >= 2 and len(set(grounds)) == 2 and len(alone) >= 1:
            lit = alone[0] if len(alone) == 1 else _off_the_ground(view, words)
            return Menu(tuple(words), lit, "colour") if lit >= 0 else None
    return None


def _off_the_ground(view: View, words: list[Item]) -> int:
    """Of two words the one whose ground is not that of the row, or the only one whose ground has a colour."""
    usual = view.style(words[0].row, view.cols - 1) >> BACKGROUND
    styles = [view.style(item.row, item.col) for item in words]
    off = [place for place, style in enumerate(styles) if style >> BACKGROUND != usual]
    lit = off if len(off) == 1 else [place for place, style in enumerate(styles) if not is_dull(style)]
    return lit[0] if len(lit) == 1 else -1


def _decides(menu: Menu, dialect: Dialect) -> bool:
    """One of them refuses and another agrees: words that stand side by side for another reason do not."""
    labels = [item.label for item in menu.items]
    return any(refuses(one, dialect) for one in labels) and any(vocabulary.begins("agree", one) for one in labels)


def recognise_side_by_side(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_row(view)
    if menu is None:
        lit = find_lit_words(view)
        asked = question_above(view, lit.top) if lit and _decides(lit, dialect) else None
        asks = asked and asked.text and not _WHEEL.search(asked.text)
        return menu_finding(view, lit, _ROW_RULE, asked, dialect) if lit and asked and asks else None
    asked = question_above(view, menu.top)
    if menu.how == "colour":  # the question stands in the same row
        asked = Asked(view.lines[menu.top].strip(), menu.top)
    found = menu_finding(view, menu, _ROW_RULE, asked, dialect)
    names = [item.label.lower() for item in menu.items]
    if sorted(names) != ["no", "yes"]:
        return found
    choices = tuple(replace(choice, value=choice.label.lower()[0]) for choice in found.choices)
    return replace(found, type=PromptType.TYPE_YES_NO, choices=choices)
