"""Shows a prompt to every operator of a chat. One must be reached; the others are retried in the background."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.message_index import Shown, encode_places
from atlasbridge.channels.outbox import Outbox, Params, Posted, Refused
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, PromptRecord

OTHERS_PATIENCE_S = 1.0  # after the first operator was reached
KEPT_UNSHOWABLE = 100
Wanted = Callable[[], bool] | None
Render = Callable[[str, bool], Params]  # renders the prompt for this chat; True: as short as possible


class Delivery:
    def __init__(self, hub_api: HubApi, clock: Clock, outbox: Outbox, shown: Shown, tasks: TaskSet) -> None:
        self._hub_api, self._clock = hub_api, clock
        self._outbox, self._shown, self._tasks = outbox, shown, tasks
        self._unshowable: OrderedDict[tuple[str, str], Refused] = OrderedDict()

    async def send(self, event: PromptRecord, chats: list[str], render: Render, hint: str) -> str:
        """Return as soon as one operator was reached. A second call for the same prompt skips chats that show it
        already."""
        shown_in = {place[0] for place in self._shown.places(event.prompt_id)}
        waiting = [chat for chat in chats if chat not in shown_in]
        sends = {self._tasks.hold(self.send_to(chat, event, render)): chat for chat in waiting}
        try:
            reached = bool(shown_in) or await _first_success(set(sends))
        except asyncio.CancelledError:
            for task in sends:
                task.cancel()
            raise
        if not reached:
            raise ChannelError(_why_nobody(set(sends)), hint)
        for task, chat in sends.items():
            self._tasks.hold(self._follow_up(task, chat, event, render))
        if sends:
            await asyncio.wait(set(sends), timeout=OTHERS_PATIENCE_S)
        return encode_places(self._shown.spots(event.prompt_id))

    async def send_to(self, chat: str, event: PromptRecord, render: Render, patient: bool = False) -> None:
        """If the service refuses the message, send a shorter one; if that is refused too, give up."""
        if known := self._unshowable.get((chat, event.prompt_id)):
            raise known
        wanted = (lambda: self._is_open(event.prompt_id)) if patient else None
        try:
            posted = await self._outbox.send(chat, render(chat, False), wanted)
        except Refused as fault:
            if fault.gone or fault.flood_s is not None:
                raise
            posted = await self._send_short(chat, event, render, wanted)
        self._shown.posted(event.prompt_id, (chat, posted.message), posted.at)

    async def _send_short(self, chat: str, event: PromptRecord, render: Render, wanted: Wanted) -> Posted:
        try:
            return await self._outbox.send(chat, render(chat, True), wanted)
        except Refused as fault:
            if not fault.gone and fault.flood_s is None:
                self._unshowable[chat, event.prompt_id] = fault
                while len(self._unshowable) > KEPT_UNSHOWABLE:
                    self._unshowable.popitem(last=False)
            raise

    async def _follow_up(self, task: asyncio.Task[Any], chat: str, event: PromptRecord, render: Render) -> None:
        """Retry chats after temporary errors while the prompt is open."""
        await asyncio.wait({task})
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not isinstance(fault, Refused):
            await self.send_to(chat, event, render, patient=True)

    def _is_open(self, prompt_id: str) -> bool:
        record = self._hub_api.prompt(prompt_id)
        return record is not None and record.state in OPEN and record.deadline > self._clock.now()


async def _first_success(tasks: set[asyncio.Task[Any]]) -> bool:
    """Return True at the first task that succeeds, or False if none does."""
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if any(task.exception() is None for task in done if not task.cancelled()):
            return True
    return False


def _why_nobody(tasks: set[asyncio.Task[Any]]) -> str:
    faults = {str(task.exception()) for task in tasks if not task.cancelled()}
    return "nobody was reached: " + ("; ".join(sorted(faults)) or "no operator is configured")
