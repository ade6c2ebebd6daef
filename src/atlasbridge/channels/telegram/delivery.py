"""Shows a prompt to every operator: at least one must be reached, the others are tried again in the background."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram import templates
from atlasbridge.channels.telegram.api import Refused
from atlasbridge.channels.telegram.outbox import Outbox
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.channels.telegram.shown import Shown, encode_places
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord

OTHERS_PATIENCE_S = 1.0  # after the first operator was reached
HINT = "start a chat with the bot, and see: atlasbridge hub status"
Target = tuple[int, int | None]  # chat, and the topic in it


class Delivery:
    def __init__(
        self,
        settings: TelegramSettings,
        desk: Desk,
        clock: Clock,
        outbox: Outbox,
        shown: Shown,
        tasks: TaskSet,
        is_muted: Callable[[int], bool],
    ) -> None:
        self._settings, self._desk, self._clock = settings, desk, clock
        self._outbox, self._shown, self._tasks, self._is_muted = outbox, shown, tasks, is_muted
        self.host = settings.host_name or platform.node() or "this machine"

    def targets(self) -> list[Target]:
        groups = [(group.chat_id, group.topic_id) for group in self._settings.groups]
        return [*((user_id, None) for user_id in self._settings.allowed_users), *groups]

    async def send(self, event: PromptRecord, session: SessionRecord) -> str:
        """Returns once somebody sees it.  A second call for the same prompt goes only where it is not shown yet."""
        shown_in = {place[0] for place in self._shown.places(event.prompt_id)}
        targets = [target for target in self.targets() if target[0] not in shown_in]
        sends = {self._tasks.hold(self.send_to(target, event, session)): target for target in targets}
        try:
            reached = bool(shown_in) or await _first_success(set(sends))
        except asyncio.CancelledError:
            for task in sends:
                task.cancel()
            raise
        if not reached:
            raise ChannelError(_why_nobody(set(sends)), HINT)
        for task, target in sends.items():
            self._tasks.hold(self._follow_up(task, target, event, session))
        if sends:
            await asyncio.wait(set(sends), timeout=OTHERS_PATIENCE_S)
        return encode_places(self._shown.places(event.prompt_id))

    async def send_to(self, target: Target, event: PromptRecord, session: SessionRecord, patient: bool = False) -> None:
        chat_id, topic = target
        params = templates.render_prompt(event, session, self._clock.now(), self.host) | topic_param(topic)
        if self._is_muted(chat_id):
            params["disable_notification"] = True
        wanted = (lambda: self._is_open(event.prompt_id)) if patient else None
        message = await self._outbox.send(chat_id, "sendMessage", params, still_wanted=wanted)
        self._shown.add(event.prompt_id, (chat_id, int(message["message_id"])))

    async def _follow_up(
        self, task: asyncio.Task[Any], target: Target, event: PromptRecord, session: SessionRecord
    ) -> None:
        """Whoever was not reached for a reason that may pass is tried again while the prompt is open."""
        await asyncio.wait({task})
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not isinstance(fault, Refused):
            await self.send_to(target, event, session, patient=True)

    def _is_open(self, prompt_id: str) -> bool:
        record = self._desk.prompt(prompt_id)
        return record is not None and record.state in OPEN and record.deadline > self._clock.now()


def topic_param(topic_id: int | None) -> dict[str, int]:
    return {} if topic_id is None else {"message_thread_id": topic_id}


async def _first_success(tasks: set[asyncio.Task[Any]]) -> bool:
    """Whether any of them succeeds; returns at the first that does."""
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if any(task.exception() is None for task in done if not task.cancelled()):
            return True
    return False


def _why_nobody(tasks: set[asyncio.Task[Any]]) -> str:
    faults = {str(task.exception()) for task in tasks if not task.cancelled()}
    return "Telegram reached nobody: " + ("; ".join(sorted(faults)) or "no operator is configured")
