"""What a row of a list looks like: pointer, box, number, label; and the rows around one that belong with it.

Which row is highlighted is told by `highlight_of`; which lists there are, and how they are answered, by the widgets.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.question import logical_rows
from atlasbridge.core.screen.frames import SIDES, is_drawn, peeled, unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import BACKGROUND, View
from atlasbridge.core.values import frozen, replace

WRAPPED = "\0"  # a row that goes on with the one above it: the terminal has wrapped it
BOXES = "◌◯○◉●◎◻◼☐☑☒⬚⬜⬛⬡⬢□■▢▣✔✓✘✗✖✕"
CHECKED = "◉●◼☑☒⬛⬢■▣✔✓xX*"
_BEHIND_NUMBER = r"\s++)?"
_ROW = (
    r"^(?P<indent>\s*+)(?P<pointer>[{pointers}](?=\s|[" + BOXES + r"\[(]))?(?P<gap>\s*+)"
    r"(?:(?P<box>[" + BOXES + r"]|\[[ xX*✔✓]?\]|\([ xX*•]?\))(?P<boxgap>\s*+))?"
    r"(?:(?P<open>\[)?(?P<number>\d{1,2})(?P<dot>(?(open)\]|(?:[.)]|:(?=\s))))"
    + _BEHIND_NUMBER
    + r"(?:(?P<late>\[[ xX✔✓]\]|[☐☑☒◯◉])\s++)?(?P<label>\S.*)$"
)
SCROLL_MARKS = tuple("↑↓▲▼⇡⇣△▽▴▾")  # alone in its row: the list goes on there, out of sight
_KEY = lazy(r"[\[(]?(\w)(?:[\])][.:]?|[.:])?\s+(?=\S)")
APART = lazy(r"\s{2,}")  # between a label and what explains it
COUNTER = lazy(r"^\s*\d+/\d+(?:\s|$)")  # a fuzzy finder's "3/120" below its list
DISABLED = lazy(r"^\s*(?:[-─✖×]\s+\S.*|\S.*\((?:disabled|not available|unavailable)\)\s*)$", re.IGNORECASE)
HINT_ROW = lazy(r"^\W*(?:use (?:the )?(?:arrow|↑)|press (?:space|enter|<)|\[?(?:use )?arrows?\b)", re.IGNORECASE)
ARROWS = lazy(r"use (?:the )?arrow|arrow[- ]keys|↑|to navigate|enter to (?:select|confirm|submit)", re.IGNORECASE)


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
    how: str  # "pointer", "colour", "radio", "mark": the only mark shows it, and goes where the arrows go
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
        if self.how == "mark":
            return False
        square = sum(box[0] in "[☐☑☒⬚⬜⬛◻◼□■▢▣" for box in boxes)
        beside = self.how == "pointer"
        marked = sum(item.checked for item in self.items)
        return len(boxes) >= 2 and (beside or square >= 2 or marked > 1 or (self.how == "radio" and not marked))


@lru_cache(maxsize=8)
def row_pattern(pointers: str, tight: bool = False) -> re.Pattern[str]:
    """`tight`: there may be no room for the blank behind a number."""
    row = _ROW.replace(_BEHIND_NUMBER, r"(?:\s++|(?=[^\W\d])))?", 1) if tight else _ROW
    return re.compile(row.replace("{pointers}", re.escape(pointers)))


@lru_cache(maxsize=512)  # a row is read by many, and stands there at the next look
def read_row(pattern: re.Pattern[str], row: str) -> re.Match[str] | None:
    return pattern.match(row)


@lru_cache(maxsize=256)
def headed(line: str, row: str) -> str:
    """A row of the sketch with the mark that heads it, where a frame has such a mark as well."""
    mark = line.lstrip()[:1]
    place = line.find(mark)
    return row[:place] + mark + row[place + 1 :] if mark in ("◆", "◇") else row


def is_full(view: View, at: int, below: str) -> bool:
    """Whether the row had no room for the first word of the one below it: the tool itself has wrapped it."""
    line = view.lines[at].rstrip()
    framed = line[-1:] in SIDES
    if framed and len(line) < view.cols - 4 * numbers.MARGIN:
        return False  # a box that is as wide as its longest row
    end = len(line[:-1].rstrip()) if framed else len(line)
    room = len(line) - 1 if framed else view.cols
    return end + 1 + len(below.split()[0]) > room - numbers.ROOM


def item_of(at: int, match: re.Match[str]) -> Item:
    return Item(
        at,
        match.start("number") if match["number"] else match.start("label"),
        APART.split(match["label"].strip(), maxsplit=1)[0],
        match["number"] or "",
        bool(match["pointer"]),
        match["box"] or match["late"] or "",
        start=match.start("label"),
    )


def read_item(pattern: re.Pattern[str], at: int, row: str) -> Item | None:
    match = read_row(pattern, row)
    return item_of(at, match) if match else None


def column_of(match: re.Match[str]) -> int:
    return match.start("number") if match["number"] else match.start("box") if match["box"] else match.start("label")


def walk(
    rows: list[str],
    pattern: re.Pattern[str],
    order: range,
    column: int,
    numbered: bool,
    boxed: bool,
    spaced: bool = False,
) -> list[Item]:
    """`spaced`: a blank row stands between any two of them."""
    found: list[Item] = []
    blanks = 0
    for at in order:
        if rows[at] == WRAPPED:
            continue
        if not rows[at].strip():
            blanks += 1
            if blanks > (2 if numbered else spaced) or not (found or numbered or spaced):
                break
            continue
        if spaced and blanks != 1:
            found = found[:-1]  # of several rows: a paragraph
            break
        if spaced and order.step < 0 and rows[at].rstrip().endswith(("?", ":", "？", "：")):
            break  # what is asked
        match = None if HINT_ROW.match(rows[at]) or COUNTER.match(rows[at]) else read_row(pattern, rows[at])
        if rows[at].strip() in SCROLL_MARKS:
            break
        if match and not numbered and not any(map(str.isalnum, match["label"])):
            continue
        aligned = match is not None and abs(column_of(match) - column) <= (numbers.ASKEW if numbered else 0)
        if match and aligned and bool(match["number"]) == numbered and bool(match["box"]) == boxed:
            found.append(item_of(at, match))
            blanks = 0
        elif not numbered and DISABLED.match(rows[at]) and len(rows[at]) - len(rows[at].lstrip()) >= column - 2:
            continue  # a line between groups, or a choice that cannot be taken
        elif not (numbered and match and match.start("label") > column):
            if numbered and found and order.step > 0 and blanks == 0 and match and match.start("label") >= column:
                continue
            if numbered and _explains(rows, pattern, at, column):
                continue
            break
    return found


def _explains(rows: list[str], pattern: re.Pattern[str], at: int, column: int) -> bool:
    """Text in the column of the numbers, between two choices that follow each other: it explains the upper one."""
    above = _nearest_number(rows, pattern, range(at, max(-1, at - numbers.EXPLAINED_ROWS), -1), column)
    below = _nearest_number(rows, pattern, range(at, min(len(rows), at + numbers.EXPLAINED_ROWS)), column)
    return above > 0 and below == above + 1


def _nearest_number(rows: list[str], pattern: re.Pattern[str], order: range, column: int) -> int:
    """The number of the first choice that way; 0 when something else comes before it."""
    for at in order:
        if rows[at] == WRAPPED:
            continue
        match = read_row(pattern, rows[at])
        if match is None or column_of(match) < column - numbers.ASKEW:
            return 0
        if match["number"]:
            return int(match["number"]) if abs(column_of(match) - column) <= numbers.ASKEW else 0
    return 0


def find_numbered(view: View, pointers: str) -> Menu | None:
    """The lowest rows that count from 1, with no pointer: only a dialect can say that they are a menu."""
    pattern = row_pattern(pointers)
    sketch = [headed(line, row) for line, row in zip(view.lines, unframed(view.lines), strict=True)]
    rows = [WRAPPED if at - 1 in view.joined else row for at, row in enumerate(sketch)]
    for at in range(len(rows) - 1, -1, -1):
        start = read_row(pattern, rows[at])
        if start and start["number"]:
            above = walk(rows, pattern, range(at - 1, -1, -1), column_of(start), True, bool(start["box"]))
            items = [*reversed(above), item_of(at, start)]
            if len(items) >= 2 and [int(item.number) for item in items] == list(range(1, len(items) + 1)):
                current = odd_one(view, [(item.row, item.col) for item in items])
                return verbatim(view, Menu(tuple(items), current, "colour"))
    return None


def honest(items: list[Item]) -> list[Item]:
    """Where every row has the same tick, only its colour says which is on: none is taken for marked.  A tick here and a
    cross there say yes and no, and mark nothing."""
    signs = {item.box for item in items}
    if signs & set("✔✓") and signs & set("✘✗✖✕"):
        return [replace(item, box="") for item in items]
    same = {item.box for item in items} <= {"✔"} or {item.box for item in items} <= {"✓"}
    return [replace(item, box="[ ]") for item in items] if same else items


def without_keys(items: list[Item]) -> list[Item]:
    """`(a) Approve`, `1 Yes`: what all of them begin with, one after the other, is no part of the label."""
    keys = [_KEY.match(item.label) for item in items]
    said = "".join(key[1] for key in keys if key).lower()
    if not all(keys) or not (said in "123456789" or said in "abcdefghijklmnop"):
        return items
    sizes = [key.end() for key in keys if key]
    return [
        replace(item, label=item.label[size:], start=item.start + size) for item, size in zip(items, sizes, strict=True)
    ]


def verbatim(view: View, menu: Menu | None) -> Menu | None:
    """With labels as they stand on the screen, and what stands beside and below each of them."""
    if menu is None:
        return None
    rows = peeled(view.lines, menu.items[max(menu.current, 0)].row)
    apart = all(abs(lower.row - upper.row) > 1 for upper, lower in pairwise(menu.items))  # each has words below it
    return replace(menu, items=tuple(_as_written(view, rows, menu, at, apart) for at in range(len(menu.items))))


def _as_written(view: View, rows: tuple[str, ...], menu: Menu, at: int, apart: bool) -> Item:
    item = menu.items[at]
    if item.start < 0:
        return item
    text = rows[item.row]
    if item.row in view.joined:
        last = next(at for at in range(item.row, len(rows)) if at not in view.joined)
        text = logical_rows(view, rows, item.row, last + 1)[0]
    below = _below(view, rows, menu, at, apart)
    label, *beside = APART.split(text[item.start :].rstrip(), maxsplit=1)
    while below and not beside and _had_no_room(view, rows, item, len(label), below[0]):
        label = f"{label} {below.pop(0)}"
    detail = "\n".join([*beside, *below])
    return item if label == item.label and not detail else replace(item, label=label, detail=detail)


def _had_no_room(view: View, rows: tuple[str, ...], item: Item, size: int, below: str) -> bool:
    """The first word below would not have fitted behind the label: the tool itself has wrapped it."""
    room = view.cols - 2 * item.start if rows[item.row] != view.lines[item.row] else view.cols - item.start
    last = size % max(room, 1) if size > room else size
    return last + 1 + len(below.split()[0]) > room


def _below(view: View, rows: tuple[str, ...], menu: Menu, at: int, apart: bool) -> list[str]:
    """The rows between a choice and the next, or right below the last, that stand where its label stands."""
    item = menu.items[at]
    following = menu.items[at - 1 : at] if menu.upwards else menu.items[at + 1 : at + 2]
    below = [other.row for other in following]
    out: list[str] = []
    for row in range(item.row + 1, min(below, default=min(len(rows), item.row + 1 + numbers.EXPLAINED_ROWS))):
        if row - 1 in view.joined:
            continue
        text = rows[row]
        set_in = len(text) - len(text.lstrip())
        if is_drawn(text):
            break
        deep = set_in >= (item.col if below else item.start) if item.number else bool(below) or apart
        deep = deep or (set_in == item.start and row == item.row + 1 and is_full(view, item.row, text))
        if not deep or HINT_ROW.match(text):
            break
        out.append(text.strip())
    return out


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
    return odd_bar(looks)  # the others may have a colour of their own, such as red for a no


def odd_bar(looks: list[int]) -> int:
    """The one of three or more with a ground of its own."""
    bars = [ground_of(look) for look in looks]
    lit = [at for at, bar in enumerate(bars) if bars.count(bar) == 1]
    return lit[0] if len(lit) == 1 and len(set(bars)) == 2 else -1


def ground_of(style: int) -> int:
    return style >> BACKGROUND or style & REVERSE


def _weight(style: int) -> int:
    """How much a style stands out: reverse and a background colour most, dim least."""
    reverse, background = bool(style & REVERSE), bool(style >> BACKGROUND)
    return 8 * reverse + 4 * background + 2 * bool(style & 0x01) - bool(style & 0x02) + bool(style >> 8 & 0x3FFFFFF)
