"""The only module that reads the time. All other code receives a `Clock` or a number."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds on a clock that never jumps and continues while the machine sleeps."""

    def wall(self) -> float:
        """Seconds since the epoch, for people and records only."""


def _steady() -> Callable[[], float]:
    if sys.platform == "win32":
        return time.monotonic
    return partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SystemClock:
    """`now` is the system function itself, without a wrapper, because it is called for every key and every chunk of
    output."""

    now = staticmethod(_steady())
    wall = staticmethod(time.time)


class ManualClock:
    """A clock that tests and the lab advance by hand."""

    def __init__(self, now: float = 1000.0, wall: float = 1_700_000_000.0) -> None:
        self._now = now
        self._wall = wall

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._wall += seconds

    def jump_wall(self, seconds: float) -> None:
        self._wall += seconds


def iso(wall: float) -> str:
    """ISO 8601 in UTC with microseconds: the one format of the store, the audit log and the event stream."""
    seconds, micros = divmod(round(wall * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros:06d}+00:00"


@lru_cache(maxsize=4)  # events of the same second are written together, and most times are close to each other
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def parse_iso(text: str) -> float:
    """The inverse of `iso`."""
    whole, _, rest = text.partition(".")
    return _parse_second(whole) + int(rest[:6]) / 1_000_000


def local_time(at: str, form: str = "%Y-%m-%d %H:%M:%S %Z") -> str:
    """Formats a time of `iso` in this machine's own time zone, with the zone's name; "" for an empty time."""
    return time.strftime(form, time.localtime(parse_iso(at))).strip() if at else ""


def local_clock(at: str) -> str:
    return local_time(at, "%H:%M %Z")


@lru_cache(maxsize=64)  # the same two times of an open prompt are read again and again
def _parse_second(text: str) -> int:
    import calendar  # slow to import, and sessions never need it

    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def parse_duration(text: str, bare_s: float = 1.0) -> float | None:
    """Parses "90", "90s", "30m", "1h30m" or "7d" into seconds. Returns None if the text is not a duration.

    `bare_s` is the unit, in seconds, of a number without a unit. Every duration that a person writes (options,
    settings, chats) is parsed here.
    """
    import re  # imported late: most sessions parse no duration

    said = text.strip().lower()
    if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]+)?", said):
        return float(said) * bare_s
    parts = re.findall(r"([0-9]{1,15}(?:\.[0-9]+)?)\s?(ms|[smhdw])\s?", said)
    if not parts or not re.fullmatch(r"(?:[0-9]{1,15}(?:\.[0-9]+)?\s?(?:ms|[smhdw])\s?)+", said):
        return None
    return sum(float(count) * _UNITS[unit] for count, unit in parts)


# A rate limit per key: at most a given number of events in any time window. The time is an argument.
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
