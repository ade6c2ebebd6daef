"""A hub in memory, and a small hub around a web channel: raises prompts, judges replies, and remembers what was asked.

Replies are judged by plain rules of its own, so that a page can be tested without a store, a host or a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.kept_answers import KeptAnswers

from atlasbridge.core.clock import Clock, SystemClock, iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id, new_nonce
from atlasbridge.core.operations import (
    AskedAgain,
    AuditState,
    Caller,
    Ending,
    Granted,
    Launched,
    Queued,
    Refused,
    Renamed,
    Resumed,
)
from atlasbridge.core.prompt.model import (
    OPEN,
    InboundReply,
    Prompt,
    PromptRecord,
    PromptState,
    PromptType,
    Receipt,
    Refusal,
    Reject,
)
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import replace
from atlasbridge.web.channel import WebChannel


class FakeHubApi(KeptAnswers):
    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        super().__init__(clock)
        self.all_sessions: dict[str, SessionRecord] = {}
        self.all_prompts: dict[str, PromptRecord] = {}
        self.notes: dict[str, str] = {}
        self.audit: list[dict[str, Any]] = []
        self.frames: dict[str, dict[str, Any]] = {}
        self.past: dict[str, list[Any]] = {}
        self.launched: list[tuple[str, str, tuple[str, ...], str]] = []
        self.instructed: list[str] = []  # the first instruction of each that was launched
        self.frame_changed = asyncio.Event()
        self.typed: list[tuple[str, bytes, str]] = []
        self.killed: list[tuple[str, bool]] = []
        self.watching = 0
        self.answers: dict[str, dict[str, Any]] = {}
        self.told: list[str] = []
        self.asked_again: list[str] = []
        self.names: dict[str, str] = {}
        self.holds: list[float] = []
        self.sleepers: set[str] = set()
        self.revocation: list[str] = []
        self.queue: list[tuple[str, InboundReply]] = []
        self.resumed: list[str] = []
        self.offers: dict[str, Any] = {}
        self.grants: list[dict[str, Any]] = []
        self._queues: list[asyncio.Queue[dict[str, Any]]] = []

    @property
    def home(self) -> Path:
        return self._home

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        return [item for item in self.all_sessions.values() if include_ended or item.state is SessionState.ACTIVE]

    def session(self, session_id: str) -> SessionRecord | None:
        found = [item for key, item in self.all_sessions.items() if len(session_id) >= 8 and key.startswith(session_id)]
        return found[0] if len(found) == 1 else None

    def open_prompts(self) -> list[PromptRecord]:
        return [item for item in self.all_prompts.values() if item.state in OPEN]

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        found = [item for key, item in self.all_prompts.items() if len(prompt_id) >= 8 and key.startswith(prompt_id)]
        return found[0] if len(found) == 1 else None

    def name_of(self, identity: str) -> str:
        return self.names.get(identity, "")

    def reads(self, identity: str) -> tuple[str, str]:
        return "", ""

    def login_revoked(self, identity: str) -> None:
        self.revocation.append(identity)

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        return self.holds.pop(0) if self.holds else 0.0, identity in self.sleepers

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        return [prompt_id]

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        return True

    async def settle_update(self, channel: str, update_id: str) -> None:
        """The page receives no updates."""

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        return []

    def remember(self, key: str, value: str) -> None:
        self.notes[key] = value

    def recall(self, key: str, default: str = "") -> str:
        return self.notes.get(key, default)

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        found = self.frames.get(session_id)
        more = {"past": self.past.get(session_id, [])} if past else {}
        more |= {} if styled else {"why": ["the probe says busy", "it is busy: no prompt"]}
        return found and {**found, **more}

    async def do_rename(self, caller: Caller, session_id: str, name: str) -> Renamed | Refused:
        session, label = self.session(session_id), escape_controls(name.strip(), keep_lines=False)
        if session is None:
            return Refused("unknown_session", "there is no such session")
        self.all_sessions[session.session_id] = replace(session, label=label)
        self.publish("session.changed", session_id=session.session_id, label=label)
        return Renamed(session.session_id, label, label)

    def _running(self, session_id: str) -> SessionRecord | None:
        session = self.session(session_id)
        return session if session and session.state is SessionState.ACTIVE else None

    async def do_resume(self, caller: Caller, session_id: str) -> Resumed | Refused:
        session = self._running(session_id)
        if session is None:
            return Refused("unknown_session", "there is no such session")
        self.resumed.append(session.session_id)
        return Resumed(session.session_id, True)

    async def do_end(self, caller: Caller, session_id: str, force: bool = False) -> Ending | Refused:
        session = self._running(session_id)
        if session is None:
            return Refused("unknown_session", "there is no such session")
        self.killed.append((session.session_id, force))
        self.all_sessions[session.session_id] = replace(session, state=SessionState.TERMINATED)
        self.publish("session.ended", session_id=session.session_id, exit_code=143)
        return Ending(session.session_id, session.pid, True)

    async def do_enqueue(self, caller: Caller, session_id: str, text: str) -> Queued | Refused:
        reply = InboundReply(caller.channel, caller.identity, "", text, session_id, as_text=True, place=caller.place)
        self.queue.append((new_id(), reply))
        return Queued("queued", f"Queued as number {len(self.queue)}.", self.queue[-1][0])

    async def do_queue(self, caller: Caller, session_id: str = "") -> dict[str, Any]:
        return {"queue": self.queued(session_id)}

    def queued(self, session_id: str = "") -> list[dict[str, Any]]:
        return [
            {"queue_id": queue_id, "session_id": reply.session_id, "text": reply.value, "name": "shop",
             "by_name": "Ada", "by": reply.identity, "created_at": iso(self.clock.wall())}
            for queue_id, reply in self.queue
        ]  # fmt: skip

    async def do_dequeue(self, caller: Caller, queue_id: str) -> Queued | Refused:
        found = [one for one in self.queue if queue_id and one[0].startswith(queue_id)]
        if len(found) != 1:
            return Refused("unknown_prompt", "There is no such instruction.")
        self.queue.remove(found[0])
        return Queued("revoked", "Removed.", "")

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        self.typed.append((session_id, data, identity))
        return True

    def events(self) -> AsyncIterator[dict[str, Any]]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._queues.append(queue)
        return _drain(queue)

    def note(self, event: str, **fields: Any) -> None:
        entry = {
            "seq": len(self.audit) + 1,
            "event": event,
            "ts": iso(self.clock.wall()),
            "prev_hash": "genesis",
            "hash": "0" * 64,
            **fields,
        }
        self.audit.append(entry)

    async def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        self.watching += 1
        try:
            while self.all_sessions[session_id].state is SessionState.ACTIVE:
                yield self.frames[session_id]
                self.frame_changed.clear()
                await self.frame_changed.wait()
        finally:
            self.watching -= 1

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        found = list(reversed(self.all_prompts.values()))
        ids = [item.prompt_id for item in found]
        found = found[ids.index(before) + 1 :] if before in ids else found
        found = [item for item in found if session_id in ("", item.session_id) and state in ("", item.state.value)]
        return [item for item in found if search.lower() in item.prompt.excerpt.lower()][:limit]

    def statistics(self) -> dict[str, Any]:
        days = [{"day": f"2026-01-{day:02}", "raised": day % 7 + 1, "answered": day % 5} for day in range(1, 15)]
        return {
            "days": days,
            "answer_s": {"count": 31, "median": 14.2, "p90": 95.0, "buckets": [[5, 9], [15, 8], [60, 9], [300, 5]]},
            "answered_by": {"web:page": 20, "telegram:123": 9, "terminal": 12},
            "types": {"yes_no": 12, "multiple_choice": 19, "free_text": 4},
            "sessions": {"active": 1},
            "prompts": {"resolved": 31},
            "replies": {"web": 20},
            "audit_entries": len(self.audit),
            "answered_ways": {"keys": 31},
        }

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        found = [entry for entry in reversed(self.audit) if before is None or entry["seq"] < before]
        found = [entry for entry in found if not events or entry["event"] in events]
        wanted = {"session_id": session_id, "prompt_id": prompt_id}
        found = [
            entry for entry in found if all(not value or entry.get(name) == value for name, value in wanted.items())
        ]
        return found[:limit]

    async def do_audit_state(self, caller: Caller) -> AuditState:
        return AuditState(len(self.audit), "0" * 64, True, "the chain is whole")

    async def do_launchers(self, caller: Caller) -> dict[str, Any]:
        more = {"folders": ["/home/ada"], "arguments": True, "recent": ["/home/ada/blog"]}
        return {"launchers": [{"name": "claude here", "command": ["claude"], "cwd": "/home/ada/shop", **more}]}

    async def do_grant(self, caller: Caller, prompt_id: str, preview: bool = False, **limits: Any) -> Granted | Refused:
        if self.prompt(prompt_id) is None:
            return Refused("unknown_prompt", "There is no such prompt.")
        shape, reasons = "exactly `cargo test`", ("Asked: no rule allows 'x'.",)
        words = Granted(f"{shape}, in this session", shape, ("cargo test",), ("cargo test; x",), reasons)
        return words if preview else replace(words, grant_id="a" * 32, answered=True)

    async def do_rules(self, caller: Caller) -> dict[str, Any]:
        rule: dict[str, Any] = {
            "name": "tests",
            "verdict": "allow",
            "command": "cargo test **",
            "about": "cargo test **",
            "only": [],
        }
        rule |= {"approvals": 1, "person": [], "reason": "", "origin": "", "digest": "0" * 32}
        return {"rules": [rule], "grants": self.grants, "decisions": [], "tell": "digest"}

    async def do_revoke_grant(self, caller: Caller, grant_id: str) -> bool | Refused:
        before = len(self.grants)
        self.grants = [item for item in self.grants if item["grant_id"] != grant_id]
        ended = len(self.grants) < before
        return True if ended else Refused("unknown_grant", "there is no such grant")

    def agreed(self, prompt_id: str) -> list[str]:
        return []

    async def do_launch(
        self,
        caller: Caller,
        launcher: str,
        folder: str = "",
        arguments: tuple[str, ...] = (),
        name: str = "",
        instruction: str = "",
    ) -> Launched | Refused:
        if launcher != "claude here":
            return Refused("unknown_launcher", f"there is no launcher named {launcher!r}")
        if folder and not folder.startswith("/home/ada"):
            return Refused("not_allowed", f"{folder} is not a folder in which {launcher!r} can be started")
        self.launched.append((launcher, folder, arguments, name.strip()))
        self.instructed.append(instruction)
        return Launched(self.add_session("claude", folder or "/home/ada/shop", name).session_id)

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        return self.answers.get(prompt_id)

    def still_waiting(self) -> list[PromptRecord]:
        return [item for item in self.all_prompts.values() if item.state is PromptState.EXPIRED]

    async def do_again(self, caller: Caller, prompt_id: str) -> AskedAgain | Refused:
        record = self.prompt(prompt_id)
        if record is None:
            return Refused("unknown_prompt", "There is no such prompt.")
        self.asked_again.append(record.prompt_id)
        waits = any(item.prompt_id == record.prompt_id for item in self.still_waiting())
        if not waits:
            return Refused("not_waiting", "it does not wait any more")
        return AskedAgain(True, "asked", "Asked.", record.prompt_id)

    def tell(self, message: str) -> None:
        self.told.append(message)

    def offer(self, name: str, answer: Any) -> None:
        self.offers[name] = answer

    def publish(self, event: str, **fields: Any) -> None:
        for queue in self._queues:
            queue.put_nowait({"event": event, "at": iso(self.clock.wall()), **fields})

    def add_session(
        self, tool: str = "claude", cwd: str = "/home/ada/shop", label: str = "", stopped: bool = False
    ) -> SessionRecord:
        started_at = iso(self.clock.wall())
        session = SessionRecord(new_id(), tool, (tool,), cwd, 4242, 4241, started_at, label=label, stopped=stopped)
        self.all_sessions[session.session_id] = session
        self.frames[session.session_id] = frame(["$ " + tool, "waiting"])
        self.publish("session.started", session_id=session.session_id)
        return session

    def show(self, session_id: str, lines: list[Any]) -> None:
        self.frames[session_id] = frame(lines)
        self.frame_changed.set()


async def _drain(queue: asyncio.Queue[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    while True:
        yield await queue.get()


def frame(lines: list[Any]) -> dict[str, Any]:
    """Plain strings, or rows of runs [text, fg, bg, flags], as a host would send them."""
    rows = [[[line, None, None, 0]] if isinstance(line, str) else line for line in lines]
    return {"rows": 24, "cols": 80, "cursor": [0, 0], "cursor_visible": True, "styled": rows}


class FakeHub:
    """A web channel with a hub and a router of its own: `raise_prompt` asks, `typed` lists what would be typed."""

    def __init__(self, home: Path, clock: Clock | None = None, **settings: Any) -> None:
        self.clock = clock or SystemClock()
        self.hub_api = FakeHubApi(home, self.clock)
        self.settings = {"port": 0, **settings}
        self.answered: list[tuple[str, str, str]] = []  # (prompt id, value, identity)
        self.channel = WebChannel(self.settings, self.hub_api, self.clock)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.channel.start()
        self._task = asyncio.create_task(self._answer_all())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.channel.close()

    async def restart(self) -> None:
        """A new channel on the same notes, as after a restart of the hub."""
        await self.stop()
        await self.restart_after_stop()

    async def restart_after_stop(self) -> None:
        self.channel = WebChannel(self.settings, self.hub_api, self.clock)
        await self.start()

    async def raise_prompt(self, session: SessionRecord, prompt: Prompt, ttl_s: float = 600.0) -> PromptRecord:
        now = self.clock.wall()
        times = (iso(now), iso(now + ttl_s))
        state = PromptState.AWAITING_REPLY
        record = PromptRecord(
            new_id(), session.session_id, prompt, state, new_nonce(), *times, self.clock.now() + ttl_s
        )
        self.hub_api.all_prompts[record.prompt_id] = record
        await self.channel.send_prompt(record, session)
        self.hub_api.publish("prompt.raised", session_id=session.session_id, prompt_id=record.prompt_id)
        return record

    async def move(self, record: PromptRecord, state: PromptState, receipt: Receipt) -> PromptRecord:
        moved = replace(record, state=state, decided_by=receipt.by or record.decided_by)
        self.hub_api.all_prompts[record.prompt_id] = moved
        await self.channel.update_prompt(record.prompt_id, moved, receipt)
        return moved

    async def _answer_all(self) -> None:
        while True:
            reply = await self.channel.receive_reply()
            await self.channel.answer_reply(reply, await self._decide(reply))

    async def _decide(self, reply: InboundReply) -> Receipt | Reject:
        record = self.hub_api.all_prompts[reply.prompt_id]
        refusal = judge(record, reply)
        if refusal is not None:
            return refusal
        self.answered.append((record.prompt_id, reply.value, reply.identity))
        by = reply.identity
        self.hub_api.answers[record.prompt_id] = {
            "kind": "choice"
            if reply.value in {choice.value for choice in record.prompt.choices}
            else {"y": "yes", "n": "no", "enter": "enter"}.get(reply.value, "text"),
            "value": None if record.prompt.secret else reply.value,
            "by": by,
            "at": iso(self.clock.wall()),
            "source": "operator",
        }
        record = await self.move(record, PromptState.REPLY_RECEIVED, Receipt("received", f"Answered by {by}.", by))
        record = await self.move(record, PromptState.INJECTED, Receipt("typed", "Typed.", by))
        await self.move(record, PromptState.RESOLVED, Receipt("taken", "The tool took it.", by))
        return Receipt("typed", "Typed.", by)


def judge(record: PromptRecord, reply: InboundReply) -> Reject | None:
    if reply.session_id != record.session_id:
        return Reject(Refusal.WRONG_SESSION, "That prompt belongs to another session.")
    if record.state not in OPEN:
        return Reject(Refusal.NOT_OPEN, f"Too late: answered by {record.decided_by or 'somebody else'}.")
    values = {choice.value for choice in record.prompt.choices} | {choice.label for choice in record.prompt.choices}
    if record.prompt.type is PromptType.TYPE_YES_NO:
        values |= {"y", "n"}
    if record.prompt.type is PromptType.TYPE_CONFIRM_ENTER:
        values |= {"enter"}
    if record.prompt.constraints.get("multi_select") and set(reply.value.split(",")) <= values:
        return None
    takes_text = record.prompt.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN)
    allowed = reply.value in values or (takes_text or (record.prompt.text_steps and reply.as_text))
    return None if allowed else Reject(Refusal.BAD_VALUE, "That is not one of the choices.")
