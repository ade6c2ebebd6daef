"""Finds menus on a picture: rows of choices of which one is highlighted, by a pointer, a mark or its colours.

Says only what stands there; what a choice means and which keys take it is left to `recognise_menu`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.frames import peeled, unframed
from atlasbridge.core.screen.style import DIM
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

MAX_ITEMS = 60
EXPLAINED_ROWS = 6
_WRAPPED = "\0"  # a row that goes on with the one above it: the terminal has wrapped it
GREY = 0x1000008  # the foreground "bright black"
ASKEW = 1  # columns by which a numbered choice that takes two rows may stand out of line
GROUP_INDENT = 3  # boxes of a group stand a little to the right of the group's own
_BOXES = "◌◯○◉●◎◻◼☐☑☒⬡⬢□■▢▣✔✓✘"
CHECKED = "◉●◼☑☒⬢■▣✔✓xX*"
_ROW = (
    r"^(?P<indent>\s*+)(?P<pointer>[{pointers}](?=\s|[" + _BOXES + r"\[(]))?(?P<gap>\s*+)"
    r"(?:(?P<box>[" + _BOXES + r"]|\[[ xX*✔✓]?\]|\([ xX*•]?\))(?P<boxgap>\s*+))?"
    r"(?:(?P<open>\[)?(?P<number>\d{1,2})(?P<dot>(?(open)\]|(?:[.)]|:(?=\s))))\s++)?"
    r"(?:(?P<late>\[[ xX✔✓]\]|[☐☑☒◯◉])\s++)?(?P<label>\S.*)$"
)


_APART = lazy(r"\s{2,}")  # between a label and what explains it
_COUNTER = lazy(r"^\s*\d+/\d+(?:\s|$)")  # a fuzzy finder's "3/120" below its list
_DISABLED = lazy(r"^\s*(?:[-─✖×]\s+\S.*|\S.*\((?:disabled|not available|unavailable)\)\s*)$", re.IGNORECASE)
_SEPARATOR = lazy(r"^(\s*)[─━]{3,30}\s*$")  # between groups of choices; a longer one ends a dialog
HINT_ROW = lazy(r"^\W*(?:use (?:the )?(?:arrow|↑)|press (?:space|enter|<)|\[?(?:use )?arrows?\b)", re.IGNORECASE)


@frozen
class Item:
    row: int
    col: int  # of the label
    label: str
    number: str = ""
    pointed: bool = False
    box: str = ""  # the mark in front of it, if it has one
    detail: str = ""  # the words beside it and the lines below it that explain it
    start: int = -1  # where its label begins in the row, in characters; -1: its label is as it stands there

    @property
    def checked(self) -> bool:
        return any(char in CHECKED for char in self.box)


@frozen
class Menu:
    items: tuple[Item, ...]
    current: int  # index of the highlighted item, -1 when it cannot be seen
    how: str  # "pointer", "colour", "radio"
    upwards: bool = False  # the first item stands lowest, as in fuzzy finders
    gaps: bool = False  # there are rows between the items on which the arrows may stop or not

    @property
    def top(self) -> int:
        return min(self.items[0].row, self.items[-1].row)

    @property
    def bottom(self) -> int:
        return max(self.items[0].row, self.items[-1].row)

    @property
    def numbered(self) -> bool:
        return all(item.number for item in self.items)

    @property
    def several(self) -> bool:
        """A list where more than one may be marked: square boxes, a mark beside the pointer, several marks or none."""
        boxes = [item.box for item in self.items if item.box]
        square = sum(box[0] in "[☐☑☒◻◼□■▢▣" for box in boxes)
        beside = self.how == "pointer"
        marked = sum(item.checked for item in self.items)
        return len(boxes) >= 2 and (beside or square >= 2 or marked > 1 or (self.how == "radio" and not marked))


@lru_cache(maxsize=8)
def _row_pattern(pointers: str) -> re.Pattern[str]:
    return re.compile(_ROW.replace("{pointers}", re.escape(pointers)))


@lru_cache(maxsize=256)  # a row is read by many, and stands there at the next look
def _read_row(pattern: re.Pattern[str], row: str) -> re.Match[str] | None:
    return pattern.match(row)


def find_menu(view: View, pointers: str) -> Menu | None:
    """The lowest menu on the screen."""
    pattern = _row_pattern(pointers)
    rows = [
        _WRAPPED if at - 1 in view.joined else _SEPARATOR.sub(r"\1- -", line) if _SEPARATOR.match(line) else sketch
        for at, (line, sketch) in enumerate(zip(view.lines, unframed(view.lines), strict=True))
    ]
    for at in range(len(rows) - 1, -1, -1):
        start = _read_row(pattern, rows[at])
        if start and start["pointer"]:
            menu = _around(view, rows, pattern, at, start)
            if menu:
                return verbatim(view, menu)
    return verbatim(view, _starred(view, rows, pointers) or _radio(view, rows, pattern))


def verbatim(view: View, menu: Menu | None) -> Menu | None:
    """With labels as they stand on the screen, and what stands beside and below each of them."""
    if menu is None:
        return None
    rows = peeled(view.lines, menu.items[max(menu.current, 0)].row)
    return replace(menu, items=tuple(_as_written(view, rows, menu, at) for at in range(len(menu.items))))


def _as_written(view: View, rows: tuple[str, ...], menu: Menu, at: int) -> Item:
    item = menu.items[at]
    if item.start < 0:
        return item
    last, spaced = item.row, dict(view.spaced)
    while last in view.joined and last + 1 < len(rows):
        last += 1
    text = "".join([*(spaced.get(row, rows[row]) for row in range(item.row, last)), rows[last]])
    below = _below(rows, menu, at, view.joined)
    label, *beside = _APART.split(text[item.start :].rstrip(), maxsplit=1)
    while below and not beside and _had_no_room(view, rows, item, len(label), below[0]):
        label = f"{label} {below.pop(0)}"
    return replace(item, label=label, detail="\n".join([*beside, *below]))


def _had_no_room(view: View, rows: tuple[str, ...], item: Item, size: int, below: str) -> bool:
    """The first word below would not have fitted behind the label: the tool itself has wrapped it."""
    room = view.cols - 2 * item.start if rows[item.row] != view.lines[item.row] else view.cols - item.start
    last = size % max(room, 1) if size > room else size
    return last + 1 + len(below.split()[0]) > room


def _below(rows: tuple[str, ...], menu: Menu, at: int, joined: frozenset[int]) -> list[str]:
    """The rows between a choice and the next, or right below the last, that stand where its label stands."""
    item = menu.items[at]
    below = [other.row for other in menu.items if other.row > item.row]
    out: list[str] = []
    for row in range(item.row + 1, min(below, default=min(len(rows), item.row + 1 + EXPLAINED_ROWS))):
        if row - 1 in joined:
            continue
        text = rows[row]
        deep = len(text) - len(text.lstrip()) >= (item.col if below else item.start) if item.number else bool(below)
        if not text.strip() or not deep or HINT_ROW.match(text):
            break
        out.append(text.strip())
    return out


def _starred(view: View, rows: list[str], pointers: str) -> Menu | None:
    """A star points where every row has a box behind it; elsewhere it is a bullet."""
    pattern = _row_pattern(pointers + "*")
    read = [(at, _read_row(pattern, row)) for at, row in enumerate(rows)]
    starts = [(at, match) for at, match in read if match and match["pointer"] == "*"]
    at, start = starts[0] if len(starts) == 1 else (0, None)
    return _around(view, rows, pattern, at, start) if start and start["box"] else None


def find_numbered(view: View, pointers: str) -> Menu | None:
    """The lowest rows that count from 1, with no pointer: only a dialect can say that they are a menu."""
    pattern = _row_pattern(pointers)
    rows = [_WRAPPED if at - 1 in view.joined else row for at, row in enumerate(unframed(view.lines))]
    for at in range(len(rows) - 1, -1, -1):
        start = _read_row(pattern, rows[at])
        if start and start["number"]:
            above = _walk(rows, pattern, range(at - 1, -1, -1), _column(start), True, bool(start["box"]))
            items = [*reversed(above), _item(at, start)]
            if len(items) >= 2 and _counts(items) and items[0].number == "1":
                current = odd_one(view, [(item.row, item.col) for item in items])
                return verbatim(view, Menu(tuple(items), current, "colour"))
    return None


def _item(at: int, match: re.Match[str]) -> Item:
    return Item(
        at,
        match.start("number") if match["number"] else match.start("label"),
        _APART.split(match["label"].strip(), maxsplit=1)[0],
        match["number"] or "",
        bool(match["pointer"]),
        match["box"] or match["late"] or "",
        start=match.start("label"),
    )


def _column(match: re.Match[str]) -> int:
    return match.start("number") if match["number"] else match.start("box") if match["box"] else match.start("label")


def _around(view: View, rows: list[str], pattern: re.Pattern[str], at: int, start: re.Match[str]) -> Menu | None:
    """The rows above and below a pointer that are aligned with what it points at."""
    first = _item(at, start)
    column = _column(start)
    above = _walk(rows, pattern, range(at - 1, -1, -1), column, bool(first.number), bool(start["box"]))
    below_from = at + 1 + _explained_by(view, rows, pattern, at, column)
    below = _walk(rows, pattern, range(below_from, len(rows)), column, bool(first.number), bool(start["box"]))
    if first.number:
        above, below = _counted(rows, first, above, -1), _counted(rows, first, below, 1)
    items = _honest([*reversed(above), first, *below])
    first = items[len(above)]
    if len(items) < 2 or sum(item.pointed for item in items) != 1:
        return None
    below_it = rows[items[-1].row + 1] if items[-1].row + 1 < len(rows) else ""
    if _COUNTER.match(below_it):
        items = _without_header(view, items)
        return Menu(tuple(reversed(items)), len(items) - 1 - items.index(first), "pointer", upwards=True)
    if items[0].row and _COUNTER.match(rows[items[0].row - 1]):
        items = _without_header(view, items[::-1])[::-1]
    between = range(items[0].row + 1, items[-1].row)
    gaps = not first.number and any(_DISABLED.match(rows[row]) for row in between)
    return Menu(tuple(items), items.index(first), "pointer", gaps=gaps)


def _counted(rows: list[str], first: Item, others: list[Item], step: int) -> list[Item]:
    """Those that count on from the pointed one: a list that stands near it in the text counts for itself."""
    out: list[Item] = []
    last = first
    for item in others:
        apart = any(not rows[at].strip() for at in range(item.row + 1, last.row))
        if int(item.number) != int(last.number) + step or (item.number == "0" and apart):
            break
        out.append(item)
        last = item
    return out


def _explained_by(view: View, rows: list[str], pattern: re.Pattern[str], at: int, column: int) -> int:
    """How many faded rows below the pointed one explain it: a choice in plain colour follows them."""
    end = at + 1
    while end < len(rows) and rows[end] == _WRAPPED:
        end += 1
    first = end
    while end < len(rows) and rows[end].strip() and _is_faded(view, end, rows[end]):
        end += 1
    match = _read_row(pattern, rows[end]) if end < len(rows) else None
    return end - at - 1 if match and end > first and _column(match) == column else 0


def _is_faded(view: View, row: int, text: str) -> bool:
    style = view.style(row, len(text) - len(text.lstrip()))
    return bool(style & DIM) or style >> 8 & 0x3FFFFFF == GREY


def _without_header(view: View, items: list[Item]) -> list[Item]:
    """A fuzzy finder's header stands behind its last item, in a colour of its own."""
    looks = [view.style(item.row, item.col) for item in items if not item.pointed]
    usual = Counter(looks).most_common(1)[0][0] if len(looks) > 1 else None
    while len(items) > 2 and usual is not None and not items[-1].pointed:
        if view.style(items[-1].row, items[-1].col) == usual:
            break
        items = items[:-1]
    return items


