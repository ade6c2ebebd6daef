"""Framed dialogs of full-screen programs: finds the frame, its words, and its buttons, list or field.

Buttons are side by side at the foot of a box: `<Yes>  <No>`, `[ OK ]`, or words of which one is highlighted. A word
in brackets that is not the name of a button, or a tag in a text, is no button. A list in a box has one row in
another colour, or boxes. The answer is arrows, each checked on the screen, and Enter.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, NAMED, Reach, Stands, Step, When, arrow
from atlasbridge.core.prompt.model import FormField, PromptType
from atlasbridge.core.prompt.vocabulary import answers_as, speaks
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import POINTERS, Dialect, MenuRule
from atlasbridge.core.recognition.finding import DRAWN_FIELD, Facts, Finding, compact, drawn, without_drawing
from atlasbridge.core.recognition.meaning import asks_for_secret
from atlasbridge.core.recognition.question import Asked, block, question_above, question_in_box
from atlasbridge.core.recognition.widgets.line_question import BACKSPACE, recognise_line
from atlasbridge.core.recognition.widgets.list_rows import (
    Item,
    Menu,
    menu_finding,
    odd_bar,
    odd_one,
    read_row,
    row_pattern,
)
from atlasbridge.core.recognition.widgets.pointed_list import find_box_rows, find_shaped
from atlasbridge.core.recognition.widgets.resting_screen import whole_screen
from atlasbridge.core.recognition.widgets.side_by_side import marked_buttons, way_out
from atlasbridge.core.screen.frames import SIDES, Frame, find_frames, inside, is_drawn, unframed
from atlasbridge.core.screen.style import REVERSE, is_coloured, is_faded
from atlasbridge.core.screen.view import CARET_ROWS, View
from atlasbridge.core.values import frozen, replace

_LABEL = lazy(r"[^:]+:(?=\s|_|$)")  # of a field, in its row
_WORDS = lazy(r"\S+(?: \S+)*")
_NO_ROW = lazy(
    r"[─━═_*•●q\s-]*+(?:[↑↓▲▼^v]?\s*\([+-]\)[─q\s-]*+(?:\d+%)?[─q\s-]*)?"
)  # rules, and the marks of a list that scrolls
_SCROLL_MARK = lazy(r"(?<=\S)\s{2,}+[\^v↑↓▲▼▮▯▒░█#]$")
_BRANCH = lazy(r"^(?:[│├└╰|]\s*+[─╌-]*+\s*+)+")  # the branches of a tree before an item
_BOX = lazy(r"(\[[ xX*]\]|\([ xX*]\))\s*(.*)")
_LIST_BELOW = lazy(rf"^( *)[{POINTERS}] \S.*\n\1  \S|^( *)  \S.*\n\2[{POINTERS}] \S", re.MULTILINE)
_BOX_LIST = MenuRule("box-list")
_BUTTONS = MenuRule("box-buttons", across=True)


def recognise_box(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    frame = find_frame(view)
    if frame is None:
        return None
    words = " ".join(" ".join(line.split()) for line in inside(unframed(view.lines), frame))
    buttons = find_all_buttons(view, frame)
    listed = find_list(view, frame, buttons)
    here = frame.top < view.row < (buttons[0].row if buttons else frame.bottom)
    field = here and frame.left < view.col <= frame.right and view.cursor_visible  # a field to type into
    sheet = field and is_sheet(view, frame)
    listed_below = _LIST_BELOW.search("\n".join(unframed(view.lines)[frame.bottom + 1 :]))
    far = view.bottom() - frame.bottom > numbers.FOOT_ROWS or listed_below
    if not buttons and not view.alternate and far:
        return None  # earlier output, such as a welcome message
    text = words_of(view, frame, buttons, listed, view.row if field and not sheet and listed is None else -1)
    asked = Asked(text, frame.top)
    focus = re.search(r"[─━]\| .* \|[─━]", view.lines[frame.top]) is not None  # drawn by prompt_toolkit
    if listed is not None and focus and listed.items[0].box:
        return focused_list(view, listed, asked, dialect)
    if listed is not None and not (field and view.row not in {item.row for item in listed.items}):
        return menu_finding(view, listed, _BOX_LIST, asked, dialect)
    typed_into = drawn("box-input", numbers.SURE, asked, PromptType.TYPE_FREE_TEXT)
    unread = drawn("box-sheet", numbers.SURE, Asked(text or words, frame.top))
    if sheet:
        return unread
    if buttons and asks_for_secret(words, dialect) and (field or not says_yes_or_no(buttons)):
        return replace(typed_into, constraints={"secret": True})
    if len(buttons) < 2:
        message = drawn("box-message", numbers.SURE, asked, PromptType.TYPE_CONFIRM_ENTER)
        return message if buttons else None
    if field:
        found = cleared(typed_into, view, frame)
        return replace(found, end_steps=(Step(ENTER, When.CHANGED), Step(ENTER))) if focus else found
    above = ((at, unframed(view.lines)[at][: frame.right]) for at in range(frame.top + 1, buttons[0].row))
    looks = [view.style(at, len(row) - len(row.lstrip())) for at, row in above if row.strip()]
    if listed is None and (odd_bar(looks) >= 0 or _has_dates(view, frame)):  # what the buttons send cannot be read
        return unread
    current = current_button(view, buttons)
    grid = current >= 0 and buttons[0].row < buttons[-1].row
    row = Menu(tuple(buttons), current, "grid" if grid else "colour")
    found = menu_finding(view, row, _BUTTONS, asked, dialect)
    return replace(found, constraints={})


def _has_dates(view: View, frame: Frame) -> bool:
    """Whether a box in the dialog contains little else than numbers, one of which other keys choose: a calendar."""
    inner = (one for one in find_frames(view.lines) if frame.top < one.top and one.bottom < frame.bottom)
    texts = (" ".join(inside(view.lines, one)).split() for one in inner)
    return any(sum(map(str.isdecimal, words)) > max(9, 0.7 * len(words)) for words in texts)


def find_frame(view: View) -> Frame | None:
    """The smallest box with buttons, or else the smallest box. Of several, the lowest."""
    frames = list(find_frames(view.lines))
    with_buttons = [frame for frame in frames if find_buttons(view, frame)]
    candidates = with_buttons or frames
    return min(candidates, key=lambda frame: (frame.bottom - frame.top, -frame.bottom)) if candidates else None


def is_sheet(view: View, frame: Frame) -> bool:
    """Whether the cursor is in an inner frame of several rows: Enter would submit a form half filled in."""
    high = (one for one in find_frames(view.lines) if one.bottom - one.top > 2 and one.left < view.col < one.right)
    return any(frame.top < one.top < view.row < one.bottom < frame.bottom for one in high)


def cleared(found: Finding, view: View, frame: Frame) -> Finding:
    """Clear a field that is already filled in. Backspace is the one key that all fields know."""
    filled = re.split(r"[│┃║|x]", view.before_cursor()[frame.left :])[-1].strip(" _")
    if not filled or ":" in filled:
        return found
    return replace(found, filled=filled, text_steps=(Step(BACKSPACE * len(filled), When.REDRAWN),))


def words_of(view: View, frame: Frame, buttons: list[Item], listed: Menu | None, field_row: int) -> str:
    edge = view.lines[frame.top][frame.left : frame.right]
    title = edge[1:].strip(" q|" if edge[:1] == "l" else " ─━═┤├┐╮╗┓+|-")
    text = "\n".join(part for part in (title, _text_of(view, buttons, listed, frame, field_row)) if part)
    return text or question_above(view, frame.top).text


def _text_of(view: View, buttons: list[Item], listed: Menu | None, frame: Frame, field_row: int) -> str:
    """The words in the box except for its list, its buttons and the text in its field."""
    skip = {item.row for item in buttons} | (_rows_of(view, listed, frame) if listed else set())
    lines = []
    for at, line in enumerate(inside(view.lines, frame), frame.top + 1):
        if at == field_row:
            label = _LABEL.match(unframed((line,))[0].strip())
            line = label[0] if label else ""
        divides = line.strip() != "" and is_drawn(line) and " " not in line
        if at not in skip and not divides:
            lines.append(line)
    return block(lines)


def _rows_of(view: View, listed: Menu, frame: Frame) -> set[int]:
    """The rows of a list, including an inner frame that contains only the list."""
    rows = {item.row for item in listed.items}
    inner = [
        range(one.top, one.bottom + 1)
        for one in find_frames(view.lines)
        if frame.top < one.top < min(rows) and max(rows) < one.bottom < frame.bottom
    ]
    return rows.union(*inner)


def find_buttons(view: View, frame: Frame) -> list[Item]:
    """The lowest row of `<Yes>  <No>`, of `[ Yes ]  [ No ]`, or of words side by side of which one is highlighted."""
    for at in range(frame.bottom - 1, frame.top, -1):
        found = marked_buttons(view, at, frame.left, frame.right) or _plain_buttons(view, at, frame)
        if found:
            return found
    return []


def find_all_buttons(view: View, frame: Frame) -> list[Item]:
    """The buttons with those in the same columns of the rows above them."""
    found = find_buttons(view, frame)
    for at in range(found[0].row - 1, frame.top, -1) if len(found) > 1 else ():
        row = marked_buttons(view, at, frame.left, frame.right)
        if row and [item.col for item in row] == [item.col for item in found[: len(row)]]:
            found = [*row, *found]
        elif not is_drawn(view.lines[at]):
            break
    return found


def ends_in_buttons(view: View, frame: Frame) -> bool:
    """Whether the box has, below its first row, a row of only buttons that are separated by blanks. `<ul><li>` can
    be ordinary text, and so can one word in brackets that is not the name of a button.
    """
    buttons = find_buttons(view, frame)
    if not buttons or buttons[0].row == frame.top + 1:
        return False
    rest = inside(unframed(view.lines), frame)[buttons[0].row - frame.top - 1]
    for item in buttons:
        rest = rest.replace(item.label, "", 1)
    if rest.strip("<>[] ") or 0 < len(rest.split()) < len(buttons):
        return False
    only = buttons[0].label
    return len(buttons) > 1 or answers_as(only, "message", "button")


def _plain_buttons(view: View, at: int, frame: Frame) -> list[Item]:
    row = unframed(view.lines)[at][: frame.right]
    words = [Item(at, match.start(), match.group()) for match in _WORDS.finditer(row, frame.left + 1)]
    if len(words) == 1 and not answers_as(words[0].label, "message"):
        return []
    if not 1 <= len(words) <= 4 or any(len(item.label) > 24 or not item.label[0].isalpha() for item in words):
        return []
    lit = [item for item in words if view.style(at, item.col) & REVERSE]
    named = len(words) > 1 and all(answers_as(item.label, "message", "button") for item in words)
    return words if len(lit) == 1 or named else []


def current_button(view: View, buttons: list[Item]) -> int:
    """The button that gets the keys: the one with the cursor, or else the one that looks different."""
    edges = [_edges(view.lines[item.row], item) for item in buttons]
    for at, (left, right) in enumerate(edges):
        if view.row == buttons[at].row and left <= view.col <= right:
            return at
    beside = view.style(buttons[0].row, max(0, edges[0][0] - 2))
    lit = [at for at, item in enumerate(buttons) if view.style(item.row, item.col) != beside]
    return lit[0] if len(lit) == 1 else odd_one(view, [(item.row, item.col) for item in buttons])


def _edges(line: str, button: Item) -> tuple[int, int]:
    """The columns of a button's brackets, or of its words if it has none."""
    left = max(line.rfind("<", 0, button.col + 1), line.rfind("[", 0, button.col + 1))
    ends = [at for at in (line.find(">", button.col), line.find("]", button.col)) if at >= 0]
    bare = left < 0 or not ends or line[left + 1 : button.col].strip()
    return (button.col - 2, button.col + len(button.label) + 1) if bare else (left, min(ends))


