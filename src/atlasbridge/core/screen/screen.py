"""The screen of a tool as a person would see it, kept from its output bytes by our own emulator.

The rest of the core uses the emulator only through this class. It decides nothing; that is the detector's work.
"""

from __future__ import annotations

import re
from collections.abc import Set

from atlasbridge.core.screen.grid import CUT, FILLED, SOFT, Line
from atlasbridge.core.screen.stream import Stream
from atlasbridge.core.screen.style import background, foreground
from atlasbridge.core.screen.terminal import Notice, Terminal

HISTORY_LINES = 200  # above the screen, for a window that grows; fewer if lines are long
_runs = re.compile(r"(.)\1*", re.S).finditer
Run = list[str | int | None]
Drawn = tuple[str, tuple[int, ...]]


class Screen:
    """Rows and columns start at 0. A wide character takes two columns but is one character of `line`."""

    def __init__(self, rows: int, cols: int, history_lines: int = HISTORY_LINES) -> None:
        self.terminal = Terminal(rows, cols, history_lines)
        self._stream = Stream(self.terminal)
        self._version = 0
        self._drawn: dict[Line, Drawn] = {}  # rows of the last call: most of them are unchanged in the next
        self._epoch = 0
        self._seen = self._state()

    def feed(self, data: bytes) -> None:
        """Accepts any bytes, in any chunks."""
        self._stream.feed(data)

    def resize(self, rows: int, cols: int) -> None:
        """Wraps the lines of the main screen again; cuts or pads the alternate screen, because tools redraw it."""
        self.terminal.resize(rows, cols)

    # Text

    @property
    def rows(self) -> int:
        return self.terminal.rows

    @property
    def cols(self) -> int:
        return self.terminal.cols

    def lines(self) -> list[str]:
        """Every row's text without trailing spaces."""
        return [drawn[0] for drawn in self.drawn()]

    def drawn(self) -> list[Drawn]:
        """Every row's text without trailing spaces, and the styles of its columns; empty rows have none.

        A line that has not changed since the last call is the same object.
        """
        terminal = self.terminal
        old = self._drawn if self._epoch == terminal.epoch else {}
        new: dict[Line, Drawn] = {}
        for line in terminal.lines:
            if line not in new:
                new[line] = old.get(line) or self._draw(line)
        self._drawn, self._epoch = new, terminal.epoch
        return [new[line] for line in terminal.lines]

    def _draw(self, line: Line) -> Drawn:
        text = self.terminal.clusters.plain(line[0]).rstrip(" ")
        styles = self.terminal.inks.styles
        return text, tuple([styles[ord(ink)] for ink in line[1]]) if text else ()

    def line(self, row: int) -> str:
        return self.text(row).rstrip(" ")

    def text(self, row: int, start: int = 0, end: int | None = None) -> str:
        """The text of some columns of a row, including trailing spaces."""
        return self.terminal.clusters.plain(self.terminal.lines[row][0][start:end])

    def wrapped(self, row: int) -> bool:
        """Whether the row continues in the next one because the text was too long."""
        return bool(self.terminal.lines[row][2] & SOFT)

    def wrapped_text(self, row: int) -> str:
        """The text of a row that continues in the next one, including its trailing spaces."""
        cells, _, marks = self.terminal.lines[row]
        return self.terminal.clusters.plain(cells[:-1] if marks & FILLED else cells)

    def cut(self, row: int) -> bool:
        """Whether a part of this row's text is gone, so that the rest must not be treated as complete."""
        return bool(self.terminal.lines[row][2] & CUT)

    @property
    def history(self) -> list[str]:
        """The lines that scrolled off the top of the main screen, oldest first."""
        plain = self.terminal.clusters.plain
        return [plain(line[0]).rstrip(" ") for line in self.terminal.history]

    @property
    def all_lines(self) -> list[str]:
        """Everything that is stored above the screen, as plain text, oldest first."""
        return [*self.terminal.past, *self.history]

    @property
    def scrolled(self) -> int:
        """The distance of the first row from the first line ever written. Together with it, a row's number identifies a
        line. A resize keeps the number of the cursor's line."""
        return self.terminal.scrolled

    # Styles

    def style(self, row: int, col: int) -> int:
        """Flags in the low byte; `foreground(style)` and `background(style)` return the colours."""
        return self.terminal.inks.style(self.terminal.lines[row][1][col])

    def styles(self, row: int) -> list[int]:
        styles = self.terminal.inks.styles
        return [styles[ord(ink)] for ink in self.terminal.lines[row][1]]

    def spans(self, row: int) -> list[tuple[int, int, int]]:
        """The row as (first column, column after the last, style), left to right."""
        style = self.terminal.inks.style
        return [(run.start(), run.end(), style(run[1])) for run in _runs(self.terminal.lines[row][1])]

    def styled(self) -> list[list[Run]]:
        """Rows of runs [text, foreground, background, flags], ready for JSON; trailing plain spaces are left out."""
        return [self._styled_line(line) for line in self.terminal.lines]

    def styled_past(self) -> list[list[Run]]:
        """Like `styled`, for the lines that scrolled off the top of the main screen, oldest first."""
        return [self._styled_line(line) for line in self.terminal.history]

    def _styled_line(self, line: Line) -> list[Run]:
        plain, style = self.terminal.clusters.plain, self.terminal.inks.style
        runs: list[Run] = []
        for run in _runs(line[1]):
            look = style(run[1])
            runs.append([plain(line[0][run.start() : run.end()]), foreground(look), background(look), look & 0xFF])
        if runs and runs[-1][1:] == [None, None, 0]:
            runs[-1][0] = str(runs[-1][0]).rstrip(" ")
            if not runs[-1][0]:
                runs.pop()
        return runs

    # Cursor, modes, titles

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column; after the last column of a full row, the cursor stays on that column."""
        return self.terminal.y, self.terminal.x

    def cursor_text(self) -> str:
        """The cursor's row up to the cursor; the whole row if it is full, although the cursor is on its last cell."""
        terminal = self.terminal
        return self.text(terminal.y, 0, terminal.x + terminal.wrap_due)

    @property
    def cursor_visible(self) -> bool:
        return 25 in self.terminal.modes

    @property
    def modes(self) -> Set[int]:
        """The DEC private modes that are set: 1 application cursor keys, 1000 and up mouse, 2004 bracketed paste,
        ..."""
        return self.terminal.modes

    @property
    def application_keypad(self) -> bool:
        return self.terminal.application_keypad

    @property
    def kitty_flags(self) -> int:
        """The flags of the progressive keyboard protocol that the tool has set; 0: the plain keyboard."""
        return self.terminal.kitty_flags

    @property
    def alternate(self) -> bool:
        return self.terminal.main is not None

    @property
    def title(self) -> str:
        return self.terminal.title

    @property
    def version(self) -> int:
        """Increases if a cell, the cursor or the size has changed, or lines have scrolled, since the last read."""
        state = self._state()
        if state != self._seen:
            self._seen = state
            self._version += 1
        return self._version

    def _state(self) -> tuple[object, ...]:
        terminal = self.terminal
        return list(terminal.lines), terminal.y, terminal.x, self.cursor_visible, terminal.scrolled

    # Data besides the screen

    def take_notices(self) -> list[Notice]:
        """Titles, bells and notifications since the last call, in order."""
        taken, self.terminal.notices = self.terminal.notices, []
        return taken

    def take_queries(self) -> list[bytes]:
        """An xterm's answers to the tool's queries since the last call, in order."""
        taken, self.terminal.answers = self.terminal.answers, []
        return taken
