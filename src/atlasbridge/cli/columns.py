"""Text in terminal columns: measured, cut, wrapped, and laid out as tables without losing text.

It imports almost nothing, because the overview and `--help` print with it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = 2
LAST_COLS = 24  # with less space, the last column gets separate lines
WORD_COLS = 10  # shorter words are not broken to make a column narrower
INDENT = 4


def terminal_cols(fd: int = 1) -> int:
    """0 means that it is no terminal, and nothing is cut or wrapped."""
    if not os.isatty(fd):
        return 0
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and given != "0" else os.get_terminal_size(fd).columns


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from atlasbridge.core.screen.width import width

    return sum(width(char) for char in text)


def clip(text: str, cols: int, end: str = "…") -> str:
    """Cut to at most `cols` columns, with a mark at the cut."""
    if cells(text) <= cols:
        return text
    out, used = "", cells(end)
    for char in text:
        used += cells(char)
        if used > cols:
            break
        out += char
    return out + end


def pad(text: str, cols: int) -> str:
    return text + " " * (cols - cells(text))


def fold(text: str, cols: int) -> list[str]:
    """Wrap a line without losing a character. A word is broken only if it fills a whole line."""
    lines, part, used = [], "", 0
    for char in text:
        if used + cells(char) > cols:
            end = part.rfind(" ") + 1
            end = end if part[:end].strip() else len(part)
            lines.append(part[:end])
            part = part[end:]
            used = cells(part)
        part += char
        used += cells(char)
    return [*lines, part]


def fit(text: str, cols: int) -> str:
    """Wrap the lines that are too long between words; `cols` 0 leaves them. What follows keeps the line's indent, or
    starts below the second column of a list of options or commands."""
    return "\n".join(part for line in text.split("\n") for part in _fit_line(line, cols)) if cols else text


def _fit_line(line: str, cols: int) -> list[str]:
    if cells(line) <= cols:
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    gap = line.find("  ", indent) if indent else -1
    if gap < 0:
        for mark in (": ", ". "):  # a command or a second sentence stays in one piece, so that it can be copied
            head, _, tail = line.rpartition(mark)
            if head and max(cells(head) + 1, indent + cells(tail)) <= cols:
                return [head + mark.rstrip(), " " * indent + tail]
        return [" " * indent + part.strip() for part in fold(line[indent:], max(cols - indent, 1))]
    name, text = line[:gap], line[gap:].lstrip(" ")
    hang = len(line) - len(text)
    if hang > cols // 2:
        hang = indent + INDENT
        return [name, *(" " * hang + part.strip() for part in fold(text, max(cols - hang, 1)))]
    first, *others = fold(text, cols - hang)
    return [line[:hang] + first.rstrip(), *(" " * hang + part.strip() for part in others)]


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], cols: int) -> list[str]:
    """Header, separator and rows. With `cols` 0, every row is one line of any length. Where a table is too wide, its
    cells wrap; where even that does not help, rows become lists of names and values."""
    widths = [max(cells(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    before = sum(widths[:-1]) + GAP * (len(widths) - 1)
    room = cols - before
    if not cols or widths[-1] <= room:
        head, *parts = [[_line(row, widths)] for row in (columns, *rows)]
    elif room >= LAST_COLS:
        head, *parts = [_beside(row, widths, before, room) for row in (columns, *rows)]
    elif before - GAP <= cols:
        head, *parts = [_below(row, widths, cols) for row in (columns, *rows)]
    elif narrow := _narrowed(columns, rows, widths, cols):
        head, *parts = [_wrapped(row, narrow) for row in (columns, *rows)]
    else:
        return "\n\n".join("\n".join(_record(columns, row, cols)) for row in rows).split("\n")
    body = [line for part in parts for line in part]
    return [*head, "─" * max(cells(line) for line in (*head, *body)), *body]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * GAP).join(pad(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()


def _beside(row: Sequence[str], widths: Sequence[int], before: int, room: int) -> list[str]:
    first, *others = fold(row[-1], room)
    return [_line((*row[:-1], first), (*widths[:-1], 0)), *(" " * before + other for other in others)]


def _below(row: Sequence[str], widths: Sequence[int], cols: int) -> list[str]:
    above = _line(row[:-1], widths[:-1])
    return [above, *(" " * INDENT + part for part in fold(row[-1], max(cols - INDENT, 1)) if row[-1])]


def _narrowed(columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], cols: int) -> list[int]:
    """The widths with the widest columns made narrower until all fit; [] if they cannot fit."""
    words = [" ".join(row[place] for row in (columns, *rows)).split() for place in range(len(columns))]
    least = [min(max(map(cells, found), default=0), WORD_COLS) for found in words]
    narrow = list(widths)
    while sum(narrow) + GAP * (len(narrow) - 1) > cols:
        place = max(range(len(narrow)), key=lambda place: (narrow[place] > least[place], narrow[place]))
        if narrow[place] <= least[place]:
            return []
        narrow[place] -= 1
    return narrow


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    folded = [fold(cell, size) for cell, size in zip(row, widths, strict=True)]
    count = max(map(len, folded))
    return [_line([part[at].strip() if at < len(part) else "" for part in folded], widths) for at in range(count)]


def _record(columns: Sequence[str], row: Sequence[str], cols: int) -> list[str]:
    """A line for each column that has a value: its name, then the value."""
    size = min(max(cells(name) for name in columns), max(cols // 2 - GAP, 1))
    lines = []
    for name, value in zip(columns, row, strict=True):
        first, *others = fold(value, max(cols - size - GAP, 1))
        lines += [f"{pad(clip(name, size), size + GAP)}{first}"] if value else []
        lines += [" " * (size + GAP) + other for other in others]
    return lines
