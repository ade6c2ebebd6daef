"""ntfy's HTTP interface: publish messages, and subscribe to a topic as one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from atlasbridge.core.errors import ChannelError

KEEPALIVE_S = 120.0  # the server sends something every 45 s; a longer silence means a dead connection
LONGEST_LINE = 65_536


class NtfyApi:
    def __init__(self, server: str, access_token: str, timeout_s: float) -> None:
        headers: dict[str, str] = bearer(access_token).get("headers", {})
        self.server = server.rstrip("/")
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_s, follow_redirects=False)

    async def publish(self, body: dict[str, Any]) -> str:
        """Return the message's id. The topic is in the body, so that it appears in no URL and no log."""
        try:
            answer = await self._client.post(self.server + "/", json=body)
            found = answer.json() if answer.content else {}
        except (httpx.HTTPError, ValueError) as fault:
            raise ChannelError(
                f"ntfy could not be reached ({type(fault).__name__})", "check channels.ntfy.server"
            ) from None
        if answer.status_code != 200 or not isinstance(found, dict) or not found.get("id"):
            why = found.get("error", "") if isinstance(found, dict) else ""
            raise ChannelError(f"ntfy refused a message: {answer.status_code} {why}".strip(), "check the access token")
        return str(found["id"])

    async def listen(self, topic: str, since: str) -> AsyncIterator[dict[str, Any]]:
        """Yield every event of the topic after `since` (an id, or seconds since the epoch) until the connection
        breaks."""
        limits = httpx.Timeout(KEEPALIVE_S, connect=10.0)
        try:
            async with self._client.stream(
                "GET", f"{self.server}/{topic}/json", params={"since": since}, timeout=limits
            ) as answer:
                if answer.status_code != 200:
                    raise ChannelError(f"ntfy does not let us listen: {answer.status_code}", "check the access token")
                async for line in answer.aiter_lines():
                    if line and len(line) <= LONGEST_LINE and isinstance(event := _parse(line), dict):
                        yield event
        except httpx.HTTPError as fault:
            raise ChannelError(f"the line to ntfy broke ({type(fault).__name__})", "it is tried again") from None

    async def may_read(self, topic: str) -> bool:
        """Whether the server lets us read this topic. Raises if the server cannot be asked."""
        try:
            answer = await self._client.get(f"{self.server}/{topic}/json", params={"poll": "1", "since": "none"})
        except httpx.HTTPError as fault:
            raise ChannelError(f"ntfy could not be reached ({type(fault).__name__})", "it is tried again") from None
        return answer.status_code not in (401, 403)

    async def close(self) -> None:
        await self._client.aclose()


def bearer(access_token: str) -> dict[str, Any]:
    """The authorization header for a request, or for a button's request, if the server needs a token."""
    return {"headers": {"Authorization": f"Bearer {access_token}"}} if access_token else {}


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
