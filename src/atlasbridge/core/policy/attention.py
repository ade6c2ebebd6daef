"""How much is too much: one sound for many questions that come together, and so many notices an hour for a person.

Pure; it only ever takes the sound away from something, never the thing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlasbridge.core.policy.escalation import (
    EscalationPlan,
    EscalationPolicy,
    Life,
    Notification,
    Outlook,
    PresenceSettings,
    Route,
    decide_notifications,
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


def decide_tone(notification: Notification, identities: Iterable[str], people: PeopleBook) -> Tone:
    known = frozenset(identities)
    only = frozenset(one for one in known if people.person_of(one) in notification.who) if notification.who else None
    return Tone(
        notification.loud, only, frozenset(one for one in known if people.person_of(one) in notification.silent)
    )


@frozen
class AttentionSettings:
    """What the configuration says of people and of how they are told."""

    people: PeopleBook = field(default_factory=PeopleBook)
    escalation: tuple[EscalationPolicy, ...] = ()
    presence: PresenceSettings = field(default_factory=PresenceSettings)
    digest_s: float = 30.0  # after a sound, what comes within so long joins one digest; 0: each has its own
    notices_per_hour: int = 60  # with a sound, for each person; 0: as many as there are


class Bursts:
    """Which of many is the first: it makes a sound, what follows within the window is told together."""

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._began: dict[tuple[str, ...], tuple[float, int]] = {}  # by channel and the people who are reached there

    def rank(self, audience: tuple[str, ...], now: float) -> int:
        """0 for the first.  The window begins with it and is not prolonged by those that follow."""
        began, count = self._began.get(audience, (float("-inf"), 0))
        if now - began >= self.window_s:
            began, count = now, 0
        self._began[audience] = began, count + 1
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
        self,
        escalation_policy: EscalationPolicy,
        life: Life,
        chat_routes: Sequence[Route],
        outlook: Outlook,
        *,
        inhibited: bool = False,
    ) -> EscalationPlan:
        """`inhibited`: an idle box has no sound while a question waits."""
        spent = frozenset(
            name for chat_route in chat_routes for name in chat_route.people if self._budget.is_spent(name, outlook.now)
        )
        plan = decide_notifications(
            escalation_policy, life, chat_routes, replace(outlook, spent=spent), self.settings.presence
        )
        if not plan.notices:
            return plan
        by_name = {chat_route.name: chat_route for chat_route in chat_routes}
        heard: set[str] = set()
        notices = tuple(
            self._with_sound(notice, by_name[notice.channel], escalation_policy, outlook.now, inhibited, heard)
            for notice in plan.notices
        )
        for person in heard:
            self._budget.spend(person, outlook.now)
        return replace(plan, notices=notices)

    def _with_sound(
        self,
        notice: Notification,
        chat_route: Route,
        escalation_policy: EscalationPolicy,
        now: float,
        inhibited: bool,
        heard: set[str],
    ) -> Notification:
        if not notice.loud:
            return notice
        if inhibited:
            return replace(notice, loud=False)
        rank = (
            self._bursts.rank((chat_route.name, *chat_route.people), now)
            if chat_route.remote and not notice.reminder and not escalation_policy.urgent
            else 0
        )
        if rank:
            notice = replace(notice, loud=False, joins=True, opens=rank == 1)
        heard.update(listeners(notice, chat_route))
        return notice


def listeners(notice: Notification, chat_route: Route) -> tuple[str, ...]:
    """Who hears it, or the digest that begins with it: named people, not those for whom it is silent."""
    sounds = notice.loud or notice.opens
    return tuple(name for name in notice.who or chat_route.people if sounds and name not in notice.silent)
