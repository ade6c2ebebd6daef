"""Parses times such as "06:00", "in 2h" or "Oct 9 at 6pm (Europe/Berlin)", and finds when a tool's usage limit resets.

Pure: the wall time and the speaker's time zone are arguments. The hub acts at that time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from re import IGNORECASE, Match
from typing import Final

from atlasbridge.core.patterns import lazy

# by name; None for this machine's own zone; raises ValueError for an unknown name
Zones = Callable[[str], tzinfo | None]

LIMIT: Final = "limit_resets_at"  # key of a prompt's constraints: when the usage limit on its screen resets
LONGEST_S: Final = 8 * 24 * 3600.0  # a weekly limit plus a day
DAY_S: Final = 24 * 3600.0
JUST_PAST_S: Final = 3600.0  # a time of day within the last hour is past, not a day ahead
LOOKED_AT: Final = 4000  # characters at the end of a screen to search

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS: Final = {"d": DAY_S, "h": 3600.0, "m": 60.0, "s": 1.0}

_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s?(?P<half>[ap]\.?m\b\.?)?"
_DATE = (
    r"(?:(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})[T ]"
    r"|(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<nth>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:,\s*(?P<later>\d{4}))?,?\s+(?:at\s+)?"
    r"|(?P<tomorrow>tomorrow)\s+(?:at\s+)?"
    r"|(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:at\s+)?)"
)
_ZONE = r"(?:\s*\(?(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+)+|UTC|GMT(?:[+-]\d{1,2}(?::?\d{2})?)?)\)?)?"
_WHEN = rf"(?:{_DATE})?{_TIME}{_ZONE}"
_SPAN = r"(?P<span>(?:\d+\s?(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])[\s,]*(?:and\s+)?)+)"
_PART = lazy(r"(?<!\d)(\d++)\s?([dhms])")
_SAID = lazy(rf"(?:at\s+)?{_WHEN}", IGNORECASE)
_LASTS = lazy(rf"(?:in\s+|\+)?{_SPAN}", IGNORECASE)
_LIMIT = r"(?:limit|quota|capacity|credits)\b"
_RESET_AT = lazy(
    rf"{_LIMIT}.{{0,200}}?(?:\bresets?|try again|available again|renews?)\s*(?:at\s+|on\s+)?[:∙·]?\s*{_WHEN}",
    IGNORECASE,
)
_RESET_IN = lazy(
    rf"{_LIMIT}.{{0,200}}?(?:\bresets?|try again|available again|retry(?:ing)?|renews?)\s+(?:in|after)\s+{_SPAN}",
    IGNORECASE,
)


def parse_when(text: str, wall: float, zone: str, zones: Zones) -> float | None:
    """Parses a person's text. Returns the wall time in the future; None if it is unreadable or too far ahead."""
    said = " ".join(text.split())
    if lasts := _LASTS.fullmatch(said):
        return _ahead(wall + span_s(lasts["span"]), wall)
    if (found := _SAID.fullmatch(said)) is None or not (found["minute"] or found["half"]):
        return None
    return _ahead(_moment(found, wall, zone, zones, 0.0), wall)


def find_reset(screen: str, wall: float, zones: Zones) -> float | None:
    """When the usage limit on a screen resets; None if there is none, or if that time has passed."""
    flat = " ".join(screen[-LOOKED_AT:].replace("│", " ").split())
    at = [(match.end(), _reset_at(match, wall, zones)) for match in _RESET_AT.finditer(flat)]
    spans = [(match.end(), wall + span_s(match["span"])) for match in _RESET_IN.finditer(flat)]
    said = sorted((end, moment) for end, moment in at + spans if moment is not None)
    return _ahead(said[-1][1], wall) if said else None


def span_s(text: str) -> float:
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text.lower()))


def _reset_at(found: Match[str], wall: float, zones: Zones) -> float | None:
    if not (found["minute"] or found["half"]):
        return None
    return _moment(found, wall, "", zones, JUST_PAST_S)


def _ahead(moment: float | None, wall: float) -> float | None:
    return moment if moment is not None and wall < moment <= wall + LONGEST_S else None


def _moment(found: Match[str], wall: float, zone: str, zones: Zones, past_s: float) -> float | None:
    """`past_s`: a time of day without a date counts as past if it was at most this long ago."""
    hour = _hour(int(found["hour"]), found["half"] or "")
    place = _zone(found["zone"] or zone, zones)
    minute = int(found["minute"] or 0)
    if hour is None or minute > 59 or isinstance(place, str):
        return None
    now = datetime.fromtimestamp(wall, UTC).astimezone(place)
    day = _day(found, now)
    if day is None:
        return None
    then = _at(day, hour, minute, place)
    dated = any(found[name] for name in ("year", "name", "tomorrow", "weekday"))
    if not dated and then <= wall:
        then = _at(now + timedelta(days=1), hour, minute, place)
        return None if then > wall + DAY_S - past_s else then
    return then


def _day(found: Match[str], now: datetime) -> datetime | None:
    try:
        if found["year"]:
            return now.replace(year=int(found["year"]), month=int(found["month"]), day=int(found["day"]))
        if found["name"]:
            month, day = _MONTHS.index(found["name"].lower()) + 1, int(found["nth"])
            year = int(found["later"] or now.year + (month < now.month))
            return now.replace(year=year, month=month, day=day)
    except ValueError:
        return None
    if found["tomorrow"]:
        return now + timedelta(days=1)
    if found["weekday"]:
        return now + timedelta(days=(_DAYS.index(found["weekday"].lower()) - now.weekday()) % 7)
    return now


def _at(day: datetime, hour: int, minute: int, place: tzinfo | None) -> float:
    """Uses the calendar of that place, because a day with a change of daylight saving time does not have 24 hours."""
    naive = datetime(day.year, day.month, day.day, hour, minute)
    return (naive.astimezone() if place is None else naive.replace(tzinfo=place)).timestamp()


def _hour(hour: int, half: str) -> int | None:
    if not half:
        return hour if hour < 24 else None
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half.lower().startswith("p") else 0)


def _zone(name: str, zones: Zones) -> tzinfo | str | None:
    """Returns a string if the zone is unknown."""
    if name.upper() in ("UTC", "GMT"):
        return UTC
    if name.upper().startswith(("GMT+", "GMT-")):
        hours, _, minutes = name[4:].partition(":")
        sign = -1 if name[3] == "-" else 1
        return timezone(sign * timedelta(hours=int(hours[:2]), minutes=int(minutes or 0)))
    try:
        return zones(name)
    except ValueError:
        return f"no zone {name}"


# The time of day in a person's time zone.


@lru_cache(maxsize=64)
def find_zone(name: str) -> tzinfo | None:
    """None for this machine's own zone. Raises ValueError for an unknown name."""
    if not name:
        return None
    # imported late: most people are in the time zone of their machine
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; write it as Europe/Berlin") from None


def minute_of_day(zone: str, wall: float) -> int:
    moment = datetime.fromtimestamp(wall, UTC).astimezone(find_zone(zone))
    return moment.hour * 60 + moment.minute


def say_moment(wall: float, zone: str, now: float) -> str:
    """Formats a time as 06:00, with its day if that is not today."""
    moment, today = (datetime.fromtimestamp(at, UTC).astimezone(find_zone(zone)) for at in (wall, now))
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%a %d %b %H:%M")
