"""The long poll: one getUpdates after the other, each batch handed over before its offset is confirmed.

It knows when the service is away, when somebody else polls with our token, and how long we were deaf.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Protocol

from atlasbridge.channels.limits import Backoff
from atlasbridge.channels.outbox import Unreachable
from atlasbridge.channels.telegram.api import BotApi, Refused
from atlasbridge.core.clock import Clock

log = logging.getLogger(__name__)
WANTED = ["message", "edited_message", "callback_query", "my_chat_member"]
HASTY_S = 0.5
Batch = list[dict[str, Any]]


class Listener(Protocol):
    async def take(self, batch: Batch) -> None:
        """Gets every batch, and returns when it is safe to confirm it."""

    async def state_changed(self, state: str, detail: str) -> None: ...
    def heard(self) -> None:
        """The server has answered."""


class Poller:
    def __init__(
        self, api: BotApi, clock: Clock, listener: Listener, poll_timeout_s: int, backoff_first_s: float
    ) -> None:
        self._api, self._clock, self._listener = api, clock, listener
        self._poll_timeout_s = poll_timeout_s
        self._backoff = Backoff(backoff_first_s)
        self._offset = 0
        self.me: dict[str, Any] = {}
        self.state, self.detail = "starting", ""
        self.last_ok_at: float | None = None

    async def run(self) -> None:
        while True:
            try:
                await self._round()
            except Refused as fault:
                await self._refused(fault)
            except Unreachable as fault:
                await self._move("unreachable", str(fault))
                await asyncio.sleep(self._backoff.next_wait())
            except Exception as fault:  # the channel boundary: it is told, and tried again
                log.exception("the Telegram poll failed")
                await self._move("failing", type(fault).__name__)
                await asyncio.sleep(self._backoff.next_wait())

    async def _round(self) -> None:
        if not self.me:
            self.me = await self._api.call("getMe")
            await self._api.call("deleteWebhook")
        began = self._clock.now()
        batch = await self._poll(0 if self.state != "ok" else self._poll_timeout_s)
        await self._move("ok", "")
        self.last_ok_at = self._clock.now()
        self._backoff.reset()
        self._listener.heard()
        if batch:
            await self._listener.take(sorted(batch, key=lambda update: int(update["update_id"])))
            self._offset = max(self._offset, *(int(update["update_id"]) + 1 for update in batch))
        elif self.last_ok_at - began < HASTY_S:  # a server that does not wait is not to be asked in a tight loop
            await asyncio.sleep(self._backoff.first_s)

    async def _poll(self, timeout_s: int) -> Batch:
        params = {"offset": self._offset, "timeout": timeout_s, "limit": 100, "allowed_updates": WANTED}
        batch = await self._api.call("getUpdates", params, wait_s=timeout_s)
        if not isinstance(batch, list) or any("update_id" not in update for update in batch):
            raise Unreachable(f"getUpdates gave {json.dumps(batch)[:40]}")
        return batch

    async def _refused(self, fault: Refused) -> None:
        """409: a second poller, or a webhook; 401: the token is no longer good; 429: slower."""
        if fault.code == 409:
            self.me = {} if "webhook" in fault.description else self.me
            await self._move("conflict", fault.description)
        elif fault.code in (401, 404):
            await self._move("unauthorized", "Telegram does not know this bot token")
        elif fault.code == 429:
            await asyncio.sleep(max(fault.flood_s or 0.0, self._backoff.first_s))
            return
        else:
            await self._move("failing", fault.description)
        await asyncio.sleep(self._backoff.next_wait())

    async def _move(self, state: str, detail: str) -> None:
        if state != self.state:
            log.log(logging.INFO if state == "ok" else logging.WARNING, "Telegram is %s %s", state, detail)
            self.state, self.detail = state, detail
            await self._listener.state_changed(state, detail)
