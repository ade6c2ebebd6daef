"""Runs actions when they are due on the monotonic clock. The callers provide the actions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError

log = logging.getLogger(__name__)

LONGEST_SLEEP_S = 5.0  # the monotonic clock continues while the machine sleeps, the event loop's does not


class Scheduler:
    """Keys are unique: setting one again moves it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._actions: dict[str, tuple[float, Callable[[], None]]] = {}  # by key: when it is due
        self._changed = asyncio.Event()

    def set(self, key: str, at: float, action: Callable[[], None]) -> None:
        self._actions[key] = at, action
        self._changed.set()

    def cancel(self, key: str) -> None:
        self._actions.pop(key, None)

    def run_due(self) -> float | None:
        """Runs everything that is due. Returns the seconds until the next action; None if there is none."""
        now = self._clock.now()
        for at, key in sorted((at, key) for key, (at, _) in self._actions.items() if at <= now):
            known = self._actions.get(key)
            if known is not None and known[0] == at:  # an earlier action can have cancelled or moved it
                del self._actions[key]
                self._call(key, known[1])
        following = min((at for at, _ in self._actions.values()), default=None)
        return None if following is None else max(0.0, following - self._clock.now())

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
