"""The part of a hub in memory that keeps answers for later: one id for all, three moments that it understands."""

from __future__ import annotations

from typing import Any

from tests.support.bare_hub_api import BareHubApi

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.prompt.model import InboundReply, Receipt, Refusal, Reject


class KeptAnswers(BareHubApi):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.kept: list[tuple[InboundReply, str]] = []
        self.snoozed: list[tuple[InboundReply, float]] = []

    def postpone(self, reply: InboundReply, when: str) -> Receipt | Reject:
        if when not in ("06:00", "in 2h", "limit-resets"):
            return Reject(Refusal.BAD_VALUE, "Say when: 06:00.")
        self.kept.append((reply, when))
        return Receipt("postponed", f"{reply.identity} answers {reply.value!r} at {when} (1a2b3c4d).", reply.identity)

    def snooze(self, reply: InboundReply, for_s: float) -> Receipt | Reject:
        self.snoozed.append((reply, for_s))
        return Receipt("snoozed", f"{reply.identity} wants to be asked again.", reply.identity)

    def revoke_later(self, reply: InboundReply, later_id: str) -> Receipt | Reject:
        if later_id != "1a2b3c4d" or not self.kept:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such answer.")
        self.kept.clear()
        return Receipt("revoked", "Taken back.", reply.identity)

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
                "when": when,
                "session_id": reply.session_id,
                "name": "project",
                "excerpt": "?",
            }
            for reply, when in self.kept
            if prompt_id in ("", reply.prompt_id)
        ]
