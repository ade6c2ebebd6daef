"""Decides who is notified of a prompt, when, in which channel and how loudly: the steps of an escalation policy, the
limits of the sounds, and scheduled answers.

Pure: from a prompt's state, the channels that are allowed to carry it, and the current state of the people, it decides
what to send now and when to check again. The hub sends and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from atlasbridge.core.clock import RateWindow
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import field, frozen, replace

# People: one name for all identities of a person in the channels, and their quiet hours. Names decide nothing by
# themselves; each channel has its own list of people who are allowed to answer.

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


# The policy: steps, and what is sent when.

WAKE = 1000  # step numbers for snoozes, above those of the escalation policy itself
HERE, AWAY = "here", "away"  # groups of channels: local to this machine, and remote


@frozen
class EscalationStep:
    """`who` contains names; empty means everybody. `channels` contains names or groups; empty means all."""

    after_s: float = 0.0
    who: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    loud: bool = True


@frozen
class EscalationPolicy:
    """Applies to every prompt whose tool, folder, label and kind match; an empty pattern matches all."""

    steps: tuple[EscalationStep, ...]
    name: str = "default"
    tool: str = ""
    folder: str = ""
    label: str = ""
    kind: str = ""
    urgent: bool = False

    def fits(self, prompt: Prompt, session: SessionRecord) -> bool:
        kind = prompt.subject.kind.value if prompt.subject else ""
        pairs = ((self.tool, session.tool), (self.folder, session.cwd), (self.label, session.label), (self.kind, kind))
        return all(not pattern or fnmatchcase(value, pattern) for pattern, value in pairs)


@frozen
class PresenceSettings:
    """How long keys at a session's terminal delay the first remote notification, and the maximum delay."""

    hold_s: float = 20.0
    longest_hold_s: float = 60.0


@frozen
class Route:
    """A channel that is allowed to carry this prompt, and the people it reaches; empty: everybody who reads it."""

    name: str
    remote: bool
    people: tuple[str, ...] = ()


@frozen
class Life:
    """The state of a prompt: `done` contains (step number, channel).

    `wakes`: when somebody wants to be asked again. `held_until`: nobody is notified before.
    """

    asked_at: float
    deadline: float
    done: frozenset[tuple[int, str]] = frozenset()
    ended: bool = False
    wakes: tuple[float, ...] = ()
    held_until: float = float("-inf")


@frozen
class Outlook:
    """The current state of the people. `quiet`: people in quiet hours. `spent`: people who have reached their limit."""

    now: float
    last_key_at: float | None = None  # by a person at this session's terminal
    away: bool = False  # somebody has reported that nobody is at the keyboard
    quiet: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()


@frozen
class Notification:
    """A notification to send now. It completes `steps`. Empty `who` means everybody there; `silent` people get it
    without a sound."""

    channel: str
    steps: tuple[int, ...]
    who: tuple[str, ...] = ()
    silent: frozenset[str] = frozenset()
    loud: bool = True
    reminder: bool = False
    joins: bool = False  # it has no sound of its own, because a digest contains it
    opens: bool = False  # the digest starts with it and makes one sound


@frozen
class EscalationPlan:
    """What to do now, when to check again (None: never), and whether the prompt's time is over."""

    notices: tuple[Notification, ...] = ()
    look_at: float | None = None
    over: bool = False


def default_escalation(reminders: Iterable[float] = ()) -> EscalationPolicy:
    """All channels at once, where only presence delays remote channels; then the reminders."""
    return EscalationPolicy((EscalationStep(), *(EscalationStep(after_s) for after_s in reminders)))


def choose_escalation(
    escalation: Iterable[EscalationPolicy], prompt: Prompt, session: SessionRecord, default: EscalationPolicy
) -> EscalationPolicy:
    """The first policy that matches, in the order of the configuration."""
    return next((policy for policy in escalation if policy.fits(prompt, session)), default)


def decide_notifications(
    policy: EscalationPolicy, life: Life, routes: Sequence[Route], outlook: Outlook, presence: PresenceSettings
) -> EscalationPlan:
    """Decides what to send: nothing after the end, no step twice, and one notification per channel if several steps are
    due."""
    if life.ended or outlook.now >= life.deadline:
        return EscalationPlan(over=outlook.now >= life.deadline)
    steps = _numbered(policy, life, routes)
    notices: list[Notification] = []
    moments = [life.deadline]
    for route in routes:
        reaching = [number for number, step in steps.items() if covers(step, route)]
        waiting = [number for number in reaching if (number, route.name) not in life.done]
        at = {number: _due_at(steps[number], route, life, outlook, presence) for number in waiting}
        due = tuple(number for number in waiting if at[number] <= outlook.now)
        moments += [at[number] for number in waiting if number not in due]
        if due:
            notices.append(_notice(policy, steps, due, route, life, outlook))
    return EscalationPlan(tuple(notices), min(moments))


def _numbered(policy: EscalationPolicy, life: Life, routes: Sequence[Route]) -> Mapping[int, EscalationStep]:
    """The steps of the escalation policy, and one for every snooze."""
    again = {WAKE + number: EscalationStep(at - life.asked_at) for number, at in enumerate(life.wakes)}
    return {**dict(enumerate(_reaching(policy, life, routes))), **again}


