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
from atlasbridge.core.prompt.vocabulary import answers_as, begins
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding, drawn
from atlasbridge.core.recognition.meaning import decides, refuses
from atlasbridge.core.recognition.question import Asked, block, question_above, question_in_box
from atlasbridge.core.recognition.widgets import list_rows
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu, ground_of, menu_finding, odd_one
from atlasbridge.core.screen.frames import find_frames, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_RADIO_IN_A_ROW = lazy(r"([●○◉◯]|\([ •*x]\))\s*([^●○◉◯/(]+?)\s*(?=/|[●○◉◯]|\([ •*x]\)|\s{2,}|$)")
_ASKS = lazy(r"[?:›»…‣]\s*$")
_LIT_RUN = lazy(r"^\s*+(?:\S++(?:\s{1,10}(?=\S))?)+")
_APART = lazy(r"\S++(?> \S++)*")
_HELD = lazy(r"[‹«◂◀<\[]\s?([^\W\d_][^‹›«»<>\[\]]{0,22}?)\s?[›»▸▶>\]]")  # the one of several words in brackets
_TOGGLE = lazy(r"[›»…‣]\s*((?:\w[\w' ]{0,20}?\s+[/|·•]\s+){1,5}\w[\w' ]{0,20})\s*$")
_SWITCH = lazy(r"[?:]\s+(Yes\s?[/|·]\s?No)\s*$", re.IGNORECASE)  # one of them is highlighted, and the cursor is hidden
_WORDS_APART = lazy(r"\w[\w']*+(?: \w[\w']*+)*")
_BUTTON = lazy(r"<\s*+([^<>\s](?:[^<>]{0,22}?[^<>\s])?)\s*+>|\[\s++([^\[\]\s](?:[^\[\]]{0,22}?[^\[\]\s])?)\s++\]")
_WAY_OUT = lazy(r"[<\[]\s*+([^\W\d_][\w -]{0,20}?)\s*+[>\]]|^\s*+([^\W\d_]{2,12})\s*+$")
_WHEEL = lazy("[⠁-⣿]")  # spins beside the tool's work, not in a question
_ROW_RULE = MenuRule("side-by-side", across=True)
_PRESS = lazy(r"^\W*(?:press|type|hit)\s+\S{1,10}\s+to\s", re.IGNORECASE)

_KEY_CELL = lazy(
    r"(?P<lead>[^\W\d_]*)[\[(<](?P<key>\w|F\d{1,2}|esc|enter|tab|space)[\])>](?P<gap>\s?)"
    r"(?P<label>[^\W\d_][^\[\](){}<>|·•]*)"
    r"|(?P<bare>[^\W\d_]|F\d{1,2}|\^[A-Z]|(?:ctrl|C)[+-][A-Z])(?:[:)] ?| ?= ?| - |\s{1,3})"
    r"(?P<word>[^\W\d_]\S*(?: [^|·•/\s]\S*)*)"
    r"|(?:press|type|hit)\s+[`'\"‹<]?(?P<told>\S{1,8}?)[`'\"›>]?\s+to\s+(?P<does>.+)",
    re.IGNORECASE,
)
_MARKS = " ›>•·-*│"  # before a key that has a row of its own
_WHOLE_ROW = lazy(r"\w.*\S|[\[(<].*\S")
_CELL = lazy(r"[^\s·•|](?:\S| (?=[^\s·•|\[(<]))*")
_MOVES = lazy(r"(?:[↑↓←→⇅↕⏎↵?/]|(?:enter|esc|tab|space|ctrl|pg|arrows?|home)\b).*\s\w", re.IGNORECASE)
_TOLD_KEY = lazy(r"(?<!\w)(enter|esc)(?:ape)?\s+to\s+(\w+)", re.IGNORECASE)
_KEY_RULE = MenuRule("keys", score=numbers.LIKELY, across=True)


def find_across(view: View, labels: str) -> Menu | None:
    for at in range(view.bottom(), -1, -1):
        found = [_labelled(at, match) for match in compiled(labels).finditer(view.lines[at])]
        if len(found) >= 2:
            return Menu(tuple(found), odd_one(view, [(at, item.col) for item in found]), "colour")
    return None


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
        filled = [place for place, item in enumerate(marked) if item.checked]  # none: the states of a panel
        if len(marked) >= 2 and filled and worded and _begins_the_row(view, at, radios[0][0][1]):
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
    held = [place for place, item in enumerate(words) if unheld(item) is not item]
    if len(words) > 1 and len(held) == 1:  # `Yes   ‹ No ›`
        return Menu(tuple(map(unheld, words)), held[0], "colour")
    grounds = Counter(ground_of(view.style(at, item.col)) for item in words)
    lit = odd_one(view, [(at, item.col) for item in words]) if len(grounds) == 2 and 1 in grounds.values() else -1
    return Menu(tuple(words), lit, "colour") if lit >= 0 else None


def unheld(item: Item) -> Item:
    held = _HELD.fullmatch(item.label)
    return replace(item, col=item.col + held.start(1), label=held[1]) if held else item


