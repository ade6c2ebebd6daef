"""Lists with a pointer, such as `❯ Yes` above `  No`, and lists whose only mark is a highlight or a bullet.

It finds a pointer and the rows that are aligned with its label. Evidence for a list: the foot of the screen, a hint
about arrow keys, words above it. Evidence against it: a question further down, two pointers. The answer is arrows
that are checked on the screen.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Reach, Step, arrow
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.vocabulary import speaks
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.question import Asked, block, question_above, question_in_box, stands_first
from atlasbridge.core.recognition.widgets import list_rows
from atlasbridge.core.recognition.widgets.line_question import typed_key
from atlasbridge.core.recognition.widgets.list_rows import (
    Item,
    Menu,
    Rows,
    begins,
    ground_of,
    item_of,
    menu_finding,
    odd_one,
    read_row,
)
from atlasbridge.core.recognition.widgets.offers import offers_in
from atlasbridge.core.recognition.widgets.resting_screen import asked_at_foot, recognise_foot
from atlasbridge.core.recognition.widgets.side_by_side import lit_words_in, marked_buttons, unheld, way_out
from atlasbridge.core.screen.frames import SIDES, Frame, find_frames, is_drawn, is_rule, unframed
from atlasbridge.core.screen.style import STRIKE, is_faded
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

# First the lists whose only mark is a highlight or a bullet, and the matches of a filter line. Only small ones count,
# because a browser of files, mails or commits has a highlighted row as well, and text uses bullets.

_PUSHED = lazy(r"^(\s*+)<(\s++[^<>]*[^<>\s])\s++>$")  # a button as wide as the screen
_RULE = MenuRule("lit-list", score=numbers.SURE)
_COUNTED_RULE = MenuRule("lit-numbers", score=numbers.SURE)
_BAR_RULE = MenuRule("button-bar", score=numbers.SURE, across=True)
_TYPED_RULE = MenuRule("typed-list", choose="digit_enter")
_PLAIN = lazy(r"[^\W\d_]\D*")


def recognise_lit_list(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = _lit_list(view, facts, dialect)
    if menu is None:
        return _button_bar(view, dialect) if view.alternate else None
    if view.alternate:
        below = recognise_foot(view, facts, dialect)
        told = below is None or below.type is PromptType.TYPE_CONFIRM_ENTER  # which key takes the lit row
        if _asks_at_foot(view) or (below and not told and below.row > menu.bottom):
            return None  # the program asks in a line of its own about the lit row
    asked = question_above(view, menu.top)
    return menu_finding(view, menu, _RULE, asked, dialect) if asked.text else None


def _lit_list(view: View, facts: Facts, dialect: Dialect) -> Menu | None:
    """A list with its highlight on an almost empty screen; below earlier output, the cursor must be in it."""
    menu = find_shaped(view)
    if menu is None or menu.current < 0 or not all(_PLAIN.fullmatch(item.label) for item in menu.items):
        return None
    lit = menu.items[menu.current]
    if menu.top == menu.bottom or not ground_of(view.style(lit.row, lit.col)):
        return None
    if not view.alternate:
        return menu if menu.top <= view.row <= menu.bottom == view.bottom() and facts.canonical is False else None
    others = sum(bool(line.strip()) for line in view.lines) - len({item.row for item in menu.items})
    return menu if others <= numbers.LIT_OTHER_ROWS and facts.command not in dialect.screen_programs else None


def _asks_at_foot(view: View) -> bool:
    foot = asked_at_foot(view)
    return foot != "" and (view.cursor_visible or "?" in foot)


def _button_bar(view: View, dialect: Dialect) -> Finding | None:
    """`[ New ]  [ Quit ]` near the foot, one of them lit; on an almost empty screen, also words."""
    rows = [at for at, line in enumerate(unframed(view.lines)) if line.strip()]
    few = 0 < len(rows) <= numbers.LIT_OTHER_ROWS + 1 and not view.cursor_visible
    bars = (_buttons_in(view, at) for at in rows[::-1] if at > view.bottom() - numbers.EDGE_ROWS)
    bar = next(filter(None, bars), None) or (lit_words_in(view, rows[-1]) if few else None)
    asked = question_above(view, bar.top) if bar else Asked()
    asked = asked if asked.text or not bar else Asked(view.lines[bar.top].strip(), asked.row)
    return menu_finding(view, bar, _BAR_RULE, asked, dialect) if bar else None


def _buttons_in(view: View, at: int) -> Menu | None:
    found = marked_buttons(view, at, 0, view.cols)
    lit = odd_one(view, [(at, item.col) for item in found])
    return Menu(tuple(found), lit, "colour") if lit >= 0 else None


def recognise_lit_numbers(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = list_rows.find_numbered(view, dialect.pointers)
    if menu is None or any(item.pointed for item in menu.items):
        return None
    if view.cursor_visible and view.row > menu.bottom and view.before_cursor().rstrip().endswith((":", "?")):
        return None  # the line of the cursor asks for a number
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip()]
    if not speaks("hint", "arrows", "\n".join(below[: numbers.EDGE_ROWS])):
        return None
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    known = menu.current >= 0
    return menu_finding(view, menu, _COUNTED_RULE, asked, dialect) if known else list_rows.unclear(_COUNTED_RULE, asked)


def recognise_filtered(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A line to type into with its matches below: a list with a highlight, or numbers to type."""
    asked = view.before_cursor().strip()
    menu = find_counted(view) if view.alternate else find_below(view) if asked else None
    if menu:
        found = menu_finding(view, menu, list_rows.ARROWS_CHOOSE, Asked(asked, view.row), dialect)
        return replace(found, structural=not view.alternate)  # a full screen can show a list while it fills
    counted = None if view.alternate or len(asked) < 4 else list_rows.find_numbered(view, dialect.pointers)
    if counted and view.row < counted.top <= view.row + 2 and view.bottom() - counted.bottom <= numbers.LAST_ROWS:
        return menu_finding(view, counted, _TYPED_RULE, Asked(asked, view.row), dialect)
    return None