def says_yes_or_no(buttons: list[Item]) -> bool:
    """Whether the buttons are yes and no: such a box takes no text (`Change the password of root?`)."""
    labels = [item.label for item in buttons]
    said = [[label for label in labels if answers_as(label, word)] for word in ("agree", "refuse")]
    return len(labels) == 2 and all(said)


def find_list(view: View, frame: Frame, buttons: list[Item]) -> Menu | None:
    """The rows in the box that have boxes of their own, or of which exactly one looks different."""
    last = buttons[0].row if buttons else frame.bottom
    rows = [_row_inside(row, frame) if frame.top < at < last else "" for at, row in enumerate(unframed(view.lines))]
    pattern = row_pattern(POINTERS)
    read = [match for match in (read_row(pattern, row) for row in rows) if match]
    if not buttons and any(match["pointer"] for match in read):
        return None  # a list with a pointer: `pointed_list` sees it
    boxes = find_box_rows(view, rows, pattern)
    if boxes:
        here = [at for at, item in enumerate(boxes.items) if item.row == view.row]
        labels = [_BRANCH.sub("", rows[item.row][item.start :].strip()) for item in boxes.items]
        items = tuple(replace(item, label=label) for item, label in zip(boxes.items, labels, strict=True))
        return replace(boxes, items=items, current=here[0] if here else max(boxes.current, 0), how="colour")
    menu = find_shaped(replace(view, lines=tuple(rows)), sure=True)
    larger = menu is None or (rows[menu.top - 1] + rows[menu.bottom + 1]).strip()
    if menu is None or larger or any(match["box"] for match in read):
        return None  # a part of something larger, or marks that are not known
    return None if any(rows[item.row][: item.col].strip() for item in menu.items) else menu


