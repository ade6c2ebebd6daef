"""`Press q to quit.` in two rows or more, or `[y] Approve   [n] Deny` in one: a menu of single keys."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding, compact, to_look_at
from atlasbridge.core.recognition.kinds import choice_of, decides
from atlasbridge.core.recognition.question import block, question_above, question_in_box
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu
from atlasbridge.core.screen.frames import find_frames, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_GUTTER_KEY = lazy(r"^│\s+(\w)\s{2,}([^\s│][^│]*)$")
_PRESS = lazy(r"^\W*(?:press|type|hit)\s+[`'\"‹<]?(\S{1,8}?)[`'\"›>]?\s+to\s+(.+?)\.?$", re.IGNORECASE)

_KEY_IN_A_ROW = lazy(r"[\[(<](\w|esc|enter|tab|space)[\])>]\s([^\W\d_][^\[\](){}<>]*?)(?=\s{2,}|$)", re.IGNORECASE)
_TOLD_KEY = lazy(r"(?<!\w)(enter|esc)(?:ape)?\s+to\s+(\w+)", re.IGNORECASE)
_KEY_ROW_RULE = MenuRule("keys-in-a-row", across=True)
_NAMES = {"enter": ENTER, "return": ENTER, "space": b" ", "esc": b"\x1b", "tab": b"\t"}


def find_key_row(view: View) -> tuple[Menu, list[bytes]] | None:
    """A row near the foot that holds nothing but keys and what they do; with the keys."""
    rows = unframed(view.lines)
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        found = list(_KEY_IN_A_ROW.finditer(rows[at]))
        if len(found) >= 2 and not _KEY_IN_A_ROW.sub("", rows[at]).strip():
            menu = Menu(tuple(Item(at, one.start(2), one[2]) for one in found), -1, "keys")
            return menu, [_NAMES.get(one[1].lower(), one[1].encode()) for one in found]
    return None


def recognise_key_row(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`[y] Approve   [n] Deny` below a question: each is one key, one agrees and one refuses.  Where none does, as in
    `[q] Quit   [r] Refresh`, a display only says which keys it knows."""
    row = find_key_row(view)
    if row is None:
        return None
    menu, keys = row
    asked = question_above(view, menu.top)
    if not decides([item.label for item in menu.items], dialect) or not asked.text:
        return None
    found = menu_finding(view, menu, _KEY_ROW_RULE, asked, dialect)
    chosen = [replace(choice, steps=(Step(key),)) for choice, key in zip(found.choices, keys, strict=True)]
    return replace(found, choices=tuple(chosen))


def recognise_told_keys(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Enter to submit · Esc to cancel` at the foot, and nothing that is known: what Enter would take there nobody can
    tell, so a person must look."""
    rows = [] if view.cursor_visible else unframed(view.lines)
    for at in range(len(rows) and view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        told = {match[1].lower()[:3]: match[2] for match in _TOLD_KEY.finditer(rows[at])} if rows else {}
        if len(told) == 2 and decides(list(told.values()), dialect):
            asked = question_in_box(view, at) or question_above(view, at)
            found = to_look_at("told-keys", numbers.LIKELY, asked.text or rows[at].strip(), asked.row)
            return replace(found, whole=asked.whole)
    return None


def _is_typed_into(view: View, first: int) -> bool:
    """The cursor stands in a line below these rows, or a framed field of one row right above them."""
    framed = any(one.bottom - one.top == 2 and one.bottom == first - 1 for one in find_frames(view.lines))
    return framed or (view.row > first and bool(view.before_cursor().strip()))


def recognise_key_rows(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Press q to quit.` in two rows or more: a menu of single keys."""
    rows = [
        (at, match)
        for at, line in enumerate(view.lines)
        if (match := _PRESS.match(line.strip()) or _GUTTER_KEY.match(line))
    ]
    if len(rows) < 2 or view.bottom() - rows[-1][0] > numbers.EDGE_ROWS:
        return None
    if _is_typed_into(view, rows[0][0]) and all(key[1].lower() in _NAMES for _, key in rows):
        return None  # these keys only end what is typed
    choices = tuple(
        choice_of(match[1], match[2], (Step(_NAMES.get(match[1].lower(), match[1].encode())),), dialect)
        for _, match in rows
    )
    top = rows[0][0]
    head = view.lines[top - 1] if top else ""
    question = block([head, *(view.lines[at] for at, _ in rows)])
    kind = PromptType.TYPE_MULTIPLE_CHOICE
    found = Finding("key-menu", kind, numbers.LIKELY, compact(question), question, top, choices, line_mode=False)
    return replace(found, structural=True)
