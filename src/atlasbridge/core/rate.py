"""A rate limit per key: at most a given number of events in any time window. The time is an argument."""

from __future__ import annotations

from collections import deque

MAX_KEYS = 1024


class RateWindow:
    """The number of keys is limited: the key that was inactive for longest is removed first."""

    def __init__(self, limit: int, window_s: float = 60.0) -> None:
        self.limit = limit
        self.window_s = window_s
        self._seen: dict[str, deque[float]] = {}

    def admit(self, key: str, now: float) -> float:
        """Returns 0.0 and counts the event if it is allowed now; otherwise the seconds until the next one is
        allowed."""
        wait_s = self.wait_s(key, now)
        if wait_s == 0.0:
            seen = self._seen.pop(key, None) or deque()
            self._seen[key] = seen  # moved to the end, so that the first key is the one inactive for longest
            seen.append(now)
            if len(self._seen) > MAX_KEYS:
                del self._seen[next(iter(self._seen))]
        return wait_s

    def wait_s(self, key: str, now: float) -> float:
        """Like `admit`, but counts nothing."""
        seen = self._seen.get(key)
        while seen and seen[0] <= now - self.window_s:
            seen.popleft()
        return seen[-self.limit] + self.window_s - now if seen and len(seen) >= self.limit else 0.0

    def forget_last(self, key: str) -> None:
        if seen := self._seen.get(key):
            seen.pop()

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)