_MARK = lazy(r"\s*+((?:(?![\w\s/~.\"'`(\[{<$@#&%-]).){0,3})\s*+")
SHAPED = MenuRule("shaped-list", score=numbers.LIKELY)
_BY_KEY = MenuRule("shaped-keys", score=numbers.LIKELY)


def _shaped(view: View, at: int, frames: tuple[Frame, ...], sure: bool) -> list[Item]:
    """The label of a row with the mark before it as its box, or the labels of a row with several columns."""
    text = _GOES_DOWN.sub("", _PUSHED.sub(r"\1 \2", unframed(view.lines)[at]))
    own = [one for one in frames if one.top == at - 1 and one.bottom == at + 1]
    mark = _MARK.match(text)
    if mark is None or not text[mark.end() :].strip() or list_rows.COUNTER.match(text) or _TWIGS.search(view.lines[at]):
        return []
    start = mark.end()
    key = str(unicodedata.digit(text[start], ""))
    if key and not text[start].isdecimal():  # a digit in a circle
        start += 1 + len(text[start + 1 :]) - len(text[start + 1 :].lstrip())
    box = view.lines[own[0].top][own[0].left] if own else mark[1] or _lone_bar(view.lines, at)
    cells = [Item(at, start + one.start(), one.group(), box=box) for one in _CELL.finditer(text[start:])]
    cells = [Item(at, start, text[start:].rstrip(), box=box)] if sure else cells
    circled = key and not text[mark.end()].isdecimal()
    return [replace(cells[0], number=key)] if circled and len(cells) == 1 else cells


def _lone_bar(lines: tuple[str, ...], at: int) -> str:
    """The bar that a row begins with and that is no side of a frame, because no other bar is above or below it."""
    col = len(lines[at]) - len(lines[at].lstrip())
    beside = (lines[row][col : col + 1] for row in (at - 1, at + 1) if 0 <= row < len(lines))
    return lines[at][col] if lines[at][col] in SIDES and not any(map(is_drawn, filter(str.strip, beside))) else ""


_SENTENCE = lazy(r"[^\s,]++(?:\s[^\s,]++){2,}, ")  # it explains a choice: "Yes, and …" is one
_TWIGS = lazy(r"[├└╰]─")
_QUESTION_ENDS = ("?", ":", "？")
_GOES_DOWN = lazy(r"(?<=\S)\s{2,}+[↑↓▲▼⇡⇣]$")  # beside the last row of a list that scrolls
_CELL = lazy(r"\S++(?> \S++)*")


