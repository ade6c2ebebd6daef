"""The forms in which values may be written: numbers and words that can also be called, durations, environments.

The specification writes `pool.active_count()` and `Duration::from_secs(1)`; Python reads attributes and counts seconds.
Both are understood; what is done with the values is left to those who ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

Duration = float | timedelta
Environment = Mapping[str, str] | Iterable[tuple[str, str]]


class Count(int):
    """A number that may be called, too: `pool.available` and `pool.available()` say the same."""

    def __call__(self) -> int:
        return int(self)


class Words(tuple[str, ...]):
    """A tuple that may be called, too; the call gives a list of one's own."""

    __slots__ = ()

    def __call__(self) -> list[str]:
        return list(self)


class Name(str):
    """A name that may be called, too."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


def seconds(duration: Duration) -> float:
    """A duration as a number of seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def seconds_or_none(duration: Duration | None) -> float | None:
    return None if duration is None else seconds(duration)


def environment(env: Environment | None) -> dict[str, str]:
    """A mapping or pairs of name and value; of a name that is given twice the last counts, as in a shell."""
    return dict(env or {})
