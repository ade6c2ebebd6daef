"""Fields to type into: a form of several, or one in a frame with a caret that the program draws itself.

A form is rows of `Label: value`, one of which has the keys, and a button that sends it.  Answered in words,
`Label: value; Label: value`: each field is seen to have the keys before it is emptied, and seen to hold the words.
Where no button is seen, a field hides what is typed, or nothing says what for, a person must look.
"""

from __future__ import annotations

import re

from atlasbridge.core import vocabulary
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.form_fields import FormField
from atlasbridge.core.prompt.keys import ENTER, NAMED, Reach, Stands, Step, When, arrow
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import DRAWN_FIELD, Facts, Finding, compact
from atlasbridge.core.recognition.kinds import asks_for_secret
from atlasbridge.core.recognition.question import block, question_above, question_in_box
from atlasbridge.core.recognition.widgets.framed_dialog import find_buttons
from atlasbridge.core.recognition.widgets.line_finding import BACKSPACE
from atlasbridge.core.recognition.widgets.line_question import recognise_line
from atlasbridge.core.recognition.widgets.list_rows import odd_bar, odd_one
from atlasbridge.core.recognition.widgets.resting_screen import whole_screen
from atlasbridge.core.screen.frames import Frame, find_frames, inside, unframed
from atlasbridge.core.screen.style import is_faded
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

_FIELD = lazy(r"^\s*+(?P<label>[^\W\d_][^:]{0,38}):(?=\s|_|$)[\s_]*+(?P<value>.*)$")
_WAY_OUT = lazy(r"[<\[]\s*+([^\W\d_][\w -]{0,20}?)\s*+[>\]]|^\s*+([^\W\d_]{2,12})\s*+$")
_BOXED = lazy(r"[\[(][ xX*]?[\])]")
_TWIG = lazy(r"[├└╰]─")
_SUBMITS = lazy(r"(?<!\w)(?:enter|return|↵|⏎)\s*+(?:to\s+|:\s*+)?(?:submit|save|confirm|continue)\b", re.IGNORECASE)
_MARKED = lazy(r"^\s*+[>❯›»✎](?:\s++(?P<hint>.*))?$")
_ANSWERS = lazy(
    r"(?:type|enter|write|add|give)\b.{0,24}\b(?:answer|response|reply|value|text|details|notes?)\b|your answer",
    re.IGNORECASE,
)
_SENDS = lazy(r"ok|okay|save|apply|submit|next|done|continue|create|log ?in|sign ?in", re.IGNORECASE)


@frozen
class FieldRow:
    row: int
    col: int  # of the label
    label: str
    value: str
    at: int  # where the value begins; -1: nothing stands there


@frozen
class Form:
    rows: tuple[FieldRow, ...]
    current: int  # index of the field that has the keys
    sends: str  # the label of the button that sends it, "": none is seen


def find_form(view: View) -> Form | None:
    """The fields around the cursor; where it is hidden, the lowest ones of which one label stands out."""
    groups = [group for group in _groups(view) if len(group) > 1]
    for group in reversed(groups):
        here = [at for at, one in enumerate(group) if one.row == view.row and view.col > one.col + len(one.label)]
        if view.cursor_visible:
            if here:
                return Form(tuple(group), here[0], way_out(view, group[-1].row))
            continue
        sends = way_out(view, group[-1].row)
        values = [(one.row, max(one.at, one.col + len(one.label) + 3)) for one in group]
        lit = odd_one(view, [(one.row, one.col) for one in group])
        lit = lit if lit >= 0 else odd_one(view, values)
        if lit >= 0 and sends:
            return Form(tuple(group), lit, sends)
    return None


def _groups(view: View) -> list[list[FieldRow]]:
    """Fields whose labels begin in one column, with nothing but empty rows between them."""
    groups: list[list[FieldRow]] = [[]]
    for at, text in enumerate(unframed(view.lines)):
        match = _FIELD.match(text)
        if match is None:
            groups += [[]] if text.strip() else []
            continue
        value = match["value"].rstrip(" _")
        one = FieldRow(at, match.start("label"), match["label"], value, match.start("value") if value else -1)
        if groups[-1] and groups[-1][-1].col != one.col:
            groups.append([])
        groups[-1].append(one)
    return groups


def way_out(view: View, row: int) -> str:
    for text in unframed(view.lines)[row + 1 :]:
        for match in _WAY_OUT.finditer(text):
            label = match[1] or match[2]
            if _SENDS.fullmatch(label) or vocabulary.begins("agree", label):
                return label
    return ""


