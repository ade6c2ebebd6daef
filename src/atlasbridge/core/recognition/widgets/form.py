"""Fields inside a box: one to type into, or a sheet of several that one line of text would only half fill in."""

from __future__ import annotations

import re

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.widgets.box_words import boxed_finding
from atlasbridge.core.recognition.widgets.line_finding import BACKSPACE
from atlasbridge.core.recognition.widgets.list_rows import Item
from atlasbridge.core.screen.frames import Frame, find_frames
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def is_field(view: View, frame: Frame, buttons: list[Item]) -> bool:
    """The cursor stands inside the box, above the buttons: there is a field to type into."""
    inside = frame.top < view.row < frame.bottom and frame.left < view.col <= frame.right
    return inside and (not buttons or view.row < buttons[0].row)


def is_sheet(view: View, frame: Frame) -> bool:
    """The cursor stands in a frame of several rows inside the box: a form of several fields, or an editor.  One line of
    text and Enter would fill in half of it, and send it."""
    return any(
        frame.top < one.top < view.row < one.bottom < frame.bottom and one.left < view.col < one.right
        for one in find_frames(view.lines)
        if one.bottom - one.top > 2
    )


def input_finding(text: str, frame: Frame, constraints: dict[str, object]) -> Finding:
    return replace(boxed_finding("box-input", PromptType.TYPE_FREE_TEXT, text, frame), constraints=constraints)


def cleared(found: Finding, view: View, frame: Frame) -> Finding:
    """A field that comes filled in is emptied first: backspace is the one key that all of them know."""
    filled = re.split(r"[│┃║|x]", view.before_cursor()[frame.left :])[-1].strip(" _")
    if not filled or ":" in filled:
        return found
    return replace(found, filled=filled, text_steps=(Step(BACKSPACE * len(filled), When.REDRAWN),))
