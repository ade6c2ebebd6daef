"""What channels and commands can ask of the hub: implements `core.ports.HubApi` with the ledger, the hosts and the
event stream."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.daemon.escalation import CHANNEL
from atlasbridge.core.daemon.parts import EventStream, HostBook, HubSettings
from atlasbridge.core.daemon.passkeys import Passkeys
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.daemon.remote_launch import Launcher
from atlasbridge.core.daemon.remote_questions import RemoteQuestions
from atlasbridge.core.daemon.replies import is_still_allowed
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.fleet_wire import digest_open
from atlasbridge.core.home import Home
from atlasbridge.core.operations import AuditVerdict, Caller, HubAs, Perform, SeenHead
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.policy.people import PROOF
from atlasbridge.core.prompt.model import PromptRecord, Receipt, Reject
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.system import OWN_FILE, lives
from atlasbridge.core.values import replace

if TYPE_CHECKING:
    from atlasbridge.core.daemon.prompts import PromptLife
    from atlasbridge.core.daemon.scheduled_answers import InstructionQueue, ScheduledAnswers


ESC = b"\x1b"
Offer = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
SECRET_THERE = "A secret is asked for. It is answered at that machine, never here."


class LocalHubApi:
    integrations: RemoteQuestions  # these are set by `service`
    caller_check: CallerCheck
    passkeys: Passkeys
    perform: Perform
    _life: PromptLife
    _later: ScheduledAnswers
    _queue: InstructionQueue
    _router: PromptRouter

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
        self.read_rules: Callable[[], None] = lambda: None  # reads the rules again from their files; set by `service`

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
        """Returns "ok" or the problem for every running session. All hosts are asked at once, so one that hangs delays
        no other."""
        sessions = self.sessions()
        found = await asyncio.gather(*map(self._look_at, sessions))
        return {session.session_id: health for session, health in zip(sessions, found, strict=True)}

    async def _look_at(self, session: SessionRecord) -> str:
        link = self._hosts.get(session.session_id)
        if link is None:
            return "its host is not connected to the hub"
        if session.pid > 0 and not lives(session.pid):
            return "its program has ended"
        # a question from a script has no screen
        if link.tty and await link.capture(False, self.settings.capture_timeout_s) is None:
            return "its host does not answer"
        return "ok"

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

    async def verify_audit(self, seen: Iterable[SeenHead] = ()) -> AuditVerdict:
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

    # people: names, presence, and what they have scheduled

    def serve(self, life: PromptLife, router: PromptRouter, later: ScheduledAnswers, queue: InstructionQueue) -> None:
        self._life, self._router, self._later, self._queue = life, router, later, queue

    def sent_away(self, identity: str) -> None:
        """A login or a token was revoked: everything scheduled by it ends. Otherwise a stolen and revoked phone would
        continue to answer in its owner's name."""
        self._end_scheduled(lambda one: one == identity)

    def forget_strangers(self) -> None:
        """Does the same for every identity that is no longer allowed."""
        self._end_scheduled(lambda one: not is_still_allowed(one, self._router.policy))

    def _end_scheduled(self, gone: Callable[[str], bool]) -> None:
        self._later.drop(gone)
        self._queue.drop(gone)
        for grant in [one for one in self.ledger.live_grants() if gone(one.by)]:
            self.ledger.revoke_grants(grant.grant_id, "revoked")
        self.ledger.drop_votes(gone)

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

    # For the link to a fleet server: the changes to send, in a form that is allowed to leave the machine. A secret's
    # question is sent without its text; a session that excludes the server is not sent at all.

    def join(self, machine_id: str) -> str:
        return self.ledger.membership.begin(machine_id)

    def meeting(self) -> dict[str, Any]:
        """Returns the data by which the server detects that its store, or this one, was restored from a backup."""
        told_until, newest = self.ledger.membership.reach()
        sessions = [one for one in self.ledger.sessions() if _goes_there(one)]
        known = {one.session_id for one in sessions}
        prompts = [one.prompt_id for one in self.ledger.open_prompts() if one.session_id in known]
        digest = digest_open(prompts, known)
        token = self.ledger.membership.token()
        return {"token": token, "digest": digest, "told_until": told_until, "newest": newest}

    def meet(self, token: str) -> None:
        self.ledger.membership.meet(token)

    def tell_again(self, epoch: str, notice: str, known: Iterable[str]) -> int:
        return self.ledger.membership.tell_again(epoch, notice, known)

    def to_tell(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Returns the items that the server has not acknowledged, oldest first, each in its current state."""
        items = []
        for seq, kind, name in self.ledger.membership.pending(after, limit):
            told = self._prompt_item(name) if kind == "prompt" else self._session_item(name)
            items.append({"seq": seq, "kind": kind, "id": name, **told})
        return items

    def acknowledge(self, seq: int) -> None:
        self.ledger.membership.acknowledge(seq)

    def backlog(self) -> int:
        return self.ledger.membership.backlog()

    def audit_head(self) -> Head:
        return self.ledger.audit_head()

    def audit_lines(self, after: int, limit: int) -> list[str]:
        return self.ledger.membership.audit_lines(after, limit)

    def told(self, prompt_id: str) -> bool:
        record = self.ledger.prompt(prompt_id)
        return record is not None and not record.prompt.secret and self.shows(record.session_id)

    def shows(self, session_id: str) -> bool:
        session = self.ledger.session(session_id)
        return session is not None and _goes_there(session)

    def use_rules(self, path: Path, text: str, digest: str) -> None:
        """Records the server's rules, writes them to `path` and applies them from now on."""
        self.ledger.note(AuditEvent.POLICY_TRUSTED, path=path.name, rule_digest=digest, decided_by=CHANNEL)
        draft = path.with_name(f".{path.name}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
        self.read_rules()

    def _session_item(self, session_id: str) -> dict[str, Any]:
        session = self.ledger.session(session_id)
        return {"body": None} if session is None or not _goes_there(session) else {"body": session.to_json()}

    def _prompt_item(self, prompt_id: str) -> dict[str, Any]:
        record = self.ledger.prompt(prompt_id)
        session = self.ledger.session(record.session_id) if record else None
        if record is None or session is None or not _goes_there(session):
            return {"body": None}
        told = describe_raised(record, session)
        if record.prompt.secret:
            told = _without_words(told)
        if "quorum" in record.prompt.constraints:
            told["agreed"] = self.ledger.voters(prompt_id)
        age_s = self.key_age_s(session.session_id) if session.attached else None
        typed = {} if age_s is None else {"key_age_s": round(age_s, 1)}
        return {"body": told, "ttl_s": self._left_s(record), **typed}

    def _left_s(self, record: PromptRecord) -> float:
        """The remaining time. A duration works even if the clocks of the two machines differ."""
        return round(max(0.0, record.deadline - self.clock.now()), 1)


def _goes_there(session: SessionRecord) -> bool:
    return session.channels is None or CHANNEL in session.channels


def _without_words(told: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"excerpt": SECRET_THERE, "question": SECRET_THERE, "screen": "", "says": "", "choices": []}
    return {**told, **empty, "subject": None, "evidence": [], "decided_value": ""}


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
