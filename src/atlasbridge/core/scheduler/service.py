"""Runs actions when they are due on the monotonic clock. The queue knows the deadlines; the callers provide the
actions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.scheduler.deadlines import Deadlines

log = logging.getLogger(__name__)

LONGEST_SLEEP_S = 5.0  # the monotonic clock continues while the machine sleeps, the event loop's does not


class Scheduler:
    """Keys are unique: setting one again moves it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadlines = Deadlines()
        self._actions: dict[str, Callable[[], None]] = {}
        self._changed = asyncio.Event()

    def set(self, key: str, at: float, action: Callable[[], None]) -> None:
        self._deadlines.set(key, at)
        self._actions[key] = action
        self._changed.set()

    def cancel(self, key: str) -> None:
        self._deadlines.drop(key)
        self._actions.pop(key, None)

    def run_due(self) -> float | None:
        """Runs everything that is due. Returns the seconds until the next action; None if there is none."""
        for key in self._deadlines.due(self._clock.now()):
            action = self._actions.pop(key, None)  # an earlier action can have cancelled it
            if action is not None:
                self._call(key, action)
        at = self._deadlines.next_at()
        return None if at is None else max(0.0, at - self._clock.now())

    def _call(self, key: str, action: Callable[[], None]) -> None:
        """If the store cannot be written now (a full disk), the action is retried later."""
        try:
            action()
        except StoreError as error:
            log.error("%s was put off: %s", key, error)
            self.set(key, self._clock.now() + LONGEST_SLEEP_S, action)

    async def run(self) -> None:
        while True:
            self._changed.clear()
            wait_s = self.run_due()
            try:
                async with asyncio.timeout(None if wait_s is None else min(wait_s, LONGEST_SLEEP_S)):
                    await self._changed.wait()
            except TimeoutError:
                pass
