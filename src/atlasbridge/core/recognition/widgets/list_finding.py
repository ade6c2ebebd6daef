"""A list as a prompt: the question, the choices with their keys, what refuses and what is for ever, and its limits."""

from __future__ import annotations

import re
from functools import lru_cache

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import Asked, compact
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.kinds import is_always, refuses
from atlasbridge.core.recognition.widgets.list_rows import Menu
from atlasbridge.core.recognition.widgets.list_steps import choose_steps, named_steps, own_words_steps, toggle_steps
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
        return _unclear(rule, asked)  # nothing tells which row has the keys, or more is asked than one of them
    fields = sum(item.label.endswith(":") for item in menu.items)  # each has something of its own to be filled in
    if (several and rule.toggle == "space" and _is_marked_otherwise(view, menu)) or fields > 1:
        return _unclear(rule, asked)
    values = _values(menu, any(refuses(item.label, dialect, rule.refuse) for item in menu.items))
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
        choices.append(Choice(values[at], label, steps, refused, always, default, item.detail))
    if rule.cancel and not any(choice.refuses for choice in choices):
        choices.append(Choice("cancel", "Cancel", named_steps(view, rule.cancel), refuses=True))
    constraints: dict[str, object] = {"min_choice": 1, "max_choice": len(menu.items)}
    ending: tuple[Step, ...] = ()
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
        tuple(choices), constraints, line_mode=False, structural=True, text_steps=text_steps, end_steps=ending,
        words_end=named_steps(view, rule.text_submit, last=When.REDRAWN) if several else (),
        question=asked.text, whole=asked.whole,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _goes_on(line: str) -> bool:
    """Whether a row in or beside a list says that there is more of it."""
    return _MORE_SIGN.search(line) is not None and _MORE.search(line) is not None


def _unclear(rule: MenuRule, asked: Asked) -> Finding:
    found = Finding(rule.id, PromptType.TYPE_UNKNOWN, rule.score, compact(asked.text), asked.text, asked.row)
    return replace(found, line_mode=False, structural=True, question=asked.text, whole=asked.whole)


def are_switched(view: View, menu: Menu) -> bool:
    """A hint near the list says that boxes are switched on and off."""
    around = "\n".join(view.lines[max(0, menu.top - numbers.HINT_ROWS) : view.bottom() + 1])
    return _TOGGLE_HINT.search(around) is not None


def _is_marked_otherwise(view: View, menu: Menu) -> bool:
    """What is said beside it names another key than a blank that marks a box: nobody can tell what sends the list."""
    rows = (*view.lines[max(0, menu.top - 1) : menu.top], *view.lines[menu.bottom + 1 : view.bottom() + 1])
    said = "\n".join(rows).lower()
    return _OTHER_KEY_MARKS.search(said) is not None and "space" not in said


def _values(menu: Menu, refusable: bool) -> list[str]:
    """Positions; its own numbers where taking one for the other could turn a no into a yes."""
    if refusable and menu.numbered:
        return [item.number for item in menu.items]
    return [str(at) for at in range(1, len(menu.items) + 1)]
