"""What goes out to chats: in order for each chat, no faster than Telegram allows, tried again through an outage.

Edits of one message overtake each other: only the newest is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.limits import Backoff, TokenBucket
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram.api import BotApi, Refused, Unreachable
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError

BURST = 3.0
GROUP_RATE = 20 / 60
SHORT_WAIT_S = 3.0
NOTICE_LIFE_S = 600.0  # an older notice is no news
Place = tuple[int, int]  # chat id, message id


class Outbox:
    def __init__(self, api: BotApi, clock: Clock, messages_per_s: float, backoff_first_s: float) -> None:
        self._api, self._clock = api, clock
        self._rate, self._backoff_first_s = messages_per_s, backoff_first_s
        self._turns: dict[int, asyncio.Lock] = {}
        self._buckets: dict[int, TokenBucket] = {}
        self._not_before: dict[int, float] = {}
        self._edits: dict[Place, dict[str, Any]] = {}
        self._tasks = TaskSet("Telegram")
        self.gone: set[int] = set()

    @property
    def pending(self) -> int:
        return len(self._tasks)

    async def send(
        self,
        chat_id: int,
        method: str,
        params: dict[str, Any],
        *,
        document: tuple[str, bytes] | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """Send in this chat's turn and return the message.

        Without `still_wanted` there is one try, and a ChannelError says that it failed; with it, an outage or a long
        flood limit is waited for until the message is no longer wanted.
        """
        async with self._turns.setdefault(chat_id, asyncio.Lock()):
            backoff = Backoff(self._backoff_first_s)
            while still_wanted is None or still_wanted():
                await self._wait_for_turn(chat_id, patient=still_wanted is not None)
                try:
                    message = await self._api.call(method, {"chat_id": chat_id, **params}, document=document)
                except (Refused, Unreachable) as fault:
                    wait_s = self._wait_after(chat_id, fault, backoff)
                    if still_wanted is None and isinstance(fault, Unreachable):
                        raise
                    await asyncio.sleep(wait_s)
                else:
                    self.gone.discard(chat_id)
                    return dict(message)
        raise ChannelError("it was no longer wanted when Telegram could be reached")

    async def _wait_for_turn(self, chat_id: int, patient: bool = True) -> None:
        """Our own rate, and the moment before which Telegram wants to hear nothing."""
        now = self._clock.now()
        wait_s = self._not_before.get(chat_id, now) - now
        if wait_s > SHORT_WAIT_S and not patient:
            raise ChannelError(f"Telegram wants no message to chat {chat_id} for {wait_s:.0f} s")
        await asyncio.sleep(max(wait_s, self._bucket(chat_id).reserve(now)))

    def post(self, chat_id: int, method: str, params: dict[str, Any], **more: Any) -> None:
        """send() in the background, through outages for a while; a refusal is logged."""
        until = self._clock.now() + NOTICE_LIFE_S
        more.setdefault("still_wanted", lambda: self._clock.now() < until)
        self._tasks.hold(self.send(chat_id, method, params, **more))

    def edit(self, place: Place, params: dict[str, Any]) -> None:
        """Make a message look like this, soon; what was asked for earlier is forgotten."""
        running = place in self._edits
        self._edits[place] = params
        if not running:
            self._tasks.hold(self._edit(place))

    async def close(self) -> None:
        await self._tasks.close(grace_s=1.0)

    async def _edit(self, place: Place) -> None:
        try:
            async with self._turns.setdefault(place[0], asyncio.Lock()):
                await self._edit_until_done(place)
        finally:
            self._edits.pop(place, None)

    async def _edit_until_done(self, place: Place) -> None:
        backoff = Backoff(self._backoff_first_s)
        while place in self._edits:
            await self._wait_for_turn(place[0])
            params = self._edits[place]
            try:
                await self._api.call("editMessageText", {"chat_id": place[0], "message_id": place[1], **params})
            except (Refused, Unreachable) as fault:
                if not (isinstance(fault, Refused) and fault.not_modified):
                    await asyncio.sleep(self._wait_after(place[0], fault, backoff))
                    continue
            if self._edits[place] is params:
                del self._edits[place]

    def _wait_after(self, chat_id: int, fault: Refused | Unreachable, backoff: Backoff) -> float:
        """How long to wait before the next try; raises the fault when there is no sense in one."""
        if isinstance(fault, Unreachable):
            return backoff.next_wait()
        if fault.code == 429:
            self._not_before[chat_id] = self._clock.now() + fault.retry_after_s
            return 0.0
        if fault.gone:
            self.gone.add(chat_id)
        raise fault

    def _bucket(self, chat_id: int) -> TokenBucket:
        if chat_id not in self._buckets:
            rate = self._rate if chat_id > 0 else self._rate * GROUP_RATE
            self._buckets[chat_id] = TokenBucket(rate, BURST)
        return self._buckets[chat_id]
