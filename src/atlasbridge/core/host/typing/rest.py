"""How long a screen has been still while a key has its effect.

Some tools turn a spinner beside their dialog for as long as it stands there: rows that keep moving by themselves count
no more after a while, and dots of Braille, of which spinners and moving pictures are made, never do.
"""

from __future__ import annotations

from typing import Any

_PATIENCE_S = 0.8  # a screen that has not come to rest by then has something that turns
_TURNS = 4  # so often a row must have changed meanwhile
_DOTS = dict.fromkeys(range(0x2800, 0x2900))


class Rest:
    def __init__(self, now: float) -> None:
        self._began = self._since = now
        self._version = -1
        self._rows: list[str] = []
        self._changes: dict[int, int] = {}

    def lasts_s(self, screen: Any, now: float) -> float:
        """Since the last change that counts."""
        if screen.version != self._version:
            self._version = screen.version
            if self._notice(list(screen.lines()), now):
                self._since = now
        return now - self._since

    def _notice(self, rows: list[str], now: float) -> bool:
        """Whether something has changed that does not turn by itself.  At first a cursor or a colour counts, too;
        some cursors blink for ever."""
        before, self._rows = self._rows, rows
        if len(before) != len(rows):
            return True
        drawn = [at for at, row in enumerate(rows) if row != before[at]]
        changed = [at for at in drawn if _words(rows[at]) != _words(before[at])]
        if drawn and not changed:
            return False
        for at in changed:
            self._changes[at] = self._changes.get(at, 0) + 1
        late = now - self._began >= _PATIENCE_S
        return not late or any(self._changes[at] < _TURNS for at in changed)


def _words(row: str) -> str:
    return "".join(row.translate(_DOTS).split())
