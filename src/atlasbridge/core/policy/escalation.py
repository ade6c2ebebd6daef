"""Who is told of a prompt, when, in which channel and how loud: steps of an escalation policy, by class of prompt.

Pure: given a prompt's life, the channels that may carry it, and what is known of the people at one moment, it says
what is to be sent now and when to look again.  Sending, and remembering what was sent, is the hub's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import frozen

WAKE = (
    1000  # numbers of the steps at which somebody wants to be asked again, behind those of the escalation policy itself
)
HERE, AWAY = "here", "away"  # groups of channels: what is looked at on this machine, and what leaves it


@frozen
class EscalationStep:
    """`who` are names; nobody named means everybody.  `channels` are names or groups; none named means all."""

    after_s: float = 0.0
    who: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    loud: bool = True


@frozen
class EscalationPolicy:
    """For every prompt whose tool, folder, label and kind match; an empty pattern matches all."""

    steps: tuple[EscalationStep, ...]
    name: str = "default"
    tool: str = ""
    folder: str = ""
    label: str = ""
    kind: str = ""
    urgent: bool = False

    def fits(self, prompt: Prompt, session: SessionRecord) -> bool:
        kind = prompt.subject.kind.value if prompt.subject else ""
        pairs = (
            (self.tool, session.tool),
            (self.folder, session.cwd),
            (self.label, session.label),
            (self.kind, kind),
        )
        return all(not pattern or fnmatchcase(value, pattern) for pattern, value in pairs)


@frozen
class PresenceSettings:
    """How long keys at a session's terminal hold back the first word that leaves this machine, and at most
    altogether."""

    hold_s: float = 20.0
    longest_hold_s: float = 60.0


@frozen
class Route:
    """A channel that may carry this prompt, and the people it reaches; none named: whoever looks there."""

    name: str
    remote: bool
    people: tuple[str, ...] = ()


@frozen
class Life:
    """What has been done for a prompt so far: (number of the step, channel).

    `wakes`: when somebody wants to be asked again; `held_until`: until then nobody is told anything of it.
    """

    asked_at: float
    deadline: float
    done: frozenset[tuple[int, str]] = frozenset()
    ended: bool = False
    wakes: tuple[float, ...] = ()
    held_until: float = float("-inf")


@frozen
class Outlook:
    """What is known at this moment.  `quiet`: who is in quiet hours; `spent`: who has had enough notices for now."""

    now: float
    last_key_at: float | None = None  # by a person, at this session's terminal
    away: bool = False  # somebody said that nobody is at the keyboard
    quiet: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()


@frozen
class Notification:
    """To be sent now.  `steps` are done with it; `who` () means everybody there; `silent` get it without a sound."""

    channel: str
    steps: tuple[int, ...]
    who: tuple[str, ...] = ()
    silent: frozenset[str] = frozenset()
    loud: bool = True
    reminder: bool = False
    joins: bool = False  # it has no sound of its own because it is one of many: a digest speaks of it
    opens: bool = False  # that digest begins with it, and makes a sound once


@frozen
class EscalationPlan:
    """What to do now, when to look again (None: never), and whether its time is over."""

    notices: tuple[Notification, ...] = ()
    look_at: float | None = None
    over: bool = False


def default_escalation(reminders: Iterable[float] = ()) -> EscalationPolicy:
    """Everything at once, everywhere; presence alone holds back what leaves this machine.  Then the reminders."""
    return EscalationPolicy((EscalationStep(), *(EscalationStep(after_s) for after_s in reminders)))


def choose_escalation(
    escalation: Iterable[EscalationPolicy], prompt: Prompt, session: SessionRecord, default: EscalationPolicy
) -> EscalationPolicy:
    """The first that fits; what a person wrote first counts first."""
    return next(
        (escalation_policy for escalation_policy in escalation if escalation_policy.fits(prompt, session)), default
    )


def decide_notifications(
    escalation_policy: EscalationPolicy,
    life: Life,
    chat_routes: Sequence[Route],
    outlook: Outlook,
    presence: PresenceSettings,
) -> EscalationPlan:
    """Nothing after the end, no step twice, and of several steps that are due at once one notice for each channel."""
    if life.ended or outlook.now >= life.deadline:
        return EscalationPlan(over=outlook.now >= life.deadline)
    steps = _numbered(escalation_policy, life, chat_routes)
    notices: list[Notification] = []
    moments = [life.deadline]
    for chat_route in chat_routes:
        waiting = [number for number, step in steps.items() if _wanted(step, chat_route, life, number)]
        at = {number: _due_at(steps[number], chat_route, life, outlook, presence) for number in waiting}
        due = tuple(number for number in waiting if at[number] <= outlook.now)
        moments += [at[number] for number in waiting if number not in due]
        if due:
            notices.append(_notice(escalation_policy, steps, due, chat_route, life, outlook))
    return EscalationPlan(tuple(notices), min(moments))


def _numbered(
    escalation_policy: EscalationPolicy, life: Life, chat_routes: Sequence[Route]
) -> Mapping[int, EscalationStep]:
    """The escalation policy's own steps, and one for every wish to be asked again."""
    again = {WAKE + number: EscalationStep(at - life.asked_at) for number, at in enumerate(life.wakes)}
    return {**dict(enumerate(_reaching(escalation_policy, life, chat_routes))), **again}


