"""Menus as prompts: the question above, the choices with the keys that take them, what refuses and what is for ever.

The dialect's `[[menu]]` entries say how a menu of a tool is chosen: its digit, its arrows, a hot key.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, arrow, parse_keys
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.step import Only, Reach, Shows, Step, Until, When
from atlasbridge.core.recognition.asked import (
    Asked,
    block,
    compact,
    dialog_above,
    dialog_top,
    question_above,
    question_in_box,
)
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import is_always, refuses
from atlasbridge.core.recognition.marked_list import find_counted, find_marked
from atlasbridge.core.recognition.menu import Menu, find_menu, find_numbered
from atlasbridge.core.recognition.row_list import find_across, find_below, find_row
from atlasbridge.core.recognition.screen_subject import shows_subject, subject_on_screen
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

DIALOG_ROWS = 30
NEAR_ROWS = 6
STATUS_ROWS = 1  # below a list: what a tool says of itself, such as a spinner's line
_HINT = lazy(
    r"use (?:the )?arrow|arrow[- ]keys|↑|↓|to navigate|enter to (?:select|confirm|submit)|press (?:space|enter|<space>)"
    r"|space to|to toggle|esc to cancel|tab to amend",
    re.IGNORECASE,
)
_ARROWS = lazy(r"use (?:the )?arrow|arrow[- ]keys|↑|to navigate|enter to (?:select|confirm|submit)", re.IGNORECASE)
_TOGGLE_HINT = lazy(r"toggle|space ?bar|<space>|press space|space:? *select|select all", re.IGNORECASE)
_MORE = lazy(
    r"reveal more|\bmore (?:choices|options|items|below)\b|\b\d+ more\b|\(\+\)"
    r"|^[^\w.…]*+(?:\.{3}|…)\W*+$|^[\s│┃|]*+[▼▾↓⇣]\s*+$|[^\s│┃|]\s{2,}+[↓▼▮▒]\s*+[│┃|]?\s*+$",
    re.IGNORECASE,
)
_BULLETS = dict.fromkeys(map(ord, "●◉*>"))  # AI CLIs draw them in front of what they say
_DEFAULT_RULE = MenuRule("arrow-menu", score=0.88)
_TYPED_RULE = MenuRule("typed-list", choose="digit_enter")
_ROW_RULE = MenuRule("side-by-side", across=True)
_LIT_RULE = MenuRule("lit-numbers", score=0.9)
HINT_ROWS = 4  # below a list: what its keys do, and the frame around it


def recognise_menu(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    found = _side_by_side(view, dialect) or _by_looks(view, dialect) or _filtered(view, dialect)
    return found or (_marked(view, dialect) if facts.reading and not dialect.idles else None)


def recognise_lit_numbers(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """Rows that count, and right below them the words that arrows choose: colour alone says which one Enter takes.
    Typing a number there may do nothing, and the Enter behind it take another choice: where no row stands out, a person
    must look."""
    menu = find_numbered(view, dialect.pointers)
    if menu is None or any(item.pointed for item in menu.items):
        return None
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip()]
    if not any(_ARROWS.search(row) for row in below[:HINT_ROWS]):
        return None
    asked = question_in_box(view, menu.top) or question_above(view, menu.top)
    found = menu_finding(view, menu, _LIT_RULE, asked, dialect)
    if menu.current >= 0:
        return found
    return replace(found, type=PromptType.TYPE_UNKNOWN, choices=(), text_steps=(), constraints={})


def _marked(view: View, dialect: Dialect) -> Finding | None:
    """A mark that text uses as well: only of a program that reads, and with words above it."""
    menu = find_marked(view)
    asked = question_above(view, menu.top) if menu else Asked()
    return menu_finding(view, menu, _DEFAULT_RULE, asked, dialect) if menu and asked.text else None


def _filtered(view: View, dialect: Dialect) -> Finding | None:
    """A line to type into, and below it what matches: a list with a highlight, or numbers to type."""
    asked = view.before_cursor().strip()
    if not asked or view.alternate:
        return None
    menu = find_below(view)
    if menu and (len(asked) > 3 or _is_reversed(view, menu)):
        return menu_finding(view, menu, _DEFAULT_RULE, Asked(asked, view.row), dialect)
    counted = find_numbered(view, dialect.pointers) if len(asked) > 3 else None
    if counted and view.row < counted.top <= view.row + 2 and view.bottom() - counted.bottom <= 2:
        return menu_finding(view, counted, _TYPED_RULE, Asked(asked, view.row), dialect)
    return None


def _is_reversed(view: View, menu: Menu) -> bool:
    current = menu.items[menu.current]
    return bool(view.style(current.row, current.col) & REVERSE)


def _side_by_side(view: View, dialect: Dialect) -> Finding | None:
    menu = find_row(view)
    if menu is None:
        return None
    asked = question_above(view, menu.top)
    if menu.how == "colour":  # the question stands in the same row
        asked = Asked(view.lines[menu.top].strip(), menu.top)
    found = menu_finding(view, menu, _ROW_RULE, asked, dialect)
    names = [item.label.lower() for item in menu.items]
    if sorted(names) != ["no", "yes"]:
        return found
    choices = tuple(replace(choice, value=choice.label.lower()[0]) for choice in found.choices)
    return replace(found, type=PromptType.TYPE_YES_NO, choices=choices)


def _by_looks(view: View, dialect: Dialect) -> Finding | None:
    menu = find_menu(view, dialect.pointers.translate(_BULLETS) if dialect.idles else dialect.pointers)
    menu = menu or (find_counted(view) if view.alternate else None)
    if menu is None or (view.bottom() - menu.bottom > 2 * NEAR_ROWS and not _asked_right_above(view, menu)):
        return None
    if not _believable(view, menu, hinted=dialect.idles and not menu.numbered) or _asked_below(view, menu):
        return None
    asked = question_above(view, menu.top)
    if not asked.text:
        asked = Asked(block(unframed(view.lines)[menu.bottom + 1 :]), asked.row)
    return menu_finding(view, menu, _DEFAULT_RULE, asked, dialect)


def recognise_dialog(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A menu that one of the dialect's entries knows by what stands around it."""
    if not dialect.menus:
        return None
    pointed = find_menu(view, dialect.pointers)
    counted = find_numbered(view, dialect.pointers)
    for rule in dialect.menus:
        listed = pointed or (counted if rule.unpointed else None)
        menu = find_across(view, rule.labels) if rule.labels else listed
        if menu is None or view.bottom() - menu.bottom > 2 * NEAR_ROWS or not _surrounds(view, menu, rule):
            continue
        asked = dialog_above(view, menu.top, rule)
        if asked is None:  # its head is not there, or it has none
            above = question_above(view, menu.top)
            asked = replace(above, whole=above.whole and not rule.top)
        if not asked.text:
            continue  # a dialog has words: this is what somebody writes into the input box
        found = menu_finding(view, menu, rule, asked, dialect)
        about = subject_on_screen(view, menu.top, asked, rule, dialect)
        whole = found.whole and shows_subject(asked, rule, dialect)
        return replace(found, own=dialect.idles, permission=rule.permission, subject=about, whole=whole)
    return None


