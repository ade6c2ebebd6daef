"""Choices in one row with one of them highlighted: `● Yes / ○ No`, `no / yes` after an arrow, or separate words.

Words are choices if one agrees and one refuses, or if the cursor is on the highlighted one. The answer is left and
right; if more rows of words follow, a person must look. Also menus of single keys: `[y] Approve  [n] Deny` in one
row, `Press q to quit.` in two rows or more.
"""

from __future__ import annotations

import re
from collections import Counter

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import Step, named_key
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding, compact, to_look_at
from atlasbridge.core.recognition.kinds import choice_of, decides
from atlasbridge.core.recognition.question import Asked, block, question_above, question_in_box
from atlasbridge.core.recognition.widgets import list_rows
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu, as_yes_no, ground_of, menu_finding, odd_one
from atlasbridge.core.screen.frames import find_frames, unframed
from atlasbridge.core.screen.style import is_dull
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_RADIO_IN_A_ROW = lazy(r"([●○◉◯]|\([ •*x]\))\s*([^●○◉◯/(]+?)\s*(?=/|[●○◉◯]|\([ •*x]\)|\s{2,}|$)")
_ASKS = lazy(r"[?:›»…‣]\s*$")
_LIT_RUN = lazy(r"^\s*+(?:\S++(?:\s{1,10}(?=\S))?)+")
_APART = lazy(r"\S++(?> \S++)*")
_TOGGLE = lazy(r"[›»…‣]\s*((?:\w[\w' ]{0,20}?\s+[/|·•]\s+){1,5}\w[\w' ]{0,20})\s*$")
_SWITCH = lazy(r"^\?\s.*\s(Yes\s?/\s?No)\s*$", re.IGNORECASE)  # one of them is highlighted, and the cursor is hidden
_WORDS_APART = lazy(r"\w[\w']*+(?: \w[\w']*+)*")
_WHEEL = lazy("[⠁-⣿]")  # spins beside the tool's work, not in a question
_ROW_RULE = MenuRule("side-by-side", across=True)
_GUTTER_KEY = lazy(r"^│\s+(\w)\s{2,}([^\s│][^│]*)$")
_PRESS = lazy(r"^\W*(?:press|type|hit)\s+[`'\"‹<]?(\S{1,8}?)[`'\"›>]?\s+to\s+(.+?)\.?$", re.IGNORECASE)

_KEY_IN_A_ROW = lazy(r"[\[(<](\w|esc|enter|tab|space)[\])>]\s([^\W\d_][^\[\](){}<>]*?)(?=\s{2,}|$)", re.IGNORECASE)
_TOLD_KEY = lazy(r"(?<!\w)(enter|esc)(?:ape)?\s+to\s+(\w+)", re.IGNORECASE)
_KEY_ROW_RULE = MenuRule("keys-in-a-row", across=True)


def find_across(view: View, labels: str) -> Menu | None:
    for at in range(view.bottom(), -1, -1):
        found = [_labelled(at, match) for match in compiled(labels).finditer(view.lines[at])]
        if len(found) >= 2:
            return Menu(tuple(found), _lit_label(view, found), "colour")
    return None


def _lit_label(view: View, words: list[Item]) -> int:
    """The one that looks different. Of two, the one with another background than the cells beside them, or any."""
    looks = [view.style(item.row, item.col) for item in words]
    taken = {col for item in words for col in range(item.col - 1, item.col + len(item.label) + 1)}
    near = range(max(0, words[0].col - 3), min(view.cols, words[-1].col + len(words[-1].label) + 3))
    around = {ground_of(view.style(words[0].row, col)) for col in near if col not in taken}
    if len(words) > 2 or not around:
        return odd_one(view, [(item.row, item.col) for item in words])
    off = [place for place in (0, 1) if ground_of(looks[place]) not in around]
    lit = off if len(off) == 1 else [place for place in (0, 1) if not is_dull(looks[place])]
    return lit[0] if len(lit) == 1 else -1


def _labelled(at: int, match: re.Match[str]) -> Item:
    """An item from the groups `label` and `key`, if the pattern has them: `[y] Approve`."""
    named = match.groupdict()
    start = match.start("label") if "label" in named else match.start()
    return Item(at, start, named.get("label") or match.group(), named.get("key") or "")


def find_row(view: View) -> Menu | None:
    """Choices side by side in the lowest row that has them: `● Yes / ○ No`, or `no / yes` after an arrow."""
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        radios = [(m, m[1].strip("( )○◯")) for m in _RADIO_IN_A_ROW.finditer(view.lines[at])]
        marked = [Item(at, m.start(2), m[2].strip(), box="●" if mark else "○") for m, mark in radios]
        worded = all(any(map(str.isalnum, item.label)) for item in marked)  # a scale has bars between its marks
        if len(marked) >= 2 and worded and _begins_the_row(view, at, radios[0][0][1]):
            filled = [place for place, item in enumerate(marked) if item.checked]
            return Menu(tuple(marked), filled[0] if len(filled) == 1 else -1, "radio")
        toggle = _TOGGLE.search(view.lines[at]) or (None if view.cursor_visible else _SWITCH.search(view.lines[at]))
        if toggle:
            words = _WORDS_APART.finditer(view.lines[at], *toggle.span(1))
            side = [Item(at, word.start(), word[0]) for word in words]
            if len(side) > 1:
                return Menu(tuple(side), odd_one(view, [(at, item.col) for item in side]), "colour")
    return None


