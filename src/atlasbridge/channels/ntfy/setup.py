"""The ntfy part of `atlasbridge setup`: create two topics, and wait for a test tap from the phone."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from atlasbridge.channels.introductions import Person
from atlasbridge.channels.ntfy.api import NtfyApi, bearer
from atlasbridge.channels.ntfy.settings import PUBLIC
from atlasbridge.core.errors import ChannelError

REQUEST_TIMEOUT_S = 10.0


class NtfyIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._server = (api_url or PUBLIC).rstrip("/")
        self._token = tokens.get("bot_token", "")
        self._api = NtfyApi(self._server, self._token, REQUEST_TIMEOUT_S)
        self.topic = f"atlasbridge-{secrets.token_urlsafe(18)}"
        self._reply_topic = f"atlasbridge-re-{secrets.token_urlsafe(18)}"

    async def check(self) -> str:
        """Check that the server accepts a message; return the topic that the phone must subscribe to."""
        await self._api.publish({"topic": self.topic, "title": "AtlasBridge", "message": "Hello.", "priority": 2})
        return f"{self._server}/{self.topic}"

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Any person with the phone: ntfy has no user identities."""
        return Person("phone", "phone")

    async def prove(self, person_id: str, patience_s: float) -> bool:
        word = secrets.token_hex(8)
        button = {
            "action": "http",
            "label": "✅ It works",
            "url": f"{self._server}/{self._reply_topic}",
            "method": "POST",
            "body": word,
            "clear": True,
            **bearer(self._token),
        }
        try:
            async with asyncio.timeout(patience_s):
                return await self._await_tap(button, word)
        except TimeoutError:
            return False

    async def _await_tap(self, button: dict[str, Any], word: str) -> bool:
        sent = False
        async for event in self._api.listen(self._reply_topic, "all"):
            if not sent:  # only now, because the subscription is open
                await self._api.publish(
                    {
                        "topic": self.topic,
                        "title": "AtlasBridge asks",
                        "message": "Do you see this?",
                        "actions": [button],
                    }
                )
                sent = True
            if event.get("event") == "message" and event.get("message") == word:
                return True
        raise ChannelError("the server ended the line", "try again")

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        own = {} if self._server == PUBLIC else {"server": self._server}
        return {"topic": self.topic, "reply_topic": self._reply_topic, "allowed_users": person_ids[:1], **own}

    async def close(self) -> None:
        await self._api.close()
