"""Buttons side by side: `<Yes>  <No>`, `[ OK ]`, or words of which one is lit.

For: a row of them and nothing else at the foot of a box.  Against: one word in brackets that is no button's name, tags
in a text.  Answered by left and right, seen to arrive, and Enter.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.kinds import choice_of
from atlasbridge.core.recognition.widgets.box_words import boxed_finding
from atlasbridge.core.recognition.widgets.list_rows import Item
from atlasbridge.core.recognition.widgets.list_steps import move_steps
from atlasbridge.core.recognition.widgets.odd_one import odd_one
from atlasbridge.core.screen.frames import Frame, inside, unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.core.vocabulary import answers_as

_BUTTON = lazy(r"<\s*+([^<>\s](?:[^<>]{0,22}?[^<>\s])?)\s*+>|\[\s++([^\[\]\s](?:[^\[\]]{0,22}?[^\[\]\s])?)\s++\]")
_WORDS = lazy(r"\S+(?: \S+)*")
_ALONE = lazy(r"ok|okay|continue|close|done|dismiss|got it", re.IGNORECASE)
_OTHERWISE = lazy(r"yes|no|cancel|abort|quit|help|back|next|skip|retry|save|apply|submit", re.IGNORECASE)


def find_buttons(view: View, frame: Frame) -> list[Item]:
    """The lowest row of `<Yes>  <No>`, of `[ Yes ]  [ No ]`, or of words side by side of which one is highlighted."""
    for at in range(frame.bottom - 1, frame.top, -1):
        line = view.lines[at]
        found = [
            Item(at, match.start(1) if match[1] else match.start(2), (match[1] or match[2]).strip())
            for match in _BUTTON.finditer(line, frame.left, min(frame.right + 1, len(line)))
            if (match[1] or match[2]).strip()
        ]
        if found:
            return found
        plain = _plain_buttons(view, at, frame)
        if plain:
            return plain
    return []


def ends_in_buttons(view: View, frame: Frame) -> bool:
    """Below its first row a row of buttons and nothing else, set apart by blanks: `<ul><li>` may be anybody's text, and
    so may one word in brackets that is no button's name."""
    buttons = find_buttons(view, frame)
    if not buttons or buttons[0].row == frame.top + 1:
        return False
    rest = inside(unframed(view.lines), frame)[buttons[0].row - frame.top - 1]
    for item in buttons:
        rest = rest.replace(item.label, "", 1)
    if rest.strip("<>[] ") or 0 < len(rest.split()) < len(buttons):
        return False
    only = buttons[0].label
    return len(buttons) > 1 or bool(_ALONE.fullmatch(only) or _OTHERWISE.fullmatch(only))


def _plain_buttons(view: View, at: int, frame: Frame) -> list[Item]:
    row = unframed(view.lines)[at][: frame.right]
    words = [Item(at, match.start(), match.group()) for match in _WORDS.finditer(row, frame.left + 1)]
    if len(words) == 1 and not _ALONE.fullmatch(words[0].label):
        return []
    if not 1 <= len(words) <= 4 or any(len(item.label) > 24 or not item.label[0].isalpha() for item in words):
        return []
    lit = [item for item in words if view.style(at, item.col) & REVERSE]
    named = len(words) > 1 and all(_ALONE.fullmatch(item.label) or _OTHERWISE.fullmatch(item.label) for item in words)
    return words if len(lit) == 1 or named else []


def buttons_finding(view: View, buttons: list[Item], text: str, frame: Frame, dialect: Dialect) -> Finding:
    current = current_button(view, buttons)
    names = [item.label.lower() for item in buttons]
    yes_no = names in (["yes", "no"], ["no", "yes"])
    choices = []
    for at, item in enumerate(buttons):
        value = item.label.lower()[0] if yes_no else str(at + 1)
        steps = (*move_steps(view, max(current, 0), at, True, item.label), Step(ENTER))
        choices.append(choice_of(value, item.label, steps, dialect, default=at == current))
    kind = PromptType.TYPE_YES_NO if yes_no else PromptType.TYPE_MULTIPLE_CHOICE
    core = text + "\0" + "\0".join(names)
    return replace(boxed_finding("box-buttons", kind, text, frame), core=core, choices=tuple(choices))


def current_button(view: View, buttons: list[Item]) -> int:
    """The button the keys go to: the one the cursor stands on, else the one that looks different."""
    edges = [_edges(view.lines[item.row], item) for item in buttons]
    for at, (left, right) in enumerate(edges):
        if view.row == buttons[at].row and left <= view.col <= right:
            return at
    beside = view.style(buttons[0].row, max(0, edges[0][0] - 2))
    lit = [at for at, item in enumerate(buttons) if view.style(item.row, item.col) != beside]
    return lit[0] if len(lit) == 1 else odd_one(view, [(item.row, item.col) for item in buttons])


def _edges(line: str, button: Item) -> tuple[int, int]:
    """The columns of a button's brackets; of its words where it has none."""
    left = max(line.rfind("<", 0, button.col + 1), line.rfind("[", 0, button.col + 1))
    ends = [at for at in (line.find(">", button.col), line.find("]", button.col)) if at >= 0]
    bare = left < 0 or not ends or line[left + 1 : button.col].strip()
    return (button.col - 2, button.col + len(button.label) + 1) if bare else (left, min(ends))


def says_yes_or_no(buttons: list[Item]) -> bool:
    """Such a box takes no text, whatever it is about: `Change the password of root?`"""
    labels = [item.label for item in buttons]
    said = [[label for label in labels if answers_as(label, word)] for word in ("agree", "refuse")]
    return len(labels) == 2 and all(said)