def _row_inside(row: str, frame: Frame) -> str:
    """The row without what is outside of the box, branches before its words, and the mark of a scroll bar."""
    text = row[: frame.right][frame.left + 1 :]
    text = "" if _NO_ROW.fullmatch(text.strip()) else _SCROLL_MARK.sub("", text.rstrip())
    return " " * (frame.left + 1) + text


def focused_list(view: View, listed: Menu, asked: Asked, dialect: Dialect) -> Finding:
    """A list of prompt_toolkit: Enter only marks. Then the focus must move to the first button, and Enter follows."""
    found = menu_finding(view, listed, _BOX_LIST, asked, dialect)
    leave = (Step(b"\t", When.CHANGED), Step(ENTER))
    if found.constraints.get("multi_select"):
        return replace(found, end_steps=leave)
    marks = (Step(b" ", When.DRAINED), *leave)
    choices = tuple(replace(one, steps=(*one.steps[:-1], *marks) if one.steps else ()) for one in found.choices)
    return replace(found, choices=choices)


# Fields to type into: a form with several, or one field in a frame with a caret that the program draws itself. A form
# has rows `Label: value`, one of which has the focus, and a button that submits it. The answer is `Label: value; Label:
# value`. A person must look if there is no button, if a field hides typed text, or if the purpose is unknown.

