"""What channels and commands can ask of the hub: implements `core.ports.HubApi` with the ledger, the hosts and the
event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.daemon.fleet_outbox import FleetOutbox
from atlasbridge.core.daemon.hosts import HostBook, HostLink
from atlasbridge.core.daemon.passkeys import Passkeys
from atlasbridge.core.daemon.remote_launch import Launcher
from atlasbridge.core.daemon.remote_questions import RemoteQuestions
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.daemon.settings import HubSettings
from atlasbridge.core.daemon.stream import EventStream
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.operations import Caller, HubAs, Perform
from atlasbridge.core.policy.attention import Tone
from atlasbridge.core.policy.people import PROOF
from atlasbridge.core.prompt.model import PromptRecord, Receipt, Reject
from atlasbridge.core.routing.policy import is_listed
from atlasbridge.core.routing.router import LOCAL, PromptRouter
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.verify import AuditVerdict, Seen
from atlasbridge.core.system import lives
from atlasbridge.core.values import replace

if TYPE_CHECKING:
    from atlasbridge.core.daemon.instruction_queue import InstructionQueue
    from atlasbridge.core.daemon.prompts import PromptLife
    from atlasbridge.core.daemon.scheduled_answers import ScheduledAnswers


# When a person's access is revoked, everything that they had scheduled ends: scheduled answers, instructions, grants
# and votes.
#
# Otherwise a stolen and revoked phone would continue to answer in its owner's name.

OWN = "cli"  # the channel of this user's own commands


class Revocation:
    def __init__(self, ledger: Ledger, later: ScheduledAnswers, queue: InstructionQueue, router: PromptRouter) -> None:
        self._ledger, self._later, self._queue, self._router = ledger, later, queue, router

    def send_away(self, identity: str) -> int:
        """Ends everything scheduled by this identity. Returns the number of items."""
        return self._end(lambda one: one == identity)

    def forget_strangers(self) -> int:
        """Does the same for every identity that is no longer allowed."""
        return self._end(lambda one: not self._is_known(one))

    def _is_known(self, identity: str) -> bool:
        channel = identity.partition(":")[0]
        return channel in (OWN, LOCAL) or is_listed(channel, identity, self._router.policy)

    def _end(self, gone: Callable[[str], bool]) -> int:
        ended = self._later.drop(gone) + self._queue.drop(gone)
        for grant in [one for one in self._ledger.live_grants() if gone(one.by)]:
            ended += len(self._ledger.revoke_grants(grant.grant_id, "revoked"))
        return ended + self._ledger.drop_votes(gone)


# The part of the interface that concerns people: names, presence and pending answers.


class HubApiAttention:
    """A part of the hub. `serve` sets the services that it uses once they exist."""

    ledger: Ledger
    clock: Clock
    _life: PromptLife
    _later: ScheduledAnswers
    _queue: InstructionQueue
    _router: PromptRouter

    def serve(self, life: PromptLife, router: PromptRouter, later: ScheduledAnswers, queue: InstructionQueue) -> None:
        self._life, self._router, self._later, self._queue = life, router, later, queue
        self.revocation = Revocation(self.ledger, later, queue, router)

    def sent_away(self, identity: str) -> None:
        """A login or a token was revoked: everything scheduled by it ends."""
        self.revocation.send_away(identity)

    def name_of(self, identity: str) -> str:
        """Returns the name of the person with this identity; "" if nobody has set one."""
        person = self._router.policy.attention.people.find(identity)
        return person.name if person else ""

    def reads(self, identity: str) -> tuple[str, str]:
        person = self._router.policy.attention.people.find(identity)
        return (person.language, person.zone) if person else ("", "")

    def people(self) -> list[dict[str, Any]]:
        """Everybody who is allowed to answer somewhere: first people with a name, then identities without one."""
        attention, allowed = self._router.policy.attention, self._router.policy.allowed
        quiet = attention.people.quiet_now(self.clock.wall(), minute_of_day)
        named = [
            {"name": one.name, "identities": list(one.identities), "zone": one.zone, "quiet_now": one.name in quiet}
            for one in attention.people.people
        ]
        loose = sorted({one for group in allowed.values() for one in group or () if attention.people.find(one) is None})
        return named + [
            {"name": self._learnt(one), "identities": [one], "zone": "", "quiet_now": False} for one in loose
        ]

    def _learnt(self, identity: str) -> str:
        """The name that the channel itself has seen for this identity."""
        channel, _, person_id = identity.partition(":")
        return self.ledger.recall(f"{channel}.name.{person_id}") or identity

    def tone(self, prompt_id: str, channel: str) -> Tone:
        return self._router.tone(prompt_id, channel)

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        found = self._life.escalation.aside(prompt_id, identity)
        return found.hold_s, found.silent

    def heard_of_server(self, carries: bool | None = None) -> None:
        if self._life.escalation.delegation.heard(carries):
            self._life.escalation.look_at_all()

    def server_asks(self, prompt_ids: Iterable[str]) -> None:
        self._life.escalation.delegation.asks(prompt_ids)

    def key_age_s(self, session_id: str) -> float | None:
        """How long ago a person typed in that session's terminal, according to its host's last report."""
        at = self._life.escalation.last_key_at(session_id)
        return None if at is None else max(0.0, self.clock.now() - at)

    def still_waiting(self) -> list[PromptRecord]:
        return self.ledger.still_waiting()

    async def raise_again(self, prompt_id: str) -> Receipt | Reject:
        """Has such a prompt raised again; the receipt's `answer` is the id of the new prompt."""
        return await self._life.ask_again(prompt_id)

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return self._later.of_prompt(prompt_id) if prompt_id else self._later.listed()

    def go_away(self, for_s: float | None = None) -> None:
        self._life.escalation.go_away(None if for_s is None else self.clock.wall() + for_s)

    def come_back(self) -> None:
        self._life.escalation.come_back()

    @property
    def is_away(self) -> bool:
        return self._life.escalation.away_until is not None


