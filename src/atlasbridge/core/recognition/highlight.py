"""Finds the highlighted choice. The typist checks before Enter that it is the one to choose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial

from atlasbridge.core.recognition.dialect import POINTERS
from atlasbridge.core.recognition.recognise import panes
from atlasbridge.core.recognition.widgets import framed_dialog
from atlasbridge.core.recognition.widgets.list_rows import (
    Item,
    Menu,
    find_numbered,
    ground_of,
    item_of,
    odd_one,
    read_row,
    row_pattern,
)
from atlasbridge.core.recognition.widgets.pointed_list import LIT, find_menu
from atlasbridge.core.recognition.widgets.side_by_side import find_across, find_lit_words, find_row
from atlasbridge.core.screen.frames import Frame, find_frames, unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View

_FIELD_MARKS = ">❯›"


def is_highlighted(view: View, label: str, among: tuple[str, ...] = ()) -> bool:
    """Whether `label` is the highlighted choice. `among` are the labels of the prompt that is being answered.

    The list that contains them decides, because an arrow or a similar word in other text means nothing. Without such
    a list, a menu that contains the label decides, and without that the style of the label. "Yes" is not "Yes,
    always": a prefix matches only if no item is exactly equal.
    On a screen of two columns, each of them decides for itself.
    """
    return any(_is_highlighted(part, label, among) for part in (view, *panes(view)))


def _is_highlighted(view: View, label: str, among: tuple[str, ...]) -> bool:
    form = framed_dialog.find_form(view) if label.endswith(":") else None
    if form is not None:
        return f"{form.rows[form.current].label}:" == label
    wanted = _squeezed(label)
    own = {_squeezed(one): at for at, one in enumerate(among)}
    menu = _deciding(view, wanted, own, among)
    if menu is not None:
        return menu.current in _places(menu, wanted)
    lit, others = _lit_rows(view, label), [one for one in among if not _alike(_squeezed(one), wanted)]
    rest = [row for other in others for row in _lit_rows(view, other)]
    here = _boxes(view, max((*lit, *rest), default=0))  # an answered box above does not count
    return any(_boxes(view, row) == here for row in lit) and not any(_boxes(view, row) == here for row in rest)


def _deciding(view: View, wanted: str, own: dict[str, int], among: tuple[str, ...]) -> Menu | None:
    """The menu whose highlight counts: the prompt's own, or else the first one with two of its labels."""
    for mine in (_own_list(view, own), find_across(view, _side_by_side(among))):
        if mine is not None and mine.current >= 0 and wanted in [_squeezed(item.label) for item in mine.items]:
            return mine
    menus = (menu for menu in _menus(view) if menu.current >= 0 and _places(menu, wanted))
    return next((one for one in menus if not own or sum(_squeezed(item.label) in own for item in one.items) >= 2), None)


@lru_cache(maxsize=16)
def _side_by_side(labels: tuple[str, ...]) -> str:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return rf"(?-i:(?<!\S)(?:{words})(?!\S))"


def _own_list(view: View, own: dict[str, int]) -> Menu | None:
    """The lowest rows with only the prompt's own labels, each once and in order, and a pointer at one of them."""
    pattern = row_pattern(POINTERS)
    found: list[Item] = []
    for at, row in reversed(list(enumerate(unframed(view.lines)))):
        match = read_row(pattern, row)
        item = item_of(at, match) if match else None
        place = own.get(_squeezed(item.label)) if item else None
        if item is None or place is None:
            continue
        if found and (place >= own[_squeezed(found[-1].label)] or item.col != found[-1].col):
            if len(found) >= 2:
                break  # another list further up
            found = []  # a word that happens to be one of the labels
        found.append(item)
    pointed = [at for at, item in enumerate(found) if item.pointed]
    return Menu(tuple(found), pointed[0], "pointer") if len(found) >= 2 and len(pointed) == 1 else None


def _places(menu: Menu, wanted: str) -> list[int]:
    labels = [_squeezed(item.label) for item in menu.items]
    exact = [at for at, have in enumerate(labels) if have == wanted]
    return exact or [at for at, have in enumerate(labels) if _alike(have, wanted)]


def _menus(view: View) -> Iterator[Menu]:
    """Everything on the screen that could be a menu, as each finder sees it."""
    frame = framed_dialog.find_frame(view)
    if frame is not None:
        buttons = framed_dialog.find_all_buttons(view, frame)
        listed = framed_dialog.find_list(view, frame, buttons)
        if listed is not None:
            yield listed
        if len(buttons) >= 2:
            yield Menu(tuple(buttons), framed_dialog.current_button(view, buttons), "colour")
    pointed, counted = partial(find_menu, pointers=POINTERS, bullets=True), partial(find_numbered, pointers=POINTERS)
    finders = (pointed, counted, find_row, find_lit_words, *LIT)
    yield from filter(None, (find(view) for find in finders))


def _alike(have: str, wanted: str) -> bool:
    return bool(have) and (have.startswith(wanted) or wanted.startswith(have))


def _lit_rows(view: View, label: str) -> list[int]:
    rows = [row for row, line in enumerate(view.lines) if _squeezed(label) in _squeezed(line)]
    return [row for row in rows if _stands_out(view, row, label)]


def _boxes(view: View, row: int) -> list[Frame]:
    return [frame for frame in find_frames(view.lines) if frame.top < row < frame.bottom]


def _stands_out(view: View, row: int, label: str) -> bool:
    """Whether the cursor is on the label, or it looks different from the words beside, above and below it."""
    col = view.lines[row].find(label.split()[0])
    if col < 0:
        return False
    on_it = view.row == row and col - 2 <= view.col <= col + len(label) + 2
    if on_it or any(char in "●◉" for char in view.lines[row][:col]):
        return True
    style = view.style(row, col)
    beyond = view.style(row, min(col + len(label) + 3, view.cols - 1))
    near = [(at, col) for at in (row - 1, row, row + 1) if 0 <= at < len(view.lines) and view.lines[at][col:].strip()]
    odd = odd_one(view, near) if len(near) == 3 else -1
    lit = style & REVERSE or ground_of(style) != ground_of(beyond)
    return bool(lit) or (odd >= 0 and near[odd] == (row, col))


def _squeezed(text: str) -> str:
    """The text without blanks, and without the mark that a choice gets before its words when it becomes a field."""
    return "".join(text.split()).lstrip(_FIELD_MARKS)
