"""People: one name for many identities, quiet hours in the time zone where they live."""

from __future__ import annotations

import calendar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.policy.escalation import PeopleBook, Person, QuietHours, parse_quiet
from atlasbridge.core.scheduler.times import find_zone, minute_of_day

ANA = Person("Ana", ("telegram:1001", "slack:T1/U2"), (parse_quiet("22:00-07:00"),), "Europe/Berlin")
BO = Person("Bo", ("web:bo",))
BOOK = PeopleBook.of(ANA, BO)


def wall(text: str) -> float:
    import time

    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M"))


def test_two_identities_of_one_person_mean_the_same_person() -> None:
    assert BOOK.person_of("telegram:1001") == BOOK.person_of("slack:T1/U2") == "Ana"
    assert BOOK.find("web:bo") is BO and BOOK.named("Bo") is BO


def test_who_has_no_name_keeps_the_identity() -> None:
    assert BOOK.person_of("telegram:7") == "telegram:7" and BOOK.find("telegram:7") is None
    assert PeopleBook().person_of("cli:local") == "cli:local"


@pytest.mark.parametrize("others", [Person("Cy", ("web:bo",)), Person("Bo", ("web:x",))])
def test_an_identity_and_a_name_belong_to_one_person_only(others: Person) -> None:
    with pytest.raises(ValueError, match="Bo"):
        PeopleBook.of(ANA, BO, others)


@pytest.mark.parametrize("text", ["", "22:00", "22-07", "25:00-07:00", "22:60-07:00", "07:00-07:00", "a:b-c:d"])
def test_what_is_no_span_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_quiet(text)


@given(*3 * [st.integers(0, 24 * 60 - 1)])
def test_quiet_hours_and_their_opposite_share_the_day(start: int, end: int, minute: int) -> None:
    if start != end:
        assert QuietHours(start, end).covers(minute) != QuietHours(end, start).covers(minute)


def test_quiet_hours_follow_the_person_s_own_clock() -> None:
    assert BOOK.quiet_now(wall("2026-01-10 21:30"), minute_of_day) == {"Ana"}  # 22:30 in Berlin
    assert BOOK.quiet_now(wall("2026-07-10 20:30"), minute_of_day) == {"Ana"}  # summer time: 22:30 again
    assert BOOK.quiet_now(wall("2026-01-10 20:30"), minute_of_day) == frozenset()


def test_a_time_zone_that_does_not_exist_is_a_person_s_fault() -> None:
    with pytest.raises(ValueError, match="Mars"):
        find_zone("Mars/Olympus")
