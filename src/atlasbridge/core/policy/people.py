"""Who a person is: one name for all the identities under which channels know them, and when they want quiet.

Pure: which minute of the day it is where a person lives is an argument.  Names decide nothing by themselves; who may
answer stands in each channel's own list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from atlasbridge.core.values import field, frozen

DAY_MIN = 24 * 60

LocalMinute = Callable[[str, float], int]
"""The minute of the day in a time zone ("": this machine's) at a moment of the wall clock."""


@frozen
class QuietHours:
    """From one minute of the day to another; over midnight where the end comes first."""

    start_min: int
    end_min: int

    def covers(self, minute: int) -> bool:
        if self.start_min <= self.end_min:
            return self.start_min <= minute < self.end_min
        return minute >= self.start_min or minute < self.end_min


def parse_quiet(text: str) -> QuietHours:
    """ "22:00-07:00"; anything else raises ValueError."""
    start, dash, end = text.partition("-")
    hours = QuietHours(parse_minute(start), parse_minute(end))
    if not dash or hours.start_min == hours.end_min:
        raise ValueError(f"{text!r} is no span of a day; write it as 22:00-07:00")
    return hours


def parse_minute(text: str) -> int:
    """ "06:30" as the minute of the day."""
    hours, colon, minutes = text.strip().partition(":")
    if not (colon and hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2):
        raise ValueError(f"{text!r} is no time of day; write it as 06:30")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text!r} is no time of day")
    return int(hours) * 60 + int(minutes)


@frozen
class Person:
    name: str
    identities: tuple[str, ...] = ()
    quiet: tuple[QuietHours, ...] = ()
    zone: str = ""

    def is_quiet(self, minute: int) -> bool:
        return any(hours.covers(minute) for hours in self.quiet)


@frozen
class PeopleBook:
    """Everybody who has a name.  Who has none is called by the identity itself, as ever."""

    people: tuple[Person, ...] = ()
    by_identity: Mapping[str, Person] = field(default_factory=dict)

    @classmethod
    def of(cls, *people: Person) -> PeopleBook:
        """An identity belongs to one person, a name to one, too; otherwise ValueError."""
        by_identity: dict[str, Person] = {}
        names: set[str] = set()
        for person in people:
            if person.name in names:
                raise ValueError(f"there are two people called {person.name!r}")
            names.add(person.name)
            for identity in person.identities:
                if identity in by_identity:
                    other = by_identity[identity].name
                    raise ValueError(f"{identity} belongs to {other!r} and to {person.name!r}")
                by_identity[identity] = person
        return cls(tuple(people), by_identity)

    def find(self, identity: str) -> Person | None:
        return self.by_identity.get(identity)

    def named(self, name: str) -> Person | None:
        return next((person for person in self.people if person.name == name), None)

    def person_of(self, identity: str) -> str:
        """Whom an identity means: two identities of one person give the same."""
        person = self.by_identity.get(identity)
        return person.name if person else identity

    def quiet_now(self, wall: float, local_minute: LocalMinute) -> frozenset[str]:
        """The names of those who want quiet at this moment."""
        return frozenset(
            person.name for person in self.people if person.quiet and person.is_quiet(local_minute(person.zone, wall))
        )
