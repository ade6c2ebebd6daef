"""Lists whose only mark is the highlight, or a bullet in front of one row: words below each other, buttons in a row,
what matches a line to type into.

Only small ones: a browser of files, mails or commits also has a highlighted row, and is no question; text uses bullets.
What matches a line stands right below it, or beside a count like `3/120`; answered by arrows, or by its number.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.question import Asked, question_above, question_in_box
from atlasbridge.core.recognition.widgets.list_finding import ARROWS_CHOOSE, menu_finding, unclear
from atlasbridge.core.recognition.widgets.list_rows import (
    ARROWS,
    COUNTER,
    HINT_ROW,
    Item,
    Menu,
    find_numbered,
    odd_bar,
    odd_one,
)
from atlasbridge.core.recognition.widgets.side_by_side import lit_words_in
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View

_PUSHED = lazy(r"\s*<\s+(\S.*?)\s+>\s*")  # a button as wide as the screen
_RULE = MenuRule("lit-list", score=numbers.SURE)
_COUNTED_RULE = MenuRule("lit-numbers", score=numbers.SURE)
_BAR_RULE = MenuRule("button-bar", score=numbers.SURE, across=True)
_TYPED_RULE = MenuRule("typed-list", choose="digit_enter")
_BUTTON = lazy(r"\[\s*([A-Za-z][\w ]{1,20}?)\s*\]")
_BULLETED = lazy(r"^\s*(?:[*+•●]|[-=]{1,2}>|>{2,3})\s*(?P<label>\w.*)$")


def recognise_lit_list(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    if not view.alternate:
        return _in_the_text(view, facts, dialect)
    menu = None if facts.command in dialect.screen_programs else find_lit_list(view)
    if menu is not None:
        asked = question_above(view, menu.top)
        return menu_finding(view, menu, _RULE, asked, dialect) if asked.text else None
    bar = find_button_bar(view)
    if bar is None:
        return None
    asked = question_above(view, bar.top)
    asked = asked if asked.text else Asked(view.lines[bar.top].strip(), asked.row)
    return menu_finding(view, bar, _BAR_RULE, asked, dialect)


def _in_the_text(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """Below the lines that were written before: only where the cursor stands in the list itself."""
    menu = find_lit_here(view)
    if menu is None or dialect.idles or facts.canonical is not False:
        return None
    asked, lit = question_above(view, menu.top), menu.items[menu.current]
    if not view.cursor_visible and lit.col and view.style(lit.row, lit.col - 1) & REVERSE:
        return unclear(_RULE, asked)  # the room in front may be for marks: then Enter sends those, and takes no row
    return menu_finding(view, menu, _RULE, asked, dialect) if asked.text else None


def find_lit_here(view: View) -> Menu | None:
    """Rows below each other around the cursor, down to the last one, of which one is reversed."""
    for block in _blocks(view):
        around = block and block[0].row <= view.row <= block[-1].row and block[-1].row == view.bottom()
        if around and len(block) <= numbers.LIT_ITEMS:
            return _with_one_lit(view, block)
    return None


def _with_one_lit(view: View, items: list[Item]) -> Menu | None:
    """Two or more of which exactly one is reversed."""
    lit = [at for at, item in enumerate(items) if view.style(item.row, item.col) & REVERSE]
    return Menu(tuple(items), lit[0], "colour") if len(items) >= 2 and len(lit) == 1 else None


def find_button_bar(view: View) -> Menu | None:
    """`[ New ]  [ Quit ]  [ Help ]` near the foot of the screen, one of them reversed; or words with hardly anything
    else on the screen, one of them lit."""
    for at in range(view.bottom(), max(-1, view.bottom() - numbers.EDGE_ROWS), -1):
        found = [Item(at, match.start(1), match[1]) for match in _BUTTON.finditer(view.lines[at])]
        bar = _with_one_lit(view, found)
        if bar:
            return bar
    rows = [at for at, line in enumerate(unframed(view.lines)) if line.strip()]
    few = 0 < len(rows) <= numbers.LIT_OTHER_ROWS + 1 and not view.cursor_visible
    return lit_words_in(view, rows[-1]) if few else None


def find_lit_list(view: View) -> Menu | None:
    rows = sum(bool(line.strip()) for line in view.lines)
    for block in _blocks(view):
        if not 2 <= len(block) <= numbers.LIT_ITEMS or rows - len(block) > numbers.LIT_OTHER_ROWS:
            continue
        looks = [view.style(item.row, item.col) for item in block]
        lit = [at for at, look in enumerate(looks) if look & REVERSE]
        current = lit[0] if len(lit) == 1 else -1 if lit else odd_bar(looks)
        if current >= 0:
            return Menu(tuple(block), current, "colour")
    return None


def _blocks(view: View) -> Iterator[list[Item]]:
    """Short labels that begin in the same column of rows below each other."""
    block: list[Item] = []
    torn, framed = -1, False
    for at, text in enumerate(unframed(view.lines)):
        pushed = _PUSHED.fullmatch(text)
        label, col = (pushed[1], pushed.start(1)) if pushed else (text.strip(), len(text) - len(text.lstrip()))
        plain = (
            label[:1].isalnum()
            and len(label) <= numbers.LONGEST_LABEL
            and "  " not in label
            and not any(map(str.isdigit, label))
        )
        plain = plain and (not block or framed == bool(pushed))
        if label and not plain and (not block or col == block[-1].col):
            block, torn = [], col  # with something longer in its column it is no short list
        elif block and not (plain and col == block[-1].col):
            yield block
            block = []
        torn = torn if col == torn and label else -1
        if plain and torn < 0:
            block.append(Item(at, col, label))
            framed = bool(pushed)
    yield block


def find_marked(view: View) -> Menu | None:
    """`* Java` above `  Rust` and `  Go`: the lowest row with a mark, and the rows that begin where its words begin.

    Only where the cursor is hidden or stands in the list: `git branch` marks one of its rows as well.
    """
    lowest = view.bottom()
    for at in range(lowest, -1, -1):
        match = _BULLETED.match(unframed(view.lines)[at])
        if match is None:
            continue
        column = match.start("label")
        above = _rows(view, range(at - 1, -1, -1), column)
        below = _rows(view, range(at + 1, lowest + 1), column)
        items = (*reversed(above), Item(at, column, match["label"].strip(), pointed=True), *below)
        here = not view.cursor_visible or items[0].row <= view.row <= items[-1].row
        low = lowest - items[-1].row <= numbers.LAST_ROWS
        prose = any(len(item.label) > numbers.LONGEST_LABEL for item in (*above, *below))
        return Menu(items, len(above), "pointer") if len(items) >= 2 and low and here and not prose else None
    return None


def _rows(view: View, order: range, column: int | None = None) -> list[Item]:
    """One below or above the other, up to an empty one, a hint, or one that begins in another column."""
    found: list[Item] = []
    for at in order:
        text = unframed(view.lines)[at]
        item = Item(at, len(text) - len(text.lstrip()), text.strip())
        if not item.label or HINT_ROW.match(text) or column not in (None, item.col):
            break
        found.append(item)
    return found


def recognise_bulleted(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A mark that text uses as well: only of a program that reads, and with words above it."""
    menu = find_marked(view) if facts.reading else None
    asked = question_above(view, menu.top) if menu else Asked()
    return menu_finding(view, menu, ARROWS_CHOOSE, asked, dialect) if menu and asked.text else None


