"""The part of a hub in memory that keeps answers for later: one id for all, three moments that it understands."""

from __future__ import annotations

from typing import Any

from tests.support.bare_hub_api import BareHubApi

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.operations import Caller, Kept, Refused
from atlasbridge.core.prompt.model import InboundReply


class KeptAnswers(BareHubApi):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.kept: list[tuple[InboundReply, str]] = []
        self.snoozed: list[tuple[InboundReply, float]] = []
        self.kept_id = ""  # with an id, the hub tells what was kept beside each card

    async def do_postpone(
        self, caller: Caller, prompt_id: str, value: str = "", when: str = "", as_text: bool = False
    ) -> Kept | Refused:
        if when not in ("06:00", "in 2h", "limit-resets"):
            return Refused("bad_value", "Give a time: 06:00.")
        self.kept.append((self.reply_of(caller, prompt_id, value, as_text), when))
        return Kept("postponed", f"{caller.identity} answers {value!r} at {when} (1a2b3c4d).", self.kept_id)

    async def do_snooze(self, caller: Caller, prompt_id: str, for_s: float) -> Kept | Refused:
        self.snoozed.append((self.reply_of(caller, prompt_id, ""), for_s))
        return Kept("snoozed", f"{caller.identity} wants to be asked again (1a2b3c4d).", self.kept_id)

    async def do_revoke_later(self, caller: Caller, later_id: str) -> Kept | Refused:
        if not ("1a2b3c4d" * 4).startswith(later_id or "?") or not self.kept:
            return Refused("unknown_prompt", "There is no such answer.")
        self.kept.clear()
        return Kept("revoked", "Removed.", self.kept_id)

    async def do_later(self, caller: Caller) -> dict[str, Any]:
        return {"later": self.later()}

    def reply_of(self, caller: Caller, prompt_id: str, value: str, as_text: bool = False) -> InboundReply:
        """What the hub would make of it."""
        record = self.prompt(prompt_id)
        session_id = record.session_id if record else ""
        fields: dict[str, Any] = {"session_id": session_id, "as_text": as_text, "place": caller.place}
        return InboundReply(caller.channel, caller.identity, prompt_id, value, **fields)

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return [
            {
                "later_id": "1a2b3c4d" * 4,
                "prompt_id": reply.prompt_id,
                "kind": "answer",
                "due_at": iso(self.clock.wall() + 60),
                "value": reply.value,
                "place": reply.place,
                "created_at": iso(self.clock.wall()),
                "by": reply.identity,
                "by_name": "Ada",
                "what": f"answer “{reply.value}”",
                "when": when,
                "session_id": reply.session_id,
                "name": "project",
                "excerpt": "?",
            }
            for reply, when in self.kept
            if prompt_id in ("", reply.prompt_id)
        ]