def _reaching(
    escalation_policy: EscalationPolicy, life: Life, chat_routes: Sequence[Route]
) -> tuple[EscalationStep, ...]:
    """An escalation policy that would reach nobody at all, or nobody in time, is no escalation policy: then everybody
    is asked at once."""
    in_time = [step for step in escalation_policy.steps if life.asked_at + step.after_s < life.deadline]
    reached = any(covers(step, chat_route) for step in in_time for chat_route in chat_routes)
    return escalation_policy.steps if reached or not chat_routes else (EscalationStep(), *escalation_policy.steps)


def covers(step: EscalationStep, chat_route: Route) -> bool:
    group = AWAY if chat_route.remote else HERE
    here = not step.channels or chat_route.name in step.channels or group in step.channels
    return here and (not step.who or not chat_route.people or bool(set(step.who) & set(chat_route.people)))


def _wanted(step: EscalationStep, chat_route: Route, life: Life, number: int) -> bool:
    return covers(step, chat_route) and (number, chat_route.name) not in life.done


def _due_at(step: EscalationStep, chat_route: Route, life: Life, outlook: Outlook, presence: PresenceSettings) -> float:
    """Keys at the terminal a moment ago hold back the first word that leaves this machine; they never cancel it."""
    due = max(life.asked_at + step.after_s, life.held_until)
    told = any(channel == chat_route.name for _, channel in life.done)
    if not chat_route.remote or outlook.away or outlook.last_key_at is None or told:
        return due
    return max(due, min(outlook.last_key_at + presence.hold_s, due + presence.longest_hold_s))


def _notice(
    escalation_policy: EscalationPolicy,
    steps: Mapping[int, EscalationStep],
    due: tuple[int, ...],
    chat_route: Route,
    life: Life,
    outlook: Outlook,
) -> Notification:
    before = [steps[number] for number, channel in life.done if channel == chat_route.name and number in steps]
    asked, now_asked = _audience(before, chat_route), _audience([steps[number] for number in due], chat_route)
    fresh = not before or (asked is not None and (now_asked is None or not now_asked <= asked))
    everybody = now_asked is None or (asked is None and bool(before))
    who = (
        ()
        if everybody
        else tuple(name for name in chat_route.people if name in (now_asked or set()) | (asked or set()))
    )
    silent = frozenset(outlook.spent if escalation_policy.urgent else outlook.quiet | outlook.spent)
    reached = set(who or chat_route.people)
    loud = any(steps[number].loud for number in due) and (not reached or bool(reached - silent))
    return Notification(
        chat_route.name, due, who, silent & reached if reached else frozenset(), loud, reminder=not fresh
    )


def _audience(steps: Iterable[EscalationStep], chat_route: Route) -> set[str] | None:
    """Whose names the steps say there; None: everybody."""
    names: set[str] = set()
    for step in steps:
        if not step.who or not chat_route.people:
            return None
        names |= set(step.who) & set(chat_route.people)
    return names
