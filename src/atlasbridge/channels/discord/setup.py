"""The Discord part of `atlasbridge setup`: checks the bot and identifies the person before a channel is configured."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.discord.api import DiscordApi, Gateway
from atlasbridge.channels.discord.settings import API_URL
from atlasbridge.channels.introductions import Person
from atlasbridge.channels.outbox import Refused
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError

REQUEST_TIMEOUT_S = 10.0
Event = dict[str, Any]


class DiscordIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._api_url = (api_url or API_URL).rstrip("/")
        self._api = DiscordApi(tokens["bot_token"], self._api_url, REQUEST_TIMEOUT_S, SystemClock())
        self._gateway = Gateway(self._api, tokens["bot_token"], self, 1.0)
        self._heard: asyncio.Queue[tuple[str, Event]] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None

    async def check(self) -> str:
        try:
            return str((await self._api.call("GET", "/users/@me"))["username"])
        except Refused as fault:
            raise ChannelError(
                f"Discord does not take the token: {fault}", "copy it again, from the page Bot"
            ) from None

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        def is_word(kind: str, event: Event) -> bool:
            said = str(event.get("content") or "").strip().lower()
            return kind == "MESSAGE_CREATE" and not event.get("guild_id") and said == word.lower()

        event = await self._await(is_word, patience_s)
        author = (event or {}).get("author") or {}
        return Person(str(author["id"]), str(author.get("global_name") or author.get("username"))) if event else None

    async def prove(self, person_id: str, patience_s: float) -> bool:
        custom_id = f"setup:{secrets.token_hex(8)}"
        row = {"type": 1, "components": [{"type": 2, "style": 3, "label": "✅ It works", "custom_id": custom_id}]}
        room = await self._api.open_dm(person_id)
        posted = await self._api.post(room, {"content": "AtlasBridge asks: do you see this?", "components": [row]})

        def is_press(kind: str, event: Event) -> bool:
            pressed = (event.get("data") or {}).get("custom_id") == custom_id
            return pressed and str((event.get("user") or {}).get("id")) == person_id

        event = await self._await(is_press, patience_s)
        if event is not None:
            await self._api.call("POST", f"/interactions/{event['id']}/{event['token']}/callback", {"type": 6})
        done = "✅ AtlasBridge is connected." if event else "⌛ Nobody pressed it in time."
        await self._api.edit((room, posted.message), {"content": done})
        return event is not None

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == API_URL else {"api_url": self._api_url}
        return {"allowed_users": person_ids, **custom}

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._api.close()

    async def _await(self, wanted: Callable[[str, Event], bool], patience_s: float) -> Event | None:
        self._listening = self._listening or asyncio.ensure_future(self._gateway.run())
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    kind, event = await self._heard.get()
                    if wanted(kind, event):
                        return event
        except TimeoutError:
            return None

    # called by the gateway

    async def take(self, kind: str, event: Event) -> None:
        self._heard.put_nowait((kind, event))

    def state_changed(self, state: str) -> None:
        """Not needed: each wait has its own timeout."""
