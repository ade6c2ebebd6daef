"""A list as a prompt: the question, the choices, what refuses and what is for ever, its limits, and the keys.

A choice is taken by its digit, its hot key, or arrows that are seen to arrive; own words go into its text field.
"""

from __future__ import annotations

import re
from functools import lru_cache

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Only, Reach, Shows, Step, Until, When, arrow, parse_keys
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Finding, compact, to_look_at
from atlasbridge.core.recognition.kinds import is_always, refuses
from atlasbridge.core.recognition.question import Asked
from atlasbridge.core.recognition.widgets.list_rows import Menu
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_TOGGLE_HINT = lazy(r"toggle|space ?bar|<space>|press space|space:? *select|select all", re.IGNORECASE)
_MORE = lazy(
    r"reveal more|\bmore (?:choices|options|items|below)\b|\b\d+ more\b|\(\+\)"
    r"|^[^\w.…]*+(?:\.{3}|…)\W*+$|^[\s│┃|]*+[▼▾↓⇣](?:\s*+$|\s{2})|[^\s│┃|]\s{2,}+[↓▼▮▒]\s*+[│┃|]?\s*+$",
    re.IGNORECASE,
)
_OTHER_KEY_MARKS = lazy(
    r"(?:↵|⏎|\benter):?\s*(?:to )?(?:toggle|select|choose|mark)\b|\b(?:toggle|pick|mark): ?(?:→|enter|tab)",
    re.IGNORECASE,
)
_SORTED = lazy(r"\bto (?:sort|re-?order|rank)\b", re.IGNORECASE)
_MORE_SIGN = lazy(r"more|MORE|[…▼▾↓⇣▮▒+]|\.\.\.")  # in every row that `_MORE` could find
ARROWS_CHOOSE = MenuRule("arrow-menu", score=numbers.SURE)


