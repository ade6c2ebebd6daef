"""A strict Slack on loopback: Web API and Socket Mode, with people behind them, for tests.

It keeps the rules that bite (acknowledge in 3 s or hear it again, single-use tickets, triggers that live 3 s, sizes of
Block Kit, floods, disconnects).  Threads and faults are in fake_server, block rules in fake_slack_blocks.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from tests.support import fake_slack_blocks as kit
from tests.support.fake_server import FakeServer, cut
from tests.support.fake_slack_person import Person

BOT_TOKEN = "xoxb-111-222-FakeBotTokenNeverLogged"
APP_TOKEN = "xapp-1-A111-222-FakeAppTokenNeverLogged"
TEAM, BOT_USER, APP = "T0TEAM", "U0BOT", "A0APP"
ACK_S = 3.0
TRIGGER_S = 3.0
MAX_RETRIES = 3
NO_JSON = {"users.info"}
RETRY_METHODS = {"events_api"}
Message = dict[str, Any]


class SlackError(Exception):
    def __init__(self, error: str, *messages: str) -> None:
        super().__init__(error)
        self.error, self.messages = error, list(messages)


@dataclass(slots=True)
class Room:
    room_id: str
    kind: str  # "im" or "channel"
    members: set[str]
    messages: dict[str, Message] = field(default_factory=dict)
    last_sent_at: float = -1e9


@dataclass(slots=True)
class Envelope:
    """Something sent down a socket: what the person waits for is whether it was acknowledged, and with what."""

    kind: str
    payload: dict[str, Any]
    envelope_id: str = ""
    attempts: int = 0
    acked: bool = False
    failed: bool = False
    response: dict[str, Any] | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)


class FakeSlack(FakeServer):
    """`person()` makes people, `room()` channels, `fail()` plans faults, `sent()` is what the bot wrote."""

    def __init__(self, clock: Callable[[], float] = time.time, ack_s: float = ACK_S) -> None:
        super().__init__(clock)
        self.ack_s = ack_s
        self.min_interval_s = 0.0
        self.users: dict[str, dict[str, Any]] = {BOT_USER: {"id": BOT_USER, "name": "bridge", "team_id": TEAM}}
        self.rooms: dict[str, Room] = {}
        self.views: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.shared: dict[str, bytes] = {}
        self.gives_files = True
        self.envelopes: list[Envelope] = []
        self.triggers: dict[str, float] = {}
        self.sockets: list[web.WebSocketResponse] = []
        self.silent_to_acks = False
        self._tickets: set[str] = set()
        self._held: list[Envelope] = []
        self._in_flight: dict[str, Envelope] = {}
        self._numbers = itertools.count(1)

    # -- the world of people -------------------------------------------------------------------------------------

    def person(self, user_id: str, name: str = "ada", team_id: str = TEAM) -> Person:
        with self.lock:
            self.users[user_id] = {"id": user_id, "name": name, "real_name": name.title(), "team_id": team_id}
        return Person(self, user_id)

    def room(self, room_id: str, *members: str) -> Room:
        self.rooms[room_id] = Room(room_id, "channel", {BOT_USER, *members})
        return self.rooms[room_id]

    def dm_with(self, user_id: str) -> Room:
        with self.lock:
            room_id = f"D{user_id[1:]}"
            return self.rooms.setdefault(room_id, Room(room_id, "im", {BOT_USER, user_id}))

    def sent(self, room_id: str) -> list[Message]:
        """The bot's messages in a room as they look now, oldest first."""
        with self.lock:
            room = self.rooms.get(room_id)
            messages = [] if room is None else room.messages.values()
            return [copy.deepcopy(message) for message in messages if message.get("user") == BOT_USER]

    def number(self) -> int:
        return next(self._numbers)

    def new_ts(self) -> str:
        return f"{int(self.clock())}.{self.number():06d}"

    def new_trigger(self) -> str:
        trigger = f"{self.number()}.trigger"
        self.triggers[trigger] = self.clock() + TRIGGER_S
        return trigger

    def emit(self, kind: str, payload: dict[str, Any]) -> Envelope:
        """Send this to one of the app's sockets, from any thread."""
        envelope = Envelope(kind, copy.deepcopy(payload))
        with self.lock:
            self.envelopes.append(envelope)
        self.soon(lambda: asyncio.ensure_future(self._push(envelope)))
        return envelope

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask every client to reconnect, as Slack does every few hours."""
        self.soon(lambda: asyncio.ensure_future(self._disconnect_all(reason)))

    def cut_sockets(self) -> None:
        """Break every socket without a word."""
        self.soon(self._abort_all)

    # -- HTTP ----------------------------------------------------------------------------------------------------

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/api/{method}", self._handle),
            web.get("/link/{ticket}", self._socket),
            web.post("/upload/{file}", self._upload),
            web.get("/files/{file}", self._download),
        ]

    async def on_stop(self) -> None:
        for socket in list(self.sockets):
            await socket.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, params = request.match_info["method"], await _read_params(request)
        if method in NO_JSON and request.content_type == "application/json":
            params = dict(request.query)
        self.note(method, {name: value for name, value in params.items() if name != "token"})
        fault = self.take_fault(method)
        match fault.kind if fault is not None else "":
            case "cut_before":
                return cut(request)
            case "slow" if fault is not None:
                await asyncio.sleep(fault.seconds)
            case "garbage" if fault is not None:
                return web.Response(status=fault.status, text="<html>upstream</html>")
            case "error" if fault is not None:
                return web.json_response(_error(SlackError(fault.description)))
            case "status" if fault is not None:
                return _flood(fault.retry_after or 1) if fault.status == 429 else web.Response(status=fault.status)
        try:
            with self.lock:
                answer = copy.deepcopy(self._dispatch(method, params, _token(request, params)))
        except SlackError as error:
            if error.error == "ratelimited":
                return _flood(int(error.messages[0]))
            return web.json_response(_error(error))
        finally:
            self.tell()
        if fault is not None and fault.kind == "cut_after":
            return cut(request)
        return web.json_response({"ok": True, **answer})

    def _dispatch(self, method: str, params: dict[str, Any], token: str) -> dict[str, Any]:
        action = getattr(self, "_do_" + method.replace(".", "_"), None)
        if action is None:
            raise SlackError("unknown_method")
        if not token:
            raise SlackError("not_authed")
        if token not in (BOT_TOKEN, APP_TOKEN):
            raise SlackError("invalid_auth")
        if (token == APP_TOKEN) != (method == "apps.connections.open"):
            raise SlackError("not_allowed_token_type")
        found: dict[str, Any] = action(params)
        return found

    # -- methods of the bot --------------------------------------------------------------------------------------

    def _do_auth_test(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"url": self.url, "team": "Team", "user": "bridge", "team_id": TEAM, "user_id": BOT_USER, "bot_id": "B0"}

    def _do_apps_connections_open(self, params: dict[str, Any]) -> dict[str, Any]:
        ticket = f"ticket{self.number()}"
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self.port}/link/{ticket}"}

    def _do_users_info(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("user") not in self.users:
            raise SlackError("user_not_found")
        known = self.users[params["user"]]
        wants = str(params.get("include_locale")) in ("true", "1")
        return {"user": {name: value for name, value in known.items() if wants or name != "locale"}}

    def _do_conversations_open(self, params: dict[str, Any]) -> dict[str, Any]:
        user = str(params.get("users", ""))
        if user not in self.users:
            raise SlackError("user_not_found")
        return {"channel": {"id": self.dm_with(user).room_id}}

    def _do_chat_postMessage(self, params: dict[str, Any]) -> dict[str, Any]:
        room = self._room(params)
        wait_s = room.last_sent_at + self.min_interval_s - self.clock()
        if wait_s > 0:
            raise SlackError("ratelimited", str(max(1, round(wait_s))))
        message = self._message(params)
        thread = params.get("thread_ts")
        if thread is not None and thread not in room.messages:
            raise SlackError("thread_not_found")
        if thread is not None and room.messages[thread].get("thread_ts"):
            raise SlackError("invalid_arguments", "thread_ts is a reply's; use its parent's")
        message |= {"ts": self.new_ts()} | ({"thread_ts": thread} if thread else {})
        message |= {"_broadcast": True} if params.get("reply_broadcast") else {}
        room.messages[message["ts"]] = message
        room.last_sent_at = self.clock()
        self._echo(room, message)
        return {"channel": room.room_id, "ts": message["ts"], "message": message}

    def _do_chat_update(self, params: dict[str, Any]) -> dict[str, Any]:
        room = self._room(params)
        if "thread_ts" in params:
            raise SlackError("invalid_arguments", "a message cannot be moved into a thread")
        old = room.messages.get(str(params.get("ts")))
        if old is None:
            raise SlackError("message_not_found")
        if old["user"] != BOT_USER:
            raise SlackError("cant_update_message")
        fresh = self._message(params) | {"ts": old["ts"], "edited": {"user": BOT_USER, "ts": self.new_ts()}}
        fresh |= {"thread_ts": old["thread_ts"]} if old.get("thread_ts") else {}
        room.messages[old["ts"]] = fresh
        return {"channel": room.room_id, "ts": old["ts"], "text": fresh["text"], "message": fresh}

    def _do_chat_postEphemeral(self, params: dict[str, Any]) -> dict[str, Any]:
        room, user = self._room(params), params.get("user")
        if user not in room.members:
            raise SlackError("user_not_in_channel")
        message = self._message(params) | {"ts": self.new_ts(), "_only_for": user}
        room.messages[message["ts"]] = message
        return {"message_ts": message["ts"]}

    def _do_views_open(self, params: dict[str, Any]) -> dict[str, Any]:
        dies_at = self.triggers.pop(str(params.get("trigger_id")), None)
        if dies_at is None:
            raise SlackError("exchanged_trigger_id")
        if self.clock() > dies_at:
            raise SlackError("expired_trigger_id")
        try:
            view = kit.check_view(params.get("view"))
        except kit.BadBlocks as bad:
            raise SlackError("invalid_arguments", str(bad)) from None
        view_id = f"V{self.number()}"
        self.views[view_id] = view | {"id": view_id, "team_id": TEAM, "hash": f"{self.number()}.hash"}
        return {"view": self.views[view_id]}

    def _do_files_getUploadURLExternal(self, params: dict[str, Any]) -> dict[str, Any]:
        if int(params.get("length") or 0) <= 0 or not params.get("filename"):
            raise SlackError("invalid_arguments")
        file_id = f"F{self.number()}"
        return {"upload_url": f"{self.url}/upload/{file_id}", "file_id": file_id}

    def _do_files_completeUploadExternal(self, params: dict[str, Any]) -> dict[str, Any]:
        files = params["files"]
        if any(one["id"] not in self.files for one in files):
            raise SlackError("file_not_found")
        room = self._room({"channel": params.get("channel_id")})
        message = {"type": "message", "user": BOT_USER, "bot_id": "B0", "text": params.get("initial_comment") or ""}
        message |= {"ts": self.new_ts(), "files": files, "thread_ts": params.get("thread_ts")}
        room.messages[str(message["ts"])] = message
        return {"files": [{"id": one["id"], "title": one.get("title", "")} for one in files]}

    # -- shared by the methods -----------------------------------------------------------------------------------

    def _room(self, params: dict[str, Any]) -> Room:
        room = self.rooms.get(str(params.get("channel")))
        if room is None:
            raise SlackError("channel_not_found")
        if BOT_USER not in room.members:
            raise SlackError("not_in_channel")
        return room

    def _message(self, params: dict[str, Any]) -> Message:
        text, blocks = str(params.get("text") or ""), params.get("blocks")
        if not text and not blocks:
            raise SlackError("no_text")
        if len(text) > 40_000:
            raise SlackError("msg_too_long")
        message: Message = {"type": "message", "user": BOT_USER, "bot_id": "B0", "text": text}
        if blocks:
            try:
                message["blocks"] = kit.check_blocks(blocks)
            except kit.BadBlocks as bad:
                raise SlackError("invalid_blocks", str(bad)) from None
        return message

    def _echo(self, room: Room, message: Message) -> None:
        """Slack tells an app of its own messages too."""
        event = {"type": "message", "channel": room.room_id, "channel_type": room.kind, "team": TEAM}
        self.emit("events_api", self.event_payload(event | {k: v for k, v in message.items() if k != "type"}))

    def event_payload(self, event: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event_id": f"Ev{self.number():08d}",
            "event_time": int(self.clock()),
            "event": event,
        }

    # -- Socket Mode ---------------------------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        with self.lock:
            if request.match_info["ticket"] not in self._tickets:
                return web.Response(status=404)
            self._tickets.remove(request.match_info["ticket"])
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json(
            {"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {"app_id": APP}}
        )
        self.sockets.append(socket)
        self.tell()
        held, self._held = self._held, []
        pushes = [asyncio.ensure_future(self._push(envelope)) for envelope in held]
        try:
            async for frame in socket:
                if frame.type == WSMsgType.TEXT:
                    self._acknowledge(json.loads(frame.data))
        finally:
            if socket in self.sockets:
                self.sockets.remove(socket)
            self.tell()
            del pushes  # held until here: a task that nobody holds may vanish
        return socket

    async def _push(self, envelope: Envelope) -> None:
        """Send it, and unless it is acknowledged in time send it again; clicks are never sent twice."""
        while not envelope.acked and envelope.attempts <= MAX_RETRIES:
            if not self.sockets:
                self._give_up_for_now(envelope)
                return
            if await self._try(envelope, self.sockets[-1]) == "lost":
                await asyncio.sleep(0.02)
                envelope.attempts -= 1
            elif envelope.kind not in RETRY_METHODS:
                break
        envelope.failed = not envelope.acked
        self.tell()

    async def _try(self, envelope: Envelope, socket: web.WebSocketResponse) -> str:
        """ "acked", "timeout", or "lost" when the socket died under it."""
        envelope.envelope_id = f"env-{self.number()}"
        sent: dict[str, Any] = {"envelope_id": envelope.envelope_id, "type": envelope.kind, "payload": envelope.payload}
        sent["accepts_response_payload"] = envelope.kind != "events_api"
        if envelope.kind in RETRY_METHODS:
            sent |= {"retry_attempt": envelope.attempts, "retry_reason": "timeout" if envelope.attempts else ""}
        envelope.attempts += 1
        self._in_flight[envelope.envelope_id] = envelope
        try:
            await socket.send_json(sent)
            return await self._await_answer(envelope, socket)
        except ConnectionError:
            return "lost"
        finally:
            del self._in_flight[envelope.envelope_id]

    async def _await_answer(self, envelope: Envelope, socket: web.WebSocketResponse) -> str:
        deadline = asyncio.get_running_loop().time() + self.ack_s
        while not envelope.acked and asyncio.get_running_loop().time() < deadline:
            if socket not in self.sockets:
                return "lost"
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await envelope.answered.wait()
        return "acked" if envelope.acked else "timeout"

    def _give_up_for_now(self, envelope: Envelope) -> None:
        """No socket: events wait for the next one, a click is an error on the person's screen."""
        if envelope.kind in RETRY_METHODS:
            self._held.append(envelope)
        else:
            envelope.failed = True
        self.tell()

    def _acknowledge(self, answer: dict[str, Any]) -> None:
        if self.silent_to_acks:
            return
        envelope = self._in_flight.get(str(answer.get("envelope_id")))
        if envelope is not None:  # an answer that comes too late changes nothing
            envelope.acked, envelope.response = True, answer.get("payload")
            envelope.answered.set()
        self.tell()

    async def _disconnect_all(self, reason: str) -> None:
        leaving, self.sockets = self.sockets, []  # nothing more is sent down these
        for socket in leaving:
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})
            await asyncio.sleep(0.05)
            await socket.close()

    def _abort_all(self) -> None:
        for socket in list(self.sockets):
            transport = socket._req.transport if socket._req is not None else None
            if transport is not None:
                transport.abort()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Anyone who has no right to it gets a page to log in, and no error: that is how Slack does it."""
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}" or not self.gives_files:
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return web.Response(body=self.shared[request.match_info["file"]], content_type="application/octet-stream")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        if request.content_type.startswith("multipart/"):
            part = next(iter((await request.post()).values()))
            content = part.file.read() if isinstance(part, web.FileField) else str(part).encode()
        else:
            content = await request.read()
        self.files[request.match_info["file"]] = content
        return web.Response(text=f"OK - {len(content)}")


def _flood(seconds: int) -> web.Response:
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(seconds)})


def _error(error: SlackError) -> dict[str, Any]:
    body: dict[str, Any] = {"ok": False, "error": error.error}
    if error.messages:
        body["response_metadata"] = {"messages": [f"[ERROR] {one}" for one in error.messages]}
    return body


def _token(request: web.Request, params: dict[str, Any]) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ") or str(params.get("token") or "")


async def _read_params(request: web.Request) -> dict[str, Any]:
    params: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        if await request.read():
            params |= await request.json()
        return params
    params |= dict(await request.post())
    return {name: _decode(name, value) for name, value in params.items()}


def _decode(name: str, value: Any) -> Any:
    nested = {"blocks", "view", "files", "attachments"}
    return json.loads(value) if name in nested and isinstance(value, str) and value else value
