"""Finds frames on a screen by geometry: which cells belong to the drawing around the text, and which are text.

A glyph belongs to a frame only if the rest of the frame is there: the same column over several rows, and the corners
and bars that close it. `unframed` is an approximation for searching. The text for a person comes from `peeled`, which
removes only the frame around the row that asks. Both keep every character in its column, except in a row that was torn
from its box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.width import ZWJ, is_narrow, width
from atlasbridge.core.values import frozen

SIDES = frozenset("│┃║┆┇┊┋╎╏▏▎▍▌▋▊▉█▐▕")
_CORNERS = frozenset("┌╭╔┏┐╮╗┓└╰╚┗┘╯╝┛├┤┬┴┼╠╣╦╩╬┣┫┳┻╋╟╢╞╡╹╻╵╷╽╿▛▜▙▟")
_BARS = frozenset("─━═╌╍┄┅┈┉╴╶╸╺▔▁▀▄")
_MARKS = frozenset("◆◇▲▼")  # in the column of a frame: the head of a question, the arrows of a scrolling list
_DRAWN = _CORNERS | _BARS | SIDES
_UPRIGHT = SIDES | _CORNERS | _MARKS
_ANY = lazy(r"[\u2500-\u259f|◆◇▲▼+]")
_TOP = lazy(r"[┌╭╔┏][^┌╭╔┏┐╮╗┓]*+[┐╮╗┓]|\+-[^+]*+\+|(?<!q)lq{3}[^k]{0,200}+k")
_LEFT_FLOOR, _RIGHT_FLOOR = "└╰╚┗+m", "┘╯╝┛+j"
_ASCII_SIDES = "|x"
TORN_OFF = "\0"  # a row that contains only the end of the row above it
_SIGN_OFF = 1  # columns by which a tool and its terminal can disagree about the width of a character
LEAST_BAR = 3
LEAST_RULE = 10


@frozen
class Frame:
    """The rows and columns of a box's own lines."""

    top: int
    bottom: int
    left: int
    right: int


@lru_cache(maxsize=256)
def columns_of(line: str) -> Sequence[int]:
    """The column of each character: a wide one takes two, a combining mark none."""
    if is_narrow(line):
        return range(len(line))
    out: list[int] = []
    at = 0
    for index, char in enumerate(line):
        joined = index > 0 and (char == ZWJ or line[index - 1] == ZWJ)
        size = 0 if joined else width(char)
        out.append(at if size else max(0, at - 1))
        at += size
    return out


@lru_cache(maxsize=4)  # every finder uses them
def find_frames(lines: tuple[str, ...]) -> tuple[Frame, ...]:
    """Finds boxes with a top, a floor below it, and a side between them."""
    return tuple(_frames(lines))


def _frames(lines: tuple[str, ...]) -> Iterable[Frame]:
    walked: dict[tuple[int, int], tuple[int, int]] = {}  # where the walk down between two columns ended, and its floor
    for at, line in enumerate(lines):
        for left, right, corner in _tops(line):
            above = lines[at - 1] if at else ""
            parted = corner == "+" and _at(above, left) == _at(above, right) == "|"  # between two parts of one box
            if not parted and walked.get((left, right), (0, 0))[0] < at + 2:
                walked[left, right] = _floor(lines, at, left, right)
            bottom = 0 if parted else walked[left, right][1]
            if bottom and (corner not in "+l" or _is_closed(lines, Frame(at, bottom, left, right))):
                yield Frame(at, bottom, left, right)