def menu_finding(view: View, menu: Menu, rule: MenuRule, asked: Asked, dialect: Dialect) -> Finding:
    several = menu.several or (any(item.box for item in menu.items) and are_switched(view, menu))
    if (menu.how == "mark" and (menu.current < 0 or several)) or _SORTED.search(asked.text):
        return unclear(rule, asked)  # nothing tells which row has the keys, or more is asked than one of them
    fields = sum(item.label.endswith(":") for item in menu.items)  # each has something of its own to be filled in
    if (several and rule.toggle == "space" and _is_marked_otherwise(view, menu)) or fields > 1:
        return unclear(rule, asked)
    # Positions; its own numbers where taking one for the other could turn a no into a yes.
    own = menu.numbered and any(refuses(item.label, dialect, rule.refuse) for item in menu.items)
    choices = []
    for at, item in enumerate(menu.items):
        steps = toggle_steps(view, menu, at, rule) if several else choose_steps(view, menu, at, rule)
        if rule.text_choice and not rule.text_keys and compiled(rule.text_choice).search(item.label):
            steps = ()  # its key opens a text field: it is no answer by itself
        if several and not item.box:
            steps = ()  # a way out of the list, not one of its boxes
        label = item.label if not several else re.sub(r"^\[[ xX✔✓]\]\s*", "", item.label)
        default = item.checked if several else at == menu.current
        refused, always = refuses(label, dialect, rule.refuse), is_always(label, dialect)
        choices.append(Choice(item.number if own else str(at + 1), label, steps, refused, always, default, item.detail))
    if rule.cancel and not any(choice.refuses for choice in choices):
        choices.append(Choice("cancel", "Cancel", named_steps(view, rule.cancel), refuses=True))
    constraints: dict[str, object] = {"min_choice": 1, "max_choice": len(menu.items)}
    if any(map(_goes_on, view.lines[max(0, menu.top - 2) : menu.bottom + 4])):
        constraints["scrolls"] = True  # only what is visible can be chosen by a word
    if several:
        constraints["multi_select"] = True
    ending = named_steps(view, rule.submit, last=When.REDRAWN)  # what is shown in between is no prompt of its own
    takes_words = bool(rule.text_submit) or not several
    text_steps = own_words_steps(view, menu, rule) if takes_words else ()
    if text_steps:
        constraints["allows_other"] = True
    core = asked.text + "\0" + "\0".join(f"{item.label}\0{item.detail}" for item in menu.items)
    return Finding(
        rule.id, PromptType.TYPE_MULTIPLE_CHOICE, rule.score, compact(asked.text), core, asked.row,
        tuple(choices), constraints, line_mode=False, structural=True, text_steps=text_steps,
        end_steps=ending if several else (),
        words_end=named_steps(view, rule.text_submit, last=When.REDRAWN) if several else (),
        question=asked.text, whole=asked.whole, foot=menu.bottom,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _goes_on(line: str) -> bool:
    """Whether a row in or beside a list says that there is more of it."""
    return _MORE_SIGN.search(line) is not None and _MORE.search(line) is not None


def as_yes_no(found: Finding) -> Finding:
    """A menu of yes and no and nothing else is answered by y and n."""
    if sorted(choice.label.lower() for choice in found.choices) != ["no", "yes"]:
        return found
    choices = tuple(replace(choice, value=choice.label.lower()[0]) for choice in found.choices)
    return replace(found, type=PromptType.TYPE_YES_NO, choices=choices)


def unclear(rule: MenuRule, asked: Asked) -> Finding:
    """A list of which cannot be told which keys take one of it."""
    return replace(to_look_at(rule.id, rule.score, asked.text, asked.row), whole=asked.whole)


def are_switched(view: View, menu: Menu) -> bool:
    """A hint near the list says that boxes are switched on and off."""
    around = "\n".join(view.lines[max(0, menu.top - numbers.HINT_ROWS) : view.bottom() + 1])
    return _TOGGLE_HINT.search(around) is not None


def _is_marked_otherwise(view: View, menu: Menu) -> bool:
    """What is said beside it names another key than a blank that marks a box: nobody can tell what sends the list."""
    rows = (*view.lines[max(0, menu.top - 1) : menu.top], *view.lines[menu.bottom + 1 : view.bottom() + 1])
    said = "\n".join(rows).lower()
    return _OTHER_KEY_MARKS.search(said) is not None and "space" not in said


def choose_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    item = menu.items[at]
    if rule.refuse_keys and rule.refuse and compiled(rule.refuse).search(item.label):
        second = "?" in rule.refuse_keys  # a dialog that is no question of its own, until the tool has left it
        return named_steps(view, rule.refuse_keys, last=When.CHANGED if second else When.AT_ONCE)
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
    moves = move_steps(view, menu.current, at, rule.across, item.label, menu.upwards)
    if moves and (menu.gaps or rule.labels):  # a labelled row may be drawn anew, and its highlight begin again
        moves = (Step(moves[-1].keys, Reach(item.label[:60])),)
    moves = _seen_moves(menu, at, moves)
    if item.box.startswith("(") and not item.checked and menu.how != "mark":
        return (*moves, Step(b" ", When.DRAINED), Step(ENTER))  # a radio list: Enter takes the one that was marked
    if rule.follow and compiled(rule.follow).search(item.label):
        return (*moves, *named_steps(view, rule.follow_keys, last=When.CHANGED))
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
    """Arrows from where the highlight is, one by one, and a look whether it arrived before anything is taken.  What is
    far away is reached by the same key until it is: a long list has short ways, too."""
    distance = target - max(current, 0)
    shows = Shows(label[:60])
    if distance == 0:
        return () if current >= 0 else (Step(b"", shows),)  # a highlight that cannot be seen may be anywhere
    if upwards:
        distance = -distance
    forward, back = ("right", "left") if across else ("down", "up")
    key = arrow(forward if distance > 0 else back, view.application_cursor)
    if abs(distance) > numbers.SEEN_MOVES:
        return (Step(key, Reach(label[:60])),)
    return (*(Step(key, When.CHANGED),) * (abs(distance) - 1), Step(key, shows))


def toggle_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    """The last step marks the box, those before it lead there from the box above; see `answer._several`."""
    item = menu.items[at]
    if rule.toggle == "digit":
        return (Step((item.number or str(at + 1)).encode(), When.CHANGED),)
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
                moves = move_steps(view, menu.current, at, rule.across, item.label) if rule.choose != "hotkey" else ()
                return (*moves, *named_steps(view, rule.text_keys, last=When.REDRAWN))
            *lead, last = choose_steps(view, menu, at, rule)
            return (*lead, replace(last, until=When.REDRAWN))
    return named_steps(view, rule.text_reach)
