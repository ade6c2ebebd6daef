"""A strict Matrix homeserver with one room on loopback: transactions, sync tokens, a token, flood limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web
from tests.support.fake_server import FakeServer

ROOM, BOT, TOKEN = "!room:fake", "@atlas:fake", "syt_token"
P = "/_matrix/client/v3"


class FakeMatrix(FakeServer):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []
        self.encrypted = False
        self.files: dict[str, bytes] = {}
        self._transactions: dict[str, str] = {}

    def routes(self) -> list[web.RouteDef]:
        send = f"{P}/rooms/{{room}}/send/{{kind}}/{{txn}}"
        return [
            web.get(f"{P}/account/whoami", self._whoami),
            web.get(f"{P}/sync", self._sync),
            web.put(send, self._send),
            web.post(f"{P}/createRoom", self._create),
            web.post("/_matrix/media/v3/upload", self._upload),
            web.get(f"{P}/rooms/{{room}}/state/m.room.encryption/", self._encryption),
        ]

    # people

    def say(self, sender: str, kind: str, content: dict[str, Any]) -> str:
        with self.lock:
            event_id = f"$e{len(self.events)}"
            self.events.append({"event_id": event_id, "type": kind, "sender": sender, "content": content})
        self.tell()
        return event_id

    def asked(self) -> list[dict[str, Any]]:
        return [e for e in self.events if e["sender"] == BOT and "React" in str(e["content"].get("body", ""))]

    def react(self, sender: str, event_id: str, key: str) -> str:
        return self.say(
            sender, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": event_id, "key": key}}
        )

    def reply(self, sender: str, event_id: str, body: str) -> str:
        return self.say(
            sender,
            "m.room.message",
            {"msgtype": "m.text", "body": body, "m.relates_to": {"m.in_reply_to": {"event_id": event_id}}},
        )

    # the server

    def _denied(self, request: web.Request, method: str) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN"}, status=401)
        if fault := self.take_fault(method):
            wait = {"retry_after_ms": fault.retry_after} if fault.retry_after else {}
            return web.json_response({"errcode": "M_LIMIT_EXCEEDED", **wait}, status=fault.status)
        return None

    async def _whoami(self, request: web.Request) -> web.Response:
        return self._denied(request, "whoami") or web.json_response({"user_id": BOT})

    async def _create(self, request: web.Request) -> web.Response:
        if denied := self._denied(request, "createRoom"):
            return denied
        wanted = await request.json()
        self.note("createRoom", wanted)
        return web.json_response({"room_id": ROOM})

    async def _encryption(self, request: web.Request) -> web.Response:
        if denied := self._denied(request, "encryption"):
            return denied
        if self.encrypted:
            return web.json_response({"algorithm": "m.megolm.v1.aes-sha2"})
        return web.json_response({"errcode": "M_NOT_FOUND"}, status=404)

    async def _send(self, request: web.Request) -> web.Response:
        if denied := self._denied(request, "send"):
            return denied
        info, content = request.match_info, await request.json()
        if info["room"] != ROOM:
            return web.json_response({"errcode": "M_FORBIDDEN"}, status=403)
        if len(json.dumps(content)) > 60_000:
            return web.json_response({"errcode": "M_TOO_LARGE"}, status=413)
        if info["kind"] == "m.room.message" and not {"msgtype", "body"} <= set(content):
            return web.json_response({"errcode": "M_BAD_JSON"}, status=400)
        self.note("send", {"kind": info["kind"], "txn": info["txn"]})
        if info["txn"] not in self._transactions:
            self._transactions[info["txn"]] = self.say(BOT, info["kind"], content)
            if late := self.take_fault(f"answer to {info['kind']}"):
                await asyncio.sleep(late.seconds)
        return web.json_response({"event_id": self._transactions[info["txn"]]})

    async def _upload(self, request: web.Request) -> web.Response:
        if denied := self._denied(request, "upload"):
            return denied
        self.files[f"mxc://fake/{len(self.files)}"] = await request.read()
        return web.json_response({"content_uri": list(self.files)[-1]})

    async def _sync(self, request: web.Request) -> web.Response:
        if denied := self._denied(request, "sync"):
            return denied
        since = request.query.get("since", "")
        until = asyncio.get_running_loop().time() + int(request.query.get("timeout", "0")) / 1000
        start = int(since.removeprefix("s")) if since else len(self.events)
        self.note("sync", {"since": since})
        while len(self.events) <= start and asyncio.get_running_loop().time() < until and self._loop is not None:
            if self._stopping is not None and self._stopping.is_set():
                break
            await asyncio.sleep(0.01)
        fresh = self.events[start:] if since else []
        timeline = {"timeline": {"events": fresh}}
        return web.json_response({"next_batch": f"s{start + len(fresh)}", "rooms": {"join": {ROOM: timeline}}})