def _reaching(policy: EscalationPolicy, life: Life, routes: Sequence[Route]) -> tuple[EscalationStep, ...]:
    """If an escalation policy would reach nobody, or nobody in time, everybody is notified at once."""
    in_time = [step for step in policy.steps if life.asked_at + step.after_s < life.deadline]
    reached = any(covers(step, route) for step in in_time for route in routes)
    return policy.steps if reached or not routes else (EscalationStep(), *policy.steps)


def covers(step: EscalationStep, route: Route) -> bool:
    group = AWAY if route.remote else HERE
    here = not step.channels or route.name in step.channels or group in step.channels
    return here and (not step.who or not route.people or bool(set(step.who) & set(route.people)))


def _due_at(step: EscalationStep, route: Route, life: Life, outlook: Outlook, presence: PresenceSettings) -> float:
    """Recent keys at the terminal delay the first remote notification; they never cancel it."""
    due = max(life.asked_at + step.after_s, life.held_until)
    told = any(channel == route.name for _, channel in life.done)
    if not route.remote or outlook.away or outlook.last_key_at is None or told:
        return due
    return max(due, min(outlook.last_key_at + presence.hold_s, due + presence.longest_hold_s))


def _notice(
    policy: EscalationPolicy,
    steps: Mapping[int, EscalationStep],
    due: tuple[int, ...],
    route: Route,
    life: Life,
    outlook: Outlook,
) -> Notification:
    before = [steps[number] for number, channel in life.done if channel == route.name and number in steps]
    asked, now_asked = _audience(before, route), _audience([steps[number] for number in due], route)
    fresh = not before or (asked is not None and (now_asked is None or not now_asked <= asked))
    everybody = now_asked is None or (asked is None and bool(before))
    who = () if everybody else tuple(name for name in route.people if name in (now_asked or set()) | (asked or set()))
    silent = frozenset(outlook.spent if policy.urgent else outlook.quiet | outlook.spent)
    reached = set(who or route.people)
    loud = any(steps[number].loud for number in due) and (not reached or bool(reached - silent))
    return Notification(route.name, due, who, silent & reached if reached else frozenset(), loud, reminder=not fresh)


def _audience(steps: Iterable[EscalationStep], route: Route) -> set[str] | None:
    """The people whom the steps name in this channel; None: everybody."""
    names: set[str] = set()
    for step in steps:
        if not step.who or not route.people:
            return None
        names |= set(step.who) & set(route.people)
    return names


# Limits: one sound for several questions that arrive together, and a number of sounds per person and hour. Only the
# sound of a notification is removed, never the notification itself.

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
        policy: EscalationPolicy,
        life: Life,
        routes: Sequence[Route],
        outlook: Outlook,
        *,
        inhibited: bool = False,
    ) -> EscalationPlan:
        """`inhibited`: an idle prompt makes no sound while a question is open."""
        spent = frozenset(name for route in routes for name in route.people if self._budget.is_spent(name, outlook.now))
        plan = decide_notifications(policy, life, routes, replace(outlook, spent=spent), self.settings.presence)
        if not plan.notices:
            return plan
        by_name = {route.name: route for route in routes}
        notices = tuple(
            self._with_sound(notice, by_name[notice.channel], policy, outlook.now, inhibited) for notice in plan.notices
        )
        for person in {name for notice in notices for name in listeners(notice, by_name[notice.channel])}:
            self._budget.spend(person, outlook.now)
        return replace(plan, notices=notices)

    def _with_sound(
        self, notice: Notification, route: Route, policy: EscalationPolicy, now: float, inhibited: bool
    ) -> Notification:
        if notice.loud and inhibited:
            return replace(notice, loud=False)
        if not notice.loud or not route.remote or notice.reminder or policy.urgent:
            return notice
        rank = self._bursts.rank((route.name, *route.people), now)
        return replace(notice, loud=False, joins=True, opens=rank == 1) if rank else notice


def listeners(notice: Notification, route: Route) -> tuple[str, ...]:
    """The people who hear the notification, or the digest that starts with it; without those for whom it is silent."""
    sounds = notice.loud or notice.opens
    return tuple(name for name in notice.who or route.people if sounds and name not in notice.silent)


ANSWER, SNOOZE = "answer", "snooze"
SHORTEST_SNOOZE_S = 60.0


@frozen
class ScheduledItem:
    """A scheduled answer or a snooze. `value` is the reply as given, interpreted when it is due; the times are wall
    times."""

    later_id: str
    prompt_id: str
    kind: str
    due_at: str
    channel: str
    identity: str
    value: str = ""
    as_text: bool = False
    place: str = ""
    created_at: str = ""
    ended_at: str = ""
    outcome: str = ""

    def to_json(self) -> dict[str, Any]:
        names = ("later_id", "prompt_id", "kind", "due_at", "value", "place", "created_at")
        return {**{name: getattr(self, name) for name in names}, "by": self.identity}
