"""A framed dialog of a full-screen program: which frame, its words, and what it holds: buttons, a list, a field."""

from __future__ import annotations

import re

from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import Asked
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import asks_for_secret
from atlasbridge.core.recognition.widgets import framed_parts as parts
from atlasbridge.core.recognition.widgets.line_finding import BACKSPACE
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Item
from atlasbridge.core.screen.frames import Frame, find_frames, inside, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def recognise_box(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    frame = find_frame(view)
    if frame is None:
        return None
    words = " ".join(" ".join(line.split()) for line in inside(unframed(view.lines), frame))
    buttons = parts.find_buttons(view, frame)
    listed = parts.find_list(view, frame, buttons)
    field = is_field(view, frame, buttons) and view.cursor_visible
    sheet = field and is_sheet(view, frame)
    if not buttons and not view.alternate and view.bottom() - frame.bottom > numbers.FOOT_ROWS:
        return None  # it was said, as a welcome is, and much has been said since
    text = parts.words_of(view, frame, buttons, listed, view.row if field and not sheet and listed is None else -1)
    focus = re.search(r"[─━]\| .* \|[─━]", view.lines[frame.top]) is not None  # drawn by prompt_toolkit
    if listed is not None and focus and listed.items[0].box:
        return parts.focused_list(view, listed, text, frame, dialect)
    if listed is not None and not (field and view.row not in {item.row for item in listed.items}):
        return replace(menu_finding(view, listed, parts.BOX_LIST, Asked(text, frame.top), dialect), score=numbers.SURE)
    if sheet:
        return parts.boxed_finding("box-sheet", PromptType.TYPE_UNKNOWN, text or words, frame)
    if buttons and asks_for_secret(words, dialect) and (field or not parts.says_yes_or_no(buttons)):
        return input_finding(text, frame, {"secret": True})
    if len(buttons) >= 2 and field:
        found = cleared(input_finding(text, frame, {}), view, frame)
        return replace(found, end_steps=(Step(ENTER, When.CHANGED), Step(ENTER))) if focus else found
    if len(buttons) >= 2:
        return parts.buttons_finding(view, buttons, text, frame, dialect)
    if len(buttons) == 1:
        return parts.boxed_finding("box-message", PromptType.TYPE_CONFIRM_ENTER, text, frame)
    return None


def find_frame(view: View) -> Frame | None:
    """The smallest box with buttons, else the smallest box; the lowest of several."""
    frames = list(find_frames(view.lines))
    with_buttons = [frame for frame in frames if parts.find_buttons(view, frame)]
    candidates = with_buttons or frames
    return min(candidates, key=lambda frame: (frame.bottom - frame.top, -frame.bottom)) if candidates else None


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
    return replace(parts.boxed_finding("box-input", PromptType.TYPE_FREE_TEXT, text, frame), constraints=constraints)


def cleared(found: Finding, view: View, frame: Frame) -> Finding:
    """A field that comes filled in is emptied first: backspace is the one key that all of them know."""
    filled = re.split(r"[│┃║|x]", view.before_cursor()[frame.left :])[-1].strip(" _")
    if not filled or ":" in filled:
        return found
    return replace(found, filled=filled, text_steps=(Step(BACKSPACE * len(filled), When.REDRAWN),))