def _walk(
    rows: list[str], pattern: re.Pattern[str], order: range, column: int, numbered: bool, boxed: bool
) -> list[Item]:
    found: list[Item] = []
    blanks = 0
    for at in order:
        if rows[at] == _WRAPPED:
            continue
        if not rows[at].strip():
            blanks += 1
            if blanks > (2 if numbered else 0) or (not found and not numbered):
                break
            continue
        match = None if HINT_ROW.match(rows[at]) or _COUNTER.match(rows[at]) else _read_row(pattern, rows[at])
        if match and not numbered and not any(map(str.isalnum, match["label"])):
            continue
        aligned = match is not None and abs(_column(match) - column) <= (ASKEW if numbered else 0)
        if match and aligned and bool(match["number"]) == numbered and bool(match["box"]) == boxed:
            found.append(_item(at, match))
            blanks = 0
        elif not numbered and _DISABLED.match(rows[at]) and len(rows[at]) - len(rows[at].lstrip()) >= column - 2:
            continue  # a line between groups, or a choice that cannot be taken
        elif not (numbered and match and match.start("label") > column):
            if numbered and found and order.step > 0 and blanks == 0 and match and match.start("label") >= column:
                continue
            if numbered and _explains(rows, pattern, at, column):
                continue
            break
        if len(found) >= MAX_ITEMS:
            break
    return found


