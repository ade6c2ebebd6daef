"""Limits: so many at once, then so many a minute, per key; and so many at the same time.  Bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from atlasbridge.core.clock import Clock

MAX_KEYS = 1024


class Limiter:
    """A leaky bucket for each key.  `allow` takes one; `wait_s` says when the next one is free."""

    def __init__(self, clock: Clock, per_minute: float, burst: int) -> None:
        self._clock = clock
        self._per_s = per_minute / 60.0
        self._burst = burst
        self._levels: dict[str, tuple[float, float]] = {}

    def allow(self, key: str) -> bool:
        level = self._level(key)
        if level + 1 > self._burst:
            return False
        if key not in self._levels and len(self._levels) >= MAX_KEYS:
            self._forget_oldest()
        self._levels[key] = (level + 1, self._clock.now())
        return True

    def wait_s(self, key: str) -> float:
        return max(0.0, (self._level(key) + 1 - self._burst) / self._per_s)

    def _level(self, key: str) -> float:
        level, at = self._levels.get(key, (0.0, 0.0))
        return max(0.0, level - (self._clock.now() - at) * self._per_s)

    def _forget_oldest(self) -> None:
        del self._levels[min(self._levels, key=lambda key: self._levels[key][1])]


class Readers:
    """Bodies that are being read.  When there are many, the one that has taken longest is given up: an honest body
    comes at once with its head."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._open: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def reading(self, patience_s: float) -> AsyncIterator[None]:
        """Raises TimeoutError inside when it takes too long, or when others need the room."""
        if len(self._open) >= self._total:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        async with asyncio.timeout(patience_s) as limit:
            self._open[limit] = None
            try:
                yield
            finally:
                self._open.pop(limit, None)