_FIELD = lazy(r"^\s*+(?P<label>[^\W\d_][^:]{0,38}):(?=\s|_|$)[\s_]*+(?P<value>.*)$")
_BOXED = lazy(r"[\[(][ xX*]?[\])]")
_TWIG = lazy(r"[├└╰]─")
_BLOCK_EDGE = lazy(r"[▊█▌▐▕▏▎](▔[^▊█▌▐▕▏▎]*▔{4})[▊█▌▐▕▏▎]")  # of a field, with its title
_BLOCK = lazy(
    r"^(\s*+(?:[│┃║|]\s++)?(?:[^█▏▎▌▊]*[^█▏▎▌▊\s] ?|[>❯›»] )?(?:[█▏▎▌▊]|(?<=\s)_))\s*+[│┃║|]?$"
)  # a caret that is a character
_MARK_BEFORE = lazy(r"^[│┃║|>❯›»\s]+")
_MARKED = lazy(r"^\s*+[>❯›»✎](?:\s++(?P<hint>.*))?$")
_PLACEHOLDER = lazy(r"^\s*+(?P<hint>(?:type|enter|write)\b.{0,40}(?:…|\.{3}))$", re.IGNORECASE)


@frozen
class FieldRow:
    row: int
    col: int  # the label's column
    label: str
    value: str
    at: int  # where the value starts; -1: the field is empty


@frozen
class Form:
    rows: tuple[FieldRow, ...]
    current: int  # index of the field that has the focus
    sends: str  # the label of the button that submits it, "" if there is none


