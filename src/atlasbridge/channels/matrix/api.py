"""The calls of the Matrix client-server API that the channel needs: identify itself, send, and wait for new events."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx

from atlasbridge.core.errors import ChannelError

LONGEST_FLOOD_S = 5.0
IS_ENCRYPTED = "this room is encrypted, and AtlasBridge cannot read what is said there"
HINT = "check homeserver, access_token and room of [channels.matrix]"


class MatrixApi:
    def __init__(self, homeserver: str, access_token: str, room: str, timeout_s: float) -> None:
        self._base = f"{homeserver.rstrip('/')}/_matrix/client/v3"
        self._room = room
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bearer {access_token}"}, timeout=timeout_s)

    async def whoami(self) -> str:
        return str((await self._call("GET", "/account/whoami")).get("user_id", ""))

    async def create_room(self, name: str, people: list[str]) -> str:
        """Create a private room without encryption, invite these people, and use it from now on."""
        wanted = {"preset": "private_chat", "name": name, "invite": people, "is_direct": len(people) == 1}
        self._room = str((await self._call("POST", "/createRoom", wanted)).get("room_id", ""))
        return self._room

    async def is_encrypted(self) -> bool:
        path = f"/rooms/{quote(self._room, safe='')}/state/m.room.encryption/"
        return bool((await self._call("GET", path, missing={})).get("algorithm"))

    async def send(self, kind: str, content: dict[str, Any], txn: str) -> str:
        """Send an event. A retry with the same `txn` does not create a second event."""
        path = f"/rooms/{quote(self._room, safe='')}/send/{kind}/{quote(txn, safe='')}"
        return str((await self._call("PUT", path, content)).get("event_id", ""))

    async def sync(self, since: str, wait_s: int) -> tuple[str, list[dict[str, Any]]]:
        """Return the next token and the new events in the room. Without a token, start from now."""
        only = {
            "room": {"rooms": [self._room], "timeline": {"limit": 100 if since else 0}, "state": {"types": []}},
            "presence": {"types": []},
            "account_data": {"types": []},
        }
        params = {"filter": json.dumps(only), "timeout": str(wait_s * 1000 if since else 0)}
        found = await self._call(
            "GET", "/sync", params={**params, **({"since": since} if since else {})}, wait_s=wait_s
        )
        room = found.get("rooms", {}).get("join", {}).get(self._room, {})
        events = room.get("timeline", {}).get("events", []) if since else []
        return str(found.get("next_batch", "")), [event for event in events if isinstance(event, dict)]

    async def _call(
        self,
        method: str,
        path: str,
        content: Any = None,
        params: dict[str, str] | None = None,
        wait_s: float = 0.0,
        missing: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """`missing` is returned if the server does not know the resource."""
        limit = httpx.Timeout(self._client.timeout.read or 8.0, read=(self._client.timeout.read or 8.0) + wait_s)
        for last in (False, True):
            try:
                answer = await self._client.request(
                    method, self._base + path, json=content, params=params, timeout=limit
                )
                found = answer.json()
            except (httpx.HTTPError, ValueError) as fault:
                raise ChannelError(f"Matrix could not be reached ({type(fault).__name__})", HINT) from None
            if answer.status_code == 200 and isinstance(found, dict):
                return found
            if answer.status_code == 404 and missing is not None:
                return missing
            pause_s = float(found.get("retry_after_ms", 1000)) / 1000 if isinstance(found, dict) else 1.0
            if answer.status_code != 429 or last or pause_s > LONGEST_FLOOD_S:
                why = found.get("errcode", "") if isinstance(found, dict) else ""
                raise ChannelError(f"Matrix refused: {answer.status_code} {why}".strip(), HINT)
            await asyncio.sleep(pause_s)
        raise AssertionError("the last round raises or returns")

    async def close(self) -> None:
        await self._client.aclose()
