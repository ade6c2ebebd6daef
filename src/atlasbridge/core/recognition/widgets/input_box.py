"""The box at the foot of the screen in which an AI CLI without a dialect takes the next instruction.

The text above it is conversation: quoted lists and questions there ask nothing. If a list with a pointer is right
above the box, it is unclear which of them gets the keys, so a person must look.
"""

from __future__ import annotations

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding, cut, drawn, without_drawing
from atlasbridge.core.recognition.question import Asked, block
from atlasbridge.core.recognition.widgets.framed_dialog import ends_in_buttons, inner
from atlasbridge.core.recognition.widgets.line_question import recognise_line
from atlasbridge.core.recognition.widgets.pointed_list import find_menu
from atlasbridge.core.screen.frames import SIDES, Frame, find_frames, inside, is_drawn, is_rule
from atlasbridge.core.screen.style import is_faded
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_WHEEL = lazy(r"^\s*+(?:[⠁-⣿◐◓◑◒✶✸✹✺✻✽✢✳]\s+\S.*?(?:…|\.\.\.)|[🌑-🌘])")
_TITLED = lazy(r"^\s*+[─━]{8,}+ [^─━]{1,30} ?[─━]*+\s*$")  # a bar with a word in it
_EMPTY = "(it waits for an instruction)"
_INVITES = lazy(r"^(?:[>❯›»●*▌]|>>>)(?:\s|$)")
_SPEAKER = lazy(r"^\W{0,4}([^\W\d_]{1,12})\s?[:>❯›»：]$")


def find_input_box(view: View) -> Frame | None:
    """A box as wide as the screen, a few rows high, near its foot, with a mark that invites input. A box with
    buttons is a dialog instead, and a mark at the start of its text means nothing.
    """
    foot = view.bottom()
    wide = view.cols - numbers.MARGIN
    for frame in find_frames(view.lines):
        fits = frame.right - frame.left >= wide and _fits(view, frame.top, frame.bottom, foot, frame.left + 1)
        covered = "│" in view.lines[frame.top][frame.left + 1 : frame.right]  # by a dialog in front of it
        if fits and not covered and not ends_in_buttons(view, frame):
            return frame
    ruled = [at for at, line in enumerate(view.lines) if is_rule(line) or _TITLED.match(line)]
    equal = {view.lines[at] for at in ruled if at < view.row} & {view.lines[at] for at in ruled if at > view.row}
    rules = [at for at in ruled if len(view.lines[at].strip()) >= wide or view.lines[at] in equal]
    if len(rules) >= 2 and _fits(view, rules[-2], rules[-1], foot, 0):
        return Frame(rules[-2], rules[-1], 0, view.cols)
    if rules and rules[-1] == view.row - 1 and view.row == foot and _INVITES.fullmatch(view.lines[foot].strip()):
        return Frame(view.row - 1, view.row + 1, 0, view.cols)  # a bar above it is its only frame
    here = view.at_caret()
    idles = _with_placeholder(here, drawn_by_the_terminal=view.cursor_visible) or _in_a_chat(view)
    return Frame(here.row - 1, here.row + 1, 0, view.cols) if idles else None


def _with_placeholder(view: View, drawn_by_the_terminal: bool) -> bool:
    """Whether the cursor is at the start of dimmed placeholder words. They must mention a message, or be separate
    from the text above and have a status row of the tool below.
    """
    row, words = view.row, view.after_cursor().strip(" │┃")
    if any(map(str.isalnum, view.before_cursor())) or not any(map(str.isalpha, words)):
        return False
    if not is_faded(view.style(row, view.lines[row].find(words) + 1)):
        return False
    above, side = view.lines[row - 1].rstrip() if row else "", view.lines[row].strip()[:1]
    padded = above.strip() == side in SIDES  # a bar on the left, with the field alone behind it
    sure = drawn_by_the_terminal or padded or len(above.strip()) >= view.cols - numbers.MARGIN
    apart = row > 0 and sure and not any(map(str.isalnum, above))
    told = any(any(map(str.isalnum, line)) for line in view.lines[row + 1 : row + 1 + numbers.BESIDE_BOX_ROWS])
    over = next((line.rstrip() for line in reversed(view.lines[:row]) if not is_drawn(line)), "")
    asked = over.endswith(("?", ":", "？", "：")) or vocabulary.speaks("instruct", "unless", words)
    below = vocabulary.speaks("hint", "sends", "\n".join(view.lines[row + 1 :]))
    return (apart and told and not (asked and below)) or (not asked and vocabulary.speaks("instruct", "asks", words))


