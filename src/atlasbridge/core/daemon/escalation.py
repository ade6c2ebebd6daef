"""Runs the escalation policy of every open prompt: checks what is due, records it and sends it.

`core.policy` decides what is due. This module provides the store, the clock and the hosts, which know whether somebody
types. A fleet server plans with the same `Planner` over its own tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.policy.escalation import (
    ANSWER,
    HOUR_S,
    Attendance,
    EscalationPlan,
    Life,
    Notification,
    Outlook,
    Route,
    ScheduledItem,
    listeners,
)
from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.model import OPEN, PromptRecord
from atlasbridge.core.routing.policy import decide_escalation
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.session.model import SessionRecord, session_name
from atlasbridge.core.values import frozen, mutable

# A digest is one message about several questions that arrived together. It is edited when questions are added or
# settled.

MOST_LISTED = 12
LINE_LIMIT = 90


@mutable
class _Digest:
    key: str
    lines: dict[str, str]  # by prompt, in order of arrival
    sessions: dict[str, str]  # by prompt, their names
    settled: int = 0


class Digests:
    def __init__(self, hub: HubParts) -> None:
        self._hub = hub
        self._open: dict[str, _Digest] = {}  # the newest digest of each channel

    def joined(self, notification: Notification, record: PromptRecord, session: SessionRecord) -> None:
        digest = self._open.get(notification.channel)
        if digest is None or notification.opens:
            digest = self._open[notification.channel] = _Digest(record.prompt_id, {}, {})
        digest.lines[record.prompt_id] = digest_line(record, session)
        digest.sessions[record.prompt_id] = session_name(session)
        self._show(notification.channel, digest, notification.opens)

    def settled(self, prompt_id: str) -> None:
        for channel, digest in list(self._open.items()):
            if digest.lines.pop(prompt_id, None) is not None:
                digest.settled += 1
                self._show(channel, digest, False)
                if not digest.lines:
                    del self._open[channel]

    def _show(self, channel: str, digest: _Digest, loud: bool) -> None:
        text = render_digest(digest.lines.values(), digest.settled, digest.sessions.values())
        self._hub.router.digest(channel, digest.key, text, loud)


def render_digest(lines: Iterable[str], settled: int, sessions: Iterable[str] = ()) -> str:
    """`sessions`: the names of all that the digest has listed, which are shown once nothing is left of it."""
    waiting = list(lines)
    if not waiting:
        names = list(dict.fromkeys(sessions))
        return f"Settled: {', '.join([*names[:MOST_LISTED], *(['…'] if len(names) > MOST_LISTED else [])])}"
    head = f"{len(waiting)} more question{'s' if len(waiting) > 1 else ''}"
    head += f", {settled} settled:" if settled else ":"
    more = [f"… and {len(waiting) - MOST_LISTED} more"] if len(waiting) > MOST_LISTED else []
    return "\n".join([head, *waiting[:MOST_LISTED], *more])


def digest_line(record: PromptRecord, session: SessionRecord) -> str:
    name = session_name(session)
    if record.prompt.secret:
        return f"• {name}: a secret"
    if record.prompt.idle:
        return f"• {name}: finished"
    asked = first_line(record.prompt)
    return f"• {name}: “{asked[:LINE_LIMIT]}{'…' if len(asked) > LINE_LIMIT else ''}”"


CHANNEL = "server"  # of a fleet server
# If a fleet server notifies people in its chats, this hub's own chats stay silent.
#
# That requires that the server is connected, has chats at all, and confirms for each prompt that it notifies somebody.
# Otherwise this hub runs its own escalation policy. The page, the terminal and local notifications never wait.

SILENT_S = 60.0  # after this time without a message from the server, this hub uses its own chats again
WORD_S = 10.0  # how long a new prompt waits for the server's confirmation
LOOK_S = 5.0  # how often such a prompt is checked again


class Delegation:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard_at = float("-inf")
        self._carries = False
        self._asked: set[str] = set()

    def heard(self, carries: bool | None = None) -> bool:
        """Records a message from the server. `carries`: whether it has chats. Returns True if it has just stopped
        having them."""
        self._heard_at = self._clock.now()
        ended = self._carries and carries is False
        self._carries = self._carries if carries is None else carries
        return ended

    def asks(self, prompt_ids: Iterable[str]) -> None:
        self._asked.update(prompt_ids)

    def forget(self, prompt_id: str) -> None:
        self._asked.discard(prompt_id)

    def holds(self, prompt_id: str, asked_at: float, session: SessionRecord) -> bool:
        """Whether this hub's own chats stay silent about the prompt for now."""
        if not self._carries or self._clock.now() - self._heard_at > SILENT_S:
            return False
        if session.channels is not None and CHANNEL not in session.channels:
            return False  # the server does not know this session
        return prompt_id in self._asked or self._clock.now() - asked_at < WORD_S