# Health of the sessions: whether the host is connected and answers, and whether the tool is alive.

OK = "ok"


async def look_at_sessions(
    sessions: list[SessionRecord], link_of: Callable[[str], HostLink | None], timeout_s: float
) -> dict[str, str]:
    """Returns "ok" or the problem for each session. All hosts are asked at once, so one that hangs delays no other."""
    found = await asyncio.gather(*(_look_at(item, link_of(item.session_id), timeout_s) for item in sessions))
    return {session.session_id: health for session, health in zip(sessions, found, strict=True)}


async def _look_at(session: SessionRecord, link: HostLink | None, timeout_s: float) -> str:
    if link is None:
        return "its host is not connected to the hub"
    if session.pid > 0 and not lives(session.pid):
        return "its program has ended"
    if link.tty and await link.capture(False, timeout_s) is None:  # a question from a script has no screen
        return "its host does not answer"
    return OK


ESC = b"\x1b"
Offer = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class LocalHubApi(HubApiAttention, FleetOutbox):
    integrations: RemoteQuestions  # this and the next are set by `service`
    caller_check: CallerCheck
    passkeys: Passkeys
    perform: Perform

    def __init__(
        self,
        home: Home,
        ledger: Ledger,
        hosts: HostBook,
        stream: EventStream,
        settings: HubSettings,
        launchers: tuple[Launcher, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self._home = home
        self.clock = clock or SystemClock()
        self.ledger = ledger
        self._hosts = hosts
        self._stream = stream
        self.settings = settings
        self._launchers = {launcher.name: launcher for launcher in launchers}
        self.offers: dict[str, Offer] = {}
        self.tell_people: Callable[[str], None] = lambda message: None
        self.read_rules = lambda: None  # set by `service`

    @property
    def home(self) -> Path:
        return self._home.root

    def use_launchers(self, launchers: tuple[Launcher, ...]) -> None:
        self._launchers = {launcher.name: launcher for launcher in launchers}

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        opened = {record.session_id: record.prompt_id for record in self.ledger.open_prompts()}
        return [
            replace(self._as_its_host_says(session), open_prompt=opened.get(session.session_id, ""))
            for session in self.ledger.sessions(include_ended)
        ]

    def _as_its_host_says(self, session: SessionRecord) -> SessionRecord:
        link = self._hosts.get(session.session_id)
        return session if link is None else replace(session, stopped=link.stopped, adapter=link.adapter)

    def session(self, session_id: str) -> SessionRecord | None:
        """Finds a session by its full or short id."""
        found = self.ledger.session(session_id)
        return found and self._as_its_host_says(found)

    def seen_by(self, identity: str, alone: bool = True) -> LocalHubApi:
        """On a single machine, everybody who is allowed to answer can see everything."""
        return self

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        return None

    def folder(self, session_id: str) -> str:
        session = self.ledger.session(session_id)
        return session.cwd if session else ""

    def open_prompts(self) -> list[PromptRecord]:
        return self.ledger.open_prompts()

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        return self.ledger.prompt(prompt_id)

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        return self.ledger.deliveries(prompt_id, channel)

    def prompt_for_message(self, channel: str, message_id: str) -> PromptRecord | None:
        return self.ledger.prompt_for_message(channel, message_id)

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        return self.ledger.accept_update(channel, update_id, payload)

    async def settle_update(self, channel: str, update_id: str) -> None:
        self.ledger.settle_update(channel, update_id)

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        return self.ledger.pending_updates(channel)

    def remember(self, key: str, value: str) -> None:
        self.ledger.remember(key, value)

    def recall(self, key: str, default: str = "") -> str:
        return self.ledger.recall(key, default)

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        """Returns the current screen, or the last screen of a session that has ended."""
        link = self._hosts.get(session_id)
        if link is not None:
            return await link.capture(styled, self.settings.capture_timeout_s, past)
        kept = self.ledger.last_output(session_id)
        return None if kept is None else _ended_screen(kept, styled, past)

    async def health(self) -> dict[str, str]:
        """Returns "ok" or the problem for every running session."""
        return await look_at_sessions(self.sessions(), self._hosts.get, self.settings.capture_timeout_s)

    async def wait_host(self, session_id: str, patience_s: float) -> None:
        """Waits until the session is known, at most `patience_s` seconds. A session that has already ended is known."""
        await self._hosts.wait(session_id, patience_s, lambda: self.session(session_id) is not None)

    def rename(self, session_id: str, label: str, by: str) -> bool:
        """Renames a session here and at its host, which passes the name on to the next hub."""
        if not self.ledger.rename_session(session_id, label, by):
            return False
        link = self._hosts.get(session_id)
        if link is not None:
            link.send("rename", label=label)
        self._stream.publish("session.changed", session_id=session_id, label=label)
        return True

    async def send(self, session_id: str, message: str, **fields: Any) -> bool:
        """Sends a message to a session's host. Returns False if it is not connected."""
        link = self._hosts.get(session_id)
        if link is None:
            return False
        link.send(message, **fields)
        return True

    def by(self, caller: Caller) -> HubAs:
        return HubAs(self.perform, caller)

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        """Types keys outside any prompt. The audit log records the number of keys before they are sent, not the keys
        themselves."""
        link = self._hosts.get(session_id)
        if link is None:
            return False
        if data != ESC and any(PROOF in one.prompt.constraints for one in self.ledger.open_prompts(session_id)):
            return False  # remote keys would approve without the signature that a rule requires
        self.ledger.note(AuditEvent.KEYS_TYPED, session_id=session_id, decided_by=identity, count=len(data))
        link.send("keys", data=data.decode("latin-1"))
        return True

    async def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        link = self._hosts.get(session_id)
        first = None if link is None else await link.capture(True, self.settings.capture_timeout_s)
        if link is None or not first:
            return
        yield first
        queue = link.watch(fps)
        try:
            while (screen := await queue.get()) is not None:
                yield screen
        finally:
            link.unwatch(queue)

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        return self.ledger.history(search, limit, before or None, session_id, state)

    def statistics(self) -> dict[str, Any]:
        return {**self.ledger.statistics(), **self.ledger.figures()}

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        return self.ledger.audit_entries(
            limit=limit, newest=True, before=before or 0, events=events, session_id=session_id, prompt_id=prompt_id
        )[::-1]

    async def verify_audit(self, seen: Iterable[Seen] = ()) -> AuditVerdict:
        """Verifies in another thread, because a long log takes time. `seen`: heads that others have kept."""
        return await asyncio.to_thread(self.ledger.prepare_verify(seen))

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        given = self.ledger.reply(prompt_id)
        if given is None:
            return None
        told = {"kind": given.kind.value, "value": given.value, "by": given.identity}
        return {**told, "at": given.received_at, "source": given.source}

    async def session_of_peer(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        return await self.caller_check.of_connection(client, server, same_user, forwarded)

    def refuse_inside_session(self, inside_session: str, op: str, prompt_id: str = "") -> Reject:
        return self.caller_check.refuse(inside_session, op, prompt_id)

    def mark_asker(self, label: str, inside_session: str) -> str:
        return self.caller_check.mark(label, inside_session)

    def tell(self, message: str) -> None:
        self.tell_people(message)

    def offer(self, name: str, answer: Offer) -> None:
        self.offers[name] = answer

    def launchers(self) -> list[dict[str, Any]]:
        known = [session.cwd for session in self.ledger.sessions(True)][::-1] if self._launchers else []
        return [launcher.described(known) for launcher in self._launchers.values()]

    def agreed(self, prompt_id: str) -> list[str]:
        return self.ledger.voters(prompt_id)

    async def launch(
        self, name: str, identity: str, folder: str = "", arguments: tuple[str, ...] = (), label: str = ""
    ) -> str:
        launcher = self._launchers.get(name)
        if launcher is None:
            raise ConfigError(f"there is no launcher named {name!r}", "add it under [[launchers]] in config.toml")
        session_id = await launcher.launch(folder, arguments, label)
        self.ledger.note(AuditEvent.SESSION_LAUNCHED, session_id=session_id, decided_by=identity, launcher=name)
        return session_id

    def events(self) -> AsyncIterator[dict[str, Any]]:
        return self._stream.listen()

    def note(self, event: str, **fields: Any) -> None:
        self.ledger.note(event, **fields)


def _ended_screen(kept: dict[str, Any], styled: bool, past: bool) -> dict[str, Any]:
    """Converts the stored last output to the format of a host's screen; colours were not stored."""
    lines, above = list(kept["lines"]), list(kept["past"])
    screen: dict[str, Any] = {"rows": kept["rows"], "cols": kept["cols"], "ended": True, "title": "", "modes": []}
    screen |= {"cursor": [0, 0], "cursor_visible": False, "alternate": False}
    if past:
        return screen | {"past": [_unstyled(line) for line in above], "styled": [_unstyled(line) for line in lines]}
    return screen | ({"styled": [_unstyled(line) for line in lines]} if styled else {"lines": lines})


def _unstyled(line: str) -> list[list[str | int | None]]:
    return [[line, None, None, 0]] if line else []