def find_form(view: View) -> Form | None:
    """The fields around the cursor. If the cursor is hidden, the lowest group in which one label is highlighted."""
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
    """Groups of fields whose labels start in the same column, with only empty rows between them."""
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


def recognise_drawn_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A field between two bars of blocks, or a tree with one highlighted row, on a full screen. The keys are known only
    of the one field that has a question and sides, in the colour of what gets the keys.
    """
    lines = view.lines
    fields = [at for at in range(1, len(lines) - 1) if "▔▔▔▔" in lines[at - 1] and "▁▁▁▁" in lines[at + 1]]
    asked = _field_between_bars(view, fields[0], dialect) if view.alternate and len(fields) == 1 else None
    if asked:
        return asked
    twigs = [at for at in range(len(lines)) if _TWIG.search(lines[at])]
    tree = [twigs[0] - 1, *twigs] if twigs and twigs[0] else twigs  # including the root
    lit = odd_bar([view.style(at, max(0, len(lines[at]) - 1)) for at in tree])
    if not view.alternate or not (fields or (len(twigs) > 1 and lit >= 0)):
        return None
    return replace(whole_screen(view, facts, dialect), rule=DRAWN_FIELD)


def _field_between_bars(view: View, at: int, dialect: Dialect) -> Finding | None:
    edge = _BLOCK_EDGE.search(view.lines[at - 1])
    sides = (
        (view.lines[at][edge.start() : edge.start() + 1], view.lines[at][edge.end() - 1 : edge.end()]) if edge else ()
    )
    if edge is None or not all(side and side in SIDES for side in sides):
        return None
    asked = Asked(edge[1].strip("▔ "), at - 1)
    asked = asked if asked.text else question_above(view, at - 1)
    said = without_drawing(asked.text)
    if not said or not is_coloured(view.style(at - 1, edge.start() + 1)):
        return None
    words = view.lines[at][edge.start() + 1 : edge.end() - 1]
    filled = words.strip()
    filled = "" if is_faded(view.style(at, edge.start() + len(words.rstrip()))) else filled  # a placeholder
    found = drawn("caret-field", numbers.LIKELY, replace(asked, text=said), PromptType.TYPE_FREE_TEXT)
    clear = (Step(BACKSPACE * len(filled), When.DRAINED),) if filled else ()
    found = replace(found, filled=filled, text_steps=clear)
    secret = asks_for_secret(said.rpartition("\n")[2], dialect)
    return replace(found, type=PromptType.TYPE_UNKNOWN, constraints={"secret": True}) if secret else found


def recognise_form(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    form = find_form(view)
    rows = range(form.rows[0].row, form.rows[-1].row + 1) if form else range(0)
    frames = sum(one.top < rows.start and rows.stop <= one.bottom for one in find_frames(view.lines))
    if form is None or not (frames or (view.alternate and form.sends)):
        return None
    boxes = any(_BOXED.match(one.value) for one in form.rows)  # these do not take words
    certain = form.sends and not boxes and not any(asks_for_secret(f"{one.label}:", dialect) for one in form.rows)
    above = question_above(view, rows.start)
    own = block([unframed(view.lines)[one.row] for one in form.rows])
    question = "\n".join(part for part in (above.text, own) if part)
    labels = [one.label for one in form.rows]
    leaves = NAMED["tab"] if frames > 1 else arrow("down", view.application_cursor)  # each field has its own frame
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
    erase = NAMED["backspace"] * len(one.value) + NAMED["delete"] * len(one.value)  # wherever the cursor is in it
    clear = (Step(erase, Stands(f"{before} ")),) if one.value else ()
    lead = () if one is current else (below,) if at > form.current else (above,)
    return FormField(one.label, lead, (below,), clear, before)


def _at_drawn_caret(view: View) -> View:
    """The view with its cursor at the caret that the program draws: a cell in another colour, or a block of its own."""
    here = view.at_caret()
    for at in range(view.bottom(), max(0, view.bottom() - CARET_ROWS), -1) if here is view else ():
        match = None if view.cursor_visible else _BLOCK.match(view.lines[at])
        if match and view.lines[at - 1][match.end(1) - 1 : match.end(1)] not in tuple("█▏▎▌▊"):
            lines = (*view.lines[:at], match[1][:-1], *view.lines[at + 1 :])
            return replace(view, lines=lines, row=at, col=match.end(1) - 1, before=None, cursor_visible=True)
    return here


def recognise_caret_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A caret that the program draws, in a frame or above the key that submits: an empty field, or text to replace."""
    here = _at_drawn_caret(view)
    if not here.cursor_visible:
        return None
    around = [
        one for one in find_frames(view.lines) if one.top < here.row < one.bottom and one.left < here.col < one.right
    ]
    frame = max(around, key=lambda one: one.top, default=None)
    if frame is None and view.cursor_visible:
        return None
    if find_buttons(view, frame) if frame else not speaks("hint", "sends", "\n".join(view.lines[here.row + 1 :])):
        return None
    box = inner(here, frame) if frame else here
    found = recognise_line(box, facts, dialect, strict=True) if frame else None
    if found is None or found.type is PromptType.TYPE_FREE_TEXT:
        found = _text_field(view, box, frame)
    asks = found.type is PromptType.TYPE_YES_NO or found.question.endswith(("?", ":", "？", "："))
    if not asks and not (frame and view.alternate):
        return None  # a command has written this and can write more
    if asks_for_secret(found.question.rpartition("\n")[2], dialect):
        found = replace(found, type=PromptType.TYPE_UNKNOWN, constraints={**found.constraints, "secret": True})
    top = frame.top + 1 if frame else 0
    return replace(found, row=found.row + top, line_mode=False, structural=asks)


