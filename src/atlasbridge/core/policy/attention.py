"""How much is too much: one sound for many questions that come together, and so many notices an hour for a person.

Pure; it only ever takes the sound away from something, never the thing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlasbridge.core.policy.ladder import (
    Course,
    Ladder,
    Life,
    Outlet,
    Outlook,
    PresenceSettings,
    Telling,
    decide_course,
)
from atlasbridge.core.policy.people import PeopleBook
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.values import field, frozen, replace

HOUR_S = 3600.0


@frozen
class Tone:
    """How a channel is to show a prompt: to whom, and for whom without a sound; identities, not names."""

    loud: bool = True
    only: frozenset[str] | None = None  # None: everybody there
    silent: frozenset[str] = frozenset()

    def sounds_for(self, identity: str) -> bool:
        return self.loud and identity not in self.silent


def decide_tone(telling: Telling, identities: Iterable[str], people: PeopleBook) -> Tone:
    known = frozenset(identities)
    only = frozenset(one for one in known if people.person_of(one) in telling.who) if telling.who else None
    return Tone(telling.loud, only, frozenset(one for one in known if people.person_of(one) in telling.silent))


@frozen
class AttentionSettings:
    """What the configuration says of people and of how they are told."""

    people: PeopleBook = field(default_factory=PeopleBook)
    ladders: tuple[Ladder, ...] = ()
    presence: PresenceSettings = field(default_factory=PresenceSettings)
    digest_s: float = 30.0  # after a sound, what comes within so long joins one digest; 0: each has its own
    notices_per_hour: int = 60  # with a sound, for each person; 0: as many as there are


class Bursts:
    """Which of many is the first: it makes a sound, what follows within the window is told together."""

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._began: dict[str, tuple[float, int]] = {}

    def rank(self, channel: str, now: float) -> int:
        """0 for the first.  The window begins with it and is not prolonged by those that follow."""
        began, count = self._began.get(channel, (float("-inf"), 0))
        if now - began >= self.window_s:
            began, count = now, 0
        self._began[channel] = began, count + 1
        return count


class NoticeBudget:
    """Notices with a sound, for each person: at most so many in any hour."""

    def __init__(self, per_hour: int) -> None:
        self._limited = per_hour > 0
        self._window = RateWindow(max(1, per_hour), HOUR_S)

    def is_spent(self, person: str, now: float) -> bool:
        return self._limited and self._window.wait_s(person, now) > 0

    def spend(self, person: str, now: float) -> None:
        if self._limited:
            self._window.admit(person, now)


class Attendance:
    """All of it together, for all prompts of a hub: what is sent now, and who hears it.

    What people have heard is given back to it after a restart (`remember`), so that an hour stays an hour.
    """

    def __init__(self, settings: AttentionSettings) -> None:
        self.settings = settings
        self._bursts = Bursts(settings.digest_s)
        self._budget = NoticeBudget(settings.notices_per_hour)

    def use(self, settings: AttentionSettings) -> None:
        """After a reload; what was heard stays heard while the limit is the same."""
        if settings.notices_per_hour != self.settings.notices_per_hour:
            self._budget = NoticeBudget(settings.notices_per_hour)
        self._bursts.window_s = settings.digest_s
        self.settings = settings

    def remember(self, person: str, at: float) -> None:
        self._budget.spend(person, at)

    def decide(
        self, ladder: Ladder, life: Life, lanes: Sequence[Outlet], outlook: Outlook, *, inhibited: bool = False
    ) -> Course:
        """`inhibited`: an idle box has no sound while a question waits."""
        spent = frozenset(name for lane in lanes for name in lane.people if self._budget.is_spent(name, outlook.now))
        course = decide_course(ladder, life, lanes, replace(outlook, spent=spent), self.settings.presence)
        if not course.notices:
            return course
        by_name = {lane.name: lane for lane in lanes}
        heard: set[str] = set()
        notices = tuple(
            self._with_sound(notice, by_name[notice.channel], ladder, outlook.now, inhibited, heard)
            for notice in course.notices
        )
        for person in heard:
            self._budget.spend(person, outlook.now)
        return replace(course, notices=notices)

    def _with_sound(
        self, notice: Telling, lane: Outlet, ladder: Ladder, now: float, inhibited: bool, heard: set[str]
    ) -> Telling:
        if not notice.loud:
            return notice
        if inhibited:
            return replace(notice, loud=False)
        rank = self._bursts.rank(lane.name, now) if lane.remote and not notice.reminder and not ladder.urgent else 0
        if rank:
            notice = replace(notice, loud=False, joins=True, opens=rank == 1)
        heard.update(listeners(notice, lane))
        return notice


def listeners(notice: Telling, lane: Outlet) -> tuple[str, ...]:
    """Who hears it, or the digest that begins with it: named people, not those for whom it is silent."""
    sounds = notice.loud or notice.opens
    return tuple(name for name in notice.who or lane.people if sounds and name not in notice.silent)