def recognise_lit_numbers(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    menu = find_numbered(view, dialect.pointers)
    if menu is None or any(item.pointed for item in menu.items):
        return None
    if view.cursor_visible and view.row > menu.bottom and view.before_cursor().rstrip().endswith((":", "?")):
        return None  # the line of the cursor asks for a number
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip()]
    if not any(ARROWS.search(row) for row in below[: numbers.EDGE_ROWS]):
        return None
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    known = menu.current >= 0
    return menu_finding(view, menu, _COUNTED_RULE, asked, dialect) if known else unclear(_COUNTED_RULE, asked)


def find_counted(view: View) -> Menu | None:
    """A fuzzy finder that marks by colour alone: a line to type into, beside it a count, then the matches."""
    for step, end in ((-1, -1), (1, len(view.lines))):
        count = view.row + step
        if 0 <= count < len(view.lines) and COUNTER.match(unframed(view.lines)[count]):
            found = _with_one_odd(view, _rows(view, range(count + step, end, step)), upwards=step < 0)
            if found:
                return found
    return None


def find_below(view: View) -> Menu | None:
    """A list directly under the line with the cursor, of which one row is coloured: what a filter offers."""
    rows = range(view.row + 1, len(view.lines))
    first = _rows(view, rows[:1])
    return _with_one_odd(view, _rows(view, rows, first[0].col)) if first else None


def _with_one_odd(view: View, items: list[Item], upwards: bool = False) -> Menu | None:
    current = odd_one(view, [(item.row, item.col) for item in items])
    return Menu(tuple(items), current, "colour", upwards) if current >= 0 else None


def recognise_filtered(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A line to type into, and below it what matches: a list with a highlight, or numbers to type."""
    asked = view.before_cursor().strip()
    if not asked or view.alternate:
        return None
    menu = find_below(view)
    lit = menu.items[menu.current] if menu else None
    if menu and lit and (len(asked) > 3 or view.style(lit.row, lit.col) & REVERSE):
        return menu_finding(view, menu, ARROWS_CHOOSE, Asked(asked, view.row), dialect)
    counted = find_numbered(view, dialect.pointers) if len(asked) > 3 else None
    if counted and view.row < counted.top <= view.row + 2 and view.bottom() - counted.bottom <= numbers.LAST_ROWS:
        return menu_finding(view, counted, _TYPED_RULE, Asked(asked, view.row), dialect)
    return None


LIT = (find_below, find_marked, find_counted, find_lit_list, find_lit_here)  # as `highlight` looks for them