@lru_cache(maxsize=256)
def _tops(line: str) -> tuple[tuple[int, int, str], ...]:
    """Possible upper edges of boxes in this row: their columns, and their first corner."""
    if not _ANY.search(line) and not ("l" in line and "k" in line):
        return ()
    places, found = columns_of(line), []
    for match in _TOP.finditer(line):
        bar, corner = line[match.start() + 1 : match.end() - 1], line[match.start()]
        drawn = sum(char in "─━═-q" for char in bar)
        if len(bar) >= 6 and drawn >= (2 if corner in "┌╭╔┏" else len(bar) // 3):
            found.append((places[match.start()], places[match.end() - 1], corner))
    return tuple(found)


def _floor(lines: tuple[str, ...], top: int, left: int, right: int) -> tuple[int, int]:
    """The row in which the walk down from this top ends, and the same row if it is a floor, or 0."""
    for at in range(top + 2, len(lines)):
        begin = _at(lines[at], left) or " "
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if begin == "+" and _at(below, left) == _at(below, right) == "|":
            continue  # between two parts of one box
        if begin in _LEFT_FLOOR and (_at(lines[at], right) or " ") in _RIGHT_FLOOR:
            return at, at
        if begin not in _UPRIGHT and begin not in _ASCII_SIDES:
            return at, 0
    return len(lines), 0


def _at(line: str, column: int) -> str:
    """The character in a column; "" beyond the end."""
    index = _index_at(line, column)
    return line[index] if index >= 0 else ""


def inside(lines: tuple[str, ...], frame: Frame) -> list[str]:
    """The rows inside a box, without its sides."""
    return [_between(lines[at], frame.left, frame.right) for at in range(frame.top + 1, frame.bottom)]


def _between(line: str, left: int, right: int) -> str:
    places = columns_of(line)
    if isinstance(places, range):
        return line[left + 1 : right]
    return "".join(char for char, place in zip(line, places, strict=True) if left < place < right)


def is_rule(line: str) -> bool:
    """Whether a row is one long bar and nothing else."""
    text = line.strip()
    return len(text) >= LEAST_RULE and text[0] in _BARS and all(char in _BARS for char in text)


@lru_cache(maxsize=4)
def unframed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The screen without its frames, approximately: choices, buttons and fields are searched in it. It treats frame
    glyphs at both ends of a row as a frame; the displayed text is read again from the original screen."""
    closed = [frame for frame in find_frames(lines) if _is_ascii(lines, frame)]
    if not closed:
        return tuple(map(_sketched, lines))
    cells = [set[int]().union(*(_ascii_cells(line, at, frame) for frame in closed)) for at, line in enumerate(lines)]
    return tuple(_blanked(_sketched(line), gone) for line, gone in zip(lines, cells, strict=True))


@lru_cache(maxsize=256)  # most rows are unchanged the next time
def _sketched(line: str) -> str:
    edges = _edges(line) if _ANY.search(line) else {}
    if not edges:
        return line
    if not any(char not in _DRAWN and char not in _MARKS for char in line.replace(" ", "")):
        return " " * len(line)
    return _blanked(line, (set(edges.values()) - {edges.get(-1)}) | _outer_bars(line))


def _edges(line: str) -> dict[int, int]:
    """Column and index of possible frame glyphs: only frame glyphs and spaces are before them, or after them."""
    places = columns_of(line)
    found: dict[int, int] = {}
    for order in (range(len(line)), range(len(line) - 1, -1, -1)):
        for index in order:
            char = line[index]
            if char in _UPRIGHT:
                found[places[index]] = index
            elif char != " " and char not in _BARS:
                break
            elif char in _BARS:
                found.setdefault(-1, index)  # a bar: the row contains a drawing, but no frame column
    return found


def _outer_bars(line: str) -> set[int]:
    """Longer bars at both ends of a row and their corners: the edge of a box with a title."""
    gone: set[int] = set()
    for order in (range(len(line)), range(len(line) - 1, -1, -1)):
        run = []
        for index in order:
            if line[index] != " " and line[index] not in _BARS and line[index] not in _CORNERS:
                break
            run.append(index)
        bars = sum(line[index] in _BARS for index in run)
        cornered = any(line[index] in "┌╭╔┏┐╮╗┓└╰╚┗┘╯╝┛" for index in run)
        if bars >= LEAST_BAR or (bars and cornered):
            gone |= set(run)
    return gone


def _is_ascii(lines: tuple[str, ...], frame: Frame) -> bool:
    return _at(lines[frame.top], frame.left) in ("+", "l")


def _is_closed(lines: tuple[str, ...], frame: Frame) -> bool:
    """For a box drawn with ASCII characters: it counts only if it is closed on all sides, because a pipe can be just a
    pipe."""
    sides = [(_at(lines[at], frame.left), _at(lines[at], frame.right)) for at in range(frame.top + 1, frame.bottom)]
    return all(left and right and left in "|x+" and right in "|x+" for left, right in sides)


def _ascii_cells(line: str, at: int, frame: Frame) -> set[int]:
    if not frame.top <= at <= frame.bottom:
        return set()
    places = columns_of(line)
    if at in (frame.top, frame.bottom):
        return {i for i, col in enumerate(places) if frame.left <= col <= frame.right and line[i] in "+-=qlkmj"}
    return {i for i, col in enumerate(places) if col in (frame.left, frame.right)}


def _blanked(line: str, gone: set[int]) -> str:
    if not gone:
        return line
    out: list[str] = []
    last = 0
    for index in sorted(gone):
        out += (line[last:index], " ")
        last = index + 1
    return "".join((*out, line[last:]))


@lru_cache(maxsize=8)
def peeled(lines: tuple[str, ...], row: int) -> tuple[str, ...]:
    """The screen without the frame around `row`; every other glyph stays."""
    if not 0 <= row < len(lines):
        return lines
    gone: dict[int, set[int]] = {}
    for column, index in _edges(lines[row]).items() if _ANY.search(lines[row]) else ():
        if column >= 0 and lines[row][index] in SIDES:
            _follow(lines, row, column, gone)
    for frame in find_frames(lines):
        if frame.top < row < frame.bottom and _is_ascii(lines, frame):
            for at in range(frame.top, frame.bottom + 1):
                gone.setdefault(at, set()).update(_ascii_cells(lines[at], at, frame))
    torn = {at: text for box in _torn_boxes(lines) if row in box for at, text in box.items()}
    if not gone and not torn:
        return lines
    return tuple(torn.get(at) or _blanked(line, gone.get(at, set())) for at, line in enumerate(lines))


@lru_cache(maxsize=4)
def _torn_boxes(lines: tuple[str, ...]) -> tuple[dict[int, str], ...]:
    """Boxes with rows that a line break in their own text has torn: the text of each of their rows without the
    frame."""
    found = (_torn_box(lines, at, left, right) for at, line in enumerate(lines) for left, right, _ in _tops(line))
    return tuple(box for box in found if box)


def _torn_box(lines: tuple[str, ...], top: int, left: int, right: int) -> dict[int, str]:
    out: dict[int, str] = {}
    torn = False
    at = top + 1
    while at < len(lines) and _at(lines[at], left) in SIDES:
        last = len(lines[at].rstrip()) - 1
        closed = lines[at][last] in SIDES and abs(_columns(lines[at]) - 1 - right) <= _SIGN_OFF
        end = at if closed else _torn_end(lines, at, left, right)
        if not end:
            break
        out[at] = _blanked(lines[at], {_index_at(lines[at], left), *([last] if closed else [])})
        for piece in range(at + 1, end + 1):
            torn = True
            text = lines[piece].rstrip()[: -1 if piece == end else None]
            out[piece] = " " * (left + 2) + text if text.strip() or piece < end else TORN_OFF
        at = end + 1
    return out if torn else {}


def _torn_end(lines: tuple[str, ...], at: int, left: int, right: int) -> int:
    """The real end of a row that ends too early; 0 if there is none. The tool counted the line break as a column, so
    all pieces together are as wide as the box, or a little narrower if spaces were at their ends."""
    used = _columns(lines[at]) - left
    for end in range(at + 1, len(lines)):
        used += 1 + _columns(lines[end])
        if used > right - left + 1:
            return 0
        if lines[end].rstrip()[-1:] in SIDES:
            return end
    return 0


def _columns(line: str) -> int:
    text = line.rstrip()
    return columns_of(text)[-1] + 1 if text else 0


def _follow(lines: tuple[str, ...], row: int, column: int, gone: dict[int, set[int]]) -> None:
    """Follows a side of a frame up and down from `row`: at least two rows of it, or one and a corner."""
    cells = {row: _index_at(lines[row], column)}
    for order in (range(row - 1, -1, -1), range(row + 1, len(lines))):
        for at in order:
            index = _index_at(lines[at], column)
            if index < 0 or lines[at][index] not in _UPRIGHT:
                break
            cells[at] = index
            if lines[at][index] in _CORNERS and lines[at][index] not in "├┤╠╣┣┫╟╢╞╡":
                break
    if len(cells) < 2:
        return
    for at, index in cells.items():
        gone.setdefault(at, set()).add(index)
        if lines[at][index] in _CORNERS:
            gone[at] |= _bars_from(lines[at], index)


def _bars_from(line: str, index: int) -> set[int]:
    """The bars that begin at a corner, to its left and right, up to a title."""
    gone = set()
    for step in (1, -1):
        at = index + step
        while 0 <= at < len(line) and line[at] in _BARS:
            gone.add(at)
            at += step
    return gone


def _index_at(line: str, column: int) -> int:
    places = columns_of(line)
    return places.index(column) if column in places else -1


@lru_cache(maxsize=512)
def is_drawn(line: str) -> bool:
    """Whether a row contains only frame glyphs and spaces."""
    return not any(char not in _DRAWN and char not in _MARKS and not char.isspace() for char in line)


def without(lines: tuple[str, ...], frame: Frame) -> tuple[str, ...]:
    """The screen without the lines of this box."""
    out = list(lines)
    for at in range(frame.top, frame.bottom + 1):
        places = columns_of(lines[at])
        edge = at in (frame.top, frame.bottom)
        out[at] = _blanked(
            lines[at],
            {
                index
                for index, column in enumerate(places)
                if column in (frame.left, frame.right)
                or (edge and frame.left < column < frame.right and lines[at][index] in _DRAWN)
            },
        )
    return tuple(out)
