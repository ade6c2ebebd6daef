"""Scrolling between left and right margins: only some columns of some lines move.  Pure functions on a list of lines.

Without such margins whole lines move, which is `grid`'s own work.
"""

from __future__ import annotations

from atlasbridge.core.screen.lines import SOFT, Line, first_columns, heal, splice

Rows = tuple[int, int]  # first and last
Columns = tuple[int, int]  # the first, and the one behind the last


def lift(lines: list[Line], rows: Rows, columns: Columns, count: int, blank: Line) -> None:
    """The box moves up by `count` lines."""
    top, bottom = rows
    for y in range(top, bottom + 1):
        lines[y] = splice(lines[y], *columns, lines[y + count] if y + count <= bottom else blank)


def sink(lines: list[Line], rows: Rows, columns: Columns, count: int, blank: Line) -> None:
    top, bottom = rows
    for y in range(bottom, top - 1, -1):
        lines[y] = splice(lines[y], *columns, lines[y - count] if y - count >= top else blank)


def push_right(line: Line, x: int, end: int, cells: str, inks: str) -> tuple[Line, bool]:
    """`cells` before column `x`; what stood there moves right, and out at column `end`.  Whether text was lost."""
    row, old, marks = line
    row = heal(row, x, end)
    moved = row[:x] + cells + row[x:end]
    lost = bool(moved[end:].strip(" "))
    kept = first_columns(moved, end)
    return (kept + row[end:], (old[:x] + inks + old[x:end])[:end] + old[end:], marks & ~SOFT), lost


def pull_left(line: Line, x: int, end: int, count: int, ink: str) -> Line:
    """`count` cells at column `x` go; what stands behind them up to column `end` moves left."""
    row, inks, marks = line
    row = heal(heal(row, x, x + count), end, end)
    return (
        row[:x] + row[x + count : end] + " " * count + row[end:],
        inks[:x] + inks[x + count : end] + ink * count + inks[end:],
        marks & ~SOFT,
    )