def _in_a_chat(view: View) -> bool:
    """Whether the line is `You:` or similar in a line editor: a chat in which the named person speaks next."""
    said = _SPEAKER.match(view.before_cursor().strip()) if view.bracketed_paste and not view.after_cursor() else None
    return said is not None and vocabulary.answers_as(said[1], "speaker")


def _rows_of_work(view: View, box: Frame) -> tuple[int, ...]:
    """The rows beside the input box in which the tool says that it can be interrupted, or shows a spinner."""
    above = range(max(0, box.top - numbers.BESIDE_BOX_ROWS), box.top)
    beside = (*above, *range(box.bottom + 1, len(view.lines)))
    wheels = [at for at in above if _WHEEL.match(view.lines[at])]
    return (*(at for at in beside if vocabulary.speaks("hint", "work", view.lines[at])), *wheels)


def _inner_question(view: View, box: Frame, facts: Facts, dialect: Dialect) -> Finding | None:
    """A question of a command that runs in an inner terminal above the box: its caret is after a question that names
    its answers. The keys that lead there are unknown, so a person must look.
    """
    above = [frame for frame in find_frames(view.lines) if frame.bottom < box.top]
    frame = max(above, key=lambda frame: frame.bottom, default=None)
    rows = range(frame.top + 1, frame.bottom) if frame else range(0)
    low = [at for at in rows if frame and view.lines[at][frame.left + 1 : frame.right].strip()]
    here = view.at_caret_of(low[-1]) if low else view
    found = recognise_line(inner(here, frame), facts, dialect, strict=True) if frame and here is not view else None
    if frame and found and found.type is PromptType.TYPE_YES_NO and found.score >= numbers.SURE:
        asked = block(inside(view.lines, frame))
        found = drawn("question-above-box", numbers.SURE, Asked(asked, frame.top + 1), core=found.core)
        return replace(found, foot=len(view.lines))  # no status row of the tool counts: the command waits
    return None


def _fits(view: View, top: int, bottom: int, foot: int, left: int) -> bool:
    if not 2 <= bottom - top <= numbers.EDGE_ROWS + 1 or foot - bottom > numbers.BESIDE_BOX_ROWS:
        return False
    return _INVITES.match(view.lines[top + 1][left:].strip()) is not None


def recognise_input_box(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    commands = facts.canonical is True or facts.command in dialect.screen_programs
    box = None if commands else find_input_box(view)
    if box is None:
        return None
    menu = find_menu(view, dialect.pointers)
    gap = view.lines[menu.bottom + 1 : box.top] if menu else ()  # between the box and the list
    framed = menu and any(one.top < menu.top <= menu.bottom < one.bottom for one in find_frames(view.lines))
    if menu and (box.top < menu.top or (framed and vocabulary.speaks("hint", "arrows", "\n".join(gap)))):
        return None  # the "box" is a list, or a dialog is in a frame above it, as messages of a chat are not
    if asked := _inner_question(view, box, facts, dialect):
        return asked
    at_work = _rows_of_work(view, box)
    said = block(view.lines[max(0, box.top - numbers.CONTEXT_ROWS) : box.top])  # the last words of the tool
    near = len(gap) < numbers.BESIDE_BOX_ROWS or not any(map(str.isalnum, "".join(gap)))
    if menu and menu.how == "pointer" and menu.bottom <= box.top and near:
        found = drawn("list-above-box", numbers.LOOK, Asked(said, menu.top))
        return replace(found, structural=False, at_work=at_work)
    return Finding(
        "input-box", PromptType.TYPE_FREE_TEXT, numbers.LIKELY, cut(without_drawing(said)) or _EMPTY,
        "input-box", box.top, constraints={"idle": True}, line_mode=False, question=said, at_work=at_work,
    )  # fmt: skip
