"""Calls Telegram's Bot API over HTTPS. A call returns the answer or raises one of two errors; the callers retry.

The token is part of every URL, so no URL is logged here, and httpx's own log records are cleaned.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from atlasbridge.channels import outbox
from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Connection, HideTokens, Params, Place, Posted, Unreachable
from atlasbridge.channels.settings import TELEGRAM_API, TelegramSettings
from atlasbridge.channels.setup_clients import CONNECTED, DO_YOU_SEE, IT_WORKS, NOT_TAPPED, Person
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls

log = logging.getLogger(__name__)

FILES = {"document": "sendDocument", "photo": "sendPhoto"}
LOOK_BACK = 8  # messages that can have been posted in between
_TOKEN = re.compile(r"/bot\d+:[^/\s\"']+")


class Refused(outbox.Refused):
    def __init__(self, code: int, description: str, retry_after_s: float) -> None:
        gone = code == 403 or "chat not found" in description
        flood_s = retry_after_s if code == 429 else None
        state = {409: "conflict", 401: "unauthorized", 404: "unauthorized"}.get(code, "failing")
        super().__init__(f"Telegram refused: {description} ({code})", flood_s=flood_s, gone=gone, state=state)
        self.code, self.description = code, description


logging.getLogger("httpx").addFilter(HideTokens(_TOKEN, "/bot<token>"))  # it logs the request line


class BotApi:
    def __init__(self, token: str, base_url: str, timeout_s: float) -> None:
        self._prefix = f"{base_url.rstrip('/')}/bot{token}/"
        self._files = f"{base_url.rstrip('/')}/file/bot{token}/"
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(timeout=timeout_s)
        self._doubtful: set[str] = set()
        self._last: dict[str, int] = {}
        self.is_known: Callable[[Place], object] = lambda place: False  # whether this message shows an open prompt

    def __repr__(self) -> str:
        return "BotApi(<token>)"

    async def call(
        self,
        method: str,
        params: Params | None = None,
        *,
        wait_s: float = 0.0,
        files: dict[str, tuple[str, bytes]] | None = None,
    ) -> Any:
        """`wait_s` is how long the server can hold a long poll; each of `files` is (name, content)."""
        timeout = httpx.Timeout(self._timeout_s, read=self._timeout_s + wait_s)
        sent: dict[str, Any] = {"json": params or {}}
        if files:
            sent = {"data": params, "files": files}
        try:
            response = await self._client.post(self._prefix + method, timeout=timeout, **sent)
            answer = response.json()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"Telegram cannot be reached ({type(fault).__name__})") from None
        except ValueError:
            raise Unreachable("Telegram's answer makes no sense") from None
        return _result(answer)

    async def post(self, chat: str, params: Params) -> Posted:
        """Post a message, a file if params has a `document`, or a picture if it has a `photo`."""
        files = {name: params[name] for name in FILES if name in params}
        rest = {name: value for name, value in params.items() if name not in files}
        method = next((FILES[name] for name in files), "sendMessage")
        try:
            message = await self.call(method, {"chat_id": int(chat), **rest}, files=files)
        except Unreachable:
            self._doubtful.add(chat)  # it was perhaps posted, with working buttons
            raise
        number = int(message["message_id"])
        if chat in self._doubtful:
            self._doubtful.discard(chat)
            await self._disarm(chat, range(max(self._last.get(chat, 0) + 1, number - LOOK_BACK), number))
        self._last[chat] = number
        return Posted(str(number), float(message.get("date") or 0))

    async def _disarm(self, chat: str, numbers: range) -> None:
        """Remove the buttons of messages that were posted without confirmation since the last known message.

        The server refuses message ids of people, unknown ids, and messages without buttons.
        """
        for number in numbers:
            if self.is_known((chat, str(number))):
                continue
            try:
                await self.call("editMessageReplyMarkup", {"chat_id": int(chat), "message_id": number})
            except (Refused, Unreachable) as fault:
                log.debug("message %s in %s keeps its looks: %s", number, chat, fault)

    async def download(self, file_id: str, most: int) -> bytes | None:
        """Download a file; None if it is larger than `most` bytes."""
        known = await self.call("getFile", {"file_id": file_id})
        content = bytearray()
        try:
            async with self._client.stream("GET", self._files + str(known.get("file_path"))) as response:
                if response.status_code != httpx.codes.OK:
                    raise Unreachable(f"Telegram does not give the file ({response.status_code})")
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > most:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"Telegram cannot be reached ({type(fault).__name__})") from None
        return bytes(content)

    async def edit(self, place: Place, params: Params) -> None:
        try:
            await self.call("editMessageText", {"chat_id": int(place[0]), "message_id": int(place[1]), **params})
        except Refused as fault:
            if "message is not modified" not in fault.description:
                raise

    async def close(self) -> None:
        await self._client.aclose()


def _result(answer: Any) -> Any:
    if not isinstance(answer, dict):
        raise Unreachable("Telegram's answer makes no sense")
    if answer.get("ok"):
        return answer.get("result")
    code, description = int(answer.get("error_code") or 500), str(answer.get("description") or "")
    if code >= 500:
        raise Unreachable(f"Telegram has a fault of its own ({code})")
    parameters = answer.get("parameters") or {}
    raise Refused(code, description, float(parameters.get("retry_after") or 0))


# The long poll: calls getUpdates and hands each batch over before confirming its offset. It detects outages, a second
# program with the same token, and how long updates were missed.

WANTED = ["message", "edited_message", "callback_query", "my_chat_member"]
HASTY_S = 0.5
Batch = list[dict[str, Any]]


class Poller(Connection):
    title = "Telegram"

    def __init__(
        self,
        api: BotApi,
        clock: Clock,
        take: Callable[[Batch], Awaitable[None]],
        changed: Callable[[str, str], Awaitable[None]],
        settings: TelegramSettings,
    ) -> None:
        """`take` processes a batch and returns when it is safe to confirm it."""
        super().__init__(settings.backoff_first_s, changed)
        self._api, self._clock, self._take = api, clock, take
        self._poll_timeout_s = settings.poll_timeout_s
        self._offset = 0
        self.last_ok_at: float | None = None

    async def _live(self) -> None:
        while True:
            try:
                await self._round()
            except Refused as fault:
                if fault.code == 409 and "webhook" in fault.description:
                    self.bot = ""
                if fault.flood_s is None:
                    raise
                await asyncio.sleep(max(fault.flood_s, self._backoff.first_s))

    async def _round(self) -> None:
        if not self.bot:
            self.bot = str((await self._api.call("getMe")).get("username", ""))
            await self._api.call("deleteWebhook")
        began = self._clock.now()
        batch = await self._poll(0 if self.state != "ok" else self._poll_timeout_s)
        self.last_ok_at = self._clock.now()
        await self._move("ok")
        await self._take(sorted(batch, key=lambda update: int(update["update_id"])))
        if batch:
            self._offset = max(self._offset, *(int(update["update_id"]) + 1 for update in batch))
        elif self.last_ok_at - began < HASTY_S:  # avoid a tight loop if the server does not wait
            await asyncio.sleep(self._backoff.first_s)

    async def _poll(self, timeout_s: int) -> Batch:
        params = {"offset": self._offset, "timeout": timeout_s, "limit": 100, "allowed_updates": WANTED}
        batch = await self._api.call("getUpdates", params, wait_s=timeout_s)
        if not isinstance(batch, list) or any("update_id" not in update for update in batch):
            raise Unreachable(f"getUpdates gave {json.dumps(batch)[:40]}")
        return batch


# The Telegram part of `atlasbridge setup`: it checks the bot and identifies the person before a channel is
# configured.

POLL_S = 10
REQUEST_TIMEOUT_S = 10.0
Update = dict[str, Any]


class TelegramIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._api_url = api_url or TELEGRAM_API
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
        keyboard = {"inline_keyboard": [[{"text": t(IT_WORKS), "callback_data": data}]]}
        params = {"chat_id": int(person_id), "text": t(DO_YOU_SEE), "reply_markup": keyboard}
        message = await self._api.call("sendMessage", params)

        def is_tap(update: Update) -> bool:
            query = update.get("callback_query") or {}
            return query.get("data") == data and str(query.get("from", {}).get("id")) == person_id

        found = await self._await_update(is_tap, patience_s)
        if found is not None:
            await self._api.call("answerCallbackQuery", {"callback_query_id": found["callback_query"]["id"]})
        done = t(CONNECTED) if found else t(NOT_TAPPED)
        place = (person_id, str(message["message_id"]))
        await self._api.edit(place, {"text": done})
        await self._confirm()
        return found is not None

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == TELEGRAM_API else {"api_url": self._api_url}
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
