"""The state of a terminal besides its cells: modes, saved cursors, character sets, tab stops, titles, keyboard flags.

Its methods implement the control functions. `stream` maps sequences to them.
"""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.core.screen.grid import Grid, Point
from atlasbridge.core.screen.style import PLAIN
from atlasbridge.core.screen.width import CHARSETS
from atlasbridge.core.values import frozen, replace

MAX_KEPT = 256  # limit for notices and answers that are not fetched
_MAX_TITLE = 1000
_MAX_STACK = 16

KNOWN_MODES = frozenset(
    (
        *(1, 3, 5, 6, 7, 8, 9, 12, 25, 45, 47, 66, 67, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016),
        *(1034, 1035, 1036, 1039, 1042, 1047, 1048, 1049, 2004, 2026, 2031),
    )
)
_AT_START = frozenset([7, 25])
_ALTERNATE = frozenset([47, 1047, 1049])
_ASCII = ("B", "B", "B", "B")

Args = tuple[int, ...]


@frozen
class Notice:
    """A message of the tool besides the screen: kind is "title", "bell" or "osc<number>"."""

    kind: str
    payload: str = ""


@frozen
class SavedCursor:
    y: int = 0
    x: int = 0
    ink: str = PLAIN
    charsets: tuple[str, ...] = _ASCII
    shift: int = 0
    origin: bool = False
    wrap_due: bool = False


