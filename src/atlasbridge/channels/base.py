"""The class every channel derives from.  A channel only carries; the gate decides.

The four methods of the specification (`send_prompt`, `receive_reply`, `notify`, `close`) are abstract; the others have
defaults that suit a channel which cannot edit what it sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord


class BaseChannel(ABC):
    name: ClassVar[str]
    remote: ClassVar[bool] = True  # text leaves this machine: secrets are never asked or answered here
    personal: ClassVar[bool] = False  # each person has a chat of their own: what one may not see goes to the others

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        """`settings` is the channel's own table of the configuration, already checked by its pydantic model."""
        self.settings = settings
        self.hub_api = hub_api
        self.clock = clock

    async def start(self) -> None:  # noqa: B027 - a channel without connections has nothing to start
        """Open connections and start background work.  Must return quickly; a dead service is retried inside."""

    @abstractmethod
    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Show the prompt to every operator.  Returns an opaque message id; ChannelError: nobody was reached."""

    @abstractmethod
    async def receive_reply(self) -> InboundReply:
        """Wait for the next reply."""

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Tell the sender in one sentence what became of this reply."""
        await self.notify(outcome.sentence)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        """Edit what was shown: answered (by whom), withdrawn, expired, typed, taken."""
        await self.notify(receipt.sentence)

    @abstractmethod
    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        """A message that asks nothing."""

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:  # noqa: B027 - its prompts are shown anyway
        """One message about many prompts, the same one again for the same key.  Who cannot edit says nothing."""

    @abstractmethod
    async def close(self) -> None:
        """Stop background work and close connections."""

    def health(self) -> dict[str, Any]:
        return {"state": "ok"}
