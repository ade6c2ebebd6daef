"""The time of day where a person lives, from the wall clock and a time zone's name."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache


@lru_cache(maxsize=64)
def find_zone(name: str) -> tzinfo | None:
    """None: this machine's own.  A name that is none raises ValueError."""
    if not name:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # most people live where their machine does

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; write it as Europe/Berlin") from None


def minute_of_day(zone: str, wall: float) -> int:
    moment = datetime.fromtimestamp(wall, UTC).astimezone(find_zone(zone))
    return moment.hour * 60 + moment.minute


def next_moment(minute: int, zone: str, wall: float) -> float:
    """The wall time at which it is next that minute of the day there; a day away if it is just now."""
    now = datetime.fromtimestamp(wall, UTC).astimezone(find_zone(zone))
    ahead_min = (minute - (now.hour * 60 + now.minute)) % (24 * 60) or 24 * 60
    return wall + ahead_min * 60 - now.second - now.microsecond / 1e6


def say_moment(wall: float, zone: str, now: float) -> str:
    """ "06:00", or with its day where that is not today."""
    moment, today = (datetime.fromtimestamp(at, UTC).astimezone(find_zone(zone)) for at in (wall, now))
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%a %d %b %H:%M")
