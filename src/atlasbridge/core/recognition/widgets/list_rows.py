"""The rows of a list: pointer, box, number and label, the rows that belong to an item, and which row is highlighted.

Also the prompt that a list makes, with the keys for its choices. The widgets decide which lists there are.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, ESC, Only, Reach, Shows, Step, Until, When, arrow, parse_keys
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.vocabulary import first_label, languages, speaks
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Finding, drawn
from atlasbridge.core.recognition.meaning import is_always, refuses
from atlasbridge.core.recognition.question import Asked, logical_rows
from atlasbridge.core.screen.frames import SIDES, is_drawn, peeled, unframed
from atlasbridge.core.screen.style import BOLD, REVERSE, STRIKE, foreground, is_dull, is_faded
from atlasbridge.core.screen.view import BACKGROUND, View
from atlasbridge.core.values import frozen, replace

WRAPPED = "\0"  # a row that continues the one above, because the terminal wrapped it
BOXES = "◌◯○◉●◎◻◼☐☑☒⬚⬜⬛⬡⬢□■▢▣✔✓✘✗✖✕"
CHECKED = "◉●◼☑☒⬛⬢■▣✔✓xX*"
_ROW = (
    r"^(?P<indent>\s*+)(?P<pointer>[{pointers}](?=\s|[" + BOXES + r"\[(]))?(?P<gap>\s*+)"
    r"(?:(?P<box>[" + BOXES + r"]|\[[ xX*✔✓]?\]|\([ xX*•]?\))(?P<boxgap>\s*+))?"
    r"(?:(?P<open>\[)?(?P<number>\d{1,2})(?P<dot>(?(open)\]|(?:[.)]|:(?=\s))))(?:\s++{tight}))?"
    r"(?:(?P<late>\[[ xX✔✓]\]|[☐☑☒◯◉])\s++)?(?P<label>\S.*)$"
)
SCROLL_MARKS = tuple("↑↓▲▼⇡⇣△▽▴▾")  # alone in its row: the list continues there, out of sight
_KEY = lazy(r"[\[(]?(\w)(?:[\])][.:]?|[.:])?\s+(?=\S)")
_NUMBER = lazy(r"[\[(]?(\d{1,3})[\]).:]+\s")
APART = lazy(r"\s{2,}")  # between a label and its explanation
COUNTER = lazy(r"^\s*\d+/\d+(?:\s|$)")  # the "3/120" of a fuzzy finder below its list
_UNAVAILABLE = lazy(r"\((?:disabled|not available|unavailable)\)$", re.IGNORECASE)
_GOES_ON = lazy(r"\s*+(?:[a-z]|\((?!\w{1,2}\)))(?!\w?[.):])")
DISABLED = lazy(r"^\s*(?:[-─✖×]\s+\S.*|\S.*\((?:disabled|not available|unavailable)\)\s*)$", re.IGNORECASE)


@frozen
class Item:
    row: int
    col: int  # the label's column
    label: str
    number: str = ""
    pointed: bool = False
    box: str = ""  # the mark before it, if there is one
    detail: str = ""  # its explanation: the words beside it and the lines below it
    start: int = -1  # where its label starts in the row, in characters; -1: use the label as it is

    @property
    def checked(self) -> bool:
        return any(char in CHECKED for char in self.box)


@frozen
class Menu:
    items: tuple[Item, ...]
    current: int  # index of the highlighted item, -1 when it cannot be seen
    how: str  # "pointer", "colour", "radio" or "mark"; "mark": the only mark shows it and moves with the arrows
    upwards: bool = False  # the first item is lowest, as in fuzzy finders
    gaps: bool = False  # between the items are rows on which the arrows possibly stop

    @property
    def top(self) -> int:
        return min(item.row for item in self.items)

    @property
    def bottom(self) -> int:
        return max(item.row for item in self.items)

    @property
    def numbered(self) -> bool:
        return all(item.number for item in self.items)

    @property
    def several(self) -> bool:
        """Whether more than one item can be marked: square boxes, marks beside a pointer, several marks or none."""
        boxes = [item.box for item in self.items if item.box]
        if self.how == "mark":
            return False
        square = sum(box[0] in "[☐☑☒⬚⬜⬛◻◼□■▢▣" for box in boxes)
        beside = self.how == "pointer"
        marked = sum(item.checked for item in self.items)
        return len(boxes) >= 2 and (beside or square >= 2 or marked > 1 or (self.how == "radio" and not marked))


@lru_cache(maxsize=8)
def row_pattern(pointers: str, tight: bool = False) -> re.Pattern[str]:
    """The pattern of a row. With `tight`, the blank after a number can be missing."""
    row = _ROW.replace("{tight}", r"|(?=[^\W\d])" if tight else "")
    return re.compile(row.replace("{pointers}", re.escape(pointers) or WRAPPED))


@lru_cache(maxsize=512)  # several finders read a row, and it is still there at the next look
def read_row(pattern: re.Pattern[str], row: str) -> re.Match[str] | None:
    return pattern.match(row)


@lru_cache(maxsize=256)
def headed(line: str, row: str) -> str:
    """The row with the mark at its start, which was removed because frames use the same mark."""
    mark = line.lstrip()[:1]
    place = line.find(mark)
    return row[:place] + mark + row[place + 1 :] if mark in ("◆", "◇") else row


def is_full(view: View, at: int, below: str, free: int = numbers.ROOM) -> bool:
    """Whether the row had no room for the first word of the next one, so that the tool itself wrapped it. The tool
    leaves up to `free` columns empty.
    """
    line = view.lines[at].rstrip()
    framed = line[-1:] in SIDES
    if framed and len(line) < view.cols - 4 * numbers.MARGIN:
        return False  # a box that is as wide as its longest row
    end = len(line[:-1].rstrip()) if framed else len(line)
    room = len(line) - 1 if framed else view.cols
    return end + 1 + len(below.split()[0]) > room - free


@lru_cache(maxsize=256)
def label_of(text: str) -> str:
    return APART.split(text.strip(), maxsplit=1)[0]


def item_of(at: int, match: re.Match[str]) -> Item:
    return Item(
        at,
        column_of(match),
        label_of(match["label"]),
        match["number"] or "",
        bool(match["pointer"]),
        match["box"] or match["late"] or "",
        start=match.start("label"),
    )


def column_of(match: re.Match[str]) -> int:
    return match.start("number") if match["number"] else match.start("label")


@frozen
class Rows:
    """The rows around one item of a list, and which of them belong to it. Items begin in one column. What is between
    them belongs to the item above: deeper rows, the ends of long labels, and faded rows if the items are not faded.
    """

    view: View
    rows: list[str]
    pattern: re.Pattern[str]
    head: Item
    numbered: bool
    boxed: bool
    askew: int = 0  # by so many columns an item can be out of line
    edge: int = -1  # where long labels go on: in some tools, in the column of the pointer
    deep: bool = True  # deeper rows explain the item above
    faded: bool = False  # faded rows do, too
    spaced: bool = False  # a blank row is between any two items

    def item(self, at: int) -> Item | None:
        """The row as an item, if it begins and looks like the others."""
        row = self.rows[at]
        match = None if speaks("hint", "row", row) or COUNTER.match(row) else read_row(self.pattern, row)
        if match is None or bool(match["number"]) != self.numbered or bool(match["box"]) != self.boxed:
            return None
        barred = not self.boxed and DISABLED.match(match["label"])
        if not self.numbered and (barred or not any(map(str.isalnum, match["label"]))):
            return None
        askew = self.askew or (numbers.ASKEW if self.numbered else 0)
        return item_of(at, match) if abs(column_of(match) - self.head.col) <= askew else None

    def is_part(self, at: int) -> bool:
        """Whether the row belongs to the item above it."""
        row, column = self.rows[at], self.head.col
        if row == WRAPPED:
            return True
        if at == self.head.row:
            return False
        if not row.strip():
            return self.edge >= 0 and self.rows[at - 1].strip() != "" and self.is_part(at - 1)
        start, indent = begins(row), len(row) - len(row.lstrip())
        if indent == self.edge:
            return self.rows[at - 1].strip() != ""
        if self.numbered or self.askew:
            return (indent > column or start == indent >= column - 2) and self.item(at) is None
        deeper, dull = start > column, self.faded and is_faded(self.view.style(at, start))
        return (self.deep and deeper) or (start >= 0 and dull) or self._goes_on(at)

    def _goes_on(self, at: int) -> bool:
        """Whether the row continues the label above, which had no room there, and starts like no new item. Where the
        labels start with a small letter, each new item can: then only a row without any room left continues.
        """
        row, above, column = self.rows[at], self.rows[at - 1] if at else "", self.head.col
        begun = row[column : column + 1].strip() and above[column : column + 1].strip() and not row[:column].strip()
        free = 0 if self.head.label[:1].islower() else numbers.ROOM
        return bool(begun and _GOES_ON.match(row)) and is_full(self.view, at - 1, row, free)

    def after(self, at: int) -> int:
        """The first row below that is no part of this one."""
        return next((row for row in range(at + 1, len(self.rows)) if not self.is_part(row)), len(self.rows) - 1)

    def items(self, order: range) -> list[Item]:
        """The further items of the list in this order of rows."""
        found: list[Item] = []
        last, blanks = self.head, 0
        for at in order:
            item = self.item(at)
            if self.is_part(at) or (item is None and self._is_between(at)):
                continue
            if not self.rows[at].strip():
                blanks += 1
                continue
            if item and self.spaced and blanks != 1:
                return found[:-1]  # of several rows: a paragraph
            if item is None or not self._follows(item, last, blanks, order.step):
                break
            found.append(item)
            last, blanks = item, 0
        return found

    def _is_between(self, at: int) -> bool:
        """Whether the row can be between two items: a choice that cannot be taken, or a line between groups."""
        row = self.rows[at]
        match = None if self.numbered or row.strip() in SCROLL_MARKS else read_row(self.pattern, row)
        bare = match is not None and not any(map(str.isalnum, match["label"]))
        barred = match is not None and DISABLED.match(row) is not None
        return bare or (barred and len(row) - len(row.lstrip()) >= self.head.col - 2)

    def _follows(self, item: Item, last: Item, blanks: int, step: int) -> bool:
        """Whether this is the next item: the next number, or a row at the same distance as the others."""
        if self.numbered:
            return int(item.number) == int(last.number) + step and blanks <= (2 if item.number != "0" else 0)
        if self.spaced:
            asks = self.rows[item.row].rstrip().endswith(("?", ":", "？", "："))
            return step > 0 or bool(item.box) or not asks
        return not blanks or all(self.after(one.row) > one.row + 1 for one in (item, last))  # each is explained


@lru_cache(maxsize=256)
def begins(row: str) -> int:
    """The column of the first word, or -1."""
    return next((place for place, char in enumerate(row) if char.isalnum() or char in "([{<\"'`"), -1)


def find_numbered(view: View, pointers: str) -> Menu | None:
    """The lowest rows that count from 1. This alone does not prove a menu: callers need further evidence."""
    pattern = row_pattern(pointers)
    sketch = [headed(line, row) for line, row in zip(view.lines, unframed(view.lines), strict=True)]
    rows = [WRAPPED if at - 1 in view.joined else row for at, row in enumerate(sketch)]
    for at in range(len(rows) - 1, -1, -1):
        start = read_row(pattern, rows[at])
        if start and start["number"]:
            first = item_of(at, start)
            around = Rows(view, rows, pattern, first, True, bool(start["box"]))
            items = [*reversed(around.items(range(at - 1, -1, -1))), first]
            if len(items) >= 2 and [int(item.number) for item in items] == list(range(1, len(items) + 1)):
                current = odd_one(view, [(item.row, item.col) for item in items])
                return verbatim(view, Menu(tuple(items), current, "colour"))
    return None


def honest(items: list[Item]) -> list[Item]:
    """The items with reliable marks. If every row has the same tick, only its colour shows its state, so none counts
    as marked. If there are both ticks and crosses, they mean yes and no and mark nothing.
    """
    signs = {item.box for item in items}
    if signs & set("✔✓") and signs & set("✘✗✖✕"):
        return [replace(item, box="") for item in items]
    return [replace(item, box="[ ]") for item in items] if signs <= {"✔"} or signs <= {"✓"} else items


def without_keys(items: list[Item]) -> list[Item]:
    """The items without the keys that all of them start with, in order: `(a) Approve`, `1 Yes`."""
    keys = [_KEY.match(item.label) for item in items]
    said = "".join(key[1] for key in keys if key).lower()
    if not all(keys) or not (said in "123456789" or said in "abcdefghijklmnop"):
        return items
    ends = [(item, key.end()) for item, key in zip(items, keys, strict=True) if key]
    return [replace(item, label=item.label[end:], start=item.start + end) for item, end in ends]


def verbatim(view: View, menu: Menu | None) -> Menu | None:
    """The menu with labels as they are on the screen, and the text beside and below each."""
    if menu is None:
        return None
    rows = peeled(view.lines, menu.items[max(menu.current, 0)].row)
    apart = all(abs(lower.row - upper.row) > 1 for upper, lower in pairwise(menu.items))  # each has words below it
    return replace(menu, items=tuple(_as_written(view, rows, menu, at, apart) for at in range(len(menu.items))))


def _as_written(view: View, rows: tuple[str, ...], menu: Menu, at: int, apart: bool) -> Item:
    item = menu.items[at]
    last = next(at for at in range(item.row, len(rows)) if at not in view.joined)
    text = logical_rows(view, rows, item.row, last + 1)[0]
    below = _below(view, rows, menu, at, apart)
    label, *beside = APART.split(text[item.start :].rstrip(), maxsplit=1)
    while below and not beside and is_full(view, last, below[0]):
        label, last = f"{label} {below.pop(0)}", last + 1
    detail = "\n".join([*beside, *below])
    return replace(item, label=label, detail=detail)


def _below(view: View, rows: tuple[str, ...], menu: Menu, at: int, apart: bool) -> list[str]:
    """The rows between a choice and the next, or right below the last one, that are indented like its label."""
    item, end = menu.items[at], next((other.row for other in menu.items[at + 1 :]), 0)
    out: list[str] = []
    for row in range(item.row + 1, end or min(len(rows), item.row + 1 + numbers.EXPLAINED_ROWS)):
        text = rows[row]
        if row - 1 in view.joined:
            continue
        if is_drawn(text) or speaks("hint", "row", text):
            break
        set_in = len(text) - len(text.lstrip())
        goes_on = set_in == item.start and row == item.row + 1 and is_full(view, item.row, text)
        if not (end or goes_on or (set_in >= item.start if item.number else apart)):
            break
        out.append(text.strip())
    return out


def odd_one(view: View, cells: list[tuple[int, int]]) -> int:
    """The index of the only cell that looks different from all others; -1 if there is none or several."""
    looks = [view.style(row, col) for row, col in cells]
    count = Counter(looks)
    if len(count) < 2:
        return -1
    if len(looks) == 2:
        weights = [_weight(look) for look in looks]
        return weights.index(max(weights)) if len(set(weights)) == 2 else -1
    rare = [at for at, look in enumerate(looks) if count[look] == 1]
    return rare[0] if len(rare) == 1 else odd_bar(looks)  # others can have their own colour, such as red for a no


def odd_bar(looks: list[int]) -> int:
    """The index of the only one of three or more with its own background, or -1."""
    bars = [ground_of(look) for look in looks]
    lit = [at for at, bar in enumerate(bars) if bars.count(bar) == 1]
    return lit[0] if len(lit) == 1 and len(set(bars)) == 2 else -1


def ground_of(style: int) -> int:
    return style >> BACKGROUND or style & REVERSE


def _weight(style: int) -> int:
    """How much a style stands out: most for reverse and a background with a colour, least for dim and grey."""
    ground, bold = style >> BACKGROUND and 1 + 3 * (not is_dull(style)), bool(style & BOLD)
    return 8 * bool(style & REVERSE) + ground + 2 * bold + (-1 if is_faded(style) else foreground(style) is not None)


# A list as a prompt. A choice is taken by its digit, its hot key, or arrows that are checked on the screen.

_MORE = lazy(
    r"reveal more|\bmore (?:choices|options|items|below)\b|\b\d+ more\b|\(\+\)"
    r"|^[^\w.…]*+(?:\.{3}|…)\W*+$|^[\s│┃|]*+[▼▾↓⇣](?:\s*+$|\s{2})|[^\s│┃|]\s{2,}+[↓▼▮▒]\s*+[│┃|]?\s*+$",
    re.IGNORECASE,
)
_USES_ARROWS = lazy(r"\buse (?:the )?arrow", re.IGNORECASE)
ARROWS_CHOOSE = MenuRule("arrow-menu", score=numbers.SURE)


def menu_finding(view: View, menu: Menu, rule: MenuRule, asked: Asked, dialect: Dialect) -> Finding:
    several = menu.several or (any(item.box for item in menu.items) and are_switched(view, menu))
    if (menu.how == "mark" and (menu.current < 0 or several)) or speaks("hint", "sorts", asked.text):
        return unclear(rule, asked)  # unclear which row has the focus, or more is asked than one of them
    fields = [item for item in menu.items if item.label.endswith(":")]  # each has a field of its own to fill in
    named = all(item.detail for item in fields) and _USES_ARROWS.search(_around(view, menu))  # `feat:   A new feature`
    if (several and rule.toggle == "space" and _is_marked_otherwise(view, menu)) or (len(fields) > 1 and not named):
        return unclear(rule, asked)
    own = menu.numbered  # a person answers with the numbers that they read
    said = [match[1] if (match := _NUMBER.match(item.label)) else "" for item in menu.items]
    said = said if all(said) and len(set(said)) == len(said) else []
    plain = not (own or several or rule.needs) and menu.how in ("pointer", "colour") and not rule.across
    if plain and _may_take_several(view, menu, asked, dialect):
        return unclear(rule, asked)
    choices: list[Choice] = []
    barred = [_is_barred(view, item) for item in menu.items]
    menu = replace(menu, gaps=menu.gaps or any(barred))
    for at, item in enumerate(menu.items):
        if barred[at]:
            continue
        steps = toggle_steps(view, menu, at, rule) if several else choose_steps(view, menu, at, rule)
        if rule.text_choice and not rule.text_keys and compiled(rule.text_choice).search(item.label):
            steps = ()  # its key opens a text field: it is not an answer by itself
        if several and not item.box:
            steps = ()  # a way out of the list, not one of its boxes
        default = item.checked if several else at == menu.current
        refused, always = refuses(item.label, dialect, rule.refuse), is_always(item.label, dialect)
        value = item.number if own else said[at] if said else str(len(choices) + 1)
        choices.append(Choice(value, item.label, steps, refused, always, default, item.detail))
    if rule.cancel and not any(choice.refuses for choice in choices):
        choices.append(Choice("cancel", "Cancel", named_steps(view, rule.cancel), refuses=True))
    constraints: dict[str, object] = {"min_choice": 1, "max_choice": len(menu.items)}
    if any(map(_goes_on, view.lines[max(0, menu.top - 2) : menu.bottom + 4])):
        constraints["scrolls"] = True  # only visible items can be chosen by a word
    if several:
        constraints["multi_select"] = True
    ending = named_steps(view, rule.submit, last=When.REDRAWN)  # what appears in between is not a separate prompt
    takes_words = bool(rule.text_submit) or not several
    text_steps = own_words_steps(view, menu, rule) if takes_words else ()
    if text_steps:
        constraints["allows_other"] = True
    core = asked.text + "\0" + "\0".join(f"{item.label}\0{item.detail}" for item in menu.items)
    found = drawn(rule.id, rule.score, asked, PromptType.TYPE_MULTIPLE_CHOICE, core)
    found = replace(found, choices=tuple(choices), constraints=constraints, text_steps=text_steps, foot=menu.bottom)
    if several:
        words_end = named_steps(view, rule.text_submit, last=When.REDRAWN)
        found = replace(found, end_steps=ending, words_end=words_end)
    return found if own or several or rule.needs else _as_yes_no(found)


def _is_barred(view: View, item: Item) -> bool:
    """Whether a choice cannot be taken: struck through, or said to be unavailable."""
    return bool(view.style(item.row, item.col) & STRIKE) or _UNAVAILABLE.search(item.label) is not None


@lru_cache(maxsize=256)
def _goes_on(line: str) -> bool:
    """Whether a row in or beside a list says that the list continues."""
    return _MORE.search(line) is not None


def _as_yes_no(found: Finding) -> Finding:
    """A list that contains only the two words for yes and no of one language is a question of that kind."""
    labels = [choice.label.casefold() for choice in found.choices]
    words = ({first_label(kind, name).casefold() for kind in ("agree", "refuse")} for name in languages())
    if len(labels) != 2 or not ({"yes", "no"} == set(labels) or set(labels) in words):
        return found
    choices = tuple(replace(choice, value="n" if choice.refuses else "y") for choice in found.choices)
    return replace(found, type=PromptType.TYPE_YES_NO, choices=choices)


def unclear(rule: MenuRule, asked: Asked) -> Finding:
    return drawn(rule.id, rule.score, asked)


def are_switched(view: View, menu: Menu) -> bool:
    return speaks("hint", "toggles", _around(view, menu))


def _around(view: View, menu: Menu) -> str:
    return "\n".join(view.lines[max(0, menu.top - numbers.HINT_ROWS) : view.bottom() + 1])


def _may_take_several(view: View, menu: Menu, asked: Asked, dialect: Dialect) -> bool:
    """Whether rows without boxes can be marked, with marks that are not there yet, as its words say: Enter would send
    the marked ones, which are none.
    """
    said = _around(view, menu)
    plural = speaks("choose", "several", asked.text) and not speaks("hint", "takes", said)
    return (plural or speaks("hint", "space", said)) and not any(refuses(item.label, dialect) for item in menu.items)


def _is_marked_otherwise(view: View, menu: Menu) -> bool:
    """Whether another key than the space bar marks, as the text beside the list says: keys unknown."""
    rows = (*view.lines[max(0, menu.top - 1) : menu.top], *view.lines[menu.bottom + 1 : view.bottom() + 1])
    said = "\n".join(rows).lower()
    return speaks("hint", "otherwise", said) and "space" not in said


def choose_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    item = menu.items[at]
    if rule.refuse_keys and rule.refuse and compiled(rule.refuse).search(item.label):
        second = "?" in rule.refuse_keys  # a second dialog that is not a separate question
        return named_steps(view, rule.refuse_keys, last=When.CHANGED if second else When.AT_ONCE)
    opens = rule is ARROWS_CHOOSE and speaks("refuse", "tells", item.label)  # a field for the reason, which Enter alone
    if opens and speaks("hint", "refuses", _around(view, menu)):  # does not send
        return (Step(ESC),)
    if rule.choose == "hotkey":
        key = compiled(rule.hotkeys).search(item.label)
        if key:
            return (Step(b"\x1b" if key[1].lower() == "esc" else key[1].encode()),)
    if rule.choose in ("digit", "hotkey") and item.number:
        return (Step(item.number.encode()),)
    if rule.choose == "digit_enter" and item.number:
        return (Step(item.number.encode(), When.DRAINED), Step(ENTER))
    if rule.choose == "digit_shows" and item.number:
        return (Step(item.number.encode(), Shows(item.label[:60])), Step(ENTER))
    moves = move_steps(view, menu, menu.current, at, rule)
    if item.box.startswith("(") and not item.checked and menu.how != "mark":
        return (*moves, Step(b" ", When.DRAINED), Step(ENTER))  # a radio list: Enter takes the marked one
    if rule.follow and compiled(rule.follow).search(item.label):
        return (*moves, *named_steps(view, rule.follow_keys, last=When.CHANGED))
    return (*moves, Step(ENTER))


def move_steps(view: View, menu: Menu, current: int, at: int, rule: MenuRule) -> tuple[Step, ...]:
    """Arrows from the highlight to a choice, one by one, with a check of the highlight before anything is taken. A
    spinner beside a list changes the screen, too, so the pointer is looked for after each. A distant choice, and one
    with unknown rows on the way, is reached by repeating the key until it is highlighted.
    """
    label, start = menu.items[at].label[:60], max(current, 0)
    if at == start:
        return () if current >= 0 else (Step(b"", Shows(label)),)  # an invisible highlight can be anywhere
    if menu.how == "grid":
        keys = _keys(view, "right", "left", _ranks_between(menu, start, at, "col"))
        keys += _keys(view, "down", "up", _ranks_between(menu, start, at, "row"))
    elif rule.across:
        keys = _keys(view, "right", "left", at - start)
    else:
        keys = _keys(view, "down", "up", start - at if menu.upwards else at - start)
    if menu.how != "grid" and (len(keys) > numbers.SEEN_MOVES or menu.gaps or rule.labels):
        return (Step(keys[0], Reach(label)),)
    passed = menu.items[start + 1 : at] if start < at else menu.items[start - 1 : at : -1]
    seen = [Shows(item.label[:60]) for item in passed] if menu.how == "pointer" else [When.CHANGED] * (len(keys) - 1)
    return tuple(map(Step, keys, (*seen, Shows(label))))


def _keys(view: View, forward: str, back: str, distance: int) -> list[bytes]:
    return [arrow(forward if distance > 0 else back, view.application_cursor)] * abs(distance)


def _ranks_between(menu: Menu, start: int, at: int, place: str) -> int:
    """How many columns or rows of a grid one choice is from another."""
    ranks = sorted({getattr(item, place) for item in menu.items})
    return ranks.index(getattr(menu.items[at], place)) - ranks.index(getattr(menu.items[start], place))


def toggle_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    """The keys from the box above to this one, and last the key that marks it; see `answer._several`."""
    item = menu.items[at]
    if rule.toggle == "digit":
        return (Step((item.number or str(at + 1)).encode(), When.CHANGED),)
    start = max(menu.current, 0) if at == 0 else at - 1
    moves = move_steps(view, menu, start, at, rule)
    return (*moves, *named_steps(view, rule.toggle, last=When.CHANGED))


def named_steps(view: View, keys: str, last: Until = When.AT_ONCE) -> tuple[Step, ...]:
    """The keys of a dialect: names or characters that are separated by blanks, each checked before the next.

    `down>Some_label` repeats the key until that label is highlighted. After `right?Some_words` the rest is typed
    only if those words are shown, because otherwise another question has appeared.
    """
    names = keys.split()
    out = []
    for at, word in enumerate(names, 1):
        word, only, words = word.partition("?")
        name, reaching, label = word.partition(">")
        pointing = name in ("up", "down", "left", "right")
        data = arrow(name, view.application_cursor) if pointing else parse_keys(name)
        until: Until = Reach(label.replace("_", " ")) if reaching else When.CHANGED if at < len(names) else last
        until = Only(words.replace("_", " ")) if only else until
        out.append(Step(data, until))
    return tuple(out)


def own_words_steps(view: View, menu: Menu, rule: MenuRule) -> tuple[Step, ...]:
    if not rule.text_choice:
        return ()
    if rule.text_typed:
        return (Step(b""),)
    if rule.text_submit and rule.text_reach:
        return named_steps(view, rule.text_reach)
    for at, item in enumerate(menu.items):
        if compiled(rule.text_choice).search(item.label):
            if rule.text_keys:
                moves = move_steps(view, menu, menu.current, at, rule) if rule.choose != "hotkey" else ()
                return (*moves, *named_steps(view, rule.text_keys, last=When.REDRAWN))
            *lead, last = choose_steps(view, menu, at, rule)
            return (*lead, replace(last, until=When.REDRAWN))
    return named_steps(view, rule.text_reach)
