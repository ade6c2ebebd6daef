"""Rows that count, and right below them the words that arrows choose: colour alone says which one Enter takes.

Typing a number there may do nothing, and the Enter behind it take another choice: where no row stands out, a person
must look.  Answered by arrows.
"""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import question_above, question_in_box
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Menu
from atlasbridge.core.recognition.widgets.numbered_list import find_numbered
from atlasbridge.core.recognition.widgets.pointed_list import ARROWS
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_RULE = MenuRule("lit-numbers", score=numbers.SURE)


def recognise_lit_numbers(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_numbered(view, dialect.pointers)
    if menu is None or any(item.pointed for item in menu.items) or _is_typed(view, menu):
        return None
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip()]
    if not any(ARROWS.search(row) for row in below[: numbers.KEYS_ROWS]):
        return None
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    found = menu_finding(view, menu, _RULE, asked, dialect)
    if menu.current >= 0:
        return found
    return replace(found, type=PromptType.TYPE_UNKNOWN, choices=(), text_steps=(), constraints={})


def _is_typed(view: View, menu: Menu) -> bool:
    """The cursor stands behind a line below the list that asks for its number."""
    return view.cursor_visible and view.row > menu.bottom and view.before_cursor().rstrip().endswith((":", "?"))
