"""The base class of every channel. A channel transports prompts and replies; the gate decides.

The four methods of the specification (`send_prompt`, `receive_reply`, `notify`, `close`) are abstract. The other
methods have defaults for channels that cannot edit a message after sending it.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, ClassVar

from atlasbridge.core.clock import Clock
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)
ERRORS_SHOWN = 120  # characters
_NONE: Any = None


class BaseChannel(ABC):
    name: ClassVar[str]
    # messages leave this machine, so the channel never asks for secrets and never accepts them
    remote: ClassVar[bool] = True
    # each person has their own chat, so a prompt can go only to the people who are allowed to see it
    personal: ClassVar[bool] = False

    def __init__(
        self, settings: Mapping[str, Any] | None = None, hub_api: HubApi = _NONE, clock: Clock = _NONE
    ) -> None:
        """`settings` is the channel's own table of the configuration, already checked by its pydantic model. The hub
        always gives all three; a class that is written from the specification asks for none."""
        self.settings: Mapping[str, Any] = settings or {}
        self.hub_api = hub_api
        self.clock = clock

    async def start(self) -> None:  # noqa: B027 - a channel without connections has nothing to start
        """Open connections and start background work. It must return quickly; the channel itself retries a
        service that is down."""

    @abstractmethod
    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Show the prompt to every operator and return an opaque message id. Raises ChannelError if it reached
        no one."""

    @abstractmethod
    async def receive_reply(self) -> InboundReply:
        """Wait for the next reply."""

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Tell the sender of the reply, in one sentence, whether it was accepted."""
        await self.notify(outcome.sentence)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        """Edit the message after the prompt was answered, withdrawn or expired, or its answer was typed or taken."""
        await self.notify(receipt.sentence)

    @abstractmethod
    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        """Send a message that needs no answer."""

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:  # noqa: B027 - its prompts are shown anyway
        """Send one message about many prompts; edit it when the same key comes again. The default does nothing."""

    @abstractmethod
    async def close(self) -> None:
        """Stop background work and close connections."""

    def health(self) -> dict[str, Any]:
        return {"state": "ok"}


class OneWayChannel(BaseChannel):
    """Tells people, and receives no replies."""

    async def receive_reply(self) -> InboundReply:
        never: asyncio.Future[InboundReply] = asyncio.get_running_loop().create_future()
        return await never

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """There is no reply to answer."""

    async def close(self) -> None:
        """Nothing is open."""


async def run_program(
    words: Sequence[str], patience_s: float, given: bytes = b"", env: Mapping[str, str] | None = None
) -> tuple[int, bytes, str]:
    """Return a program's exit status, its output and the first of its errors. Raises OSError, and TimeoutError. It does
    not outlive the caller's patience, or the caller."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    try:
        async with asyncio.timeout(patience_s):
            output, errors = await process.communicate(given)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    why = escape_controls(errors.decode(errors="replace").strip(), keep_lines=False)[:ERRORS_SHOWN]
    return process.returncode or 0, output, why


# Background tasks of a channel: they are tracked, their failures are logged, and all end with the channel.


class TaskSet:
    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def hold(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def close(self, grace_s: float = 0.0) -> None:
        """Wait a moment for running tasks, then cancel them."""
        if self._tasks and grace_s:
            await asyncio.wait(set(self._tasks), timeout=grace_s)
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.warning("%s: %s", self._owner, fault)
