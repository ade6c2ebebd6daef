"""Calls what is due, on the steady clock.  What is due when is known by the pure queue; what to do, by the callers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from atlasbridge.core.clock import Clock

log = logging.getLogger(__name__)

LONGEST_SLEEP_S = 5.0  # the steady clock goes on while the machine sleeps, the event loop's does not


class Scheduler:
    """Keys are unique: setting one again moves it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._changed = asyncio.Event()

    def set(self, key: str, at: float, action: Callable[[], None]) -> None:
        self._due[key] = (at, action)
        self._changed.set()

    def cancel(self, key: str) -> None:
        self._due.pop(key, None)

    def run_due(self) -> float | None:
        """Call everything that is due; returns the seconds until the next, None when nothing waits."""
        now = self._clock.now()
        for key, (at, action) in sorted(self._due.items(), key=lambda item: item[1][0]):
            if at <= now and self._due.get(key) == (at, action):
                del self._due[key]
                action()
        if not self._due:
            return None
        return max(0.0, min(at for at, _ in self._due.values()) - self._clock.now())

    async def run(self) -> None:
        while True:
            self._changed.clear()
            wait_s = self.run_due()
            try:
                async with asyncio.timeout(None if wait_s is None else min(wait_s, LONGEST_SLEEP_S)):
                    await self._changed.wait()
            except TimeoutError:
                pass
