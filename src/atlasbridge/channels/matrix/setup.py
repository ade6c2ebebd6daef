"""The Matrix part of `atlasbridge setup`: check the token, find or create an unencrypted room, wait for a test
reaction."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.channels.introductions import Person
from atlasbridge.channels.matrix import templates
from atlasbridge.channels.matrix.api import HINT, IS_ENCRYPTED, MatrixApi
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ids import new_id

REQUEST_TIMEOUT_S = 10.0
POLL_S = 20
YES = "✅"
USE_ANOTHER = "use a room without encryption; leave --room out, and one is made"


class MatrixIntroduction:
    """`room` is an existing room; without it, a private room is created and the people are invited."""

    def __init__(self, tokens: dict[str, str], api_url: str, room: str = "", people: tuple[str, ...] = ()) -> None:
        if not api_url:
            raise ChannelError("say which homeserver", "--api-url https://matrix.example.org")
        self._server = api_url.rstrip("/")
        self._token = tokens.get("access_token", "")
        self._people = people
        self._api = MatrixApi(self._server, self._token, room, REQUEST_TIMEOUT_S)
        self._room = room

    async def check(self) -> str:
        name = await self._api.whoami()
        if not self._room:
            self._room = await self._api.create_room("AtlasBridge", list(self._people))
        if await self._api.is_encrypted():
            raise ChannelError(IS_ENCRYPTED, USE_ANOTHER)
        return name

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Return the person who writes this word in the room."""
        async for event in self._heard(patience_s):
            if word in str(event.get("content", {}).get("body", "")):
                return Person(str(event.get("sender")), str(event.get("sender")))
        return None

    async def prove(self, person_id: str, patience_s: float) -> bool:
        since, _ = await self._api.sync("", 0)
        asked = templates.text_message(f"AtlasBridge asks: do you see this? React with {YES}, or write anything.", True)
        event_id = await self._api.send("m.room.message", asked, f"setup.{new_id()}")
        await self._api.send("m.reaction", templates.reaction(event_id, YES), f"setup.{new_id()}")
        async for event in self._heard(patience_s, since):
            if event.get("sender") == person_id and event.get("type") in ("m.reaction", "m.room.message"):
                return True
        return False

    async def _heard(self, patience_s: float, since: str = "") -> Any:
        try:
            async with asyncio.timeout(patience_s):
                since = since or (await self._api.sync("", 0))[0]
                while True:
                    since, events = await self._api.sync(since, POLL_S)
                    for event in events:
                        if event.get("type") == "m.room.encrypted":
                            raise ChannelError(IS_ENCRYPTED, USE_ANOTHER)
                        yield event
        except TimeoutError:
            return

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        wrong = [one for one in person_ids if not one.startswith("@") or ":" not in one]
        if wrong:
            raise ChannelError(f"{wrong[0]!r} is no Matrix id", f"write it whole, as @ada:example.org; {HINT}")
        return {"homeserver": self._server, "room": self._room, "allowed_users": person_ids}

    async def close(self) -> None:
        await self._api.close()
