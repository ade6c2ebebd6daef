"""People: one name for all identities of a person in the channels, and their quiet hours.

Pure: the minute of the day in a person's time zone is an argument. Names decide nothing by themselves; each channel has
its own list of people who are allowed to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from atlasbridge.core.policy.rule import Verdict
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.values import field, frozen, replace

# Quorum: who has approved, and how many approvals are missing. It counts people, not the channels they use.

QUORUM = "quorum"  # key of a prompt's constraints
PROOF = "proof"  # another key: {"kind", "rule", "page"}
PASSKEY = "passkey"
CARD = "card"  # another key: the address of the prompt on the page
PAGE = "web.page"  # the store's note with the address of the page


@frozen
class Quorum:
    approvals: int
    rule: str
    person: tuple[str, ...] = ()

    def admits(self, person: str) -> bool:
        return not self.person or person in self.person

    def missing(self, people: Iterable[str]) -> int:
        return max(0, self.approvals - len(set(people)))


def with_quorum(prompt: Prompt, verdict: Verdict) -> Prompt:
    """Adds how many people, and which, must approve the prompt."""
    if verdict.approvals < 2 and not verdict.person:
        return prompt
    wanted = {"approvals": verdict.approvals, "rule": verdict.rule, "person": list(verdict.person)}
    return replace(prompt, constraints={**prompt.constraints, QUORUM: wanted})


def with_proof(prompt: Prompt, verdict: Verdict, page: str) -> Prompt:
    """Adds the proof that an approval needs; `page`: where it can be given."""
    if not verdict.proof:
        return prompt
    wanted = {"kind": verdict.proof, "rule": verdict.rule, "page": page}
    return replace(prompt, constraints={**prompt.constraints, PROOF: wanted})


def quorum_of(constraints: Mapping[str, Any]) -> Quorum:
    """For a prompt that has a quorum."""
    wanted = constraints[QUORUM]
    people = tuple(str(item) for item in wanted.get("person", ()))
    return Quorum(max(1, int(wanted.get("approvals", 1))), str(wanted.get("rule", "")), people)


def describe_votes(quorum: Quorum, people: Iterable[str]) -> str:
    agreed = sorted(set(people))
    missing = quorum.missing(agreed)
    who = f"{', '.join(agreed)} agreed" if agreed else "nobody has agreed yet"
    more = "one more person" if missing == 1 else f"{missing} more people"
    among = f" of {', '.join(person for person in quorum.person if person not in agreed)}" if quorum.person else ""
    return f"{who}; {more}{among} must agree ({quorum.rule})." if missing else f"{who} ({quorum.rule})."


LocalMinute = Callable[[str, float], int]
"""The minute of the day in a time zone ("": this machine's) at a moment of the wall clock."""


@frozen
class QuietHours:
    """From one minute of the day to another; over midnight if the end is earlier."""

    start_min: int
    end_min: int

    def covers(self, minute: int) -> bool:
        if self.start_min <= self.end_min:
            return self.start_min <= minute < self.end_min
        return minute >= self.start_min or minute < self.end_min


def parse_quiet(text: str) -> QuietHours:
    """Parses "22:00-07:00"; anything else raises ValueError."""
    start, dash, end = text.partition("-")
    hours = QuietHours(parse_minute(start), parse_minute(end))
    if not dash or hours.start_min == hours.end_min:
        raise ValueError(f"{text!r} is no span of a day; write it as 22:00-07:00")
    return hours


def parse_minute(text: str) -> int:
    """Parses "06:30" into the minute of the day."""
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
    language: str = ""

    def is_quiet(self, minute: int) -> bool:
        return any(hours.covers(minute) for hours in self.quiet)


@frozen
class PeopleBook:
    """Everybody who has a name. People without one are called by their identity."""

    people: tuple[Person, ...] = ()
    by_identity: Mapping[str, Person] = field(default_factory=dict)

    @classmethod
    def of(cls, *people: Person) -> PeopleBook:
        """Raises ValueError if an identity or a name belongs to two people."""
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
        """The name of the person behind an identity: all identities of one person give the same."""
        person = self.by_identity.get(identity)
        return person.name if person else identity

    def quiet_now(self, wall: float, local_minute: LocalMinute) -> frozenset[str]:
        """The names of the people who are in quiet hours now."""
        return frozenset(
            person.name for person in self.people if person.quiet and person.is_quiet(local_minute(person.zone, wall))
        )
