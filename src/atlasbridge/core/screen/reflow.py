"""Lines wrapped anew for another width, as terminals do it: what was one line stays one line.

Pure.  Points (the cursor, a saved one) follow the cell they stand on.
"""

from __future__ import annotations

from atlasbridge.core.screen.lines import CUT, FILLED, SOFT, Line, as_cut, is_empty, used
from atlasbridge.core.screen.style import PLAIN
from atlasbridge.core.screen.width import TAIL

Point = tuple[int, int]  # row and column; a column as large as the width stands behind a full row


def reflow(lines: list[Line], cols: int, points: list[Point]) -> tuple[list[Line], list[Point]]:
    """The lines as they are with `cols` columns, and where the points are then."""
    flowed: list[Line] = []
    moved = list(points)
    at = 0
    while at < len(lines):
        end = at + 1
        while lines[end - 1][2] & SOFT and end < len(lines):
            end += 1
        inside = [number for number, (row, _) in enumerate(points) if at <= row < end]
        pieces, places = _rewrap(
            lines[at:end], cols, [(points[number][0] - at, points[number][1]) for number in inside]
        )
        for number, (row, col) in zip(inside, places, strict=True):
            moved[number] = (len(flowed) + row, col)
        flowed += pieces
        at = end
    return flowed, moved


def _rewrap(group: list[Line], cols: int, points: list[Point]) -> tuple[list[Line], list[Point]]:
    """One logical line."""
    sizes = [len(line[0]) - bool(line[2] & FILLED) for line in group[:-1]] + [used(group[-1])]
    row = "".join(line[0][:size] for line, size in zip(group, sizes, strict=True))
    inks = "".join(line[1][:size] for line, size in zip(group, sizes, strict=True))
    offsets = [sum(sizes[:at]) + col for at, col in points]
    if cols < 2:
        offsets = [offset - row[:offset].count(TAIL) for offset in offsets]
        inks = "".join(ink for ink, char in zip(inks, row, strict=True) if char != TAIL)
        row = row.replace(TAIL, "")
    offsets = [_near(offset, len(row), cols) for offset in offsets]
    size = max([len(row), *offsets])
    row, inks = row.ljust(size), inks.ljust(size, PLAIN)
    starts = _starts(row, cols)
    kept = CUT if any(line[2] & CUT for line in group) else 0
    pieces = []
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        marks = kept if end == size else kept | SOFT | (FILLED if end - start < cols else 0)
        pieces.append((row[start:end].ljust(cols), inks[start:end].ljust(cols, PLAIN), marks))
    return pieces, [_place(offset, starts) for offset in offsets]


def _near(offset: int, size: int, cols: int) -> int:
    """A cursor on the blanks behind a text stays on the text's last row; the first blank belongs to the text."""
    last = max(1, -(-size // cols)) * cols - 1
    return offset if offset <= max(last, size + 1) else last


def _starts(row: str, cols: int) -> list[int]:
    """Where each new row begins: no wide character is cut in two."""
    starts = [0]
    while starts[-1] + cols < len(row):
        at = starts[-1] + cols
        starts.append(at - 1 if row[at] == TAIL and cols > 1 else at)
    return starts


def _place(offset: int, starts: list[int]) -> Point:
    row = max(at for at, start in enumerate(starts) if start <= offset)
    return row, offset - starts[row]


def stand(lines: list[Line], top: int, row: int, rows: int, at_foot: bool) -> int:
    """The first line that a screen of `rows` rows shows: the one it showed so far, unless there is more to show.

    The line of the cursor is always on it.  A cursor in the last row (`at_foot`) stays there: lines come back."""
    last = max(row, max((at for at in range(len(lines) - 1, row, -1) if not is_empty(lines[at])), default=row))
    if at_foot:
        top = last - rows + 1
    return max(0, row - rows + 1, min(row, last - rows + 1), min(top, row))


def shown(lines: list[Line], top: int, rows: int, cols: int) -> list[Line]:
    """A screen of lines from `top` on; when there is text below that finds no room, the last one says so."""
    screen = lines[top : top + rows]
    if not all(map(is_empty, lines[top + rows :])):
        screen[-1] = as_cut(screen[-1])
    blank: Line = (" " * cols, PLAIN * cols, 0)
    return screen + [blank] * (rows - len(screen))
