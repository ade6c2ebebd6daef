"""A numbered or lettered list above a line that asks for one of it.

For: the line's words, or a bare mark right below a list whose head asks.  Against: a shell's prompt, words between
list and line, a list that has had its answer.  Answered by its number or letter and Enter.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding, compact
from atlasbridge.core.recognition.kinds import choice_of, refuses
from atlasbridge.core.recognition.question import block, context_above, question_above
from atlasbridge.core.recognition.widgets.line_finding import _BARE, Line, default_in, is_shell, line_finding, typed_key
from atlasbridge.core.screen.frames import is_drawn, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace
from atlasbridge.core.vocabulary import speaks

_EDGES = ("│", "┃", "║")
_NUMBERED = lazy(
    r"(?:^|(?<=\s\s)(?!\s)|(?<=\t)(?!\s))[*>+-]?\s*+(?:[\[(]\s?)?(\d{1,3})(?:[\]).:>]|\)\.| [-/=](?=\s))\s++"
    r"(\S++(?:\s++\S++)*?)(?=\s{2,}+[\[(]?\d{1,3}[\]).:]\s|\s*+$)"
)
_TABLED = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s{3,}+(\S.*)$")
_NUMBER_FIRST = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s++(\S.*)$")  # believed only where the numbers are complete
_LETTERED = lazy(
    r"^\s*[\[(]([A-Za-z])[\])]\s+(\S.*)$|^\s*([A-Za-z])[).:]\s+(\S.*)$|^\s{2,8}([a-zA-Z])\s{2,}(?![:=-]\s)(\S.*)$"
    r"|^\s*([A-Za-z])(?: or [A-Za-z])?\s+[:=-]\s+(\S.*)$"
)
_KEYED = lazy(r"^\s{0,8}[\[(]([A-Za-z]{1,2}|\d)[\])]\s++(\S.*)$")  # `(q)  Quit and do nothing.`
_CHOOSING = lazy(
    r"\b(?:select|selection|choices?|choose|option|number|which|pick|decision|what now|your answer)\b"
    r"|\b(?:enter|type) (?:an?|the|one|your)? ?(?:of the )?"
    r"(?:value|letter|digit|key|item|entry|code|index|id|above)s?\b"
    r"|#\?|^\w(?:/\w)+>|^\[[\w?]{2,}\]\W*$|\((?:\w/)+\w\)|[\[(]\d+\s*[-–]\s*\d+[\]),]|\bdefault\b|\((?:\w|\d+)\):?$",
    re.IGNORECASE,
)
_CHOSEN = lazy(r"[:?>]\s+(?:\d{1,3}|[A-Za-z])$")
_HEADS = lazy(r"\b(?:what|how)\b[^?]*\?\W*$|\b(?:options|menu|actions|commands)\W*$", re.IGNORECASE)
_TAKES_SEVERAL = lazy(r"separated by (?:spaces|blanks)|(?:space|blank)[- ]separated", re.IGNORECASE)


@frozen
class Listed:
    """`items` are (what is typed, label), in the order of their keys; `current` is the key of the marked one."""

    kind: str  # "numbers" or "letters"
    items: tuple[tuple[str, str], ...]
    current: str = ""
    row: int = 0  # of its first item
    bottom: int = 0


def listed_choices(view: View, row: int, question: str) -> Listed | None:
    """The list that ends shortly above `row`, if the line or the list's head asks to choose of it."""
    numbered = ((_NUMBERED, "numbers"), (_TABLED, "numbers"))
    for pattern, kind in (*numbered, (_LETTERED, "letters"), (_KEYED, "letters"), (_NUMBER_FIRST, "numbers")):
        found = _collect(view, row, pattern, kind, spread=pattern is _KEYED)
        believed = found and (pattern is not _NUMBER_FIRST or _is_complete(found, row))
        if found and believed and _asks_to_choose(view, found, row, question):
            return found
    return None


def _is_complete(found: Listed, row: int) -> bool:
    """Row by row down to the question, none left out."""
    numbers = [int(key) for key, _ in found.items]
    return found.row + len(numbers) == row and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _collect(view: View, row: int, pattern: re.Pattern[str], kind: str, spread: bool = False) -> Listed | None:
    """`spread`: every choice may be a paragraph of its own."""
    items: dict[str, str] = {}
    gap, top, bottom, current, seen = 0, row, row, "", False
    for at in range(row - 1, -1, -1):
        text = unframed(view.lines)[at]
        found = [tuple(part for part in match.groups() if part) for match in pattern.finditer(text)]
        if found and (kind == "letters" or text[: text.find(found[0][0])].strip(" \t*>+-[(") == ""):
            for key, label in found:
                items.setdefault(key, " ".join(label.split()))
                if re.match(rf"\s*[*>+]\s*\W?{key}\b", text):
                    current = key
            top, bottom, seen = at, bottom if seen else at, True
            continue
        if seen and not text.startswith("   ") and not (spread and not text.strip()):
            break
        if not seen and _CHOSEN.search(text) and _CHOOSING.search(text):
            break  # that list has had its answer
        gap += 0 if seen else 1
        if gap > numbers.GAP_ROWS:
            break
    ordered = _in_order(items) if kind == "numbers" else tuple(reversed(items.items()))
    return Listed(kind, ordered, current, top, bottom) if len(ordered) >= 2 else None


