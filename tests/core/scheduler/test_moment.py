"""What people say of a moment, and what AI CLIs print about their limits."""

from __future__ import annotations

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from atlasbridge.core.scheduler.times import LONGEST_S, find_reset, find_zone, parse_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 22, 10, tzinfo=BERLIN).timestamp()  # a Monday


def _zones(name: str) -> tzinfo | None:
    return find_zone(name) if name else BERLIN


def _said(text: str, wall: float = NOW) -> str | None:
    moment = parse_when(text, wall, "", _zones)
    return datetime.fromtimestamp(moment, BERLIN).strftime("%a %d %H:%M:%S") if moment else None


def _reset(text: str, wall: float = NOW) -> str | None:
    moment = find_reset(text, wall, _zones)
    return datetime.fromtimestamp(moment, BERLIN).strftime("%a %d %H:%M") if moment else None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("06:00", "Tue 17 06:00:00"),
        ("6am", "Tue 17 06:00:00"),
        ("at 11:30 pm", "Mon 16 23:30:00"),
        ("12am", "Tue 17 00:00:00"),
        ("tomorrow 22:00", "Tue 17 22:00:00"),
        ("wed 9:00", "Wed 18 09:00:00"),
        ("2026-11-18 07:15", "Wed 18 07:15:00"),
        ("2026-11-18T07:15", "Wed 18 07:15:00"),
        ("06:00 UTC", "Tue 17 07:00:00"),
        ("06:00 (America/New_York)", "Tue 17 12:00:00"),
        ("15m", "Mon 16 22:25:00"),
        ("in 2h", "Tue 17 00:10:00"),
        ("+1h30m", "Mon 16 23:40:00"),
        ("2 days", "Wed 18 22:10:00"),
    ],
)
def test_a_moment_is_read_as_a_person_means_it(text: str, meant: str) -> None:
    assert _said(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6",
        "25:00",
        "13pm",
        "06:60",
        "soon",
        "06:00 Nowhere/Land",
        "0m",
        "99 days",
        "2026-02-30 06:00",
        "y",
        "06:00 y",
    ],
)
def test_what_cannot_be_read_or_is_too_far_away_is_no_moment(text: str) -> None:
    assert _said(text) is None


def test_a_moment_in_the_zone_of_the_person_who_speaks() -> None:
    moment = parse_when("06:00", NOW, "America/New_York", _zones)
    assert moment is not None
    assert datetime.fromtimestamp(moment, ZoneInfo("America/New_York")).strftime("%H:%M") == "06:00"


def test_the_night_in_which_the_clocks_go_back_has_an_hour_more() -> None:
    evening = datetime(2026, 10, 24, 22, 0, tzinfo=BERLIN).timestamp()
    moment = parse_when("06:00", evening, "", _zones)
    assert moment == evening + 9 * 3600


@pytest.mark.parametrize(
    ("screen", "meant"),
    [
        ("  ⎿  You've hit your session limit · resets 1am (Europe/Berlin)\n     /upgrade", "Tue 17 01:00"),
        ("  ⎿  You've hit your limit · resets at 2:45am", "Tue 17 02:45"),
        ("Claude usage limit reached. Your limit will reset at 7pm (America/New_York).", "Tue 17 01:00"),
        ("5-hour limit reached ∙ resets 11:30pm\n /upgrade to increase your usage limit.", "Mon 16 23:30"),
        ("Weekly limit reached ∙ resets Nov 20 at 6pm", "Fri 20 18:00"),
        ("You've hit your weekly limit · resets Fri 9:00 AM", "Fri 20 09:00"),
        ("■ You've hit your usage limit. Upgrade to Plus to continue using Codex\n (https://chatgpt.com/explore/plus), "
         "or try again at 1:05 AM.", "Tue 17 01:05"),
        ("■ You've hit your usage limit. To get more access now, send a request to your\nadmin or try again at "
         "Nov 19th, 2026 3:45 PM.", "Thu 19 15:45"),
        ("│ Usage limit reached for gemini-3-pro.                  │\n│ Access resets at 12:09 AM GMT+2. "
         "  │\n│ /stats model for usage details │", "Mon 16 23:09"),
        ("You have exhausted your capacity on this model. Your quota will reset after 3h22m10s.", "Tue 17 01:32"),
        ("Rate limit exceeded, try again in 45 minutes.", "Mon 16 22:55"),
        ("You've hit your fast limit · resets in 12m", "Mon 16 22:22"),
    ],
)  # fmt: skip
def test_a_limit_that_a_tool_speaks_of_is_read(screen: str, meant: str) -> None:
    assert _reset(screen) == meant


@pytest.mark.parametrize(
    "screen",
    [
        "",
        "Approaching usage limit",
        "The counter resets at 06:00 every day.",
        "Set limit to 5 rows. Then reset 3 of them.",
        "limit reached, resets soon",
        "Usage limit reached. Access resets at 25:99 PM.",
    ],
)
def test_other_screens_speak_of_no_limit(screen: str) -> None:
    assert _reset(screen) is None


def test_a_limit_that_is_over_by_now_is_none() -> None:
    assert _reset("You've hit your session limit · resets 10pm") is None
    assert _reset("You've hit your weekly limit · resets Nov 12 at 6pm") is None


def test_of_two_limits_on_a_screen_the_newest_counts() -> None:
    assert _reset("hit your limit · resets 11pm\nmore\nhit your limit · resets 4am") == "Tue 17 04:00"


@pytest.mark.parametrize("wall", [0.0, NOW, NOW + 200 * 24 * 3600])
def test_no_moment_is_past_or_further_away_than_the_longest(wall: float) -> None:
    for text in ("06:00", "8 days", "fri 12:00", "Jan 1 at 0:30am", "2026-11-18 07:15"):
        moment = parse_when(text, wall, "", _zones)
        assert moment is None or wall < moment <= wall + LONGEST_S
