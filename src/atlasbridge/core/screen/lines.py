"""One line of cells: an immutable tuple (text, inks, marks) with one character per column in both strings.

Pure functions that cut, heal and splice lines.  Where a line stands and why it changes is left to `grid`.
"""

from __future__ import annotations

from atlasbridge.core.screen.style import PLAIN
from atlasbridge.core.screen.width import TAIL

Line = tuple[str, str, int]

# Marks of a line.
SOFT = 1  # it goes on in the next one, because the text was too long
CUT = 2  # text that belonged to it is gone: nobody may take it for whole
FILLED = 4  # its last column is empty only because a wide character did not fit there


def heal(row: str, start: int, end: int) -> str:
    """Wide characters that the edges of `start`..`end` would cut become spaces."""
    for edge in (start, end):
        if 0 < edge < len(row) and row[edge] == TAIL:
            row = row[: edge - 1] + "  " + row[edge + 1 :]
    return row


def first_columns(row: str, cols: int) -> str:
    """The first `cols` columns; a wide character half over the edge becomes a space."""
    if len(row) > cols and row[cols] == TAIL:
        return row[: cols - 1] + " "
    return row[:cols]


def used(line: Line) -> int:
    """Columns up to the last one with text or colour."""
    return max(len(line[0].rstrip(" ")), len(line[1].rstrip(PLAIN)))


def is_empty(line: Line) -> bool:
    return not line[0].strip(" ")


def splice(line: Line, start: int, end: int, other: Line) -> Line:
    """Columns `start` to before `end` of `line` as they are in `other`."""
    row, inks, marks = line
    row, taken = heal(row, start, end), heal(other[0], start, end)
    return (
        row[:start] + taken[start:end] + row[end:],
        inks[:start] + other[1][start:end] + inks[end:],
        marks & ~(SOFT | FILLED),
    )


def fit(lines: list[Line], off: int, rows: int, cols: int) -> list[Line]:
    """Cut and padded to a size, as the alternate screen is: what is cut off says so."""
    blank: Line = (" " * cols, PLAIN * cols, 0)
    fitted = []
    for row, inks, marks in lines[off : off + rows]:
        marks &= CUT
        if len(row) > cols:
            marks |= CUT if row[cols:].strip(" ") else 0
            row, inks = first_columns(row, cols), inks[:cols]
        fitted.append((row.ljust(cols), inks.ljust(cols, PLAIN), marks))
    if fitted and not all(map(is_empty, lines[off + rows :])):
        fitted[-1] = as_cut(fitted[-1])
    return fitted + [blank] * (rows - len(fitted))


def as_cut(line: Line) -> Line:
    return line[0], line[1], line[2] | CUT