def _explains(rows: list[str], pattern: re.Pattern[str], at: int, column: int) -> bool:
    """Text in the column of the numbers, between two choices that follow each other: it explains the upper one."""
    above = _nearest_number(rows, pattern, range(at, max(-1, at - EXPLAINED_ROWS), -1), column)
    below = _nearest_number(rows, pattern, range(at, min(len(rows), at + EXPLAINED_ROWS)), column)
    return above > 0 and below == above + 1


def _nearest_number(rows: list[str], pattern: re.Pattern[str], order: range, column: int) -> int:
    """The number of the first choice that way; 0 when something else comes before it."""
    for at in order:
        if rows[at] == _WRAPPED:
            continue
        match = _read_row(pattern, rows[at])
        if match is None or _column(match) < column - ASKEW:
            return 0
        if match["number"]:
            return int(match["number"]) if abs(_column(match) - column) <= ASKEW else 0
    return 0


def _counts(items: list[Item]) -> bool:
    numbers = [int(item.number) for item in items]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _radio(view: View, rows: list[str], pattern: re.Pattern[str]) -> Menu | None:
    """Rows that all begin with a mark: the filled one, or the one in another colour, is where the keys go."""
    block: list[Item] = []
    for at in range(len(rows) - 1, -1, -1):
        if rows[at] == _WRAPPED:
            continue
        match = _read_row(pattern, rows[at])
        marked = match and (match["box"] or (match["pointer"] and match["pointer"] in _BOXES))
        if match and marked and (not block or abs(_item(at, match).col - block[-1].col) <= GROUP_INDENT):
            block.append(_boxed(_item(at, match), match))
        elif len(block) >= 2:
            break
        elif rows[at].strip():
            block = []
    if len(block) < 2:
        return None
    items = tuple(_honest(list(reversed(block))))
    filled = [at for at, item in enumerate(items) if item.checked]
    odd = odd_one(view, [(item.row, item.col) for item in items])
    current = odd if odd >= 0 else filled[0] if len(filled) == 1 else 0
    return Menu(items, current, "radio")


