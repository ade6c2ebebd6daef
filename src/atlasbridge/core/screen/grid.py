"""The cells of a terminal and its cursor: writing, wrapping, scrolling, erasing, inserting, deleting, resizing.

Lines are immutable; every change replaces one. `stream` decides which escape sequence causes which change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from atlasbridge.core.screen.style import PLAIN, Inks, background_only
from atlasbridge.core.screen.width import MAX_CLUSTER_LENGTH, TAIL, Clusters, is_narrow, joins, segments, width

# One line of cells: an immutable tuple (text, inks, marks) with one character per column in both strings.
#
# These pure functions cut, heal and splice lines. `Grid` knows their position and why they change.

Line = tuple[str, str, int]

# Flags of a line.
SOFT = 1  # it continues in the next line, because the text was too long
CUT = 2  # a part of its text is gone, so it must not be treated as complete
FILLED = 4  # its last column is empty only because a wide character did not fit


def heal(row: str, start: int, end: int) -> str:
    """Replaces wide characters that the edges `start` and `end` would cut by spaces."""
    for edge in (start, end):
        if 0 < edge < len(row) and row[edge] == TAIL:
            row = row[: edge - 1] + "  " + row[edge + 1 :]
    return row


def first_columns(row: str, cols: int) -> str:
    """The first `cols` columns; a wide character across the edge becomes a space."""
    if len(row) > cols and row[cols] == TAIL:
        return row[: cols - 1] + " "
    return row[:cols]


def used(line: Line) -> int:
    """The number of columns up to the last one with text or colour."""
    return max(len(line[0].rstrip(" ")), len(line[1].rstrip(PLAIN)))


def is_empty(line: Line) -> bool:
    return not line[0].strip(" ")


def splice(line: Line, start: int, end: int, other: Line) -> Line:
    """Replaces the columns from `start` to before `end` by those of `other`."""
    row, inks, marks = line
    row, taken = heal(row, start, end), heal(other[0], start, end)
    return (
        row[:start] + taken[start:end] + row[end:],
        inks[:start] + other[1][start:end] + inks[end:],
        marks & ~(SOFT | FILLED),
    )


def fit(lines: list[Line], off: int, rows: int, cols: int) -> list[Line]:
    """Cuts and pads lines to a size, for the alternate screen; cut lines are marked."""
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


# Scrolling between left and right margins: only some columns of some lines move. Pure functions on a list of lines.
#
# Without such margins, `Grid` moves whole lines itself.

Rows = tuple[int, int]  # first and last
Columns = tuple[int, int]  # the first, and the one after the last


def lift(lines: list[Line], rows: Rows, columns: Columns, count: int, blank: Line) -> None:
    """Moves the box up by `count` lines."""
    top, bottom = rows
    for y in range(top, bottom + 1):
        lines[y] = splice(lines[y], *columns, lines[y + count] if y + count <= bottom else blank)


def sink(lines: list[Line], rows: Rows, columns: Columns, count: int, blank: Line) -> None:
    top, bottom = rows
    for y in range(bottom, top - 1, -1):
        lines[y] = splice(lines[y], *columns, lines[y - count] if y - count >= top else blank)


def push_right(line: Line, x: int, end: int, cells: str, inks: str) -> tuple[Line, bool]:
    """Inserts `cells` before column `x`; the cells there move right, and out at column `end`. Also returns whether text
    was lost."""
    row, old, marks = line
    row = heal(row, x, end)
    moved = row[:x] + cells + row[x:end]
    lost = bool(moved[end:].strip(" "))
    kept = first_columns(moved, end)
    return (kept + row[end:], (old[:x] + inks + old[x:end])[:end] + old[end:], marks & ~SOFT), lost


def pull_left(line: Line, x: int, end: int, count: int, ink: str) -> Line:
    """Removes `count` cells at column `x`; the cells after them up to column `end` move left."""
    row, inks, marks = line
    row = heal(heal(row, x, x + count), end, end)
    return (
        row[:x] + row[x + count : end] + " " * count + row[end:],
        inks[:x] + inks[x + count : end] + ink * count + inks[end:],
        marks & ~SOFT,
    )


# Wraps lines again for another width, as terminals do: a logical line stays one logical line.
#
# Pure. Points (the cursor, a saved cursor) follow their cell.

Point = tuple[int, int]  # row and column; a column equal to the width is after a full row


def reflow(lines: list[Line], cols: int, points: list[Point]) -> tuple[list[Line], list[Point]]:
    """Returns the lines with `cols` columns, and the new positions of the points."""
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
    """Wraps one logical line."""
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
    """A cursor in the spaces after a text stays on the text's last row; the first space belongs to the text."""
    last = max(1, -(-size // cols)) * cols - 1
    return offset if offset <= max(last, size + 1) else last


def _starts(row: str, cols: int) -> list[int]:
    """Where each new row begins; no wide character is cut."""
    starts = [0]
    while starts[-1] + cols < len(row):
        at = starts[-1] + cols
        starts.append(at - 1 if row[at] == TAIL and cols > 1 else at)
    return starts


def _place(offset: int, starts: list[int]) -> Point:
    row = max(at for at, start in enumerate(starts) if start <= offset)
    return row, offset - starts[row]


def stand(lines: list[Line], top: int, row: int, rows: int, at_foot: bool) -> int:
    """The first line that a screen of `rows` rows shows: the same as before, unless there is more to show. The line of
    the cursor is always visible. A cursor in the last row (`at_foot`) stays there, and lines from the history return.
    """
    last = max(row, max((at for at in range(len(lines) - 1, row, -1) if not is_empty(lines[at])), default=row))
    if at_foot:
        top = last - rows + 1
    return max(0, row - rows + 1, min(row, last - rows + 1), min(top, row))


def shown(lines: list[Line], top: int, rows: int, cols: int) -> list[Line]:
    """The lines of a screen from `top` on. If text below does not fit, the last line is marked as cut."""
    screen = lines[top : top + rows]
    if not all(map(is_empty, lines[top + rows :])):
        screen[-1] = as_cut(screen[-1])
    blank: Line = (" " * cols, PLAIN * cols, 0)
    return screen + [blank] * (rows - len(screen))


MAX_ROWS, MAX_COLS = 2000, 10000
PAST_LINES = 2000  # older than the history, as plain text: kept for the last output of an ended session
HISTORY_CELLS = 20000  # about 64 KB of lines above the screen, whatever its width


def clamp(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


class Grid:
    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.rows, self.cols = clamp(rows, 1, MAX_ROWS), clamp(cols, 1, MAX_COLS)
        self._history_lines = history_lines
        self.history = self._history(())
        self.past: deque[str] = deque(maxlen=PAST_LINES)
        self.inks, self.clusters = Inks(), Clusters()
        self.scrolled = 0  # the distance of the screen's first row from the first line ever written
        self.epoch = 0  # increases when inks and clusters are renumbered
        self.clear()

    def _history(self, lines: Iterable[Line]) -> deque[Line]:
        return deque(lines, min(self._history_lines, HISTORY_CELLS // self.cols))

    def clear(self) -> None:
        """Resets everything except the history."""
        self.ink = PLAIN
        self._blank: dict[str, Line] = {}
        self._has_tails = False
        self.lines = [self.blank()] * self.rows
        self.main: list[Line] | None = None  # the lines of the main screen while the alternate screen is shown
        self.x = self.y = 0
        self.autowrap, self.insert, self.wrap_due = True, False, False
        self.reset_margins()

    def reset_margins(self) -> None:
        self.top, self.bottom = 0, self.rows - 1
        self.set_sides(0, self.cols)

    def set_sides(self, left: int, edge: int) -> None:
        """Sets the first column inside the left and right margins, and the one after the last."""
        self.left, self.edge = left, edge
        self.boxed = edge - left < self.cols

    def blank(self) -> Line:
        """An erased line: spaces on the current background."""
        line = self._blank.get(self.ink)
        if line is None:
            line = self._blank[self.ink] = (" " * self.cols, self._erased() * self.cols, 0)
            if len(self._blank) > 64:
                self._blank = {self.ink: line}
        return line

    def _erased(self) -> str:
        return self.ink if self.ink == PLAIN else self.inks.ink(background_only(self.inks.style(self.ink)))

    # Writing

    def write(self, text: str) -> None:
        """Writes printable text at the cursor."""
        if text.isascii() or is_narrow(text):
            self.put(text)
            return
        for narrow, wide, single in segments(text):
            if narrow:
                self.put(narrow)
            elif wide:
                self._put_wide(wide)
            else:
                self._put_single(single)

    def put(self, text: str) -> None:
        """Writes characters of one column each."""
        x, size = self.x, len(text)
        if x + size >= self.edge or self.insert or self.wrap_due:
            self._put_slowly(text)
            return
        row, inks, marks = self.lines[self.y]
        end = x + size
        if self._has_tails:
            row = heal(row, x, end)
        self.lines[self.y] = (row[:x] + text + row[end:], inks[:x] + self.ink * size + inks[end:], marks)
        self.x = end

    def _limit(self) -> int:
        """The column that ends the line for the cursor: the right margin, or the screen's edge if the cursor is beyond
        it."""
        return self.edge if self.x < self.edge else self.cols

    def _put_slowly(self, text: str) -> None:
        """`put` for the cases where a line ends, wraps, or is shifted."""
        at, size = 0, len(text)
        while at < size:
            lost = not self._begin_cell()
            limit = self._limit()
            room = limit - self.x
            if not self.autowrap and size - at > room:
                text, at, size, lost = text[at : at + room - 1] + text[-1], 0, room, True
            piece = text[at : at + room]
            at += len(piece)
            self._place(piece, limit)
            if lost:
                self.lines[self.y] = as_cut(self.lines[self.y])

    def _begin_cell(self) -> bool:
        """Wraps if a wrap is due. Returns False if the line is full and must not wrap, so that its last cell is
        overwritten."""
        if not self.wrap_due:
            return True
        if self.autowrap:
            self._wrap()
        self.wrap_due = False
        return self.autowrap

    def _place(self, cells: str, limit: int) -> None:
        """Writes cells that fit on the line."""
        x, size = self.x, len(cells)
        end = x + size
        if self.insert:
            line, lost = push_right(self.lines[self.y], x, limit, cells, self.ink * size)
            self.lines[self.y] = as_cut(line) if lost else line
        else:
            row, inks, marks = self.lines[self.y]
            if self._has_tails:
                row = heal(row, x, end)
            marks = marks if end < self.cols else 0
            self.lines[self.y] = (row[:x] + cells + row[end:], inks[:x] + self.ink * size + inks[end:], marks)
        self.x = min(end, limit - 1)
        self.wrap_due = end >= limit

    def _put_wide(self, text: str) -> None:
        """Writes characters of two columns each."""
        if self.cols < 2:
            self.put(text)
            return
        self._has_tails = True
        at = 0
        while at < len(text):
            fits = self._begin_cell()
            if fits and self.x == self._limit() - 1:
                fits = self.autowrap
                if fits:
                    self._leave_last_column()
            limit = self._limit()
            if not fits or limit - self.x < 2:
                self.lines[self.y] = as_cut(self.lines[self.y])
                at += 1
                continue
            piece = text[at : at + (limit - self.x) // 2]
            at += len(piece)
            self._place(TAIL.join(piece) + TAIL, limit)

    def _leave_last_column(self) -> None:
        self.erase(self.y, self.x, self.x + 1)
        self._wrap(FILLED)

    def _put_single(self, char: str) -> None:
        columns = width(char)
        if columns == 0 or (columns == 2 and joins(self.last_cell(), char)):
            self._combine(char)
        elif columns == 2:
            self._put_wide(char)
        else:
            self.put(self._cell(char) if char >= "\U00100000" else char)

    def _target(self) -> int:
        """The column of the last written cell; -1 if there is none on this line."""
        at = self.x if self.wrap_due else self.x - 1
        return at - 1 if at > 0 and self.lines[self.y][0][at] == TAIL else at

    def last_cell(self) -> str:
        """The text of the last written cell; empty if there is none on this line."""
        at = self._target()
        return self.clusters.expand(self.lines[self.y][0][at]) if at >= 0 else ""

    def _combine(self, mark: str) -> None:
        at = self._target()
        if at < 0:
            return
        cluster = self.last_cell() + mark
        if len(cluster) <= MAX_CLUSTER_LENGTH:
            cell = self._cell(cluster)
            row, inks, marks = self.lines[self.y]
            self.lines[self.y] = (row[:at] + cell + row[at + 1 :], inks, marks)

    def _cell(self, cluster: str) -> str:
        if self.clusters.full:
            self._renew_clusters()
        return self.clusters.intern(cluster)

    def _wrap(self, filled: int = 0) -> None:
        if not self.boxed:
            row, inks, marks = self.lines[self.y]
            self.lines[self.y] = (row, inks, marks & CUT | SOFT | filled)
        self.wrap_due = False
        self.linefeed()
        self.x = self.left if self.x >= self.left else 0

    # Moving and scrolling

    def move(self, y: int, x: int) -> None:
        self.y = clamp(y, 0, self.rows - 1)
        self.x = clamp(x, 0, self.cols - 1)
        self.wrap_due = False

    def linefeed(self) -> None:
        self.wrap_due = False
        if self.y == self.bottom:
            if not self.boxed or self.left <= self.x < self.edge:
                self.scroll_up(1, self.top)
        elif self.y < self.rows - 1:
            self.y += 1

    def reverse_linefeed(self) -> None:
        if self.y == self.top:
            if self.left <= self.x < self.edge:
                self.scroll_down(1, self.top)
        elif self.y > 0:
            self.move(self.y - 1, self.x)

    def scroll_up(self, count: int, top: int, keep: bool = True) -> None:
        """Moves the lines from `top` to the bottom margin up. With `keep`, lines that leave the main screen become
        history."""
        count = min(count, self.bottom - top + 1)
        lines = self.lines
        if self.boxed:
            lift(lines, (top, self.bottom), (self.left, self.edge), count, self.blank())
            return
        if top == 0:
            self.scrolled += count
            if keep and self.main is None:
                self._remember(lines[:count])
        del lines[top : top + count]
        at = self.bottom + 1 - count
        lines[at:at] = [self.blank()] * count

    def _remember(self, lines: list[Line]) -> None:
        history = self.history
        over = len(history) + len(lines) - (history.maxlen or 0)
        if over > 0:
            plain, more = self.clusters.plain, lines[: max(0, over - len(history))]
            self.past += [plain(line[0]).rstrip(" ") for line in (*islice(history, over), *more)]
        history += lines

    def scroll_down(self, count: int, top: int) -> None:
        count = min(count, self.bottom - top + 1)
        if self.boxed:
            sink(self.lines, (top, self.bottom), (self.left, self.edge), count, self.blank())
            return
        at = self.bottom + 1 - count
        del self.lines[at : self.bottom + 1]
        self.lines[top:top] = [self.blank()] * count

    # Erasing, inserting, deleting

    def erase(self, y: int, start: int, end: int) -> None:
        """Erases the columns from `start` to before `end` of one line."""
        if start <= 0 and end >= self.cols:
            self.lines[y] = self.blank()
            return
        row, inks, marks = self.lines[y]
        if self._has_tails:
            row = heal(row, start, end)
        size = end - start
        row = row[:start] + " " * size + row[end:]
        self.lines[y] = (row, inks[:start] + self._erased() * size + inks[end:], marks if end < self.cols else 0)

    def erase_unguarded(self, y: int, start: int, end: int) -> None:
        """Like `erase`, but cells that a program has protected (DECSCA) stay."""
        for run in self.inks.open_runs(self.lines[y][1], start, end):
            self.erase(y, *run)

    def erase_lines(self, start: int, end: int) -> None:
        self.lines[start:end] = [self.blank()] * (end - start)

    def insert_cells(self, count: int) -> None:
        if self.left <= self.x < self.edge:
            count = min(count, self.edge - self.x)
            line, lost = push_right(self.lines[self.y], self.x, self.edge, " " * count, self._erased() * count)
            self.lines[self.y] = as_cut(line) if lost else line
        self.wrap_due = False

    def delete_cells(self, count: int) -> None:
        if self.left <= self.x < self.edge:
            count = min(count, self.edge - self.x)
            self.lines[self.y] = pull_left(self.lines[self.y], self.x, self.edge, count, self._erased())
        self.wrap_due = False

    # Screens and sizes

    def show_alternate(self) -> None:
        self.wrap_due = False
        if self.main is None:
            self.main = self.lines
            self.lines = [self.blank()] * self.rows

    def show_main(self) -> None:
        self.wrap_due = False
        if self.main is not None:
            self.lines, self.main = self.main, None

    def resize(self, rows: int, cols: int, kept: Point = (0, 0)) -> Point:
        """Wraps the lines of the main screen again; cuts or pads the alternate screen.

        `kept` is a position on the main screen, where a cursor was saved; its new position is returned. While the
        alternate screen is shown, the line of `kept` stays visible.
        """
        rows, cols = clamp(rows, 1, MAX_ROWS), clamp(cols, 1, MAX_COLS)
        place = (self.y, self.x + self.wrap_due)
        if self.main is None:
            self.lines, place, kept = self._reflow(self.lines, place, kept, rows, cols)
            self.scrolled += self.y - place[0]  # the line of the cursor keeps its number
        else:
            self.main, kept, _ = self._reflow(self.main, kept, kept, rows, cols)
            off = max(0, self.y - rows + 1)
            self.lines = fit(self.lines, off, rows, cols)
            self.scrolled += off
            place = (self.y - off, min(self.x, cols - 1))
        self.rows, self.cols = rows, cols
        self.history = self._history(self.history)
        self._blank.clear()
        self.y, self.x, self.wrap_due = place[0], min(place[1], cols - 1), place[1] >= cols
        self.reset_margins()
        return kept

    def _reflow(
        self, lines: list[Line], place: Point, kept: Point, rows: int, cols: int
    ) -> tuple[list[Line], Point, Point]:
        """Returns the new lines of a screen, and the new positions of the point that must stay visible and of the other
        one. Changes the history."""
        above = len(self.history)
        points = [(y + above, x) for y, x in (place, kept, (0, 0))]
        at_foot = place[0] == self.rows - 1
        flowed = [*self.history, *lines]
        if cols != self.cols:
            flowed, points = reflow(flowed, cols, points)
        top = stand(flowed, points[2][0], points[0][0], rows, at_foot)
        self.history.clear()
        self.history.extend(flowed[:top])
        (y, x), (kept_y, kept_x) = points[0], points[1]
        return shown(flowed, top, rows, cols), (y - top, x), (clamp(kept_y - top, 0, rows - 1), kept_x)

    # Interned inks and clusters are few; if a stream creates too many, only those on the screens are kept.

    def _kept(self) -> list[list[Line] | deque[Line]]:
        return [self.lines, self.history] if self.main is None else [self.lines, self.history, self.main]

    def renew_inks(self, saved: list[str]) -> list[str]:
        """Drops unused inks. `saved` are inks stored elsewhere; their new names are returned."""
        live = {self.ink, PLAIN, *saved}.union(*(line[1] for lines in self._kept() for line in lines))
        new = self.inks.renew(live)
        for lines in self._kept():
            _replace(lines, [(row, inks.translate(new), marks) for row, inks, marks in lines])
        self.ink = new[ord(self.ink)]
        self._blank.clear()
        self.epoch += 1
        return [new[ord(ink)] for ink in saved]

    def _renew_clusters(self) -> None:
        cells = set[str]().union(*(line[0] for lines in self._kept() for line in lines))
        new = self.clusters.renew({cell for cell in cells if cell >= "\U00100000"})
        for lines in self._kept():
            _replace(lines, [(row.translate(new), inks, marks) for row, inks, marks in lines])
        self.epoch += 1


def _replace(lines: list[Line] | deque[Line], new: list[Line]) -> None:
    lines.clear()
    lines.extend(new)
