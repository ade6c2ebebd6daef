"""Text in columns of a terminal: measured, cut, wrapped, laid out as a table that loses nothing.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atlasbridge.core.screen.width import width

GAP = 2
LAST_COLS = 24  # less room than this, and the last column gets lines of its own
INDENT = 4


def cells(text: str) -> int:
    return sum(width(char) for char in text)


def clip(text: str, cols: int, end: str = "…") -> str:
    """At most so many columns; what was cut off says so."""
    if cells(text) <= cols:
        return text
    out, used = "", cells(end)
    for char in text:
        used += width(char)
        if used > cols:
            break
        out += char
    return out + end


def pad(text: str, cols: int) -> str:
    return text + " " * (cols - cells(text))


def fold(text: str, cols: int) -> list[str]:
    """Every character of one line, in as many lines as that takes."""
    lines, part, used = [], "", 0
    for char in text:
        if used + width(char) > cols:
            lines.append(part)
            part, used = "", 0
        part += char
        used += width(char)
    return [*lines, part]


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], cols: int) -> list[str]:
    """The head, a rule, the rows.  `cols` 0: every row is one line, however long."""
    widths = [max(cells(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    before = sum(widths[:-1]) + GAP * (len(widths) - 1)
    room = cols - before
    if not cols or widths[-1] <= room:
        head, *parts = [[_line(row, widths)] for row in (columns, *rows)]
    elif room >= LAST_COLS:
        head, *parts = [_beside(row, widths, before, room) for row in (columns, *rows)]
    else:
        head, *parts = [_below(row, widths, cols) for row in (columns, *rows)]
    body = [line for part in parts for line in part]
    return [*head, "─" * max(cells(line) for line in (*head, *body)), *body]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * GAP).join(pad(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()


def _beside(row: Sequence[str], widths: Sequence[int], before: int, room: int) -> list[str]:
    first, *others = fold(row[-1], room)
    return [_line((*row[:-1], first), (*widths[:-1], 0)), *(" " * before + other for other in others)]


def _below(row: Sequence[str], widths: Sequence[int], cols: int) -> list[str]:
    above = fold(_line(row[:-1], widths[:-1]), cols)
    return [*above, *(" " * INDENT + part for part in fold(row[-1], max(cols - INDENT, 1)))]
