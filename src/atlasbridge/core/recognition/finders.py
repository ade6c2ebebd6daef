"""The finders: one per kind of widget, in the order in which they are believed.

A finder is a function of the picture, the facts about the terminal and the dialect; it says what it has found, or None.
"""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.field_rows import recognise_caret_field, recognise_drawn_field, recognise_form
from atlasbridge.core.recognition.widgets.filtered_list import recognise_filtered
from atlasbridge.core.recognition.widgets.framed_dialog import recognise_box
from atlasbridge.core.recognition.widgets.input_box import recognise_input_box
from atlasbridge.core.recognition.widgets.key_rows import recognise_key_row, recognise_key_rows, recognise_told_keys
from atlasbridge.core.recognition.widgets.known_dialog import recognise_dialog
from atlasbridge.core.recognition.widgets.lit_list import recognise_bulleted, recognise_lit_list, recognise_lit_numbers
from atlasbridge.core.recognition.widgets.pointed_list import recognise_pointed
from atlasbridge.core.recognition.widgets.ruled_region import recognise_region
from atlasbridge.core.recognition.widgets.side_by_side import recognise_side_by_side
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen

Find = Callable[[View, Facts, Dialect], Finding | None]


@frozen
class Finder:
    """`drawn`: only where the program draws its screen itself, never where the terminal edits a line for it.

    `chats`: also in a tool whose dialect knows its input box: what such a tool frames or lights up, it only says.
    """

    widget: str
    find: Find
    drawn: bool = True
    chats: bool = False

    def looks(self, facts: Facts, dialect: Dialect) -> bool:
        return not (self.drawn and facts.canonical is True) and (self.chats or not dialect.idles)


FINDERS: tuple[Finder, ...] = (
    Finder("words of a dialect", recognise_region, drawn=False, chats=True),
    Finder("input box of an AI CLI", recognise_input_box),
    Finder("dialog of a dialect", recognise_dialog, chats=True),
    Finder("counted list with a bar", recognise_lit_numbers, chats=True),
    Finder("form", recognise_form),
    Finder("framed dialog", recognise_box),
    Finder("choices side by side", recognise_side_by_side, chats=True),
    Finder("pointed list", recognise_pointed, chats=True),
    Finder("filtered list", recognise_filtered, chats=True),
    Finder("bulleted list", recognise_bulleted),
    Finder("keys in one row", recognise_key_row),
    Finder("keys in rows", recognise_key_rows),
    Finder("field with a drawn caret", recognise_caret_field),
    Finder("lit list", recognise_lit_list),
    Finder("keys that are told", recognise_told_keys),
    Finder("drawn field", recognise_drawn_field),
)
