"""What strangers try is recorded sparingly: the first of a minute one by one, of the rest how many there were.

So a flood of guesses, which anybody can send, neither fills the database nor disappears.  Each process counts for
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from atlasbridge.core.values import mutable

WINDOW_S = 60.0
SINGLE = 20  # entries of their own in each window, for each kind of event


@mutable
class _Window:
    begun: datetime
    recorded: int = 0
    more: int = 0


class Strangers:
    def __init__(self) -> None:
        self._windows: dict[str, _Window] = {}

    def is_recorded(self, event: str, now: datetime) -> bool:
        """Whether this one gets an entry; otherwise it is counted."""
        window = self._windows.setdefault(event, _Window(now))
        if window.recorded >= SINGLE:
            window.more += 1
            return False
        window.recorded += 1
        return True

    def ended(self, now: datetime) -> Iterator[tuple[str, int]]:
        """(event, how many were only counted) of each window that is over."""
        for event, window in list(self._windows.items()):
            if (now - window.begun).total_seconds() >= WINDOW_S:
                del self._windows[event]
                if window.more:
                    yield event, window.more
