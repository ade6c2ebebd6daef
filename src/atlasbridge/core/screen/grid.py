"""The cells of a terminal and its cursor: writing, wrapping, scrolling, erasing, inserting, deleting, resizing.

A line is an immutable tuple (text, inks, soft-wrapped) with one character per column in both strings; every change
replaces the line.  Which escape sequence asks for which change is left to `terminal`.
"""

from __future__ import annotations

from collections import deque

from atlasbridge.core.screen.style import PLAIN, Inks, background_only
from atlasbridge.core.screen.width import MAX_CLUSTER_LENGTH, TAIL, ZWJ, Clusters, is_narrow, segments, width

Line = tuple[str, str, bool]

MAX_ROWS, MAX_COLS = 2000, 10000


def clamp(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


class Grid:
    __slots__ = (
        "_blank",
        "_has_tails",
        "autowrap",
        "bottom",
        "clusters",
        "cols",
        "history",
        "ink",
        "inks",
        "insert",
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
        self.history: deque[str] = deque(maxlen=history_lines)
        self.inks, self.clusters = Inks(), Clusters()
        self.scrolled = 0  # lines that have left at the top, ever
        self.clear()

    def clear(self) -> None:
        """Everything but the history as it was at the start."""
        self.ink = PLAIN
        self._blank: dict[str, Line] = {}
        self._has_tails = False
        self.lines = [self.blank()] * self.rows
        self.main: list[Line] | None = None  # the main screen's lines while the alternate screen shows
        self.x = self.y = self.top = 0
        self.bottom = self.rows - 1
        self.autowrap, self.insert, self.wrap_due = True, False, False

    def blank(self) -> Line:
        """An erased line: spaces on the current background."""
        line = self._blank.get(self.ink)
        if line is None:
            line = self._blank[self.ink] = (" " * self.cols, self._erased() * self.cols, False)
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
        if x + size >= self.cols or self.insert or self.wrap_due:
            self._put_slowly(text)
            return
        row, inks, soft = self.lines[self.y]
        end = x + size
        if self._has_tails:
            row = _heal(row, x, end)
        self.lines[self.y] = (row[:x] + text + row[end:], inks[:x] + self.ink * size + inks[end:], soft)
        self.x = end

    def _put_slowly(self, text: str) -> None:
        """`put` where a line ends, wraps, or is pushed aside."""
        at, size = 0, len(text)
        while at < size:
            if self.wrap_due:
                self._wrap()
            room = self.cols - self.x
            if not self.autowrap and size - at > room:
                text, at, size = text[at : at + room - 1] + text[-1], 0, room
            piece = text[at : at + room]
            at += len(piece)
            self._place(piece)

    def _place(self, cells: str) -> None:
        """Cells that fit on the line."""
        x, size = self.x, len(cells)
        row, inks, soft = self.lines[self.y]
        old = x if self.insert else x + size
        if self._has_tails:
            row = _heal(row, x, old)
        row = _cut(row[:x] + cells + row[old:], self.cols)
        inks = (inks[:x] + self.ink * size + inks[old:])[: self.cols]
        at_end = x + size >= self.cols
        self.lines[self.y] = (row, inks, soft and not at_end)
        self.x = self.cols - 1 if at_end else x + size
        self.wrap_due = at_end and self.autowrap

    def _put_wide(self, text: str) -> None:
        """Characters of two columns each."""
        if self.cols < 2:
            self.put(text)
            return
        self._has_tails = True
        at = 0
        while at < len(text):
            if self.wrap_due:
                self._wrap()
            elif self.x == self.cols - 1:
                if not self.autowrap:
                    return
                self.erase(self.y, self.x, self.cols)
                self._wrap()
            piece = text[at : at + (self.cols - self.x) // 2]
            at += len(piece)
            self._place(TAIL.join(piece) + TAIL)

    def _put_single(self, char: str) -> None:
        columns = width(char)
        if columns == 0 or (columns == 2 and self._after_joiner()):
            self._combine(char)
        elif columns == 2:
            self._put_wide(char)
        else:
            self.put(self._cell(char) if char >= "\U00100000" else char)

    def _target(self) -> int:
        """The column of the cell written last, -1 when there is none on this line."""
        at = self.x if self.wrap_due else self.x - 1
        return at - 1 if at > 0 and self.lines[self.y][0][at] == TAIL else at

    def _after_joiner(self) -> bool:
        at = self._target()
        return at >= 0 and self.clusters.expand(self.lines[self.y][0][at]).endswith(ZWJ)

    def _combine(self, mark: str) -> None:
        at = self._target()
        if at < 0:
            return
        row, inks, soft = self.lines[self.y]
        cluster = self.clusters.expand(row[at]) + mark
        if len(cluster) <= MAX_CLUSTER_LENGTH:
            cell = self._cell(cluster)
            row = self.lines[self.y][0]
            self.lines[self.y] = (row[:at] + cell + row[at + 1 :], inks, soft)

    def _cell(self, cluster: str) -> str:
        if self.clusters.full:
            self._renew_clusters()
        return self.clusters.intern(cluster)

    def _wrap(self) -> None:
        row, inks, _ = self.lines[self.y]
        self.lines[self.y] = (row, inks, True)
        self.wrap_due = False
        self.x = 0
        self.linefeed()

    # Moving and scrolling

    def move(self, y: int, x: int) -> None:
        self.y = clamp(y, 0, self.rows - 1)
        self.x = clamp(x, 0, self.cols - 1)
        self.wrap_due = False

    def linefeed(self) -> None:
        self.wrap_due = False
        if self.y == self.bottom:
            self.scroll_up(1, self.top)
        elif self.y < self.rows - 1:
            self.y += 1

    def reverse_linefeed(self) -> None:
        if self.y == self.top:
            self.scroll_down(1, self.top)
        elif self.y > 0:
            self.move(self.y - 1, self.x)

    def scroll_up(self, count: int, top: int, keep: bool = True) -> None:
        """Lines from `top` to the bottom margin move up; what leaves the main screen becomes history if `keep`."""
        count = min(count, self.bottom - top + 1)
        lines = self.lines
        if top == 0:
            self.scrolled += count
        if keep and top == 0 and self.history.maxlen and self.main is None:
            self.history.extend([self.clusters.plain(line[0]).rstrip(" ") for line in lines[:count]])
        del lines[top : top + count]
        at = self.bottom + 1 - count
        lines[at:at] = [self.blank()] * count

    def scroll_down(self, count: int, top: int) -> None:
        count = min(count, self.bottom - top + 1)
        at = self.bottom + 1 - count
        del self.lines[at : self.bottom + 1]
        self.lines[top:top] = [self.blank()] * count

    # Erasing, inserting, deleting

    def erase(self, y: int, start: int, end: int) -> None:
        """Columns `start` to before `end` of one line."""
        if start <= 0 and end >= self.cols:
            self.lines[y] = self.blank()
            return
        row, inks, soft = self.lines[y]
        if self._has_tails:
            row = _heal(row, start, end)
        size = end - start
        row = row[:start] + " " * size + row[end:]
        self.lines[y] = (row, inks[:start] + self._erased() * size + inks[end:], soft and end < self.cols)

    def erase_lines(self, start: int, end: int) -> None:
        self.lines[start:end] = [self.blank()] * (end - start)

    def insert_cells(self, count: int) -> None:
        x, y = self.x, self.y
        count = min(count, self.cols - x)
        row, inks, _ = self.lines[y]
        if self._has_tails:
            row = _heal(row, x, x)
        row = _cut(row[:x] + " " * count + row[x:], self.cols)
        inks = (inks[:x] + self._erased() * count + inks[x:])[: self.cols]
        self.lines[y] = (row, inks, False)
        self.wrap_due = False

    def delete_cells(self, count: int) -> None:
        x, y = self.x, self.y
        count = min(count, self.cols - x)
        row, inks, _ = self.lines[y]
        if self._has_tails:
            row = _heal(row, x, x + count)
        row = row[:x] + row[x + count :] + " " * count
        self.lines[y] = (row, inks[:x] + inks[x + count :] + self._erased() * count, False)
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

    def resize(self, rows: int, cols: int) -> None:
        """Cut or pad, without joining wrapped lines again; the line of the cursor stays."""
        rows, cols = clamp(rows, 1, MAX_ROWS), clamp(cols, 1, MAX_COLS)
        off = max(0, self.y - rows + 1)
        if self.main is None:
            self.history.extend([self.clusters.plain(line[0]).rstrip(" ") for line in self.lines[:off]])
        else:
            self.main = _fit(self.main, max(0, self._last_used(self.main) - rows + 1), rows, cols)
        self.lines = _fit(self.lines, off, rows, cols)
        self.rows, self.cols = rows, cols
        self.top, self.bottom = 0, rows - 1
        self._blank.clear()
        self.y -= off
        self.scrolled += off
        self.x = min(self.x, cols - 1)
        self.wrap_due = False

    @staticmethod
    def _last_used(lines: list[Line]) -> int:
        return next((y for y in range(len(lines) - 1, -1, -1) if lines[y][0].strip(" ")), 0)

    # Interned inks and clusters are few; when a stream makes too many, only those on the screens are kept.

    def renew_inks(self, saved: list[str]) -> list[str]:
        """Forget unused inks; `saved` are inks kept elsewhere, returned as they are called now."""
        screens = [self.lines] if self.main is None else [self.lines, self.main]
        live = {self.ink, PLAIN, *saved}.union(*(line[1] for screen in screens for line in screen))
        new = self.inks.renew(live)
        for screen in screens:
            screen[:] = [(row, inks.translate(new), soft) for row, inks, soft in screen]
        self.ink = new[ord(self.ink)]
        self._blank.clear()
        return [new[ord(ink)] for ink in saved]

    def _renew_clusters(self) -> None:
        screens = [self.lines] if self.main is None else [self.lines, self.main]
        cells = set[str]().union(*(line[0] for screen in screens for line in screen))
        new = self.clusters.renew({cell for cell in cells if cell >= "\U00100000"})
        for screen in screens:
            screen[:] = [(row.translate(new), inks, soft) for row, inks, soft in screen]


def _heal(row: str, start: int, end: int) -> str:
    """Wide characters that the edges of `start`..`end` would cut become spaces."""
    for edge in (start, end):
        if 0 < edge < len(row) and row[edge] == TAIL:
            row = row[: edge - 1] + "  " + row[edge + 1 :]
    return row


def _cut(row: str, cols: int) -> str:
    """The first `cols` columns; a wide character half over the edge becomes a space."""
    if len(row) > cols and row[cols] == TAIL:
        return row[: cols - 1] + " "
    return row[:cols]


def _fit(lines: list[Line], off: int, rows: int, cols: int) -> list[Line]:
    blank = (" " * cols, PLAIN * cols, False)
    fitted = []
    for row, inks, soft in lines[off : off + rows]:
        if len(row) > cols:
            row, inks, soft = _cut(row, cols), inks[:cols], False
        elif len(row) < cols:
            row, inks, soft = row.ljust(cols), inks.ljust(cols, PLAIN), False
        fitted.append((row, inks, soft))
    return fitted + [blank] * (rows - len(fitted))
