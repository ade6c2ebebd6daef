"""A hub in miniature for channel tests: sessions and prompts in memory, an inbox, and a gate that lets one reply win.

It keeps the part of core.ports.HubApi that chat channels use; `serve` plays the router for any number of channels.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from tests.support.kept_answers import KeptAnswers

from atlasbridge.core.clock import Clock, SystemClock, iso
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ids import new_id, new_nonce
from atlasbridge.core.operations import (
    AskedAgain,
    Caller,
    Ending,
    Granted,
    Launched,
    Queued,
    Refused,
    Resumed,
)
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.ports import Channel
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
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

UPDATE_TRIES = 100


class MiniHub(KeptAnswers):
    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock or SystemClock())
        self.records: dict[str, PromptRecord] = {}
        self.session_records: dict[str, SessionRecord] = {}
        self.shown: dict[tuple[str, str], list[str]] = {}
        self.inbox: dict[tuple[str, str], str] = {}
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.memory: dict[str, str] = {}
        self.screens: dict[str, dict[str, Any]] = {}
        self.replies: list[InboundReply] = []
        self.answers: dict[str, InboundReply] = {}
        self.killed: list[str] = []
        self.typed: list[tuple[str, bytes, str]] = []
        self.launchable: list[str] = []
        self.names: dict[str, str] = {}
        self.readers_of: dict[str, tuple[str, str]] = {}
        self.tones: dict[str, Tone] = {}
        self.away: list[float | None] = []
        self.granted: list[tuple[InboundReply, float | None]] = []
        self.queue: list[tuple[str, InboundReply]] = []
        self._pids = itertools.count(4001)

    # what tests do

    def add_session(self, tool: str = "claude", cwd: str = "/home/ada/project", **fields: Any) -> SessionRecord:
        pid = next(self._pids)
        session = SessionRecord(new_id(), tool, (tool,), cwd, pid, pid + 1, iso(self.clock.wall()), **fields)
        self.session_records[session.session_id] = session
        return session

    def add_prompt(self, session: SessionRecord, prompt: Prompt, ttl_s: float = 600.0) -> PromptRecord:
        record = PromptRecord(
            prompt_id=new_id(),
            session_id=session.session_id,
            prompt=prompt,
            state=PromptState.AWAITING_REPLY,
            nonce=new_nonce(),
            created_at=iso(self.clock.wall()),
            expires_at=iso(self.clock.wall() + ttl_s),
            deadline=self.clock.now() + ttl_s,
        )
        self.records[record.prompt_id] = record
        return record

    async def ask(self, channel: Channel, record: PromptRecord) -> str:
        message_id = await channel.send_prompt(record, self.session_records[record.session_id])
        self.shown.setdefault((record.prompt_id, channel.name), []).append(message_id)
        return message_id

    def move(self, record: PromptRecord, state: PromptState, by: str = "") -> PromptRecord:
        moved = replace(self.records[record.prompt_id], state=state, decided_by=by)
        self.records[record.prompt_id] = moved
        return moved

    async def serve(self, *channels: Channel) -> None:
        """Be the router until cancelled: every reply is decided, told to its sender and shown on every channel."""
        async with asyncio.TaskGroup() as group:
            for channel in channels:
                group.create_task(self._serve_one(channel, channels))

    async def _serve_one(self, channel: Channel, channels: tuple[Channel, ...]) -> None:
        while True:
            reply = await channel.receive_reply()
            outcome = self.decide(reply)
            await channel.answer_reply(reply, outcome)
            record = self.prompt(reply.prompt_id)
            if isinstance(outcome, Receipt) and record is not None:
                for other in channels:
                    for message_id in self.deliveries(record.prompt_id, other.name):
                        await _show_the_end(other, message_id, record, replace(outcome, stage="taken"))

    def decide(self, reply: InboundReply) -> Receipt | Reject:
        self.replies.append(reply)
        record = self.prompt(reply.prompt_id)
        if record is None:
            return Reject(Refusal.UNKNOWN_PROMPT, "I do not know this prompt.")
        if reply.session_id not in ("", record.session_id):
            return Reject(Refusal.WRONG_SESSION, "This prompt belongs to another session.")
        if reply.nonce not in ("", record.nonce):
            return Reject(Refusal.BAD_NONCE, "This button is not valid.")
        if record.state not in OPEN:
            return Reject(Refusal.NOT_OPEN, f"Already answered by {record.decided_by}.")
        if not _is_valid(record, reply.value):
            return Reject(Refusal.BAD_VALUE, "That is not one of the choices.")
        assert record.prompt_id not in self.answers, "answered twice"
        self.answers[record.prompt_id] = reply
        self.move(record, PromptState.REPLY_RECEIVED, reply.identity)
        return Receipt("received", f"Received: {reply.value}", reply.identity)

    # core.ports.HubApi

    async def do_grant(
        self,
        caller: Caller,
        prompt_id: str,
        for_s: float | None = None,
        times: int | None = None,
        folder: bool = False,
        preview: bool = False,
    ) -> Granted:
        self.granted.append((self.reply_of(caller, prompt_id, ""), for_s))
        return Granted("exactly `ls`", "ls", (), (), grant_id="1a2b3c4d" * 4)

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        return list(self.session_records.values())

    def session(self, session_id: str) -> SessionRecord | None:
        return self.session_records.get(session_id)

    def open_prompts(self) -> list[PromptRecord]:
        return [record for record in self.records.values() if record.state in OPEN]

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        if prompt_id in self.records:
            return self.records[prompt_id]
        found = [record for full, record in self.records.items() if prompt_id and full.startswith(prompt_id)]
        return found[0] if len(found) == 1 else None

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        return list(self.shown.get((prompt_id, channel), []))

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        fresh = (channel, update_id) not in self.inbox
        self.inbox.setdefault((channel, update_id), payload)
        return fresh

    async def settle_update(self, channel: str, update_id: str) -> None:
        self.inbox[channel, update_id] = ""

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        return [(key[1], payload) for key, payload in self.inbox.items() if key[0] == channel and payload]

    def remember(self, key: str, value: str) -> None:
        self.memory[key] = value

    def recall(self, key: str, default: str = "") -> str:
        return self.memory.get(key, default)

    def name_of(self, identity: str) -> str:
        return self.names.get(identity, "")

    def reads(self, identity: str) -> tuple[str, str]:
        return self.readers_of.get(identity, ("", ""))

    def tone(self, prompt_id: str, channel: str) -> Tone:
        return self.tones.get(prompt_id, Tone())

    async def do_away(self, caller: Caller, for_s: float | None = None) -> bool:
        self.away.append(for_s)
        return True

    async def do_here(self, caller: Caller) -> bool:
        self.away.append(0.0)
        return False

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        return self.screens.get(session_id)

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        found = [record for record in self.records.values() if session_id in ("", record.session_id)]
        return sorted(found, key=lambda record: record.created_at, reverse=True)[:limit]

    async def do_enqueue(self, caller: Caller, session_id: str, text: str) -> Queued | Refused:
        reply = InboundReply(caller.channel, caller.identity, "", text, session_id, as_text=True, place=caller.place)
        self.queue.append((new_id(), reply))
        return Queued("queued", f"Queued as number {len(self.queue)}.", self.queue[-1][0])

    async def do_queue(self, caller: Caller, session_id: str = "") -> dict[str, Any]:
        return {"queue": self.queued(session_id)}

    def queued(self, session_id: str = "") -> list[dict[str, Any]]:
        return [
            {
                "queue_id": queue_id,
                "session_id": reply.session_id,
                "name": self.session_records[reply.session_id].label or "project",
                "text": reply.value,
                "by": reply.identity,
                "by_name": "Ada",
                "created_at": iso(self.clock.wall()),
            }
            for queue_id, reply in self.queue
            if session_id in ("", reply.session_id)
        ]

    async def do_dequeue(self, caller: Caller, queue_id: str) -> Queued | Refused:
        found = [one for one in self.queue if queue_id and one[0].startswith(queue_id)]
        if len(found) != 1:
            return Refused("unknown_prompt", "There is no such instruction.")
        self.queue.remove(found[0])
        return Queued("revoked", "Removed.", "")

    async def do_resume(self, caller: Caller, session_id: str) -> Resumed | Refused:
        return Resumed(session_id, True)

    async def do_end(self, caller: Caller, session_id: str, force: bool = False) -> Ending | Refused:
        self.killed.append(session_id)
        return Ending(session_id, 1, True)

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        self.typed.append((session_id, data, identity))
        return True

    async def do_again(self, caller: Caller, prompt_id: str) -> AskedAgain | Refused:
        known = prompt_id in self.records
        return AskedAgain(True, "asked", "Asked.", prompt_id) if known else Refused("not_open", "It does not wait.")

    async def do_launchers(self, caller: Caller) -> dict[str, Any]:
        more: dict[str, Any] = {"cwd": "/", "folders": [], "arguments": False, "recent": []}
        return {"launchers": [{"name": name, "command": [name], **more} for name in self.launchable]}

    async def do_launch(self, caller: Caller, launcher: str, **wanted: Any) -> Launched | Refused:
        return Launched(self.add_session(launcher, label=launcher).session_id)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        for record in self.open_prompts():
            yield {"event": "prompt.raised", **record.to_json()}

    def note(self, event: str, **fields: Any) -> None:
        self.notes.append((event, fields))


async def _show_the_end(channel: Channel, message_id: str, record: PromptRecord, receipt: Receipt) -> None:
    """Like the real router, a link that is down for a moment makes the update late, not lost."""
    for _ in range(UPDATE_TRIES):
        try:
            await channel.update_prompt(message_id, record, receipt)
            return
        except ChannelError:
            await asyncio.sleep(0.05)
    await channel.update_prompt(message_id, record, receipt)


def _is_valid(record: PromptRecord, value: str) -> bool:
    if record.prompt.constraints.get("multi_select"):
        return value == "none" or set(value.split(",")) <= {choice.value for choice in record.prompt.choices}
    known = {"y", "n", "enter", "default", "cancel", *(choice.value for choice in record.prompt.choices)}
    return record.prompt.type is PromptType.TYPE_FREE_TEXT or value in known