def _in_order(items: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """By number.  Numbers of several columns must be complete; gaps are for lists that count downwards row by row."""
    numbers = sorted(int(key) for key in items)
    found = [int(key) for key in items]  # from the bottom up
    complete = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    if not numbers or numbers[0] > 1 or not (complete or found == numbers[::-1]):
        return ()
    by_number = {int(key): (key, label) for key, label in items.items()}
    return tuple(by_number[number] for number in numbers)


def _asks_to_choose(view: View, found: Listed, row: int, question: str) -> bool:
    """The line asks for one of a list; or it is a mark without words, right below a list whose head asks."""
    if _CHOOSING.search(question) or speaks("choose", "asks", question):
        return True
    if found.bottom == row - 1 and _is_menu(found, question):
        return True
    last_row = bool(found.items) and question.endswith(found.items[-1][1])  # nothing stands below the list
    if not (_BARE.match(question) or last_row) or any(
        not is_drawn(view.lines[at]) for at in range(found.bottom + 1, row)
    ):
        return False
    if view.lines[found.row].lstrip()[:1] in _EDGES:
        return True  # nobody frames what he only tells
    head = " ".join(view.lines[max(0, found.row - numbers.HINT_ROWS) : found.row])
    if found.kind == "letters" and _HEADS.search(head):
        return True
    return bool(re.search(r"\b(?:select|choose|pick|which|following)\b", head, re.IGNORECASE)) or speaks(
        "choose", "asks", head
    )


def _is_menu(found: Listed, question: str) -> bool:
    """Short labels that count from one, right above a line that asks, whatever its words are: a question, the number of
    one of them as what is taken by default, or numbers as `select` of a shell writes them."""
    keys, default = [key for key, _ in found.items], default_in(question)
    counts = found.kind == "numbers" and keys == [str(at) for at in range(1, len(keys) + 1)]
    short = all(len(label) <= numbers.LONGEST_LABEL for _, label in found.items)
    return counts and short and (question.endswith(("?", "？")) or default in keys)


def typed_list_finding(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """A list above, and a line that asks for one of it."""
    if is_shell(line.text):
        return None
    listed = listed_choices(view, view.row if line.detached else line.row, line.text)
    if not listed and line.filled.isdigit():  # a number stands there already: the default, if the list has it
        listed = listed_choices(view, line.row, f"{line.text} ({line.filled})")
        listed = listed if listed and line.filled in dict(listed.items) else None
    if not listed:
        return None
    found = line_finding(view, line, facts, "list-" + listed.kind, PromptType.TYPE_MULTIPLE_CHOICE, numbers.SURE)
    default = default_in(line.text)
    # Places; its own numbers where taking one for the other could turn a no into a yes.
    placed = listed.kind == "numbers" and not any(refuses(label, dialect) for _, label in listed.items)
    choices = []
    for at, (key, label) in enumerate(listed.items, 1):
        steps = (*found.text_steps, *typed_key(key, facts))
        choice = choice_of(key, label, steps, dialect, default=key in (default, listed.current))
        shown = label if key == str(at) else f"{key}: {label}"
        choices.append(replace(choice, value=str(at), label=shown) if placed else choice)
    head, said = question_above(view, listed.row), context_above(view, listed.row, "")
    head = said if said.whole and not head.whole else head  # all that was said since the last answer is near
    between = [row.rstrip() for row in view.lines[listed.bottom + 1 : line.row] if not is_drawn(row)]
    own = block([*between, line.text])
    question = "\n".join(part for part in (head.text, own) if part)
    core = f"{question}\0" + "\0".join(label for _, label in listed.items)
    limit = {**found.constraints, "min_choice": 1, "max_choice": len(choices)}
    found = replace(found, choices=tuple(choices), core=core, constraints=limit, structural=True, whole=head.whole)
    found = replace(found, question=question, excerpt=compact(question))
    shown = " ".join(view.lines[listed.row : line.row + 1])
    return _several(found, listed) if _TAKES_SEVERAL.search(shown) and not line.filled else found


def _several(found: Finding, listed: Listed) -> Finding:
    """The line takes several keys, with blanks between them, and one Enter at its end."""
    choices = tuple(
        replace(choice, steps=(Step(f"{key} ".encode(), When.DRAINED),), default=False)
        for choice, (key, _) in zip(found.choices, listed.items, strict=True)
    )
    limit = {**found.constraints, "multi_select": True, "allows_other": True}
    return replace(found, choices=choices, constraints=limit, end_steps=(Step(ENTER),))
