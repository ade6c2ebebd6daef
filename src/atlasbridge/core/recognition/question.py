"""Extracts the text of a question: the characters on the screen in reading order, with nothing left out in between.

Rows are joined only where the terminal wrapped them. This module decides where a question starts; the widgets decide
what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.vocabulary import speaks
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import MenuRule, compiled
from atlasbridge.core.screen.frames import SIDES, TORN_OFF, Frame, find_frames, is_drawn, is_rule, peeled, without
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

_DOTS = ("…", "...")
_SAYS_NOTHING = lazy(  # without the text above
    r"(?:please )?(?:(?:enter|type|give|your|the|an?) ){1,2}"
    r"(?:value|answer|choice|response|reply|selection|option|number|decision|input)\W*"
    r"|(?:please )?(?:type|enter) (?:in )?(?:the word )?['\"]?yes\b.*",
    re.IGNORECASE,
)
OUT_OF_SIGHT = "(what is asked has no room on the screen)"


@frozen
class Asked:
    """The text of a question. It starts in `row`; `whole` is false if a part of it is not on the screen."""

    text: str = ""
    row: int = 0
    whole: bool = True
    near: str = ""  # the part right at the line that asks


def leaves_out(text: str) -> bool:
    """Whether the tool says that it does not show all of it, in one row or in two rows of a narrow window."""
    return speaks("hint", "hidden", text) or speaks("hint", "hidden", " ".join(text.split()))


def ends_in_dots(text: str) -> bool:
    """Whether a row ends in dots, as tools cut a text. A row that also starts with dots is a message of the tool."""
    rows = [row.strip() for row in text.split("\n")]
    return any(row.endswith(dots) and not row.startswith(dots) for row in rows for dots in _DOTS)


def block(rows: Sequence[str]) -> str:
    """The rows without their common margin and without empty rows around them."""
    margin = min((_indent(row) for row in rows if row.strip()), default=0)
    return "\n".join(row.rstrip()[margin:] for row in rows).strip("\n")


def logical_rows(view: View, rows: Sequence[str], first: int, end: int) -> list[str]:
    spaced = dict(view.spaced)
    out: list[str] = []
    begun = ""
    for at in range(first, end):
        if rows[at] == TORN_OFF:
            continue
        if at in view.joined and at + 1 < end:
            begun += spaced.get(at, rows[at])
        else:
            out.append(begun + rows[at])
            begun = ""
    return out


def _lacks(view: View, first: int, end: int) -> bool:
    return any(first <= row < end for row in view.cut)


def dialog_above(view: View, top: int, rule: MenuRule) -> Asked:
    """The text between the line where the dialog starts and its menu, or else the words above the menu."""
    rows = peeled(view.lines, top)
    first = dialog_top(view, top, rule)
    gone = first < 0 and bool(rule.top) and view.lines[0].strip() != ""  # its head has left the screen
    if first < 0 and not gone:
        above = question_above(view, top)
        unseen = not above.text and rule.top and stands_first(view, top)
        return Asked(OUT_OF_SIGHT, top, False) if unseen else replace(above, whole=above.whole and not rule.top)
    first = max(first, 0)
    box = own_box(rows, first, top) if rule.boxed else None
    rows = without(rows, box) if box else rows  # the lines of the tool's own box are not text
    taken = logical_rows(view, rows, first, top)
    margin = min((_indent(row) for row in taken if row.strip() and not is_rule(row)), default=0)
    kept = [row for row in taken if not (is_rule(row) and _indent(row) < max(1, margin))]
    text = block(kept[1:] if kept and not gone and is_drawn(kept[0]) else kept)
    missing = gone or _is_doubtful(view, first, top, rule) or _lacks(view, first, top)
    return Asked(text, first, not missing and not leaves_out(text))


def _is_doubtful(view: View, first: int, top: int, rule: MenuRule) -> bool:
    """Whether the row only looks like a dialog's head and the real head has possibly left the screen. This cannot
    happen to a dialog in a frame, because no text inside reaches the columns of its sides.
    """
    if not rule.topmost or any(one.top <= first and top < one.bottom for one in find_frames(view.lines)):
        return False
    head = view.lines[first].strip()
    if head[:1] in SIDES and head[:1] == head[-1:]:
        return True  # it is in a frame whose beginning is gone
    above = first > 0 and view.lines[first - 1].strip() != "" and not is_drawn(view.lines[first - 1])
    margin = _indent(view.lines[first])  # a dialog is indented at least this far; other text is conversation
    outside = any(line.strip() and _indent(line) < margin for line in view.lines[:first])
    return above or (view.scrolled > 0 and not outside)


def dialog_top(view: View, top: int, rule: MenuRule) -> int:
    """The row where the dialog of a menu starts, or -1 if there is none. A bar starts one only if it extends further
    left than the menu, because text is indented more.
    """
    margin = max(1, _indent(view.lines[top]))
    found = [at for at in range(top) if rule.top and compiled(rule.top).search(view.lines[at])]
    begins = [at for at in found if not is_rule(view.lines[at]) or _indent(view.lines[at]) < margin]
    return -1 if not begins else begins[0] if rule.topmost else begins[-1]


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def own_box(rows: tuple[str, ...], first: int, end: int) -> Frame | None:
    """The widest box inside the dialog, which is the tool's own. A box that is part of a text is indented more."""
    frames = [frame for frame in find_frames(rows) if first < frame.top and frame.bottom < end]
    return max(frames, key=lambda frame: (frame.right - frame.left, frame.top), default=None)


