"""The Telegram part of `atlasbridge setup`: it checks the bot and identifies the person before a channel is
configured."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.introductions import Person
from atlasbridge.channels.outbox import Unreachable
from atlasbridge.channels.telegram.api import BotApi, Refused
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls

POLL_S = 10
REQUEST_TIMEOUT_S = 10.0
API_URL = "https://api.telegram.org"
Update = dict[str, Any]


class TelegramIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._api_url = api_url or API_URL
        self._api = BotApi(tokens["bot_token"], self._api_url, REQUEST_TIMEOUT_S)
        self._offset = 0

    async def check(self) -> str:
        try:
            me = await self._api.call("getMe")
            await self._api.call("deleteWebhook")
        except Refused as fault:
            if fault.code in (401, 404):
                raise ChannelError("Telegram does not know this token", "copy it again from @BotFather") from None
            raise
        return f"@{me.get('username', '?')}"

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        def is_word(update: Update) -> bool:
            message = update.get("message") or {}
            private = (message.get("chat") or {}).get("type") == "private"
            return private and str(message.get("text", "")).strip().lower() == word.lower()

        found = await self._await_update(is_word, patience_s)
        if found is None:
            return None
        sender = found["message"]["from"]
        return Person(str(sender["id"]), escape_controls(str(sender.get("first_name") or ""), keep_lines=False))

    async def prove(self, person_id: str, patience_s: float) -> bool:
        data = f"setup:{secrets.token_hex(8)}"
        keyboard = {"inline_keyboard": [[{"text": "✅ It works", "callback_data": data}]]}
        params = {"chat_id": int(person_id), "text": "AtlasBridge asks: do you see this?", "reply_markup": keyboard}
        message = await self._api.call("sendMessage", params)

        def is_tap(update: Update) -> bool:
            query = update.get("callback_query") or {}
            return query.get("data") == data and str(query.get("from", {}).get("id")) == person_id

        found = await self._await_update(is_tap, patience_s)
        if found is not None:
            await self._api.call("answerCallbackQuery", {"callback_query_id": found["callback_query"]["id"]})
        done = "✅ AtlasBridge is connected." if found else "⌛ Nobody tapped in time."
        place = (person_id, str(message["message_id"]))
        await self._api.edit(place, {"text": done})
        await self._confirm()
        return found is not None

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == API_URL else {"api_url": self._api_url}
        return {"allowed_users": [int(person_id) for person_id in person_ids], **custom}

    async def close(self) -> None:
        await self._api.close()

    async def _await_update(self, wanted: Callable[[Update], bool], patience_s: float) -> Update | None:
        """Return the first matching update; ignore the others."""
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    for update in await self._poll(POLL_S):
                        self._offset = int(update["update_id"]) + 1
                        if wanted(update):
                            return update
        except TimeoutError:
            return None

    async def _poll(self, wait_s: int) -> list[Update]:
        params = {"offset": self._offset, "timeout": wait_s, "allowed_updates": ["message", "callback_query"]}
        try:
            updates: list[Update] = await self._api.call("getUpdates", params, wait_s=wait_s)
        except Refused as fault:
            if fault.code == 409:
                raise ChannelError(
                    "another program is polling with this token", "stop it first: atlasbridge hub stop"
                ) from None
            raise
        except Unreachable:
            await asyncio.sleep(1.0)
            return []
        return updates

    async def _confirm(self) -> None:
        """Confirm the updates that the setup has read, so that the channel does not process them again."""
        await self._api.call("getUpdates", {"offset": self._offset, "timeout": 0})
