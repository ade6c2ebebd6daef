"""What commands ask about people and attention: who there is, who is away, what still waits, many answers at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from atlasbridge.core.daemon.desk import HubDesk
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.values import replace

LOOKING = frozenset({"people", "still_waiting", "later", "queue"})
MOST_AT_ONCE = 200

ReplyOne = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Inbound = Callable[[dict[str, Any]], InboundReply]


class AttentionOperations:
    """`reply_one` answers a single prompt, exactly as the operation `reply` does; `inbound` reads what it would say."""

    def __init__(self, desk: HubDesk, reply_one: ReplyOne, inbound: Inbound) -> None:
        self._desk = desk
        self._reply_one = reply_one
        self._inbound = inbound

    async def operate(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """None: it is no operation of this kind."""
        match message.get("op"):
            case "people":
                return {"ok": True, "people": self._desk.people(), "away": self._desk.is_away}
            case "still_waiting":
                return {"ok": True, "prompts": self.still_waiting()}
            case "away":
                for_s = message.get("for_s")
                self._desk.go_away(None if for_s is None else max(0.0, float(for_s)))
                return {"ok": True, "away": self._desk.is_away}
            case "here":
                self._desk.come_back()
                return {"ok": True, "away": False}
            case "ask_again":
                return await self._ask_again(str(message["prompt_id"]))
            case "later":
                return {"ok": True, "later": self._desk.later()}
            case "reply_later":
                return _said(self._desk.postpone(self._inbound(message), str(message["when"])))
            case "snooze":
                return _said(self._desk.snooze(self._inbound(message), float(message["for_s"])))
            case "later.revoke":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._desk.revoke_later(reply, str(message["later_id"])))
            case "queue":
                return {"ok": True, "queue": self._desk.queued(str(message.get("session_id", "")))}
            case "queue.add":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._desk.enqueue(replace(reply, session_id=str(message["session_id"]))))
            case "queue.remove":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._desk.dequeue(reply, str(message["queue_id"])))
            case "reply_many":
                return await self._reply_many(message)
            case _:
                return None

    def still_waiting(self) -> list[dict[str, Any]]:
        return [self._describe(record) for record in self._desk.still_waiting()]

    def _describe(self, record: PromptRecord) -> dict[str, Any]:
        return {**describe_raised(record, self._desk.session(record.session_id)), "still_waiting": True}

    async def _ask_again(self, prompt_id: str) -> dict[str, Any]:
        outcome = await self._desk.raise_again(prompt_id)
        if isinstance(outcome, Reject):
            return {"ok": False, "reason": outcome.reason.value, "message": outcome.sentence, "hint": ""}
        return {"ok": True, "stage": outcome.stage, "message": outcome.sentence, "prompt_id": outcome.answer}

    async def _reply_many(self, message: dict[str, Any]) -> dict[str, Any]:
        """One after the other, each decided, recorded and told for itself; one that is refused stops no other."""
        ids = [str(one) for one in message["prompt_ids"]]
        if not 0 < len(ids) <= MOST_AT_ONCE or len(set(ids)) != len(ids):
            sentence = f"Name 1 to {MOST_AT_ONCE} prompts, each once."
            return {"ok": False, "reason": Refusal.BAD_VALUE.value, "message": sentence, "hint": ""}
        key = str(message.get("request_key", ""))
        results = []
        for prompt_id in ids:
            one: dict[str, Any] = {name: message[name] for name in ("value", "as_text", "place") if name in message}
            done = await self._reply_one(
                {**one, "prompt_id": prompt_id, "request_key": f"{key}/{prompt_id}" if key else ""}
            )
            results.append({"prompt_id": prompt_id, **done})
        return {"ok": True, "results": results, "answered": sum(1 for one in results if one["ok"])}


def _said(outcome: Receipt | Reject) -> dict[str, Any]:
    if isinstance(outcome, Reject):
        return {"ok": False, "reason": outcome.reason.value, "message": outcome.sentence, "hint": ""}
    return {"ok": True, "stage": outcome.stage, "message": outcome.sentence, "later_id": outcome.answer}