def menu_finding(view: View, menu: Menu, rule: MenuRule, asked: Asked, dialect: Dialect) -> Finding:
    several = menu.several or (any(item.box for item in menu.items) and _toggles(view, menu))
    values = _values(menu, any(refuses(item.label, dialect, rule.refuse) for item in menu.items))
    choices = []
    for at, item in enumerate(menu.items):
        steps = toggle_steps(view, menu, at, rule) if several else choose_steps(view, menu, at, rule)
        if rule.text_choice and not rule.text_keys and compiled(rule.text_choice).search(item.label):
            steps = ()  # its key opens a text field: it is no answer by itself
        if several and not item.box:
            steps = ()  # a way out of the list, not one of its boxes
        label = item.label if not several else re.sub(r"^\[[ xX✔✓]\]\s*", "", item.label)
        choices.append(
            Choice(
                values[at],
                label,
                steps,
                refuses=refuses(label, dialect, rule.refuse),
                always=is_always(label, dialect),
                default=item.checked if several else at == menu.current,
                detail=item.detail,
            )
        )
    if rule.cancel and not any(choice.refuses for choice in choices):
        choices.append(Choice("cancel", "Cancel", named_steps(view, rule.cancel), refuses=True))
    constraints: dict[str, object] = {"min_choice": 1, "max_choice": len(menu.items)}
    ending: tuple[Step, ...] = ()
    if any(_MORE.search(line) for line in view.lines[max(0, menu.top - 2) : menu.bottom + 4]):
        constraints["scrolls"] = True  # only what is visible can be chosen by a word
    if several:
        constraints["multi_select"] = True
        ending = named_steps(view, rule.submit, last=When.REDRAWN)  # what is shown in between is no prompt of its own
    takes_words = bool(rule.text_submit) or not several
    text_steps = _text_steps(view, menu, rule) if takes_words else ()
    if text_steps:
        constraints["allows_other"] = True
    core = asked.text + "\0" + "\0".join(f"{item.label}\0{item.detail}" for item in menu.items)
    return Finding(
        rule.id, PromptType.TYPE_MULTIPLE_CHOICE, rule.score, compact(asked.text), core, asked.row,
        tuple(choices), constraints, line_mode=False, structural=True, text_steps=text_steps, end_steps=ending,
        words_end=named_steps(view, rule.text_submit, last=When.REDRAWN) if several else (),
        question=asked.text, whole=asked.whole,
    )  # fmt: skip