def marked_buttons(view: View, at: int, left: int, right: int) -> list[Item]:
    line = view.lines[at]
    marked = _BUTTON.finditer(line, left, min(right + 1, len(line)))
    return [Item(at, match.start(match.lastindex or 1), match[match.lastindex or 1]) for match in marked]


def way_out(view: View, row: int) -> str:
    for text in unframed(view.lines)[row + 1 :]:
        for match in _WAY_OUT.finditer(text):
            label = match[1] or match[2]
            if answers_as(label, "send") or begins("agree", label):
                return label
    return ""


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
    return menu_finding(view, menu, _ROW_RULE, asked, dialect)


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


def _keys_in(view: View, at: int) -> list[tuple[Item, str]]:
    """The keys of a row and the words beside them, if it contains nothing else but hints about other keys."""
    row = unframed(view.lines)[at]
    found: list[tuple[Item, str]] = []
    for cell in _CELL.finditer(row) if not _KEY_CELL.fullmatch(row.strip(_MARKS)) else _WHOLE_ROW.finditer(row):
        match = _KEY_CELL.fullmatch(cell[0])
        if match is None or not _is_key(view, at, cell.start(), match):
            if _MOVES.match(cell[0]):
                continue
            return []
        key, label = match["key"] or match["bare"] or match["told"], match["label"] or match["word"] or match["does"]
        joined = match["key"] and (match["lead"] or not match["gap"])
        label = f"{match['lead']}{key}{label}" if joined else label
        found.append((Item(at, cell.start(), label.rstrip(" ./")), key.lower() if joined else key))
    return found


def _is_key(view: View, at: int, start: int, match: re.Match[str]) -> bool:
    """Whether a letter without brackets is a key: its word begins with it, or it has a colour of its own."""
    if not match["bare"] or len(match["bare"]) > 1:
        return not match["lead"] or not match["gap"]
    own = view.style(at, start) != view.style(at, start + match.start("word"))
    return own or match["word"][0].lower() == match["bare"].lower()


def find_keys(view: View) -> list[tuple[Item, str]]:
    """The lowest row near the foot with two or more keys, or the lowest rows with one key each."""
    rows: list[tuple[Item, str]] = []
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.FOOT_ROWS), -1):
        found = _keys_in(view, at)
        if len(found) == 1 and (not rows or rows[0][0].row == at + 1):
            rows = [*found, *rows]
        elif len(rows) > 1 or len(found) > 1:
            rows = rows if len(rows) > 1 else found
            break
        else:
            rows = []
    near = rows and view.bottom() - rows[-1][0].row < numbers.EDGE_ROWS
    return rows if near and 1 < len(rows) == len({key for _, key in rows}) else []


def recognise_keys(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`[y] Approve   [n] Deny`, `(a)pprove  (d)eny`, `F2 Save  F10 Back` in one row or below each other: one key each.
    A display lists its keys, too, but decides nothing and asks nothing.
    """
    found = find_keys(view)
    if not found or (view.cursor_visible and view.row < found[0][0].row and view.before_cursor().strip()):
        return None
    items, labels = tuple(item for item, _ in found), [item.label for item, _ in found]
    keys = [named_key(key) or key.encode() for _, key in found]
    told = _PRESS.search(view.lines[items[0].row]) is not None
    only_named = all(map(named_key, (key for _, key in found)))  # these keys only end the input
    if items[0].row < items[1].row and _is_typed_into(view, items[0].row) and (only_named or facts.canonical is None):
        return None
    asked = question_above(view, items[0].row)
    few = sum(bool(row.strip()) for row in view.lines) <= numbers.LIT_OTHER_ROWS + len(items)
    asks = few and asked.text.endswith(("?", "？")) and any(refuses(label, dialect) for label in labels)
    chosen = "◆" in view.lines[items[0].row - 1]
    if not (told or asks or chosen or (asked.text and decides(labels, dialect))):
        return None
    asked = asked if asked.text else Asked(block([view.lines[item.row] for item in items]), items[0].row)
    made = menu_finding(view, Menu(items, -1, "keys"), _KEY_RULE, asked, dialect)
    single = tuple(
        replace(one, value=one.value if made.type is PromptType.TYPE_YES_NO else key, steps=(Step(typed),))
        for one, (_, key), typed in zip(made.choices, found, keys, strict=True)
    )
    return replace(made, choices=single)


def recognise_told_keys(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Enter to submit · Esc to cancel` at the foot of an unknown screen: unclear what Enter would take."""
    rows = [] if view.cursor_visible else unframed(view.lines)
    for at in range(len(rows) and view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        told = {match[1].lower()[:3]: match[2] for match in _TOLD_KEY.finditer(rows[at])} if rows else {}
        if len(told) == 2 and decides(list(told.values()), dialect):
            asked = question_in_box(view, at) or question_above(view, at)
            return drawn("told-keys", numbers.LIKELY, asked if asked.text else replace(asked, text=rows[at].strip()))
    return None


def _is_typed_into(view: View, first: int) -> bool:
    """Whether the cursor is in a line below these rows, or a framed field of one row is right above them."""
    framed = any(one.bottom - one.top == 2 and one.bottom == first - 1 for one in find_frames(view.lines))
    return framed or (view.row > first and bool(view.before_cursor().strip()))