@lru_cache(maxsize=4)  # several finders use it
def find_shaped(view: View, sure: bool = False) -> Menu | None:
    """The lowest rows that are alike, at equal distances, of which one is odd: by its mark, its box or its colour. With
    `sure`, their place says that they are a list, so there can be many, with long labels.
    """
    return _find_shaped(view, sure, faded=True) or _find_shaped(view, sure, faded=False)


def _find_shaped(view: View, sure: bool, faded: bool) -> Menu | None:
    """Without `faded`, rows that are less prominent explain the choice above them."""
    frames, group, skipped = find_frames(view.lines), list[list[Item]](), list[tuple[int, int]]()
    seen = -1
    for at in range(view.bottom(), -1, -1):
        cells = _shaped(view, at, frames, sure)
        seen += bool(cells) or not view.alternate  # a full screen can have a foot of its own far below
        if cells and not faded and is_faded(view.style(at, cells[0].col)):
            skipped.append((at, cells[0].col))
            continue
        if not cells:
            continue
        below = group[-1] if group else []
        hint = 0 < len(group) < 3 and speaks("hint", "keys", view.lines[group[0][0].row])
        if len(below) == 1 and cells[0].col > below[0].col and not (sure or (hint and len(group) == 1)):
            continue  # explains the choice above it
        apart = not below or len(group) == 1 or below[0].row - at == group[-2][0].row - below[0].row
        same = below and [one.col for one in cells] == [one.col for one in below][: len(cells)]
        if same and apart and not cells[0].label.endswith(_QUESTION_ENDS):
            group.append(cells)
            continue
        if same and not apart and below[0].row - at < group[-2][0].row - below[0].row:
            if len(group) > 2 or not hint:
                return None  # a choice of two rows
            group = [below, cells]
            continue
        if (menu := _odd_in(view, group, sure)) or seen > numbers.FOOT_ROWS:
            break
        group = [cells]
    menu = _odd_in(view, group, sure)
    if menu is None or menu.how == "prose":
        return None
    beside = [at for at, col in skipped if menu.top < at <= menu.bottom + 1 and col == menu.items[0].col]
    # Explanations belong to all of them. One alone can be a choice.
    return menu if len(beside) in (0, len(group)) else None


def _odd_in(view: View, group: list[list[Item]], sure: bool) -> Menu | None:
    items = [item for cells in reversed(group) for item in cells]
    grid = any(len(cells) > 1 for cells in group)
    if len(items) < 2 or (len(items) > numbers.LIT_ITEMS and not sure):
        return None
    if grid and len({len(cells) for cells in group}) > 1:
        return None
    beside = [at for at in (group[0][0].row - 1, group[0][0].row + 1) if 0 <= at < len(view.lines)]
    if grid and len(group) == 1 and any(view.lines[at].strip() for at in beside):
        return None  # a row of a table
    if all(item.number for item in items):
        return Menu(tuple(items), -1, "keys")
    marks = Counter(item.box for item in items)
    odd = [at for at, item in enumerate(items) if marks[item.box] == 1 and (item.box or len(items) > 2)]
    look = odd_one(view, [(item.row, item.col) for item in items])
    continued = items[0].label[:1].isupper() and any(item.label[:1].islower() for item in items)
    prose = continued or items[-1].label.endswith(_QUESTION_ENDS) or any(_SENTENCE.match(item.label) for item in items)
    long = not sure and any(len(item.label) > numbers.LONGEST_LABEL for item in items)
    current = odd[0] if len(marks) == 2 and odd and not grid else -1 if long or len(marks) > 1 else look
    if current < 0:
        return None
    inner = list(map(unheld, items))
    held = all(one is not item for one, item in zip(inner, items, strict=True))
    plain = tuple(replace(item, box="") for item in (inner if held else items))
    return Menu(plain, current, "prose" if prose and not sure else "grid" if grid else "colour")


