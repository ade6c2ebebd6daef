"""How much is too much: one sound for many questions that come together, and so many notices an hour for a person.

Pure; it only ever takes the sound away from something, never the thing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlasbridge.core.policy.ladder import Course, Ladder, Lane, Life, Notice, Outlook, PresenceSettings, decide_course
from atlasbridge.core.policy.people import PeopleBook
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.values import field, frozen, replace

HOUR_S = 3600.0


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
        self._began: dict[str, float] = {}

    def is_first(self, channel: str, now: float) -> bool:
        """The window begins with the first and is not prolonged by those that follow."""
        began = self._began.get(channel)
        if began is not None and now - began < self.window_s:
            return False
        self._began[channel] = now
        return True

    def ends_at(self, channel: str) -> float:
        return self._began.get(channel, float("-inf")) + self.window_s


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
        self, ladder: Ladder, life: Life, lanes: Sequence[Lane], outlook: Outlook, *, inhibited: bool = False
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
        self, notice: Notice, lane: Lane, ladder: Ladder, now: float, inhibited: bool, heard: set[str]
    ) -> Notice:
        if not notice.loud:
            return notice
        if inhibited:
            return replace(notice, loud=False)
        if lane.remote and not notice.reminder and not ladder.urgent and not self._bursts.is_first(lane.name, now):
            return replace(notice, loud=False, joins=True)
        heard.update(listeners(notice, lane))
        return notice


def listeners(notice: Notice, lane: Lane) -> tuple[str, ...]:
    """Who hears it: named people, not those for whom it is silent."""
    return tuple(name for name in notice.who or lane.people if notice.loud and name not in notice.silent)


def heard_by(notices: Iterable[Notice], lanes: Sequence[Lane]) -> frozenset[str]:
    by_name = {lane.name: lane for lane in lanes}
    return frozenset(name for notice in notices for name in listeners(notice, by_name[notice.channel]))
