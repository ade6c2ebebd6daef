"""The channel of this machine: `atlasbridge approvals` lists prompts and `atlasbridge reply` answers them.

Replies arrive through the hub's own socket, so this channel transports nothing. It exists so that a prompt counts as
shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from atlasbridge.channels.base import OneWayChannel
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord, Receipt
from atlasbridge.core.session.model import SessionRecord


class LocalChannel(OneWayChannel):
    name: ClassVar[str] = "local"
    remote: ClassVar[bool] = False

    def __init__(
        self, settings: Mapping[str, Any] | None = None, hub_api: HubApi | None = None, clock: Clock | None = None
    ) -> None:
        """All parameters are optional, because the specification creates the channel without any."""
        super().__init__(settings or {}, cast("HubApi", hub_api), clock or SystemClock())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return event.prompt_id

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        """Nothing to edit: `approvals` follows the event stream."""

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        """No notice is needed: local users look at the list itself."""


class NullChannel(LocalChannel):
    """Accepts every prompt and notice, shows nothing, and never replies."""

    name: ClassVar[str] = "null"
