"""A snapshot of the screen for recognition: rows of text, styles, the cursor and the relevant modes.

Recognition never uses the emulator itself, so that every rule can be tested with a few lines of text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.style import REVERSE, is_faded
from atlasbridge.core.values import field, frozen, replace

if TYPE_CHECKING:
    from atlasbridge.core.screen.screen import Screen

_WORD = lazy(r"\w")
CARET_ROWS = 8
_SIDES = " │┃║|"
BACKGROUND = 34  # the bits of a style from here on are its background
TICKS = "✔✓√◇"  # question libraries put one of these before an answered question


@frozen
class View:
    lines: tuple[str, ...]
    row: int = 0
    col: int = 0
    cursor_visible: bool = True
    alternate: bool = False
    title: str = ""
    cols: int = 120
    application_cursor: bool = False
    bracketed_paste: bool = False
    styles: tuple[tuple[int, ...], ...] = ()
    joined: frozenset[int] = field(default_factory=frozenset)  # rows that continue in the next row
    spaced: tuple[tuple[int, str], ...] = ()  # rows that continue and end with spaces, including the spaces
    cut: frozenset[int] = field(default_factory=frozenset)  # rows of which some text is gone
    before: str | None = None  # the cursor's row up to the cursor; needed because wide characters take two columns
    scrolled: int = 0  # rows that have left the screen at its top
    answered: tuple[str, ...] = ()  # beginnings of lines that have been answered

    @classmethod
    def of(cls, screen: Screen) -> View:
        drawn = screen.drawn()
        lines = tuple([text for text, _ in drawn])
        row, col = screen.cursor
        modes = set(screen.modes)
        joined = [at for at in range(len(lines)) if screen.wrapped(at)]
        whole = [(at, screen.wrapped_text(at)) for at in joined]
        return cls(
            lines=lines,
            row=min(row, len(lines) - 1),
            col=col,
            cursor_visible=screen.cursor_visible,
            alternate=screen.alternate,
            title=screen.title,
            cols=screen.cols,
            application_cursor=1 in modes,
            bracketed_paste=2004 in modes,
            styles=tuple([styles for _, styles in drawn]),
            joined=frozenset(joined),
            spaced=tuple((at, text) for at, text in whole if text != lines[at]),
            cut=frozenset(at for at in range(len(lines)) if screen.cut(at)),
            before=screen.cursor_text(),
            scrolled=screen.scrolled,
        )

    @classmethod
    def from_text(cls, text: str, **changes: object) -> View:
        """A snapshot of `text` with the cursor after its last character: for tests and for bytes without a terminal."""
        lines = tuple(text.split("\n"))
        given: dict[str, object] = {"row": len(lines) - 1, "col": len(lines[-1]), **changes}
        return cls(lines=tuple(line.rstrip() for line in lines), **given)  # type: ignore[arg-type]

    def style(self, row: int, col: int) -> int:
        """The style of a cell; 0 if it is unknown."""
        if row < len(self.styles) and col < len(self.styles[row]):
            return self.styles[row][col]
        return 0

    def line_start(self, row: int) -> int:
        """The first row of the logical line that contains `row`."""
        while row > 0 and row - 1 in self.joined:
            row -= 1
        return row

    def is_cut(self, row: int) -> bool:
        """Whether a part of the logical line that contains `row` is gone."""
        first = self.line_start(row)
        return any(at in self.cut for at in range(first, self.line_end(row) + 1))

    def line_end(self, row: int) -> int:
        """The last row of the logical line that contains `row`."""
        while row in self.joined:
            row += 1
        return row

    def before_cursor(self) -> str:
        """The logical line of the cursor, up to the cursor."""
        return self.joined_text(self.line_start(self.row), self.row) + self._before()

    def joined_text(self, first: int, end: int) -> str:
        """The rows from `first` to before `end` of one logical line as one text, with the spaces where it was
        wrapped."""
        spaced = dict(self.spaced)
        return "".join(spaced.get(at, self.lines[at]) for at in range(first, end))

    def after_cursor(self) -> str:
        return self.lines[self.row][len(self._before()) :].strip()

    def behind_cursor(self) -> str:
        """The words right after the cursor, up to a wider gap: an answer, or a placeholder."""
        return self.rest_of_row().partition("  ")[0].rstrip() if self.cursor_visible else ""

    def rest_of_row(self) -> str:
        return self.lines[self.row][len(self._before()) :]

    def _before(self) -> str:
        return self.lines[self.row].ljust(self.col)[: self.col] if self.before is None else self.before

    def without_begun(self, typed: str) -> View:
        """The view without the text that a person has begun to type, if it stands right before the cursor."""
        before = self._before()
        if not typed or not before.endswith(typed):
            return self
        start = len(before) - len(typed)
        line = before[:start] + " " * len(typed) + self.rest_of_row()
        lines = (*self.lines[: self.row], line.rstrip(), *self.lines[self.row + 1 :])
        return replace(self, lines=lines, col=max(0, self.col - len(typed)), before=before[:start])

    def at_caret(self) -> View:
        """Moves the cursor to a single blank cell in another colour: programs that hide the terminal's cursor draw
        their own caret this way."""
        if self.cursor_visible:
            return self
        for row in range(self.bottom(), max(-1, self.bottom() - CARET_ROWS), -1):
            here = self.at_caret_of(row)
            if here is not self:
                return here
        return self

    def at_caret_of(self, row: int) -> View:
        """Moves the cursor to the caret that is drawn in this row, if there is one."""
        col = _caret(self.styles[row], self.lines[row]) if row < len(self.styles) else -1
        return replace(self, row=row, col=col, before=None, cursor_visible=True) if col > 0 else self

    def is_answered(self, row: int) -> bool:
        """Whether the row is an answered question: it and everything above it is history."""
        line = self.lines[row].strip()
        return any(begins_with(line, done) for done in self.answered)

    def is_ticked(self, row: int) -> bool:
        """Like `is_answered`, by the mark that question libraries leave."""
        return self.lines[row].lstrip()[:1] in TICKS if self.lines[row].strip() else False

    @property
    def lit(self) -> bool:
        """Whether some text is highlighted: perhaps a choice, which Enter would take."""
        return any(style & REVERSE or style >> BACKGROUND for styles in self.styles for style in styles)

    def bottom(self) -> int:
        """The last row with text; -1 on an empty screen."""
        for at in range(len(self.lines) - 1, -1, -1):
            if self.lines[at].strip():
                return at
        return -1

    def text(self) -> str:
        return "\n".join(self.lines).rstrip()


def _caret(styles: tuple[int, ...], line: str) -> int:
    """The column of the only cell of a row that is reversed, or else has a background, if only a frame or a faded
    placeholder follows it."""
    reversed_cells = [col for col, style in enumerate(styles) if style & REVERSE]
    lit = reversed_cells or [col for col, style in enumerate(styles) if style >> BACKGROUND]
    if len(lit) != 1:
        return -1
    at = lit[0]
    behind = [col for col in range(at + 1, len(line)) if line[col] not in _SIDES]
    faded = all(col < len(styles) and is_faded(styles[col]) for col in behind)
    return at if faded and (behind or not line[at : at + 1].strip()) else -1


@lru_cache(maxsize=256)
def _unmarked(line: str) -> str:
    """Removes the marks at both ends."""
    first = _WORD.search(line)
    end = len(line)
    while first and not (line[end - 1].isalnum() or line[end - 1] == "_"):
        end -= 1
    return line[first.start() : end] if first else ""


def begins_with(line: str, beginning: str) -> bool:
    """Whether a line begins with these words, whatever mark precedes them."""
    words = _unmarked(beginning)
    bare = words or beginning.strip()
    rest = _unmarked(line) if words else line.strip()
    return (
        bool(bare) and rest.startswith(bare) and not (bare[-1].isalnum() and rest[len(bare) : len(bare) + 1].isalnum())
    )