def recognise_marked_field(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`› Type your answer` below a question and above `enter to submit`: an agent's own field, still empty."""
    rows, foot = unframed(view.lines), view.bottom()
    near = range(foot, max(0, foot - numbers.EDGE_ROWS), -1)
    told = next((at for at in near if speaks("hint", "sends", rows[at])), 0)
    within = range(max(0, told - numbers.QUESTION_ROWS), told)
    marked = [(at, _MARKED.match(rows[at]) or _PLACEHOLDER.match(rows[at])) for at in within]
    marked = [(at, match) for at, match in marked if match]
    row, found = marked[0] if len(marked) == 1 else (0, None)
    if found is None:
        return None
    hint = (found["hint"] or "").strip()
    asked = question_in_box(view, row) or question_above(view, row)
    empty = not hint or is_faded(view.style(row, found.start("hint"))) or speaks("hint", "answer", hint)
    asks = asked.text.endswith(("?", ":", "？", "：")) or speaks("hint", "answer", hint)
    if not (empty and asks and asked.text) or (view.cursor_visible and view.row != row):
        return None
    field = drawn("marked-field", numbers.SURE, asked, PromptType.TYPE_FREE_TEXT)
    return replace(field, multiline=view.bracketed_paste, foot=told)


def inner(here: View, frame: Frame) -> View:
    return View(
        tuple(row.rstrip() for row in inside(here.lines, frame)),
        here.row - frame.top - 1,
        here.col - frame.left - 1,
        alternate=here.alternate,
        cols=frame.right - frame.left - 1,
    )


def _text_field(view: View, box: View, frame: Frame | None) -> Finding:
    """A text field. Its title, the words above and a label before the caret ask; other text can be cleared."""
    title = unframed(view.lines)[frame.top][frame.left : frame.right].strip() if frame else ""
    typed = _MARK_BEFORE.sub("", box.before_cursor().strip())
    label = typed if typed.endswith(("?", ":", "？", "：")) else ""
    typed = "" if label else typed
    own = block([title, *box.lines[: box.row], label]) if frame else label
    above = question_above(view, frame.top if frame else box.row).text if not own or own == label else ""
    said = "\n".join(part for part in (above, own) if part)
    last = not frame or not any(row.strip() for row in box.lines[box.row + 1 :])
    kind = PromptType.TYPE_FREE_TEXT if any(map(str.isalpha, said)) and last else PromptType.TYPE_UNKNOWN
    clear = (Step(BACKSPACE * len(typed), When.DRAINED),) if typed else ()
    said = said or block(box.lines)
    return Finding(
        "caret-field", kind, numbers.LIKELY, compact(said), said, box.row, filled=typed, text_steps=clear, question=said
    )
