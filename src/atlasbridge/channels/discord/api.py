"""Discord's REST API and its gateway. A call returns the answer or raises one of two errors; the outbox retries.

The gateway session is resumed after a lost connection, so that Discord sends what was missed; copies are recognised.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import aiohttp
import httpx

from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Connection, Params, Place, Posted, Refused, Unreachable
from atlasbridge.channels.settings import DISCORD_API
from atlasbridge.channels.setup_clients import CONNECTED, DO_YOU_SEE, IT_WORKS, NOT_TAPPED, HeardIntroduction, Person
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.errors import ChannelError

log = logging.getLogger(__name__)

NO_PREVIEWS, SILENT, ONLY_YOU = 1 << 2, 1 << 12, 1 << 6  # flags of a message
GONE = {10003, 10013, 50001, 50007}  # unknown channel or user, no access, the person accepts no messages
DIRECT_MESSAGES = 1 << 12  # the only intent
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, ACK = 0, 1, 2, 6, 7, 9, 11
FATAL = {4004: "Discord does not know this token", 4013: "invalid intents", 4014: "an intent is not allowed"}
START_AGAIN = {4007, 4009}  # the session is over
CONNECT_S = 15.0
Event = dict[str, Any]


class DiscordApi:
    def __init__(self, token: str, base_url: str, timeout_s: float, clock: Clock) -> None:
        self._base, self._clock = base_url.rstrip("/"), clock
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bot {token}"}, timeout=timeout_s)
        self._not_before: dict[str, float] = {}  # by bucket: when it has room again
        self._buckets: dict[str, str] = {}

    def __repr__(self) -> str:
        return "DiscordApi(<token>)"

    async def call(self, method: str, path: str, body: Params | None = None) -> Any:
        """`body["document"]` is a file: (name, content)."""
        route = f"{method} {path.rpartition('/')[0] if path.rpartition('/')[2].isdecimal() else path}"
        wait_s = self._not_before.get(self._buckets.get(route, ""), 0.0) - self._clock.now()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        sent: dict[str, Any] = {} if body is None else {"json": body}
        if body is not None and "document" in body:
            name, content = body["document"]
            rest = {key: value for key, value in body.items() if key != "document"}
            sent = {"data": {"payload_json": json.dumps(rest)}, "files": {"files[0]": (name, content)}}
        try:
            answer = await self._client.request(method, self._base + path, **sent)
            found = answer.json() if answer.content else None
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"Discord cannot be reached ({type(fault).__name__})") from None
        except ValueError:
            raise Unreachable("Discord's answer makes no sense") from None
        self._learn_limit(route, answer.headers)
        if answer.is_success:
            return found
        raise _judge(answer.status_code, found if isinstance(found, dict) else {})

    def _learn_limit(self, route: str, headers: httpx.Headers) -> None:
        bucket = headers.get("X-RateLimit-Bucket")
        if bucket:
            self._buckets[route] = bucket
            empty = headers.get("X-RateLimit-Remaining") == "0"
            after_s = float(headers.get("X-RateLimit-Reset-After") or 0) if empty else 0.0
            self._not_before[bucket] = self._clock.now() + after_s

    async def open_dm(self, user_id: str) -> str:
        return str((await self.call("POST", "/users/@me/channels", {"recipient_id": user_id}))["id"])

    async def post(self, chat: str, params: Params) -> Posted:
        """The nonce makes Discord recognise a second attempt."""
        params.setdefault("nonce", secrets.token_hex(12))
        flags = params.get("flags", 0) | NO_PREVIEWS
        body = {"allowed_mentions": {"parse": []}, **params, "enforce_nonce": True, "flags": flags}
        message = await self.call("POST", f"/channels/{chat}/messages", body)
        return Posted(str(message["id"]), datetime.fromisoformat(message["timestamp"]).timestamp())

    async def edit(self, place: Place, params: Params) -> None:
        kept = {key: value for key, value in params.items() if key in ("content", "components")}
        body = {"components": [], "allowed_mentions": {"parse": []}, **kept}
        await self.call("PATCH", f"/channels/{place[0]}/messages/{place[1]}", body)

    async def close(self) -> None:
        await self._client.aclose()


def _judge(status: int, found: dict[str, Any]) -> Refused | Unreachable:
    code, message = int(found.get("code") or 0), str(found.get("message") or status)
    if status == 429:
        return Refused("Discord: too many requests", flood_s=float(found.get("retry_after") or 1.0))
    if status >= 500:
        return Unreachable(f"Discord has a fault of its own ({status})")
    return Refused(
        f"Discord refused: {message} ({status}/{code})",
        gone=code in GONE,
        state="unauthorized" if status == 401 else "failing",
    )


class Gateway(Connection):
    title = "Discord"

    def __init__(
        self,
        api: DiscordApi,
        token: str,
        take: Callable[[str, Event], Awaitable[None]],
        backoff_first_s: float,
        changed: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(backoff_first_s, changed)
        self._api, self._token, self._take = api, token, take
        self._session_id, self._resume_url, self._last = "", "", None
        self._acked = True
        self.application_id = ""

    async def _live(self) -> None:
        try:
            await self._connect()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as fault:
            raise Unreachable(type(fault).__name__) from None

    async def _connect(self) -> None:
        """One connection, until it is lost."""
        url = self._resume_url or str((await self._api.call("GET", "/gateway/bot"))["url"])
        patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        async with (
            aiohttp.ClientSession(timeout=patience) as http,
            http.ws_connect(f"{url.rstrip('/')}/?v=10&encoding=json") as ws,
        ):
            hello = await ws.receive_json(timeout=CONNECT_S)
            await self._introduce(ws)
            self._acked = True
            beating = asyncio.ensure_future(self._beat(ws, hello["d"]["heartbeat_interval"] / 1000))
            try:
                async for message in ws:
                    if not await self._hear(ws, message.json()):
                        break
            finally:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
        self._closed(ws.close_code or 0)

    async def _introduce(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        if self._session_id:
            resume = {"token": self._token, "session_id": self._session_id, "seq": self._last}
            await ws.send_json({"op": RESUME, "d": resume})
            return
        about = {"os": "linux", "browser": "atlasbridge", "device": "atlasbridge"}
        await ws.send_json(
            {"op": IDENTIFY, "d": {"token": self._token, "intents": DIRECT_MESSAGES, "properties": about}}
        )

    async def _beat(self, ws: aiohttp.ClientWebSocketResponse, every_s: float) -> None:
        """A connection that does not acknowledge a heartbeat is dead; it is closed so that it can be resumed."""
        await asyncio.sleep(every_s * random.random())
        while True:
            if not self._acked:
                await ws.close(code=4000)
                return
            self._acked = False
            await ws.send_json({"op": HEARTBEAT, "d": self._last})
            await asyncio.sleep(every_s)

    async def _hear(self, ws: aiohttp.ClientWebSocketResponse, said: dict[str, Any]) -> bool:
        """Return False if the connection ends here."""
        match said["op"]:
            case x if x == DISPATCH:
                self._last = said["s"]
                await self._dispatch(str(said["t"]), said["d"])
            case x if x == HEARTBEAT:
                await ws.send_json({"op": HEARTBEAT, "d": self._last})
            case x if x == ACK:
                self._acked = True
            case x if x == RECONNECT:
                return False
            case x if x == INVALID:
                if not said["d"]:
                    self._forget()
                await asyncio.sleep(self._backoff.first_s * (1 + 4 * random.random()))
                return False
        return True

    async def _dispatch(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "READY":
            self._session_id, self._resume_url = str(event["session_id"]), str(event["resume_gateway_url"])
            self.bot, self.application_id = str(event["user"].get("username", "")), str(event["application"]["id"])
        if kind in ("READY", "RESUMED"):
            await self._move("ok")
        elif kind in ("INTERACTION_CREATE", "MESSAGE_CREATE", "MESSAGE_UPDATE"):
            await self._take(kind, event)

    def _closed(self, code: int) -> None:
        if code in START_AGAIN or code in FATAL:
            self._forget()
        if code in FATAL:
            raise ChannelError(f"{FATAL[code]} ({code})", "check bot_token of [channels.discord]")

    def _forget(self) -> None:
        self._session_id, self._resume_url, self._last = "", "", None


# The Discord part of `atlasbridge setup`: checks the bot and identifies the person before a channel is configured.

REQUEST_TIMEOUT_S = 10.0


class DiscordIntroduction(HeardIntroduction):
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._api_url = (api_url or DISCORD_API).rstrip("/")
        self._api = DiscordApi(tokens["bot_token"], self._api_url, REQUEST_TIMEOUT_S, SystemClock())
        super().__init__(Gateway(self._api, tokens["bot_token"], self._take, 1.0).run, self._api.close)

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
        row = {"type": 1, "components": [{"type": 2, "style": 3, "label": t(IT_WORKS), "custom_id": custom_id}]}
        room = await self._api.open_dm(person_id)
        posted = await self._api.post(room, {"content": t(DO_YOU_SEE), "components": [row]})

        def is_press(kind: str, event: Event) -> bool:
            pressed = (event.get("data") or {}).get("custom_id") == custom_id
            return pressed and str((event.get("user") or {}).get("id")) == person_id

        event = await self._await(is_press, patience_s)
        if event is not None:
            await self._api.call("POST", f"/interactions/{event['id']}/{event['token']}/callback", {"type": 6})
        done = t(CONNECTED) if event else t(NOT_TAPPED)
        await self._api.edit((room, posted.message), {"content": done})
        return event is not None

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == DISCORD_API else {"api_url": self._api_url}
        return {"allowed_users": person_ids, **custom}

    async def _take(self, kind: str, event: Event) -> None:
        self._heard.put_nowait((kind, event))
