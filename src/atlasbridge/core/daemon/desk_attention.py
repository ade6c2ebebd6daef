"""What channels and commands may ask of the hub about people: how they are called, who is away, what still waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from atlasbridge.core.daemon.departed import Departed
from atlasbridge.core.policy.attention import Tone
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.local_time import minute_of_day

if TYPE_CHECKING:
    from atlasbridge.core.clock import Clock
    from atlasbridge.core.daemon.later_desk import LaterDesk
    from atlasbridge.core.daemon.prompts import PromptLife
    from atlasbridge.core.daemon.queue_desk import QueueDesk
    from atlasbridge.core.store.ledger import Ledger


class DeskAttention:
    """A part of the desk; `serve` gives it what it speaks for, once that is there."""

    ledger: Ledger
    clock: Clock
    _life: PromptLife
    _later: LaterDesk
    _queue: QueueDesk
    _router: PromptRouter

    def serve(self, life: PromptLife, router: PromptRouter, later: LaterDesk, queue: QueueDesk) -> None:
        self._life, self._router, self._later, self._queue = life, router, later, queue
        self.departed = Departed(self.ledger, later, queue, router)

    def sent_away(self, identity: str) -> None:
        """A login or a token was revoked: what it kept for later ends with it."""
        self.departed.send_away(identity)

    def name_of(self, identity: str) -> str:
        """The one name of whoever has this identity; "": nobody gave them one."""
        person = self._router.policy.attention.people.find(identity)
        return person.name if person else ""

    def people(self) -> list[dict[str, Any]]:
        """Everybody who may answer somewhere: those with a name, then the identities that have none."""
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
        """As the channel itself has heard them called."""
        channel, _, person_id = identity.partition(":")
        return self.ledger.recall(f"{channel}.name.{person_id}") or identity

    def tone(self, prompt_id: str, channel: str) -> Tone:
        return self._router.tone(prompt_id, channel)

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        found = self._life.escalation.aside(prompt_id, identity)
        return found.hold_s, found.silent

    def heard_of_desk(self, carries: bool | None = None) -> None:
        if self._life.escalation.entrusted.heard(carries):
            self._life.escalation.look_at_all()

    def desk_asks(self, prompt_ids: Iterable[str]) -> None:
        self._life.escalation.entrusted.asks(prompt_ids)

    def key_age_s(self, session_id: str) -> float | None:
        """How long ago a person typed in that session's terminal, as far as its host has said."""
        at = self._life.escalation.last_key_at(session_id)
        return None if at is None else max(0.0, self.clock.now() - at)

    def still_waiting(self) -> list[PromptRecord]:
        return self.ledger.still_waiting()

    def ask_again(self, prompt_id: str) -> bool:
        return self._life.request_again(prompt_id) is None

    async def raise_again(self, prompt_id: str) -> Receipt | Reject:
        """The same, and waits for it: the receipt's `answer` is the new prompt's id."""
        return await self._life.ask_again(prompt_id)

    def postpone(self, reply: InboundReply, when: str) -> Receipt | Reject:
        return self._later.postpone(reply, when)

    def snooze(self, reply: InboundReply, for_s: float) -> Receipt | Reject:
        return self._later.snooze(reply, for_s)

    def revoke_later(self, reply: InboundReply, later_id: str) -> Receipt | Reject:
        return self._later.revoke(reply, later_id)

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return self._later.of_prompt(prompt_id) if prompt_id else self._later.listed()

    def enqueue(self, reply: InboundReply) -> Receipt | Reject:
        return self._queue.add(reply)

    def queued(self, session_id: str = "") -> list[dict[str, Any]]:
        return self._queue.listed(session_id)

    def dequeue(self, reply: InboundReply, queue_id: str) -> Receipt | Reject:
        return self._queue.remove(reply, queue_id)

    def go_away(self, for_s: float | None = None) -> None:
        self._life.escalation.go_away(None if for_s is None else self.clock.wall() + for_s)

    def come_back(self) -> None:
        self._life.escalation.come_back()

    @property
    def is_away(self) -> bool:
        return self._life.escalation.away_until is not None