def _begins_the_row(view: View, at: int, mark: str) -> bool:
    """Whether only a bar or the question is before it. After other words, it is a mode in a status row."""
    before = view.lines[at].partition(mark)[0]
    return not any(map(str.isalnum, before)) or _ASKS.search(before) is not None


def find_lit_words(view: View) -> Menu | None:
    """The lowest row near the foot with separate words of which one is highlighted: `Allow once   Reject`."""
    rows = range(view.bottom(), max(-1, view.bottom() - numbers.FOOT_ROWS), -1)
    return next(filter(None, (lit_words_in(view, at) for at in rows)), None)


def lit_words_in(view: View, at: int) -> Menu | None:
    row = unframed(view.lines)[at]
    run = _LIT_RUN.match(row)
    words = [Item(at, one.start(), one.group()) for one in _APART.finditer(row[: run.end()])] if run else []
    grounds = Counter(ground_of(view.style(at, item.col)) for item in words)
    lit = _lit_label(view, words) if len(grounds) == 2 and 1 in grounds.values() else -1
    return Menu(tuple(words), lit, "colour") if lit >= 0 else None


def _has_the_cursor(view: View, menu: Menu) -> bool:
    """Whether the cursor is on the highlighted word and every letter of it is highlighted; a caret covers only one."""
    lit = menu.items[menu.current]
    cells = (view.col, lit.col, lit.col + len(lit.label) - 1)
    return view.cursor_visible and view.row == lit.row and len({view.style(lit.row, col) for col in cells}) == 1


def recognise_side_by_side(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_row(view)
    if menu is None:
        return _recognise_words(view, facts, dialect)
    asked = question_above(view, menu.top)
    before = view.lines[menu.top][: menu.items[0].col]
    if menu.how == "colour" or any(map(str.isalnum, before)):  # the question is in the same row
        asked = Asked(view.lines[menu.top].strip(), menu.top)
    return as_yes_no(menu_finding(view, menu, _ROW_RULE, asked, dialect))


def _recognise_words(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_lit_words(view)
    asked = question_above(view, menu.top) if menu else Asked()
    if menu is None or not asked.text or _WHEEL.search(asked.text):
        return None
    plain = facts.canonical is False and not view.alternate and not dialect.idles
    here = plain and _has_the_cursor(view, menu)
    if here and view.bottom() > menu.bottom:
        return list_rows.unclear(_ROW_RULE, asked)  # the rows below are reached by other keys
    asks = here or decides([item.label for item in menu.items], dialect)
    return menu_finding(view, menu, _ROW_RULE, asked, dialect) if asks else None


def find_key_row(view: View) -> tuple[Menu, list[bytes]] | None:
    """A row near the foot that contains only keys and their meaning, and the keys."""
    rows = unframed(view.lines)
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        found = list(_KEY_IN_A_ROW.finditer(rows[at]))
        if len(found) >= 2 and not _KEY_IN_A_ROW.sub("", rows[at]).strip():
            menu = Menu(tuple(Item(at, one.start(2), one[2]) for one in found), -1, "keys")
            return menu, [named_key(one[1]) or one[1].encode() for one in found]
    return None


def recognise_key_row(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`[y] Approve   [n] Deny` below a question: one key each. A display lists keys, too, but decides nothing."""
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
    """`Enter to submit · Esc to cancel` at the foot of an unknown screen: unclear what Enter would take."""
    rows = [] if view.cursor_visible else unframed(view.lines)
    for at in range(len(rows) and view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        told = {match[1].lower()[:3]: match[2] for match in _TOLD_KEY.finditer(rows[at])} if rows else {}
        if len(told) == 2 and decides(list(told.values()), dialect):
            asked = question_in_box(view, at) or question_above(view, at)
            found = to_look_at("told-keys", numbers.LIKELY, asked.text or rows[at].strip(), asked.row)
            return replace(found, whole=asked.whole)
    return None


def _is_typed_into(view: View, first: int) -> bool:
    """Whether the cursor is in a line below these rows, or a framed field of one row is right above them."""
    framed = any(one.bottom - one.top == 2 and one.bottom == first - 1 for one in find_frames(view.lines))
    return framed or (view.row > first and bool(view.before_cursor().strip()))


def recognise_key_rows(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Press q to quit.` in two rows or more: a menu of single keys."""
    found = [(at, _PRESS.match(line.strip()) or _GUTTER_KEY.match(line)) for at, line in enumerate(view.lines)]
    rows = [(at, match) for at, match in found if match]
    if len(rows) < 2 or view.bottom() - rows[-1][0] > numbers.EDGE_ROWS:
        return None
    if _is_typed_into(view, rows[0][0]) and all(named_key(key[1]) for _, key in rows):
        return None  # these keys only end the input
    keys = [(one[1], one[2], named_key(one[1]) or one[1].encode()) for _, one in rows]
    choices = tuple(choice_of(value, label, (Step(key),), dialect) for value, label, key in keys)
    top = rows[0][0]
    head = view.lines[top - 1] if top else ""
    question = block([head, *(view.lines[at] for at, _ in rows)])
    kind = PromptType.TYPE_MULTIPLE_CHOICE
    said = compact(question)
    return Finding("key-menu", kind, numbers.LIKELY, said, question, top, choices, line_mode=False, structural=True)
