"""The cells of a terminal and its cursor: writing, wrapping, scrolling, erasing, inserting, deleting, resizing.

Lines never change; every change replaces one.  Which escape sequence asks for which change is left to `terminal`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from atlasbridge.core.screen.box import lift, pull_left, push_right, sink
from atlasbridge.core.screen.lines import CUT, FILLED, SOFT, Line, as_cut, fit, heal
from atlasbridge.core.screen.reflow import Point, reflow, shown, stand
from atlasbridge.core.screen.style import PLAIN, Inks, background_only
from atlasbridge.core.screen.width import MAX_CLUSTER_LENGTH, TAIL, Clusters, is_narrow, joins, segments, width

MAX_ROWS, MAX_COLS = 2000, 10000
HISTORY_CELLS = 20000  # about 64 KB of lines above the screen, whatever its width


def clamp(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


class Grid:
    __slots__ = (
        "_blank",
        "_has_tails",
        "_history_lines",
        "autowrap",
        "bottom",
        "boxed",
        "clusters",
        "cols",
        "edge",
        "epoch",
        "history",
        "ink",
        "inks",
        "insert",
        "left",
        "lines",
        "main",
        "rows",
        "scrolled",
        "top",
        "wrap_due",
        "x",
        "y",
    )

    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.rows, self.cols = clamp(rows, 1, MAX_ROWS), clamp(cols, 1, MAX_COLS)
        self._history_lines = history_lines
        self.history = self._history(())
        self.inks, self.clusters = Inks(), Clusters()
        self.scrolled = 0  # how far the screen's first row is from the first line there ever was
        self.epoch = 0  # grows when inks and clusters get other names
        self.clear()

    def _history(self, lines: Iterable[Line]) -> deque[Line]:
        return deque(lines, min(self._history_lines, HISTORY_CELLS // self.cols))

    def clear(self) -> None:
        """Everything but the history as it was at the start."""
        self.ink = PLAIN
        self._blank: dict[str, Line] = {}
        self._has_tails = False
        self.lines = [self.blank()] * self.rows
        self.main: list[Line] | None = None  # the main screen's lines while the alternate screen shows
        self.x = self.y = 0
        self.autowrap, self.insert, self.wrap_due = True, False, False
        self.reset_margins()

    def reset_margins(self) -> None:
        self.top, self.bottom = 0, self.rows - 1
        self.set_sides(0, self.cols)

    def set_sides(self, left: int, edge: int) -> None:
        """The first column between the left and the right margin, and the one behind the last."""
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
        """Printable text at the cursor."""
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
        """Characters of one column each."""
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
        """The column that ends the line for the cursor: the right margin's, or the screen's where it is beyond it."""
        return self.edge if self.x < self.edge else self.cols

    def _put_slowly(self, text: str) -> None:
        """`put` where a line ends, wraps, or is pushed aside."""
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
        """Wrap if a wrap is due; False: the line is full and must not wrap, its last cell is written over."""
        if not self.wrap_due:
            return True
        if self.autowrap:
            self._wrap()
        self.wrap_due = False
        return self.autowrap

    def _place(self, cells: str, limit: int) -> None:
        """Cells that fit on the line."""
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
        """Characters of two columns each."""
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
        """The column of the cell written last, -1 when there is none on this line."""
        at = self.x if self.wrap_due else self.x - 1
        return at - 1 if at > 0 and self.lines[self.y][0][at] == TAIL else at

    def last_cell(self) -> str:
        """The text of the cell written last, empty when there is none on this line."""
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
        """Lines from `top` to the bottom margin move up; what leaves the main screen becomes history if `keep`."""
        count = min(count, self.bottom - top + 1)
        lines = self.lines
        if self.boxed:
            lift(lines, (top, self.bottom), (self.left, self.edge), count, self.blank())
            return
        if top == 0:
            self.scrolled += count
            if keep and self.main is None:
                self.history += lines[:count]
        del lines[top : top + count]
        at = self.bottom + 1 - count
        lines[at:at] = [self.blank()] * count

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
        """Columns `start` to before `end` of one line."""
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
        """As `erase`, but what a program has protected (DECSCA) stays."""
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
        """The main screen's lines are wrapped anew, the alternate screen is cut or padded.

        `kept` is a place on the main screen, where a cursor was saved: it is returned as it is then.  While the
        alternate screen shows, it is also the line that stays."""
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
        """New lines for a screen, and where the place that must stay on it and the other one are; history changes."""
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

    # Interned inks and clusters are few; when a stream makes too many, only those on the screens are kept.

    def _kept(self) -> list[list[Line] | deque[Line]]:
        return [self.lines, self.history] if self.main is None else [self.lines, self.history, self.main]

    def renew_inks(self, saved: list[str]) -> list[str]:
        """Forget unused inks; `saved` are inks kept elsewhere, returned as they are called now."""
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