def recognise_drawn_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A field or a button between two bars of blocks, or a tree with one row lit, on a full screen: which keys lead on
    from it is not known."""
    lines = view.lines
    fields = [at for at in range(1, len(lines) - 1) if "▔▔▔▔" in lines[at - 1] and "▁▁▁▁" in lines[at + 1]]
    twigs = [at for at in range(len(lines)) if _TWIG.search(lines[at])]
    tree = [twigs[0] - 1, *twigs] if twigs and twigs[0] else twigs  # with what they grow from
    lit = odd_bar([view.style(at, max(0, len(lines[at]) - 1)) for at in tree])
    if not view.alternate or not (fields or (len(twigs) > 1 and lit >= 0)):
        return None
    return replace(whole_screen(view, facts, dialect), rule=DRAWN_FIELD)


def recognise_form(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    form = find_form(view)
    rows = range(form.rows[0].row, form.rows[-1].row + 1) if form else range(0)
    frames = sum(one.top < rows.start and rows.stop <= one.bottom for one in find_frames(view.lines))
    if form is None or not (frames or (view.alternate and form.sends)):
        return None
    boxes = any(_BOXED.match(one.value) for one in form.rows)  # words are not typed into those
    certain = form.sends and not boxes and not any(asks_for_secret(f"{one.label}:", dialect) for one in form.rows)
    above = question_above(view, rows.start)
    own = block([unframed(view.lines)[one.row] for one in form.rows])
    question = "\n".join(part for part in (above.text, own) if part)
    labels = [one.label for one in form.rows]
    leaves = NAMED["tab"] if frames > 1 else arrow("down", view.application_cursor)  # fields in a frame of their own
    core = "\0".join((above.text, *labels, form.sends))
    kind = PromptType.TYPE_FREE_TEXT if certain else PromptType.TYPE_UNKNOWN
    return Finding(
        "form", kind, numbers.SURE, compact(question), core, rows.start,
        constraints={"fields": labels}, line_mode=False, filled="\n".join(one.value for one in form.rows),
        structural=True, question=question, whole=above.whole,
        fields=tuple(_field(view, form, at) for at in range(len(form.rows))) if certain else (),
        end_steps=(Step(leaves, Reach(form.sends)), Step(ENTER)) if certain else (),
    )  # fmt: skip


def _field(view: View, form: Form, at: int) -> FormField:
    one, current = form.rows[at], form.rows[form.current]
    name = f"{one.label}:"
    below = Step(arrow("down", view.application_cursor), Reach(name))
    above = Step(arrow("up", view.application_cursor), Reach(name))
    starts = {other.at for other in form.rows if other.at >= 0} | ({view.col} if current.at < 0 else set())
    start = one.at if one.at >= 0 else starts.pop() if len(starts) == 1 else -1
    before = view.lines[one.row].ljust(start)[one.col : start] if start > one.col else ""
    erase = NAMED["backspace"] * len(one.value) + NAMED["delete"] * len(one.value)  # wherever in it the cursor stands
    clear = (Step(erase, Stands(f"{before} ")),) if one.value else ()
    lead = () if one is current else (below,) if at > form.current else (above,)
    return FormField(one.label, lead, (below,), clear, before)


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


def recognise_marked_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`› Type your answer` below a question and above `enter to submit`: a field of an agent's own, still empty."""
    rows, foot = unframed(view.lines), view.bottom()
    told = next((at for at in range(foot, max(0, foot - numbers.EDGE_ROWS), -1) if _SUBMITS.search(rows[at])), 0)
    marked = [
        (at, found) for at in range(max(0, told - numbers.QUESTION_ROWS), told) if (found := _MARKED.match(rows[at]))
    ]
    if len(marked) != 1:
        return None
    row, found = marked[0]
    hint = (found["hint"] or "").strip()
    asked = question_in_box(view, row) or question_above(view, row)
    empty = not hint or is_faded(view.style(row, found.start("hint"))) or _ANSWERS.match(hint)
    asks = asked.text.endswith(("?", ":", "？", "：")) or _ANSWERS.match(hint)
    if not (empty and asks and asked.text) or (view.cursor_visible and view.row != row):
        return None
    return Finding(
        "marked-field", PromptType.TYPE_FREE_TEXT, numbers.SURE, compact(asked.text), asked.text, asked.row,
        line_mode=False, structural=True, multiline=view.bracketed_paste, question=asked.text, whole=asked.whole,
        foot=told,
    )  # fmt: skip


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
