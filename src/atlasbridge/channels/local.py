"""The channel of this machine: prompts are listed by `atlasbridge approvals` and answered by `atlasbridge reply`.

Replies come in through the hub's own socket, so nothing is carried here; that it exists makes a prompt "shown".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt
from atlasbridge.core.session.model import SessionRecord


class LocalChannel(BaseChannel):
    name: ClassVar[str] = "local"
    remote: ClassVar[bool] = False

    def __init__(
        self, settings: Mapping[str, Any] | None = None, hub_api: HubApi | None = None, clock: Clock | None = None
    ) -> None:
        """With nothing, as the architecture document makes one: it needs neither settings nor a hub."""
        super().__init__(settings or {}, cast("HubApi", hub_api), clock or SystemClock())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        never: asyncio.Future[InboundReply] = asyncio.get_running_loop().create_future()
        return await never

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        """`approvals` follows the event stream."""

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        """Whoever looks here looks at the list itself."""

    async def close(self) -> None:
        """Nothing is open."""


# Channels that reach nobody: `NullChannel` for tests, and the local one, where the architecture document has them.

__all__ = ["LocalChannel", "NullChannel"]


class NullChannel(LocalChannel):
    """Takes every prompt and every notice, shows nothing, and never answers."""

    name: ClassVar[str] = "null"