def recognise_shaped(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A list by its shape alone, on a screen that nothing else explains. Something must say that it asks."""
    menu = None if dialect.idles or (view.alternate and _asks_at_foot(view)) else find_shaped(view)
    if menu is None or (view.cursor_visible and menu.top <= view.row <= menu.bottom):
        return None
    asked = question_above(view, menu.top)
    told = "\n".join(view.lines[menu.bottom + 1 :])
    asks = asked.text.endswith(("?", "？")) or (
        (facts.reading or not view.alternate) and (asked.text.endswith((":", "：")) or speaks("hint", "keys", told))
    )
    asks = asks or (facts.reading and speaks("choose", "asks", asked.text))
    if not asked.text or not asks:
        return None
    found = menu_finding(view, menu, _BY_KEY if menu.how == "keys" else SHAPED, asked, dialect)
    if menu.how == "keys":
        keyed = zip(found.choices, menu.items, strict=True)
        choices = [replace(one, value=item.number, steps=typed_key(item.number, facts)) for one, item in keyed]
        found = replace(found, choices=tuple(choices))
    return found


def find_above(view: View, sure: bool = False) -> Menu | None:
    """A list that ends right above the line to type into, as fuzzy finders draw it: Enter takes its odd row."""
    menu = find_shaped(replace(view, lines=view.lines[: view.row]), sure) if view.cursor_visible else None
    near = menu and view.row - menu.bottom <= 2 and not view.is_ticked(menu.items[menu.current].row)
    return menu if near else None


def find_below(view: View) -> Menu | None:
    """A list right below the cursor's line, or below the count below that: the matches of a filter."""
    first = view.row + 1 + _counts(view, view.row + 1)
    menu = find_shaped(replace(view, lines=("",) * first + view.lines[first:]), sure=True)
    return menu if menu and menu.top == first else None


def find_counted(view: View) -> Menu | None:
    """A fuzzy finder that marks only by colour: a line to type into, a count beside it, then the matches."""
    above = find_above(view, sure=True) if _counts(view, view.row - 1) else None
    if above:  # its first match is the lowest
        return replace(above, items=above.items[::-1], current=len(above.items) - 1 - above.current, upwards=True)
    return find_below(view) if _counts(view, view.row + 1) else None


def _counts(view: View, at: int) -> bool:
    return 0 <= at < len(view.lines) and list_rows.COUNTER.match(unframed(view.lines)[at]) is not None


LIT = (find_below, find_above, find_counted, find_shaped)  # the finders that `highlight` uses


SEPARATOR = lazy(r"^(\s*)[─━]{3,30}\s*$")  # between groups of choices; a longer one ends a dialog
_SCROLLS = lazy(r"^(\s*+)(?:[↑↓▲▼⇡⇣](?=\s{2})|(?<!\s)[v^](?=\s\S))")  # beside a choice: the list continues there
_ASKED = ("?", ":", "？", "：", " ›", " »")
_DULL = ("·", "∙", "•", "◦")
_NUMBERED = lazy(r"^\s*+(?:\S\s++)?\d{1,2}[.)](\s?)\s*+[^\W\d]")
_FILTER = lazy(  # its line, with the count behind it, or empty
    r"\s*+\S(?:\s\S*+)?\s++\d+/\d+\s*+$|\s*+\S\s(?:type to|filter|search|find)\b.{0,30}(?:\.{3}|…)\s*+$", re.IGNORECASE
)
_NAMES_KEYS = lazy(r"\?\s{1,2}[\[(][^\])]{2,20}[\])]\s*$")
BULLETS = "●◉◈◆◇■◼▪•∙·✓✔☑☒✘✗✖⬛⬢▣✦✱★❖*+=~"
_BULLETS = dict.fromkeys(map(ord, "●◉*>"))  # AI CLIs draw them before their messages


def find_menu(view: View, pointers: str, back: bool = False, bullets: bool = False) -> Menu | None:
    """The lowest menu on the screen. With `back`, a choice that is too long continues in the pointer's column. With
    `bullets`, marks that ordinary text uses can be pointers, too.
    """
    sketch = unframed(view.lines)
    rows = [
        list_rows.WRAPPED if at - 1 in view.joined else _row(line, sketch[at]) for at, line in enumerate(view.lines)
    ]
    numbered = {bool(match[1]) for match in map(_NUMBERED.match, rows) if match}
    pattern = list_rows.row_pattern(pointers, tight=len(numbered) == 2)  # `2.Yes` below `1. Yes`: some have no room
    boxes = list_rows.row_pattern("".join(mark for mark in pointers if mark not in list_rows.BOXES))
    for at, start in _marked_rows(rows, pattern, numbers.POINTERS_TRIED):
        menu = _around(view, rows, pattern, at, start, start.start("pointer") if back else -1)
        if menu:
            lower = find_box_rows(view, rows, boxes, below=menu.bottom)
            return list_rows.verbatim(view, lower or menu)  # an arrow above boxes is earlier output
    found = (_bulleted(view, rows, pointers) if bullets else None) or find_box_rows(view, rows, boxes)
    return list_rows.verbatim(view, found)


def _marked_rows(rows: list[str], pattern: re.Pattern[str], most: int) -> Iterator[tuple[int, re.Match[str]]]:
    """The lowest rows with a pointer, from the foot upwards: text further up can contain any number of them. A row
    with the same pointer right above it is not the only one of its list.
    """
    read = [None, *(None if _FILTER.match(row) else read_row(pattern, row) for row in rows)]
    places = [[match.start(mark) for mark in ("pointer", "box", "number")] if match else [] for match in read]
    alone = (at for at in range(len(rows) - 1, -1, -1) if places[at + 1] != places[at])
    found = ((at, match) for at in alone if (match := read[at + 1]) and match["pointer"])
    return islice(found, most)


@lru_cache(maxsize=256)
def _row(line: str, sketch: str) -> str:
    """The row without its frame and the arrow of a list that continues, and with a short form of a bar."""
    return SEPARATOR.sub(r"\1- -", line) if SEPARATOR.match(line) else _SCROLLS.sub(r"\1 ", sketch)


def _bulleted(view: View, rows: list[str], pointers: str) -> Menu | None:
    """A menu with a mark that text uses as well: its rows must be numbered, have boxes, or the row be lit, too."""
    pattern = list_rows.row_pattern(pointers + BULLETS)
    rows = [list_rows.headed(line, row) for line, row in zip(view.lines, rows, strict=True)]
    for at, start in _marked_rows(rows, pattern, numbers.BULLETS_TRIED):
        menu = _around(view, rows, pattern, at, start)
        if menu:
            lit = odd_one(view, [(item.row, item.col) for item in menu.items])
            return menu if menu.numbered or start["box"] or lit == menu.current else None
    return None


def _around(
    view: View, rows: list[str], pattern: re.Pattern[str], at: int, start: re.Match[str], edge: int = -1
) -> Menu | None:
    """The menu around a pointer: the rows above and below that are aligned with its label."""
    first = item_of(at, start)
    if (first.label.startswith("• ") or first.box in ("✓", "✔")) and list_rows.are_switched(
        view, Menu((first,), 0, "pointer")
    ):
        rows = [row.replace("•", "◻", 1) for row in rows]  # a bullet behind the pointer, or below ticks: not marked
        start = read_row(pattern, rows[at]) or start
        first = item_of(at, start)
    if not any(map(str.isalnum, first.label)):
        return None
    place = start.start("pointer")
    rows = [_without_dull_mark(row, place) for row in rows]
    for around in _readings(Rows(view, rows, pattern, first, bool(first.number), bool(start["box"]), edge=edge)):
        above, below = around.items(range(at - 1, -1, -1)), around.items(range(at + 1, len(rows)))
        if above or below:
            break
    long = (len(item.label) > numbers.LONGEST_LABEL or item.label.endswith((".", "!", ",")) for item in above)
    if around.spaced and not below and any(long):
        above = []  # paragraphs
    if not first.number and above and _is_question(view, above, below):
        above = above[:-1]
    items = list_rows.honest([*reversed(above), first, *below])
    items = items if first.number else list_rows.without_keys(items)
    first = items[len(above)]
    if len(items) < 2 or sum(item.pointed for item in items) != 1:
        return None
    below_it = rows[items[-1].row + 1] if items[-1].row + 1 < len(rows) else ""
    if list_rows.COUNTER.match(below_it):
        items = _without_header(view, items)
        return Menu(tuple(reversed(items)), len(items) - 1 - items.index(first), "pointer", upwards=True)
    if items[0].row and list_rows.COUNTER.match(rows[items[0].row - 1]):
        items = _without_header(view, items[::-1])[::-1]
    between = range(items[0].row + 1, items[-1].row)
    gaps = not first.number and any(list_rows.DISABLED.match(rows[row]) for row in between)
    return Menu(tuple(items), items.index(first), "pointer", gaps=gaps)


def _readings(around: Rows) -> list[Rows]:
    """The rows as a list whose choices are explained, if the pointed one is, and then as one without explanations."""
    view, rows, first = around.view, around.rows, around.head
    if around.numbered:
        return [around]
    plain = replace(around, deep=False)
    below = plain.after(first.row)
    over = next((begins(rows[at]) for at in range(first.row - 1, -1, -1) if not plain.is_part(at)), -1)
    spaced = not rows[below].strip() and over not in (first.col, first.start)
    spaced = spaced and not (view.cursor_visible and view.row == first.row)
    plain = replace(plain, spaced=spaced and not is_faded(view.style(first.row, first.col)))
    end = replace(around, faded=True).after(first.row)
    around = replace(around, faded=any(begins(rows[at]) == first.col for at in range(below, end)))
    return [plain] if end == below else [around] if begins(rows[end]) == first.col else [around, plain]


def _is_question(view: View, above: list[Item], below: list[Item]) -> bool:
    """Whether the topmost row, in the column of the labels, is the end of the question."""
    top, *others = (view.lines[item.row].rstrip() for item in (above[-1], *above[:-1], *below))
    if not top.endswith(_ASKED) or any(row.endswith(_ASKED) for row in others):
        return False
    return top.endswith((" ›", " »")) or not question_above(view, above[-1].row).text.endswith(_ASKED)


def _without_dull_mark(row: str, place: int) -> str:
    """The row without the mark that unselected items have in the pointer's column."""
    dull = row[place : place + 1] in _DULL and row[place + 1 : place + 2] == " " and not row[:place].strip()
    return f"{row[:place]} {row[place + 1 :]}" if dull else row


def _without_header(view: View, items: list[Item]) -> list[Item]:
    """The items without the header of a fuzzy finder, which follows its last item and has its own colour."""
    looks = [view.style(item.row, item.col) for item in items if not item.pointed]
    usual = Counter(looks).most_common(1)[0][0]
    while len(items) > 2 and not items[-1].pointed and view.style(items[-1].row, items[-1].col) != usual:
        items = items[:-1]
    return items


def recognise_pointed(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    pointers = dialect.pointers.translate(_BULLETS) if dialect.idles else dialect.pointers
    menu = find_menu(view, pointers, bullets=not dialect.idles)
    menu = menu or _in_a_frame(view, find_menu(view, pointers, bullets=True))
    if menu is None or (view.bottom() - menu.bottom > numbers.FOOT_ROWS and not _asked_right_above(view, menu)):
        return None
    if not _believable(view, menu, hinted=dialect.idles and not menu.numbered) or _asked_below(view, menu):
        return None
    beside = (*view.lines[max(0, menu.top - 1) : menu.top], *view.lines[menu.bottom + 1 :][:1])
    if view.cursor_visible and menu.top <= view.row <= menu.bottom and all(map(is_rule, beside)):
        return None  # an instruction of several lines that is not sent yet
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    if not asked.text:
        below = block(unframed(view.lines)[menu.bottom + 1 :])
        typed_below = view.cursor_visible and view.row > menu.bottom  # a finder asks there
        asked = Asked(below, asked.row, whole=typed_below or not stands_first(view, menu.top))
    found = menu_finding(view, menu, list_rows.ARROWS_CHOOSE, asked, dialect)
    asks = asked.text.endswith(("?", ":", "？", "：")) or speaks("hint", "answers", _beside(view, menu))
    if view.alternate and not asks:
        decides = any(choice.refuses for choice in found.choices)
        display = not decides and not view.cursor_visible  # possibly a live display, which can have a pointer, too
        found = replace(found, structural=decides, score=numbers.LIKELY if display else found.score)
    sends = way_out(view, menu.bottom) if view.alternate and found.constraints.get("multi_select") else ""
    if not sends:
        return found
    leave = Step(arrow("down", view.application_cursor), Reach(sends))  # Enter in the list would mark one more
    return replace(found, end_steps=(leave, Step(ENTER)))


def _in_a_frame(view: View, menu: Menu | None) -> Menu | None:
    """The menu, if it is numbered and in a frame: a chat does not frame its messages."""
    framed = menu and any(one.top < menu.top and menu.bottom < one.bottom for one in find_frames(view.lines))
    return menu if menu and menu.numbered and framed else None


def _believable(view: View, menu: Menu, hinted: bool) -> bool:
    """Whether a menu of an unknown tool counts: it is at the end of the screen, or has a hint about arrow keys. With
    `hinted`, it must have the hint.
    """
    if hinted:
        return speaks("hint", "arrows", _beside(view, menu))
    explains = menu.items[-1].detail.split("\n")
    said = [line.strip() for line in unframed(view.lines)[menu.bottom + 1 :] if any(map(str.isalnum, line))]
    below = [line for line in said if line not in explains]
    last = view.bottom() - menu.bottom <= numbers.LAST_ROWS
    low = menu.numbered or (not view.cursor_visible and len(below) <= numbers.ASKED_STATUS_ROWS)
    asked = len(below) <= numbers.STATUS_ROWS or (low and question_above(view, menu.top).text.endswith("?"))
    near = menu.upwards or last or (menu.how == "pointer" and asked) or _asked_right_above(view, menu)
    return near or speaks("hint", "answers", _beside(view, menu))


def _beside(view: View, menu: Menu) -> str:
    """The rows above and below a list in which a tool says how to answer."""
    above, below = max(0, menu.top - numbers.HINT_ROWS), menu.bottom + 1
    return "\n".join(" ".join(row.split()) for row in (*view.lines[above : menu.top], *view.lines[below:]))


def _asked_right_above(view: View, menu: Menu) -> bool:
    """Whether the cursor is after words in the row above the menu. Then the foot of the screen only explains it."""
    asks = view.cursor_visible and view.row == menu.top - 1 and not view.after_cursor()
    return asks and menu.how == "pointer" and any(map(str.isalpha, view.before_cursor()))


def _asked_below(view: View, menu: Menu) -> bool:
    """Whether the cursor is after a question further down. Then the apparent menu is earlier output. So it is above a
    last row that asks and names its answers.
    """
    last = view.lines[view.bottom()]
    if not view.cursor_visible and view.bottom() > menu.bottom and _NAMES_KEYS.search(last) and offers_in(last):
        return True
    below = view.cursor_visible and view.row > menu.bottom and not menu.upwards
    asks = re.search(r"[^\W\d_]{3}.*[?:)\]>]", view.before_cursor())  # half an answer can follow it
    mark = view.before_cursor().strip()
    again = len(mark) == 1 and view.lines[menu.items[menu.current].row].lstrip().startswith(mark)  # a session's lines
    return below and (asks is not None or again) and not speaks("hint", "arrows", view.text())


def find_box_rows(view: View, rows: list[str], pattern: re.Pattern[str], below: int = -1) -> Menu | None:
    """Rows that all start with a mark. The filled one, or the one in another colour, has the focus."""
    block: list[Item] = []
    for at in range(len(rows) - 1, below, -1):
        match = read_row(pattern, rows[at])
        if match and match["box"]:
            head, spaced = item_of(at, match), at > 0 and not rows[at - 1].strip()
            around = Rows(view, rows, pattern, head, bool(head.number), True, numbers.GROUP_INDENT, spaced=spaced)
            block = [*reversed(around.items(range(at - 1, below, -1))), head]
        if len(block) > 1:
            break
    whole, block = block, [item for item in block if not view.style(item.row, item.col) & STRIKE]  # cannot be taken
    if len(block) < 2 or any(item.box in "✘✗✖✕" for item in block):  # a report of what passed and failed
        return None
    items = tuple(list_rows.honest(block))
    if any(item.label.startswith("▌") for item in items):
        return Menu(items, -1, "mark")  # a button made of blocks: only its colour shows its state
    filled = [at for at, item in enumerate(items) if item.checked]
    odd = odd_one(view, [(item.row, item.col) for item in items])
    here = [at for at, item in enumerate(items) if item.row == view.row and view.cursor_visible]
    if odd >= 0 or here:
        return Menu(items, odd if odd >= 0 else here[0], "radio", gaps=len(items) < len(whole))
    return Menu(items, filled[0] if len(filled) == 1 else -1, "mark")
