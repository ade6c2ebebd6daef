"""The words of a framed dialog: its title and its text, without its list, its buttons and what was typed into it."""

from __future__ import annotations

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import block, compact, question_above
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.widgets.list_rows import Item, Menu
from atlasbridge.core.screen.frames import Frame, find_frames, inside, is_drawn, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_LABEL = lazy(r"[^:]+:(?=\s|_|$)")  # of a field, in its row


def boxed_finding(rule: str, kind: PromptType, text: str, frame: Frame) -> Finding:
    found = Finding(rule, kind, numbers.SURE, compact(text), text, frame.top, line_mode=False, structural=True)
    return replace(found, question=text)


def words_of(view: View, frame: Frame, buttons: list[Item], listed: Menu | None, field_row: int) -> str:
    title = _title(view.lines[frame.top][frame.left : frame.right])
    text = "\n".join(part for part in (title, _text_of(view, buttons, listed, frame, field_row)) if part)
    return text or question_above(view, frame.top).text


def _title(edge: str) -> str:
    """The words in the upper edge of a box."""
    bars = " q|" if edge[:1] == "l" else " ─━═┤├┐╮╗┓+|-"
    return edge[1:].strip(bars)


def _text_of(view: View, buttons: list[Item], listed: Menu | None, frame: Frame, field_row: int) -> str:
    """The words in the box that are neither its list nor its buttons nor what was typed into its field."""
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
    """The rows of a list, with those of the frame that is drawn around nothing else."""
    rows = {item.row for item in listed.items}
    inner = [
        range(one.top, one.bottom + 1)
        for one in find_frames(view.lines)
        if frame.top < one.top < min(rows) and max(rows) < one.bottom < frame.bottom
    ]
    return rows.union(*inner)
