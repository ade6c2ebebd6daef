"""Limits notifications: one sound for several questions that arrive together, and a number of notifications per person
and hour.

Pure; it only removes the sound of a notification, never the notification itself.
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
    """How a channel shows a prompt: to whom, and for whom without a sound; identities, not names."""

    loud: bool = True
    only: frozenset[str] | None = None  # None: everybody in the channel
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
    """The configuration of people and their notifications."""

    people: PeopleBook = field(default_factory=PeopleBook)
    escalation: tuple[EscalationPolicy, ...] = ()
    presence: PresenceSettings = field(default_factory=PresenceSettings)
    digest_s: float = 30.0  # after a sound, prompts within this time join one digest; 0: each makes its own sound
    notices_per_hour: int = 60  # notifications with a sound per person; 0: unlimited


class Bursts:
    """Finds the first of several prompts: it makes a sound, and those within the window are combined."""

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._began: dict[tuple[str, ...], tuple[float, int]] = {}  # by channel and the people it reaches

    def rank(self, audience: tuple[str, ...], now: float) -> int:
        """Returns 0 for the first prompt. It starts the window, and later ones do not extend it."""
        began, count = self._began.get(audience, (float("-inf"), 0))
        if now - began >= self.window_s:
            began, count = now, 0
        self._began[audience] = began, count + 1
        return count


class NoticeBudget:
    """Limits the notifications with a sound per person and hour."""

    def __init__(self, per_hour: int) -> None:
        self._limited = per_hour > 0
        self._window = RateWindow(max(1, per_hour), HOUR_S)

    def is_spent(self, person: str, now: float) -> bool:
        return self._limited and self._window.wait_s(person, now) > 0

    def spend(self, person: str, now: float) -> None:
        if self._limited:
            self._window.admit(person, now)


class Attendance:
    """Combines all limits for all prompts of a hub: decides what is sent now, and who hears it.

    After a restart, `remember` restores what people have heard, so that the limit per hour stays correct.
    """

    def __init__(self, settings: AttentionSettings) -> None:
        self.settings = settings
        self._bursts = Bursts(settings.digest_s)
        self._budget = NoticeBudget(settings.notices_per_hour)

    def use(self, settings: AttentionSettings) -> None:
        """Applies new settings after a reload; what was heard still counts if the limit has not changed."""
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
        """`inhibited`: an idle prompt makes no sound while a question is open."""
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
    """The people who hear the notification, or the digest that starts with it; without those for whom it is silent."""
    sounds = notice.loud or notice.opens
    return tuple(name for name in notice.who or chat_route.people if sounds and name not in notice.silent)
