"""A strict Discord on loopback: REST with its limits, the gateway with hello, identify, heartbeats and resume.

It refuses what Discord refuses: long messages, too many rows or buttons, labels and ids that are too long, two
components with one id, a late answer to an interaction, a second identify, a wrong token, an unknown session.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import WSMsgType, web
from tests.support.fake_server import FakeServer, cut

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
BOT, APPLICATION, ADA = "900000000000000001", "900000000000000002", "100000000000000001"
EPOCH_MS, INTERACTION_S = 1_420_070_400_000, 3.0
Message = dict[str, Any]


class Refusal(Exception):
    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.body = status, {"code": code, "message": message, **more}


def invalid(why: str) -> Refusal:
    return Refusal(400, 50035, f"Invalid Form Body: {why}")


class FakeDiscord(FakeServer):
    """`person` writes and presses, `fail()` plans faults, `limit(n, seconds)` sets a bucket for messages."""

    def __init__(self, clock: Callable[[], float] = time.time, heartbeat_s: float = 30.0) -> None:
        super().__init__(clock)
        self.heartbeat_s = heartbeat_s
        self.rooms: dict[str, str] = {}  # user -> channel
        self.messages: dict[str, Message] = {}
        self.ephemeral: list[Message] = []
        self.blocked: set[str] = set()
        self.sockets: list[web.WebSocketResponse] = []
        self.sessions: dict[str, list[dict[str, Any]]] = {}  # what each gateway session was sent
        self.identified = self.resumed = 0
        self.interactions: dict[str, dict[str, Any]] = {}
        self.acks = True
        self._numbers = itertools.count(1)
        self._room_for: tuple[int, float] = (1_000_000, 5.0)
        self._used: dict[str, list[float]] = {}
        self._nonces: dict[str, str] = {}

    def person(self, user_id: str = ADA, name: str = "ada") -> Person:
        return Person(self, user_id, name)

    def limit(self, count: int, seconds: float) -> None:
        self._room_for = (count, seconds)

    def new_id(self) -> str:
        return str(((int(self.clock() * 1000) - EPOCH_MS) << 22) + next(self._numbers))

    def sent(self, room: str) -> list[Message]:
        with self.lock:
            mine = [m for m in self.messages.values() if m["channel_id"] == room and m["author"]["id"] == BOT]
            return copy.deepcopy(mine)

    def dm(self, user_id: str) -> str:
        with self.lock:
            return self.rooms.setdefault(user_id, f"7{user_id[1:]}")

    # the gateway

    def emit(self, kind: str, event: dict[str, Any]) -> None:
        self.soon(lambda: asyncio.ensure_future(self._emit(kind, copy.deepcopy(event))))

    async def _emit(self, kind: str, event: dict[str, Any]) -> None:
        for session, log in list(self.sessions.items()):
            said = {"op": 0, "t": kind, "s": len(log) + 1, "d": event}
            log.append(said)
            for ws in list(self.sockets):
                if ws["session"] == session:
                    await ws.send_json(said)

    def ask_to_reconnect(self) -> None:
        self.soon(lambda: [asyncio.ensure_future(ws.send_json({"op": 7, "d": None})) for ws in self.sockets])

    def invalidate(self, resumable: bool = False) -> None:
        async def tell() -> None:
            for ws in list(self.sockets):
                if not resumable:
                    self.sessions.pop(ws["session"], None)
                await ws.send_json({"op": 9, "d": resumable})

        self.soon(lambda: asyncio.ensure_future(tell()))

    def cut_sockets(self) -> None:
        def abort() -> None:
            for ws in list(self.sockets):
                if ws["transport"] is not None:
                    ws["transport"].abort()

        self.soon(abort)

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        if (request.query.get("v"), request.query.get("encoding")) != ("10", "json"):
            return web.Response(status=400)
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        ws["session"], ws["transport"] = "", request.transport
        await ws.send_json({"op": 10, "d": {"heartbeat_interval": int(self.heartbeat_s * 1000)}})
        self.sockets.append(ws)
        try:
            async for message in ws:
                if message.type is WSMsgType.TEXT and not await self._said(ws, json.loads(message.data)):
                    break
        finally:
            self.sockets.remove(ws)
            self.tell()
        return ws

    async def _said(self, ws: web.WebSocketResponse, said: dict[str, Any]) -> bool:
        op: Any = said.get("op")
        data: Any = said.get("d")
        self.note(f"op{op}", data if isinstance(data, dict) else {"d": data})
        if op == 1:
            if self.acks:
                await ws.send_json({"op": 11})
            return True
        if op not in (2, 6):
            return not await self._close(ws, 4001)
        if ws["session"]:
            return not await self._close(ws, 4005)
        if data.get("token") != TOKEN:
            return not await self._close(ws, 4004)
        if op == 2:
            if data.get("intents") != 1 << 12 or not isinstance(data.get("properties"), dict):
                return not await self._close(ws, 4013)
            session = ws["session"] = f"session{next(self._numbers)}"
            ready = {
                "v": 10,
                "user": {"id": BOT, "username": "bridge", "bot": True},
                "session_id": session,
                "resume_gateway_url": self.url.replace("http", "ws") + "/gateway",
                "application": {"id": APPLICATION},
            }
            self.sessions[session] = [{"op": 0, "t": "READY", "s": 1, "d": ready}]
            self.identified += 1
            await ws.send_json(self.sessions[session][0])
        elif data.get("session_id") not in self.sessions:
            await ws.send_json({"op": 9, "d": False})
        elif int(data.get("seq") or 0) > len(self.sessions[data["session_id"]]):
            return not await self._close(ws, 4007)
        else:
            session = ws["session"] = data["session_id"]
            for missed in self.sessions[session][int(data["seq"]) :]:
                await ws.send_json(missed)
            self.resumed += 1
            log = self.sessions[session]
            log.append({"op": 0, "t": "RESUMED", "s": len(log) + 1, "d": {}})
            await ws.send_json(log[-1])
        self.tell()
        return True

    async def _close(self, ws: web.WebSocketResponse, code: int) -> bool:
        await ws.close(code=code)
        return True

    async def on_stop(self) -> None:
        for ws in list(self.sockets):
            await ws.close()

    # REST

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/gateway/", self._gateway), web.route("*", "/api/{path:.*}", self._handle)]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        body = await self._body(request)
        name = f"{request.method} {'/'.join('ID' if part.isdecimal() else part for part in path.split('/'))}"
        self.note(name, body)
        fault = self.take_fault(name)
        if fault is not None and fault.kind == "cut_before":
            return cut(request)
        if fault is not None and fault.kind == "status":
            flood = {"message": "You are being rate limited.", "retry_after": fault.retry_after, "global": False}
            return web.json_response(flood if fault.status == 429 else {}, status=fault.status)
        headers: dict[str, str] = {}
        try:
            with self.lock:
                if path.startswith(("/channels", "/users", "/gateway")):
                    if request.headers.get("Authorization") != f"Bot {TOKEN}":
                        raise Refusal(401, 0, "401: Unauthorized")
                    headers = self._count(path.split("/")[2])
                found = copy.deepcopy(self._do(request.method, path.split("/")[1:], body))
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status, headers=headers)
        finally:
            self.tell()
        if fault is not None and fault.kind == "cut_after":
            return cut(request)
        if found is None:
            return web.Response(status=204)
        found.pop("file", None)
        return web.json_response(found, headers=headers)

    async def _body(self, request: web.Request) -> dict[str, Any]:
        if not request.can_read_body:
            return {}
        if request.content_type != "multipart/form-data":
            return dict(await request.json())
        form = await request.post()
        file: Any = form["files[0]"]
        return {**json.loads(str(form["payload_json"])), "file": (file.filename, file.file.read())}

    def _count(self, major: str) -> dict[str, str]:
        most, seconds = self._room_for
        now = time.monotonic()
        used = self._used[major] = [at for at in self._used.get(major, []) if at > now - seconds]
        after = f"{(used[0] + seconds - now) if used else seconds:.3f}"
        if len(used) >= most:
            raise Refusal(429, 0, "You are being rate limited.", retry_after=float(after), **{"global": False})
        used.append(now)
        return {
            "X-RateLimit-Bucket": f"b{major}",
            "X-RateLimit-Limit": str(most),
            "X-RateLimit-Remaining": str(most - len(used)),
            "X-RateLimit-Reset-After": after,
        }

    def _do(self, method: str, path: list[str], body: dict[str, Any]) -> Any:
        match method, *path:
            case "GET", "gateway", "bot":
                return {"url": self.url.replace("http", "ws") + "/gateway", "session_start_limit": {"remaining": 999}}
            case "GET", "users", "@me":
                return {"id": BOT, "username": "bridge", "bot": True}
            case "POST", "users", "@me", "channels":
                return {"id": self.dm(str(body["recipient_id"])), "type": 1}
            case "POST", "channels", room, "messages":
                return self._post(room, body)
            case "PATCH", "channels", room, "messages", message_id:
                return self._edit(room, message_id, body)
            case "POST", "interactions", interaction, token, "callback":
                return self._answer(interaction, token, body)
            case "POST", "webhooks", application, token:
                known = [one for one in self.interactions.values() if one["token"] == token and one["answered"]]
                if application != APPLICATION or not known:
                    raise Refusal(404, 10015, "Unknown Webhook")
                self._check(body)
                self.ephemeral.append(body)
                return {"id": self.new_id()}
        raise Refusal(404, 0, "404: Not Found")

    def _answer(self, interaction: str, token: str, body: dict[str, Any]) -> None:
        known = self.interactions.get(interaction)
        if known is None or known["token"] != token or time.monotonic() > known["until"]:
            raise Refusal(404, 10062, "Unknown interaction")
        if known["answered"]:
            raise Refusal(400, 40060, "Interaction has already been acknowledged.")
        if body.get("type") != 6:
            raise invalid("type")
        known["answered"] = True

    def _post(self, room: str, body: dict[str, Any]) -> Message:
        user = next((user for user, known in self.rooms.items() if known == room), "")
        if not user:
            raise Refusal(404, 10003, "Unknown Channel")
        if user in self.blocked:
            raise Refusal(403, 50007, "Cannot send messages to this user")
        self._check(body)
        nonce = str(body.get("nonce", ""))
        if len(nonce) > 25:
            raise invalid("nonce: Must be 25 or fewer in length.")
        if nonce and body.get("enforce_nonce") and nonce in self._nonces:
            return self.messages[self._nonces[nonce]]
        message = {"id": self.new_id(), "channel_id": room, "author": {"id": BOT, "bot": True}, **body}
        message["timestamp"] = datetime.fromtimestamp(self.clock(), UTC).isoformat()
        self.messages[message["id"]] = message
        self._nonces[nonce] = message["id"]
        return message

    def _edit(self, room: str, message_id: str, body: dict[str, Any]) -> Message:
        message = self.messages.get(message_id)
        if message is None or message["channel_id"] != room:
            raise Refusal(404, 10008, "Unknown Message")
        if message["author"]["id"] != BOT:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        self._check({**message, **body})
        message |= body
        return message

    def _check(self, body: dict[str, Any]) -> None:
        content = body.get("content") or ""
        if len(content) > 2000:
            raise invalid("content: Must be 2000 or fewer in length.")
        if not content.strip() and not body.get("file"):
            raise Refusal(400, 50006, "Cannot send an empty message")
        rows = body.get("components") or []
        if len(rows) > 5:
            raise invalid("components: Must be 5 or fewer in length.")
        ids = [one["custom_id"] for row in rows for one in row["components"]]
        if len(set(ids)) != len(ids):
            raise invalid("components: Component custom id cannot be duplicated")
        for row in rows:
            self._check_row(row)

    def _check_row(self, row: dict[str, Any]) -> None:
        inside = row["components"]
        menus = [one for one in inside if one["type"] == 3]
        if row["type"] != 1 or not 1 <= len(inside) <= 5 or (menus and len(inside) != 1):
            raise invalid("components: a row has one to five buttons, or one menu")
        for one in inside:
            if not 1 <= len(one["custom_id"]) <= 100:
                raise invalid("custom_id: Must be between 1 and 100 in length.")
            if one["type"] == 2 and (not 1 <= len(one["label"]) <= 80 or one["style"] not in (1, 2, 3, 4)):
                raise invalid("label: Must be between 1 and 80 in length.")
            if one["type"] == 3:
                options = one["options"]
                short = all(1 <= len(o["label"]) <= 100 and 1 <= len(o["value"]) <= 100 for o in options)
                apart = len({o["value"] for o in options}) == len(options)
                if not (1 <= len(options) <= 25 and short and apart and 1 <= one["max_values"] <= len(options)):
                    raise invalid("options")


class Person:
    def __init__(self, server: FakeDiscord, user_id: str, name: str) -> None:
        self.server, self.user_id, self.name, self.locale = server, user_id, name, "en-US"

    @property
    def user(self) -> dict[str, Any]:
        return {"id": self.user_id, "username": self.name, "global_name": self.name.title()}

    def sees(self) -> list[Message]:
        return self.server.sent(self.server.dm(self.user_id))

    def write(self, text: str, reply_to: Message | None = None, **more: Any) -> Message:
        room = self.server.dm(self.user_id)
        message = {"id": self.server.new_id(), "channel_id": room, "author": self.user, "content": text, **more}
        if reply_to is not None:
            message["message_reference"] = {"message_id": reply_to["id"], "channel_id": room}
        self.server.messages[message["id"]] = message
        self.server.emit("MESSAGE_CREATE", message)
        return message

    def press(self, message: Message, label: str, values: list[str] | None = None) -> str:
        """Press the button with this label, or choose in the menu that has an option with it."""
        for one in (one for row in message.get("components") or [] for one in row["components"]):
            if one.get("label") == label:
                return self.press_id(message, one["custom_id"])
            found = [o["value"] for o in one.get("options", []) if o["label"] == label]
            if found:
                return self.press_id(message, one["custom_id"], values or found)
        raise AssertionError(f"no button {label!r}")

    def press_id(self, message: Message, custom_id: str, values: list[str] | None = None) -> str:
        interaction = self.server.new_id()
        token = f"token{interaction}"
        until = time.monotonic() + INTERACTION_S
        self.server.interactions[interaction] = {"token": token, "answered": False, "until": until}
        data = {"custom_id": custom_id, "component_type": 3 if values else 2, "values": values or []}
        event = {"id": interaction, "type": 3, "token": token, "user": self.user, "locale": self.locale, "data": data}
        self.server.emit("INTERACTION_CREATE", {**event, "channel_id": message["channel_id"], "message": message})
        return interaction