def question_above(view: View, top: int) -> Asked:
    """The words above a menu: its paragraph, and the one before if that is the question."""
    rows = peeled(view.lines, top)
    first, blanks, size = top, 0, 0
    for at in range(top - 1, max(-1, top - 1 - max(numbers.QUESTION_ROWS, len(rows))), -1):
        if not rows[at].strip() or _divides(view, rows[at]) or (first == top and is_drawn(rows[at])):
            blanks += 1
            taken = block(rows[first:top])
            lines = [line.strip() for line in taken.split("\n")]
            enough = any(len(line) > 8 for line in lines) and any(line.endswith(("?", ":")) for line in lines)
            points = "\n" not in taken and not _divides(view, rows[at]) and speaks("hint", "points", taken)  # above it
            if taken and (blanks > 1 or enough) and not points:
                break
            if not taken and top - at > numbers.QUESTION_ROWS and not view.alternate:
                break
            continue
        if first < top and (view.is_answered(at) or view.is_ticked(at)):
            break
        blanks = 0
        first = at
        size += len(rows[at])
        if size > numbers.ENOUGH:
            break
    text = block(logical_rows(view, rows, first, top))
    gone = first == 0 and view.scrolled > 0  # text above the first row is gone
    missing = size > numbers.ENOUGH or gone or _lacks(view, first, top) or _more_above(view, rows, first)
    return Asked(text, first, not missing and not leaves_out(text))


def question_in_box(view: View, top: int) -> Asked | None:
    """The words above a menu in the box around it, if there are any; text above the box is conversation."""
    around = [frame for frame in find_frames(view.lines) if frame.top < top < frame.bottom]
    if not around:
        return None
    first = max(around, key=lambda frame: frame.top).top + 1
    text = block(logical_rows(view, peeled(view.lines, top), first, top))
    return Asked(text, first, not _lacks(view, first, top) and not leaves_out(text)) if text else None


def _more_above(view: View, rows: Sequence[str], first: int) -> bool:
    """Whether unanswered words are above it. They can belong to it or to something long past."""
    for at in range(first - 1, -1, -1):
        if rows[at].strip() and not _divides(view, rows[at]):
            return not (view.is_answered(at) or view.is_ticked(at))
    return view.scrolled > 0


def _divides(view: View, row: str) -> bool:
    return is_rule(row) and len(row.strip()) >= view.cols - numbers.MARGIN


def stands_first(view: View, row: int) -> bool:
    """Whether nothing is above it, in a window that possibly had more to show than fits."""
    moved = view.scrolled > 0 or view.alternate
    return moved and not any(line.strip() and not is_drawn(line) for line in view.lines[:row])


def context_above(view: View, row: int, question: str) -> Asked:
    """The output since the last answer, down to the line that asks. It is not whole if more is further away."""
    rows = peeled(view.lines, row)
    first, size, seen, cut = row, len(question), 0, view.scrolled > 0
    for at in range(row - 1, -1, -1):
        if view.is_answered(at):
            cut = False
            break
        if not rows[at].strip():
            continue
        apart = first - at > 1
        if size > numbers.ENOUGH or (apart and (seen >= numbers.CONTEXT_ROWS or row - at > numbers.QUESTION_ROWS)):
            cut = True
            break
        first = at
        seen += 1
        size += len(rows[at].strip()) + 1
    text = block([*logical_rows(view, rows, first, row), question])
    missing = cut or _lacks(view, first, row + 1)
    bare = _SAYS_NOTHING.fullmatch(question) is not None or sum(map(str.isalpha, question)) < 10
    return Asked(text, first, not missing, text if bare or "\n" in question else text.rpartition("\n\n")[2])
