"""Accepted forms of values: numbers and words that can also be called, durations, environments.

The specification writes `pool.active_count()` and `Duration::from_secs(1)`; Python uses attributes and seconds. Both
forms are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

Duration = float | timedelta
Environment = Mapping[str, str] | Iterable[tuple[str, str]]


class Count(int):
    """A number that can also be called: `pool.available` and `pool.available()` return the same."""

    def __call__(self) -> int:
        return int(self)


class Words(tuple[str, ...]):
    """A tuple that can also be called; the call returns a new list."""

    __slots__ = ()

    def __call__(self) -> list[str]:
        return list(self)


class Name(str):
    """A name that can also be called."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


def seconds(duration: Duration) -> float:
    """A duration as a number of seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def seconds_or_none(duration: Duration | None) -> float | None:
    return None if duration is None else seconds(duration)


def environment(env: Environment | None) -> dict[str, str]:
    """A mapping or pairs of name and value; if a name is given twice, the last one counts, as in a shell."""
    return dict(env or {})
