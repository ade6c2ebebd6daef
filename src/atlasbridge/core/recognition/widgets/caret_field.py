"""A field inside a frame whose caret the program draws itself: a popup that asks, or the terminal of a command that a
tool runs in a box.

For: the caret, behind words of the box or below its title.  Against: buttons, which make it a dialog.  Answered as the
line in it asks; where it asks for a secret, or nothing says what for, a person must look.
"""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import block, compact
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.secrecy import asks_for_secret
from atlasbridge.core.recognition.widgets.buttons import find_buttons
from atlasbridge.core.recognition.widgets.line_finding import BACKSPACE
from atlasbridge.core.recognition.widgets.line_question import recognise_line
from atlasbridge.core.screen.frames import Frame, find_frames, inside, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def recognise_caret_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    here = view.at_caret()
    frame = None if view.cursor_visible or not here.cursor_visible else _frame_around(here)
    if frame is None or find_buttons(view, frame):
        return None
    box = inner(here, frame)
    found = recognise_line(box, facts, dialect, strict=True)
    if found is None or found.type is PromptType.TYPE_FREE_TEXT:
        found = _text_field(view, box, frame)
    asks = found.type is PromptType.TYPE_YES_NO or found.question.endswith(("?", ":", "？", "："))
    if not asks and not view.alternate:
        return None  # a command has written this, and may write more
    if asks_for_secret(found.question, dialect):
        found = replace(found, type=PromptType.TYPE_UNKNOWN)
    return replace(found, row=found.row + frame.top + 1, line_mode=False, structural=asks)


def _frame_around(here: View) -> Frame | None:
    around = [
        frame for frame in find_frames(here.lines)
        if frame.top < here.row < frame.bottom and frame.left < here.col < frame.right
    ]  # fmt: skip
    return max(around, key=lambda frame: frame.top, default=None)


def inner(here: View, frame: Frame) -> View:
    """The box as a picture of its own."""
    return View(
        tuple(row.rstrip() for row in inside(here.lines, frame)),
        here.row - frame.top - 1,
        here.col - frame.left - 1,
        alternate=here.alternate,
        cols=frame.right - frame.left - 1,
    )


def _text_field(view: View, box: View, frame: Frame) -> Finding:
    """What is asked: the title, the words above, a label before the caret.  What else stands there can be emptied."""
    title = unframed(view.lines)[frame.top][frame.left : frame.right].strip()
    typed = box.before_cursor().strip()
    label = typed if typed.endswith(("?", ":", "？", "：")) else ""
    typed = "" if label else typed
    asked = block([title, *box.lines[: box.row], label])
    last = not any(row.strip() for row in box.lines[box.row + 1 :])
    kind = PromptType.TYPE_FREE_TEXT if any(map(str.isalpha, asked)) and last else PromptType.TYPE_UNKNOWN
    clear = (Step(BACKSPACE * len(typed), When.DRAINED),) if typed else ()
    said = asked or block(box.lines)
    return Finding(
        "caret-field", kind, numbers.LIKELY, compact(said), said, box.row, filled=typed, text_steps=clear, question=said
    )
