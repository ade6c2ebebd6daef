"""How often something may happen: at most so many times in any window of time, for each key.  Time is an argument."""

from __future__ import annotations

from collections import deque

MAX_KEYS = 1024


class RateWindow:
    """Bounded: of very many keys the one that was quiet for longest is forgotten."""

    def __init__(self, limit: int, window_s: float = 60.0) -> None:
        self.limit = limit
        self.window_s = window_s
        self._seen: dict[str, deque[float]] = {}

    def admit(self, key: str, now: float) -> float:
        """0.0: it may happen now, and counts; else the seconds until the next one may."""
        wait_s = self.wait_s(key, now)
        if wait_s == 0.0:
            seen = self._seen.pop(key, None) or deque()
            self._seen[key] = seen  # behind all others: the first is the one that was quiet for longest
            seen.append(now)
            if len(self._seen) > MAX_KEYS:
                del self._seen[next(iter(self._seen))]
        return wait_s

    def wait_s(self, key: str, now: float) -> float:
        """The same, and nothing is counted."""
        seen = self._seen.get(key)
        while seen and seen[0] <= now - self.window_s:
            seen.popleft()
        return seen[-self.limit] + self.window_s - now if seen and len(seen) >= self.limit else 0.0

    def forget_last(self, key: str) -> None:
        if seen := self._seen.get(key):
            seen.pop()

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)
