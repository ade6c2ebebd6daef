"""Rate limits: so many at once, then so many a minute, per key.  Bounded memory; time comes from the clock given."""

from __future__ import annotations

from atlasbridge.core.clock import Clock

MAX_KEYS = 1024


class Limiter:
    """A leaky bucket for each key.  `allow` takes one; `spent` only looks."""

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

    def spent(self, key: str) -> bool:
        return self._level(key) + 1 > self._burst

    def _level(self, key: str) -> float:
        level, at = self._levels.get(key, (0.0, 0.0))
        return max(0.0, level - (self._clock.now() - at) * self._per_s)

    def _forget_oldest(self) -> None:
        del self._levels[min(self._levels, key=lambda key: self._levels[key][1])]
