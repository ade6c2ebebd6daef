"""Runs a channel that was written only from the architecture document: four methods, the document's event fields, and
replies as pairs. Edits and receipts, which the document does not mention, become notices.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import Clock, parse_iso
from atlasbridge.core.constants import INJECT_BYTES
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.prompt.written_event import PromptEvent
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.session.written_session import Session

QUIET_STAGES = ("received", "typed", "taken", "reminder")


def event_of(record: PromptRecord) -> PromptEvent:
    prompt = record.prompt
    bucket = record.created_at[:18]  # ten seconds
    key = hashlib.sha256(f"{record.session_id}{prompt.excerpt}{bucket}".encode()).hexdigest()
    default = prompt.safe_default
    return PromptEvent(
        record.prompt_id,
        record.session_id,
        prompt.type,
        prompt.confidence,
        prompt.excerpt,
        [(choice.value, choice.label) for choice in prompt.choices],
        dict(prompt.constraints),
        key,
        _moment(record.created_at),
        INJECT_BYTES.get(default, default.encode() + b"\r") if default else b"",
        _moment(record.expires_at),
        record.nonce,
    )


class SpecifiedChannel(BaseChannel):
    """Wraps a channel of the document for the router. Its answers count as those of the one operator it serves."""

    def __init__(
        self, name: str, inner: type[BaseChannel], settings: Mapping[str, Any], hub_api: HubApi, clock: Clock
    ) -> None:
        super().__init__(settings, hub_api, clock)
        self.name = name  # type: ignore[misc]
        self.inner: Any = _built(inner, settings, hub_api, clock)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return str(await self.inner.send_prompt(event_of(event), Session.of(session)))

    async def receive_reply(self) -> InboundReply:
        prompt_id, value = await self.inner.receive_reply()
        known = self.hub_api.prompt(str(prompt_id))
        return InboundReply(
            channel=self.name,
            identity=f"{self.name}:operator",
            prompt_id=str(prompt_id),
            value=str(value),
            session_id=known.session_id if known else "",
        )

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        if isinstance(outcome, Reject):
            await self.inner.notify(outcome.sentence, None)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        if receipt.stage not in QUIET_STAGES:
            session = self.hub_api.session(event.session_id)
            await self.inner.notify(receipt.sentence, Session.of(session) if session else None)

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        await self.inner.notify(message, Session.of(session) if session else None)

    async def close(self) -> None:
        await self.inner.close()


def _built(inner: type[BaseChannel], settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> BaseChannel:
    """Create the channel with the usual arguments, or without any if its constructor accepts none."""
    if inner.__init__ is BaseChannel.__init__ or len(inspect.signature(inner).parameters) >= 3:
        return inner(settings, hub_api, clock)
    build: Any = inner
    built: BaseChannel = build(settings) if inspect.signature(inner).parameters else build()
    return built


def _moment(at: str) -> datetime:
    return datetime.fromtimestamp(parse_iso(at), UTC) if at else datetime.fromtimestamp(0, UTC)