def _honest(items: list[Item]) -> list[Item]:
    """Where every row has the same tick, only its colour says which is on: none is taken for marked."""
    same = {item.box for item in items} <= {"✔"} or {item.box for item in items} <= {"✓"}
    return [replace(item, box="[ ]") for item in items] if same else items


def _boxed(item: Item, match: re.Match[str]) -> Item:
    box = item.box or match["pointer"] or ""
    return replace(item, pointed=False, box=box)


def odd_one(view: View, cells: list[tuple[int, int]]) -> int:
    """The index of the one cell that looks different from all others; -1 when none or several do."""
    looks = [view.style(row, col) for row, col in cells]
    count = Counter(looks)
    if len(count) < 2:
        return -1
    if len(looks) == 2:
        return max(range(2), key=lambda at: _weight(looks[at]))
    rare = [at for at, look in enumerate(looks) if count[look] == 1]
    if len(rare) == 1:
        return rare[0]
    lit = [at for at, look in enumerate(looks) if look & 0x20 or look >> 34]
    return lit[0] if len(lit) == 1 else -1  # a bar; the others may have a colour of their own, such as red for a no


def _weight(style: int) -> int:
    """How much a style stands out: reverse and a background colour most, dim least."""
    reverse, background = bool(style & 0x20), bool(style >> 34)
    return 8 * reverse + 4 * background + 2 * bool(style & 0x01) - bool(style & 0x02) + bool(style >> 8 & 0x3FFFFFF)