def without_chats(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    return tuple(route for route in routes if not route.remote or route.name == CHANNEL)


class EscalationStore(Protocol):
    """What people were told and when they want to be asked again: a hub's ledger, or the tables of a fleet server."""

    def notified_steps(self, prompt_id: str, /) -> frozenset[tuple[int, str]]: ...
    def wakes(self, prompt_id: str, /) -> list[ScheduledItem]: ...
    def sounds_since(self, at: str, /) -> list[tuple[str, str]]: ...


ANSWERED_S = 30.0  # after a scheduled answer is due, wait this long before notifying people again


class Planner:
    """Decides what is due for a prompt, from what the store knows. It sends and records nothing."""

    def __init__(self, store: EscalationStore, router: PromptRouter, clock: Clock) -> None:
        self._store = store
        self._router = router
        self._clock = clock
        self._attendance: Attendance | None = None

    def life(self, record: PromptRecord) -> Life:
        """The steps that were taken, and the pending snoozes and scheduled answers, which suppress notifications until
        they are due."""
        steady, wishes = self._clock.now() - self._clock.wall(), self._store.wakes(record.prompt_id)
        wakes = tuple(steady + parse_iso(wish.due_at) + (ANSWERED_S if wish.kind == ANSWER else 0.0) for wish in wishes)
        held = [at for at, one in zip(wakes, wishes, strict=True) if not one.ended_at]
        taken = self._store.notified_steps(record.prompt_id)
        held_until = max(held, default=float("-inf"))
        return Life(asked_at(record), record.deadline, taken, wakes=wakes, held_until=held_until)

    def decide(
        self,
        record: PromptRecord,
        session: SessionRecord,
        life: Life,
        routes: Sequence[Route],
        *,
        last_key_at: float | None,
        away: bool,
        inhibited: bool = False,
    ) -> EscalationPlan:
        settings = self._router.policy
        quiet = settings.attention.people.quiet_now(self._clock.wall(), minute_of_day)
        outlook = Outlook(self._clock.now(), last_key_at, away=away, quiet=quiet)
        policy = decide_escalation(record.prompt, session, settings)
        return self._attend().decide(policy, life, routes, outlook, inhibited=inhibited)

    def _attend(self) -> Attendance:
        """Created when first needed, with the notifications that people received in the last hour."""
        settings = self._router.policy.attention
        if self._attendance is None:
            self._attendance = Attendance(settings)
            now, wall = self._clock.now(), self._clock.wall()
            for person, at in self._store.sounds_since(iso(wall - HOUR_S)):
                self._attendance.remember(person, now - max(0.0, wall - parse_iso(at)))
        elif self._attendance.settings is not settings:
            self._attendance.use(settings)
        return self._attendance


AWAY_NOTE = "attention.away_until"
FRESH_S = 1.0  # a host's report about the keyboard is considered current for this time
ANSWER_S = 0.5  # how long to wait for a new report before continuing without it
FOR_EVER = float("inf")


@frozen
class Presence:
    last_key_at: float | None
    known_at: float


class Escalation:
    def __init__(self, hub: HubParts) -> None:
        self._hub = hub
        self._planner = Planner(hub.ledger, hub.router, hub.clock)
        self._presence: dict[str, Presence] = {}
        self._held: set[str] = set()
        self._digests = Digests(hub)
        self.delegation = Delegation(hub.clock)

    # presence at the keyboard

    def keys_reported(self, session_id: str, age_s: float | None) -> None:
        """Records how long ago a person typed in that session's terminal; None if nobody has, or nobody is attached."""
        now = self._hub.clock.now()
        self._presence[session_id] = Presence(None if age_s is None else now - max(0.0, age_s), now)

    def presence_reported(self, session_id: str, age_s: float | None) -> None:
        """Handles a host's report: prompts that were held back for it are checked again."""
        self.keys_reported(session_id, age_s)
        for record in self._hub.ledger.open_prompts(session_id):
            self.look(record.prompt_id)

    def last_key_at(self, session_id: str) -> float | None:
        """When keys were last typed in that session, according to its host's last report."""
        known = self._presence.get(session_id)
        return None if known is None else known.last_key_at

    def ask_keyboard(self, session: SessionRecord) -> bool:
        """Asks the host when keys were last typed. Returns False if its report is current, or nobody is attached."""
        return session.attached and self._ask_host(session.session_id)

    def _ask_host(self, session_id: str) -> bool:
        """Counts as a report, so that a host that does not answer is not asked again at once."""
        known, now = self._presence.get(session_id), self._hub.clock.now()
        link = self._hub.hosts.get(session_id)
        if link is None or (known is not None and now - known.known_at <= FRESH_S):
            return False
        self._presence[session_id] = Presence(known.last_key_at if known else None, now)
        link.send("presence")
        return True

    def used_within(self, session: SessionRecord, seconds: float) -> bool:
        """Whether a person typed at the attached terminal within this time."""
        at = self.last_key_at(session.session_id) if session.attached else None
        return at is not None and self._hub.clock.now() - at < seconds

    def forget_session(self, session_id: str) -> None:
        self._presence.pop(session_id, None)

    def go_away(self, until: float | None) -> None:
        """Nobody is at the keyboard until that wall time (None: until further notice), so no notification is held
        back."""
        self._hub.ledger.remember(AWAY_NOTE, "ever" if until is None else iso(until))
        self.look_at_all()

    def come_back(self) -> None:
        self._hub.ledger.remember(AWAY_NOTE, "")

    @property
    def away_until(self) -> float | None:
        """None if somebody could be at the keyboard."""
        noted = self._hub.ledger.recall(AWAY_NOTE)
        until = FOR_EVER if noted == "ever" else parse_iso(noted) if noted else 0.0
        return until if until > self._hub.clock.wall() else None

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        """For notifications besides the channels' own messages; see `MachineApi.aside`."""
        record = self._hub.ledger.prompt(prompt_id)
        session = self._hub.ledger.session(record.session_id) if record else None
        if record is None or session is None:
            return 0.0, False
        policy, people = self._hub.router.policy, self._hub.router.policy.attention.people
        quiet = people.quiet_now(self._hub.clock.wall(), minute_of_day)
        asleep = people.person_of(identity) in quiet and not decide_escalation(record.prompt, session, policy).urgent
        return self._hold_s(record, session), asleep or self._inhibited(record)

    def _hold_s(self, record: PromptRecord, session: SessionRecord) -> float:
        """The same time as for a remote channel. Before the hold ends, the host is asked once more."""
        known, now = self._presence.get(session.session_id), self._hub.clock.now()
        if known is None or known.last_key_at is None or not session.attached or self.away_until is not None:
            return 0.0
        presence = self._hub.router.policy.attention.presence
        until = min(known.last_key_at + presence.hold_s, asked_at(record) + presence.longest_hold_s)
        if until <= now and presence.hold_s and self._ask_host(session.session_id):
            return ANSWER_S
        return max(0.0, until - now)

    # escalation of a prompt

    def begin(self, record: PromptRecord, session: SessionRecord) -> None:
        if not self.delegation.holds(record.prompt_id, asked_at(record), session):
            self._hub.router.mention(record, session)
        self._escalate(record, session)

    def resume(self, record: PromptRecord, session: SessionRecord) -> None:
        """Continues after a restart or a reload. Steps whose message was shown stay done; the others are repeated."""
        self._hub.ledger.forget_unshown(record.prompt_id, self._hub.router.just_shown(record.prompt_id))
        self._escalate(record, session)

    def end(self, prompt_id: str) -> None:
        self._hub.scheduler.cancel(f"escalation policy:{prompt_id}")
        self._held.discard(prompt_id)
        self.delegation.forget(prompt_id)
        self._hub.router.forget(prompt_id)
        self._digests.settled(prompt_id)

    def look(self, prompt_id: str) -> None:
        record = self._hub.ledger.prompt(prompt_id)
        session = self._hub.ledger.session(record.session_id) if record else None
        if record is not None and session is not None and record.state in OPEN:
            self._escalate(record, session)

    def look_at_all(self) -> None:
        for record in self._hub.ledger.open_prompts():
            self.look(record.prompt_id)

    def _escalate(self, record: PromptRecord, session: SessionRecord) -> None:
        every, now = self._hub.router.routes(record, session), self._hub.clock.now()
        routes = without_chats(every) if self.delegation.holds(record.prompt_id, asked_at(record), session) else every
        # a notification that was held back because somebody typed: before it is sent, the host is asked once more
        known = session.session_id in self._presence
        if record.prompt_id in self._held and known and self._ask_host(session.session_id):
            self._look_at(record.prompt_id, now + ANSWER_S)
            return
        plan = self._decide(record, session, routes)
        if plan.notices:
            self._send(plan, record, session, routes)
        look_at = plan.look_at if routes == every else min(now + LOOK_S, plan.look_at or record.deadline)
        if look_at is not None and look_at < record.deadline:
            self._look_at(record.prompt_id, look_at)

    def _decide(self, record: PromptRecord, session: SessionRecord, routes: tuple[Route, ...]) -> EscalationPlan:
        life = self._planner.life(record)
        last_key_at = self.last_key_at(session.session_id) if session.attached else None
        away, inhibited = self.away_until is not None, self._inhibited(record)
        plan = self._planner.decide(
            record, session, life, routes, last_key_at=last_key_at, away=away, inhibited=inhibited
        )
        held = plan.look_at is not None and last_key_at is not None and plan.look_at < record.deadline
        if held and any(route.remote and not told_in(route, life, plan) for route in routes):
            self._held.add(record.prompt_id)
        else:
            self._held.discard(record.prompt_id)
        return plan

    def _inhibited(self, record: PromptRecord) -> bool:
        """While a permission prompt is open, a prompt of an idle tool makes no sound."""
        return record.prompt.idle and any(not other.prompt.idle for other in self._hub.ledger.open_prompts())

    def _send(
        self, plan: EscalationPlan, record: PromptRecord, session: SessionRecord, routes: tuple[Route, ...]
    ) -> None:
        by_name = {route.name: route for route in routes}
        written = [
            (notice.channel, notice.steps, listeners(notice, by_name[notice.channel])) for notice in plan.notices
        ]
        routed = self._hub.ledger.tell(record.prompt_id, written) or record
        for notification in plan.notices:
            self._hub.router.send(notification, routed, session)
            if notification.joins:
                self._digests.joined(notification, routed, session)

    def _look_at(self, prompt_id: str, at: float) -> None:
        self._hub.scheduler.set(f"escalation policy:{prompt_id}", at, lambda: self.look(prompt_id))


def asked_at(record: PromptRecord) -> float:
    """The creation time on the monotonic clock, computed from the deadline and the prompt's lifetime."""
    return record.deadline - (parse_iso(record.expires_at) - parse_iso(record.created_at))


def told_in(route: Route, life: Life, plan: EscalationPlan) -> bool:
    before = any(channel == route.name for _, channel in life.done)
    return before or any(notification.channel == route.name for notification in plan.notices)