def _toggles(view: View, menu: Menu) -> bool:
    """A hint near the list says that boxes are switched on and off."""
    around = "\n".join(view.lines[max(0, menu.top - NEAR_ROWS) : view.bottom() + 1])
    return _TOGGLE_HINT.search(around) is not None


def _values(menu: Menu, refusable: bool) -> list[str]:
    """Positions; its own numbers where taking one for the other could turn a no into a yes."""
    if refusable and menu.numbered:
        return [item.number for item in menu.items]
    return [str(at) for at in range(1, len(menu.items) + 1)]


def choose_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    item = menu.items[at]
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
    moves = _seen_moves(menu, at, move_steps(view, menu.current, at, rule.across, item.label, menu.upwards))
    if menu.gaps and len(moves) > 0:
        moves = (Step(moves[-1].keys, Reach(item.label[:60])),)
    if item.box.startswith("(") and not item.checked:
        return (
            *moves,
            Step(b" ", When.DRAINED),
            Step(ENTER),
        )  # a radio list: Enter takes the one that was marked
    if rule.follow and compiled(rule.follow).search(item.label):
        return (*moves, Step(ENTER, When.CHANGED), *named_steps(view, rule.follow_keys))
    return (*moves, Step(ENTER))


def _seen_moves(menu: Menu, at: int, moves: tuple[Step, ...]) -> tuple[Step, ...]:
    """Where a pointer shows it, each arrow is seen to have moved it: a spinner beside the list changes the screen, too,
    and a program that gets two arrows at once may take them for one key."""
    if menu.how != "pointer" or menu.current < 0 or menu.gaps or len(moves) < 2:
        return moves
    way = 1 if at > menu.current else -1
    between = range(menu.current + way, at, way)
    return (
        *(replace(step, until=Shows(menu.items[to].label[:60])) for step, to in zip(moves, between, strict=False)),
        moves[-1],
    )


