"""A channel that is a scriptable person: it remembers what it was shown and says what a script tells it to say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord


class MemoryChannel(BaseChannel):
    """`shown`, `edits`, `notices` and `outcomes` grow in order; `down` makes every call fail, `stuck` makes it hang."""

    name: ClassVar[str] = "memory"
    remote: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        self.shown: list[PromptRecord] = []
        self.edits: list[tuple[str, Receipt]] = []
        self.notices: list[str] = []
        self.digests: list[tuple[str, str, bool]] = []
        self.outcomes: list[tuple[InboundReply, Receipt | Reject]] = []
        self.down = False
        self.stuck = False
        self.closed = False
        self._said: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._news = asyncio.Condition()

    def say(self, prompt: PromptRecord, value: str, identity: str = "memory:person", **fields: Any) -> None:
        """What the person answers."""
        self._said.put_nowait(
            InboundReply(
                channel=self.name,
                identity=identity,
                prompt_id=prompt.prompt_id,
                value=value,
                **{"session_id": prompt.session_id, "nonce": prompt.nonce, **fields},
            )
        )

    async def until(self, condition: Any, timeout_s: float = 10.0) -> None:
        """Wait until something that happened here makes `condition()` true."""
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(condition)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._work()
        self.shown.append(event)
        await self._tell()
        return f"memory-{len(self.shown)}"

    async def receive_reply(self) -> InboundReply:
        return await self._said.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        self.outcomes.append((reply, outcome))
        await self._tell()

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        await self._work()
        self.edits.append((event.prompt_id, receipt))
        await self._tell()

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        await self._work()
        self.notices.append(message)
        await self._tell()

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        await self._work()
        self.digests.append((key, text, loud))
        await self._tell()

    async def close(self) -> None:
        self.closed = True

    async def _work(self) -> None:
        if self.down:
            raise ChannelError("the memory channel is down", "set `down` to False")
        if self.stuck:
            await asyncio.get_running_loop().create_future()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()
