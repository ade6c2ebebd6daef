"""What channels and commands may ask of the hub: `core.ports.Desk` over the ledger, the hosts and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.daemon.desk_attention import DeskAttention
from atlasbridge.core.daemon.desk_outbox import DeskOutbox
from atlasbridge.core.daemon.hosts import HostBook
from atlasbridge.core.daemon.kinship import Kinship
from atlasbridge.core.daemon.launching import Launcher
from atlasbridge.core.daemon.remote_doors import RemoteDoors
from atlasbridge.core.daemon.rule_operations import RuleOperations
from atlasbridge.core.daemon.settings import HubSettings
from atlasbridge.core.daemon.stream import EventStream
from atlasbridge.core.daemon.wellbeing import look_at_sessions
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.routing.policy import decide_allowed
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.verify import AuditVerdict
from atlasbridge.core.values import replace

SHORTEST_ID = 8  # of a grant that a button ends


class HubDesk(DeskAttention, DeskOutbox):
    doors: RemoteDoors  # set by `service`, as the next
    kinship: Kinship

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
        self.offers: dict[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {}
        self.tell_people: Callable[[str], None] = lambda message: None
        self.read_rules = lambda: None  # see `service`
        self.rule_operations: RuleOperations  # see `service`

    @property
    def home(self) -> Path:
        return self._home.root

    def use_launchers(self, launchers: tuple[Launcher, ...]) -> None:
        self._launchers = {launcher.name: launcher for launcher in launchers}

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        opened = {record.session_id: record.prompt_id for record in self.ledger.open_prompts()}
        return [
            replace(
                session, open_prompt=opened.get(session.session_id, ""), stopped=self._is_stopped(session.session_id)
            )
            for session in self.ledger.sessions(include_ended)
        ]

    def _is_stopped(self, session_id: str) -> bool:
        link = self._hosts.get(session_id)
        return link is not None and link.stopped

    def session(self, session_id: str) -> SessionRecord | None:
        """By full or short id."""
        found = self.ledger.session(session_id)
        return found and replace(found, stopped=self._is_stopped(found.session_id))

    def seen_by(self, identity: str, alone: bool = True) -> HubDesk:
        """Who may answer here may see everything here."""
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
        link = self._hosts.get(session_id)
        return None if link is None else await link.capture(styled, self.settings.capture_timeout_s, past)

    async def health(self) -> dict[str, str]:
        """Of every session that runs: "ok", or what is wrong with it."""
        return await look_at_sessions(self.sessions(), self._hosts.get, self.settings.capture_timeout_s)

    async def wait_host(self, session_id: str, patience_s: float) -> None:
        """Until the session is known, at most so long; one that has ended already is known."""
        await self._hosts.wait(session_id, patience_s, lambda: self.session(session_id) is not None)

    def rename(self, session_id: str, label: str, by: str) -> bool:
        """Another name for a session, here and at its host, which tells the next hub."""
        if not self.ledger.rename_session(session_id, label, by):
            return False
        link = self._hosts.get(session_id)
        if link is not None:
            link.send("rename", label=label)
        self._stream.publish("session.changed", session_id=session_id, label=label)
        return True

    async def kill(self, session_id: str, force: bool = False) -> bool:
        link = self._hosts.get(session_id)
        if link is None:
            return False
        link.send("kill", force=force)
        return True

    async def resume(self, session_id: str) -> bool:
        """Let a tool that job control has stopped go on; False: its session is not connected."""
        link = self._hosts.get(session_id)
        if link is None:
            return False
        link.send("continue")
        return True

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        """Keys outside any prompt.  Recorded before they are sent; what they were is the session's own business."""
        link = self._hosts.get(session_id)
        if link is None:
            return False
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

    async def verify_audit(self) -> AuditVerdict:
        """A long log takes a while: that is another thread's work."""
        return await asyncio.to_thread(self.ledger.prepare_verify())

    async def audit_state(self) -> dict[str, Any]:
        verdict = await self.verify_audit()
        return {"count": verdict.count, "hash": verdict.head, "ok": verdict.ok, "detail": verdict.sentence}

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        given = self.ledger.reply(prompt_id)
        if given is None:
            return None
        told = {"kind": given.kind.value, "value": given.value, "by": given.identity}
        return {**told, "at": given.received_at, "source": given.source}

    async def kin_of(self, client: tuple[str, int], server: tuple[str, int]) -> str:
        return await self.kinship.of_connection(client, server)

    def refuse_kin(self, kin: str, op: str, prompt_id: str = "") -> Reject:
        return self.kinship.refuse(kin, op, prompt_id)

    def mark_asker(self, label: str, kin: str) -> str:
        return self.kinship.mark(label, kin)

    def tell(self, message: str) -> None:
        self.tell_people(message)

    def offer(self, name: str, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
        self.offers[name] = answer

    def launchers(self) -> list[dict[str, Any]]:
        known = [session.cwd for session in self.ledger.sessions(True)][::-1] if self._launchers else []
        return [launcher.described(known) for launcher in self._launchers.values()]

    def grant(
        self, prompt_id: str, identity: str, *, for_s: float | None, times: int | None, folder: bool, preview: bool
    ) -> dict[str, Any]:
        refusal = self._refuse_grant(prompt_id, identity)
        if refusal:
            return {"ok": False, "reason": "cannot_grant", "message": refusal}
        return self.rule_operations.add(
            {
                "op": "grant.add",
                "prompt_id": prompt_id,
                "by": identity,
                "for_s": for_s,
                "times": times,
                "folder": folder,
                "preview": preview,
            }
        )

    def _refuse_grant(self, prompt_id: str, identity: str) -> str:
        """A card's button counts while its question is open, and for who may answer it."""
        record, channel = self.ledger.prompt(prompt_id), identity.partition(":")[0]
        if record is None or record.state not in OPEN:
            return "This prompt is no longer open." if record else "There is no such prompt."
        remote, policy = self._router.remote(channel), self._router.policy
        if not decide_allowed(channel, identity, remote=remote, prompt=record.prompt, settings=policy):
            return "You may not answer this prompt."
        return ""

    def rules(self) -> dict[str, Any]:
        return self.rule_operations.overview()

    def agreed(self, prompt_id: str) -> list[str]:
        return self.ledger.voters(prompt_id)

    def revoke_grant(self, grant_id: str, identity: str) -> bool:
        return bool(len(grant_id) >= SHORTEST_ID and self.rule_operations.revoke(grant_id, identity))

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