def move_steps(
    view: View, current: int, target: int, across: bool, label: str, upwards: bool = False
) -> tuple[Step, ...]:
    """Arrows from where the highlight is, one by one, and a look whether it arrived before anything is taken."""
    distance = target - max(current, 0)
    shows = Shows(label[:60])
    if distance == 0:
        return () if current >= 0 else (Step(b"", shows),)  # a highlight that cannot be seen may be anywhere
    if upwards:
        distance = -distance
    forward, back = ("right", "left") if across else ("down", "up")
    key = arrow(forward if distance > 0 else back, view.application_cursor)
    return (*(Step(key, When.CHANGED),) * (abs(distance) - 1), Step(key, shows))


def toggle_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    """The last step marks the box, those before it lead there from the box above; see `answer._several`."""
    item = menu.items[at]
    if rule.toggle == "digit" and item.number:
        return (Step(item.number.encode(), When.CHANGED),)
    start = max(menu.current, 0) if at == 0 else at - 1
    moves = move_steps(view, start, at, rule.across, item.label)
    return (*moves, *named_steps(view, rule.toggle, last=When.CHANGED))


def named_steps(view: View, keys: str, last: Until = When.AT_ONCE) -> tuple[Step, ...]:
    """Keys of a dialect: names or characters with blanks between them, each seen to work before the next.

    `down>Some_label` is the key again and again until that label is highlighted; after `right?Some_words` the rest is
    typed only where those words stand: elsewhere another question has come.
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


def _text_steps(view: View, menu: Menu, rule: MenuRule) -> tuple[Step, ...]:
    if not rule.text_choice:
        return ()
    if rule.text_typed:
        return (Step(b""),)
    if rule.text_submit and rule.text_reach:
        return named_steps(view, rule.text_reach)
    for at, item in enumerate(menu.items):
        if compiled(rule.text_choice).search(item.label):
            if rule.text_keys:
                moves = move_steps(view, menu.current, at, rule.across, item.label)
                return (*moves, *named_steps(view, rule.text_keys, last=When.REDRAWN))
            *lead, last = choose_steps(view, menu, at, rule)
            return (*lead, replace(last, until=When.REDRAWN))
    return named_steps(view, rule.text_reach)


def _surrounds(view: View, menu: Menu, rule: MenuRule) -> bool:
    top = max(0, menu.top - DIALOG_ROWS)
    head = dialog_top(view, menu.top, rule)
    top = min(top, head) if head >= 0 else top
    around = "\n".join(unframed(view.lines)[top : view.bottom() + 1])
    return not rule.needs or compiled(rule.needs).search(around) is not None


def _believable(view: View, menu: Menu, hinted: bool) -> bool:
    """A menu of no known tool: the end of the screen, or a hint that arrows choose (`hinted`: it must have one)."""
    around = "\n".join(view.lines[max(0, menu.top - 4) : view.bottom() + 1])
    if hinted:
        return bool(_ARROWS.search(around))
    below = [line for line in unframed(view.lines)[menu.bottom + 1 :] if any(map(str.isalnum, line))]
    at_the_end = view.bottom() - menu.bottom <= 2 or (menu.how == "pointer" and len(below) <= STATUS_ROWS)
    return menu.upwards or bool(_HINT.search(around)) or at_the_end or _asked_right_above(view, menu)


def _asked_right_above(view: View, menu: Menu) -> bool:
    """The cursor stands behind words in the row above the menu; what stands at the foot of the screen explains it."""
    asks = view.cursor_visible and view.row == menu.top - 1 and not view.after_cursor()
    return asks and menu.how == "pointer" and any(map(str.isalpha, view.before_cursor()))


def _asked_below(view: View, menu: Menu) -> bool:
    """The cursor stands behind a question further down: what looks like a menu is what was written before."""
    below = view.cursor_visible and view.row > menu.bottom and not menu.upwards
    asks = re.search(r"[^\W\d_]{3}.*[?:)\]>]", view.before_cursor())  # half an answer may stand behind it
    return below and asks is not None and not _ARROWS.search("\n".join(view.lines))