class Terminal(Grid):
    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.notices: list[Notice] = []
        self.answers: list[bytes] = []
        self.title = ""
        super().__init__(rows, cols, history_lines)

    def clear(self) -> None:
        super().clear()
        self.modes = set(_AT_START)
        self.charsets: tuple[str, ...] = _ASCII
        self.shift = 0
        self.charset: dict[int, str] | None = None  # the active translation
        self.origin = self.newline = self.application_keypad = False
        self.tabs = set(range(8, self.cols, 8))
        self._titles: list[str] = []
        self._saved = [SavedCursor(), SavedCursor()]  # of the main and of the alternate screen
        self._saved_modes: dict[int, bool] = {}
        self._kitty = [[0], [0]]  # keyboard flags of the main and of the alternate screen

    @property
    def _screen(self) -> int:
        return 0 if self.main is None else 1

    # Text

    def print(self, text: str) -> None:
        if self.charset is not None:
            text = text.translate(self.charset)
        self.write(text)

    def repeat(self, count: int) -> None:
        """Repeats the last written cell with all its combining marks."""
        self.write(self.last_cell() * min(count, self.cols * self.rows))

    def colour(self, params: str) -> None:
        if self.inks.full:
            inks = self.renew_inks([saved.ink for saved in self._saved])
            self._saved = [replace(saved, ink=ink) for saved, ink in zip(self._saved, inks, strict=True)]
        self.ink = self.inks.turn(self.ink, params)

    def designate(self, slot: int, charset: str) -> None:
        self.charsets = (*self.charsets[:slot], charset, *self.charsets[slot + 1 :])
        self.use_charset(self.shift)

    def use_charset(self, slot: int) -> None:
        self.shift = slot
        self.charset = CHARSETS.get(self.charsets[slot])

    # The cursor

    def home(self, y: int, x: int) -> None:
        """Moves the cursor; the position is relative to the margins while the origin mode is on."""
        if self.origin:
            self.move(min(y + self.top, self.bottom), min(x + self.left, self.edge - 1))
        else:
            self.move(y, x)

    def to_row(self, y: int) -> None:
        self.home(y, self.x - (self.left if self.origin else 0))

    def to_column(self, x: int) -> None:
        self.home(self.y - (self.top if self.origin else 0), x)

    def carriage_return(self) -> None:
        self.x = self.left if self.x >= self.left else 0
        self.wrap_due = False

    def forth(self, count: int) -> None:
        self.move(self.y, min(self.x + count, self._limit() - 1))

    def back(self, count: int) -> None:
        self.move(self.y, max(self.x - count, self.left if self.x >= self.left else 0))

    def up(self, count: int) -> None:
        self.move(max(self.y - count, self.top if self.y >= self.top else 0), self.x)

    def down(self, count: int) -> None:
        self.move(min(self.y + count, self.bottom if self.y <= self.bottom else self.rows - 1), self.x)

    def tab(self, count: int) -> None:
        last = self._limit() - 1
        stops = [col for col in range(self.x + 1, last) if col in self.tabs]
        self.x = stops[count - 1] if count <= len(stops) else last

    def back_tab(self, count: int) -> None:
        first = self.left if self.origin else 0
        stops = [col for col in range(self.x - 1, first, -1) if col in self.tabs]
        self.move(self.y, stops[count - 1] if count <= len(stops) else min(first, self.x))

    def save_cursor(self) -> None:
        self._saved[self._screen] = SavedCursor(
            self.y, self.x, self.ink, self.charsets, self.shift, self.origin, self.wrap_due
        )

    def restore_cursor(self) -> None:
        saved = self._saved[self._screen]
        self.ink, self.charsets, self.origin = saved.ink, saved.charsets, saved.origin
        self.use_charset(saved.shift)
        (self.modes.add if saved.origin else self.modes.discard)(6)
        self.move(saved.y, saved.x)
        self.wrap_due = saved.wrap_due and self.x == self.cols - 1

    def set_margins(self, top: int, bottom: int) -> None:
        bottom = min(bottom, self.rows - 1)
        if top < bottom:
            self.top, self.bottom = top, bottom
            self.home(0, 0)

    def set_side_margins(self, left: int, right: int) -> None:
        right = min(right, self.cols - 1)
        if left < right:
            self.set_sides(left, right + 1)
            self.home(0, 0)

    def guard(self, on: bool) -> None:
        """DECSCA: whether text from now on is protected from selective erasing."""
        self.ink = self.inks.guard(self.ink, on)

    # Modes and screens

    def set_modes(self, modes: Args, on: bool) -> None:
        for mode in modes:
            if mode in KNOWN_MODES:
                self._set_mode(mode, on)

    def _set_mode(self, mode: int, on: bool) -> None:
        (self.modes.add if on else self.modes.discard)(mode)
        if mode in _ALTERNATE:
            self._set_alternate(mode, on)
        elif mode == 1048:
            self.save_cursor() if on else self.restore_cursor()
        elif mode == 6:
            self.origin = on
            self.home(0, 0)
        elif mode == 7:
            self.autowrap = on
        elif mode == 69 and not on:
            self.set_sides(0, self.cols)
        elif mode == 66:
            self.application_keypad = on

    def _set_alternate(self, mode: int, on: bool) -> None:
        if on and self.main is None:
            if mode == 1049:
                self.save_cursor()
            self.show_alternate()
        elif on:
            self.erase_lines(0, self.rows if mode == 1049 else 0)
        else:
            self.modes -= _ALTERNATE
            self.show_main()
            if mode == 1049:
                self.restore_cursor()

    def mode_state(self, mode: int) -> int:
        """The DECRQM report: 0 unknown, 1 set, 2 reset."""
        return 0 if mode not in KNOWN_MODES else 1 if mode in self.modes else 2

    def save_modes(self, modes: Args) -> None:
        self._saved_modes.update({mode: mode in self.modes for mode in modes if mode in KNOWN_MODES})

    def restore_modes(self, modes: Args) -> None:
        for mode in modes:
            if mode in self._saved_modes:
                self._set_mode(mode, self._saved_modes[mode])

    def set_ansi_modes(self, modes: Args, on: bool) -> None:
        if 4 in modes:
            self.insert = on
        if 20 in modes:
            self.newline = on

    @property
    def kitty_flags(self) -> int:
        return self._kitty[self._screen][-1]

    def change_kitty(self, change: Callable[[list[int]], None]) -> None:
        """Pushes, pops or sets the keyboard flags of the current screen."""
        stack = self._kitty[self._screen]
        change(stack)
        del stack[:-_MAX_STACK]
        if not stack:
            stack.append(0)

    def soft_reset(self) -> None:
        self.ink, self.origin, self.insert, self.autowrap = PLAIN, False, False, True
        self.reset_margins()
        self.charsets, self.application_keypad = _ASCII, False
        self.use_charset(0)
        self.modes -= {1, 6, 66, 69}
        self.modes |= _AT_START
        self._saved[self._screen] = SavedCursor()

    def align(self) -> None:
        """DECALN: fills the screen with E."""
        self.lines = [("E" * self.cols, PLAIN * self.cols, 0)] * self.rows
        self.reset_margins()
        self.move(0, 0)

    def resize(self, rows: int, cols: int, kept: Point = (0, 0)) -> Point:
        old, saved = self.cols, self._saved[0]
        y, x = super().resize(rows, cols, (min(saved.y, self.rows - 1), saved.x + saved.wrap_due))
        self._saved[0] = replace(saved, y=y, x=min(x, self.cols - 1), wrap_due=x >= self.cols)
        self.modes.discard(69)
        self.tabs = {col for col in self.tabs if col < self.cols} | set(range((old + 7) // 8 * 8, self.cols, 8))
        return y, x

    # Data besides the screen

    def notify(self, kind: str, payload: str = "") -> None:
        if len(self.notices) < MAX_KEPT:
            self.notices.append(Notice(kind, payload))

    def answer(self, *answers: bytes | None) -> None:
        self.answers += [answer for answer in answers if answer][: MAX_KEPT - len(self.answers)]

    def set_title(self, title: str) -> None:
        self.title = title[:_MAX_TITLE]
        self.notify("title", self.title)

    def push_title(self) -> None:
        self._titles = [*self._titles, self.title][-_MAX_STACK:]

    def pop_title(self) -> None:
        if self._titles:
            self.set_title(self._titles.pop())
