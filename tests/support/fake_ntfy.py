"""A strict ntfy server on loopback: limits of the real one, a token, cached messages, a stream per listener."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web
from tests.support.fake_server import FakeServer

ALLOWED = {"topic", "title", "message", "priority", "tags", "actions", "click", "sequence_id"}
ACTION = {"action", "label", "url", "method", "body", "clear", "headers"}


class FakeNtfy(FakeServer):
    def __init__(self, token: str = "") -> None:
        super().__init__()
        self.token = token
        self.unreadable: set[str] = set()  # topics that the hub may write to, and only the phone may read
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self._listeners: list[tuple[str, asyncio.Queue[dict[str, Any] | None]]] = []
        self._number = 0

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/", self._json), web.post("/{topic}", self._plain), web.get("/{topic}/json", self._stream)]

    # the phone

    def tap(self, topic: str, label: str) -> None:
        """Press a button of the newest notification that has it."""
        for message in reversed(self.messages.get(topic, [])):
            for action in message.get("actions", []):
                if label in action["label"]:
                    self.say(action["url"].rpartition("/")[2], action["body"])
                    return
        raise AssertionError(f"no button {label!r}")

    def say(self, topic: str, text: str) -> None:
        self.soon(lambda: self._add(topic, {"message": text}))

    # the server

    def _add(self, topic: str, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self._number += 1
            message = {
                "id": f"m{self._number:06d}",
                "time": int(self.clock()),
                "event": "message",
                "topic": topic,
                **body,
            }
            self.messages.setdefault(topic, []).append(message)
        for wanted, queue in self._listeners:
            if wanted == topic:
                queue.put_nowait(message)
        self.tell()
        return message

    def _denied(self, request: web.Request) -> web.Response | None:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"code": 40301, "http": 403, "error": "forbidden"}, status=403)
        if fault := self.take_fault("publish" if request.method == "POST" else "listen"):
            return web.json_response({"http": fault.status, "error": fault.description}, status=fault.status)
        return None

    async def _json(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.note("publish", body)
        if denied := self._denied(request):
            return denied
        if wrong := self._wrong(body):
            return web.json_response({"code": 40000, "http": 400, "error": wrong}, status=400)
        return web.json_response(self._add(body.pop("topic"), body))

    async def _plain(self, request: web.Request) -> web.Response:
        if denied := self._denied(request):
            return denied
        return web.json_response(self._add(request.match_info["topic"], {"message": await request.text()}))

    def _wrong(self, body: dict[str, Any]) -> str:
        if set(body) - ALLOWED:
            return f"unknown: {sorted(set(body) - ALLOWED)}"
        if len(str(body.get("message", "")).encode()) > 4096:
            return "message too long"
        if len(str(body.get("title", "")).encode()) > 1024:
            return "title too long"
        if body.get("priority", 3) not in range(1, 6):
            return "priority invalid"
        actions = body.get("actions", [])
        if len(actions) > 3 or any(set(one) - ACTION or one["action"] != "http" or not one["label"] for one in actions):
            return "actions invalid"
        return ""

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if denied := self._denied(request):
            return denied
        topic, since = request.match_info["topic"], request.query.get("since", "")
        if topic in self.unreadable:
            return web.json_response({"code": 40301, "http": 403, "error": "forbidden"}, status=403)
        if request.query.get("poll"):
            known = [] if since == "none" else self._after(topic, since)
            return web.Response(text="".join(json.dumps(message) + "\n" for message in known))
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        for message in self._after(topic, since):
            queue.put_nowait(message)
        self._listeners.append((topic, queue))
        try:
            await self._write(response, {"id": "open", "event": "open", "topic": topic})
            self.note("listen", {"since": since})
            while (news := await queue.get()) is not None:
                await self._write(response, news)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._listeners.remove((topic, queue))
        return response

    def _after(self, topic: str, since: str) -> list[dict[str, Any]]:
        known = self.messages.get(topic, [])
        if since.isdigit():
            return [message for message in known if message["time"] >= int(since)]
        ids = [message["id"] for message in known]
        return known[ids.index(since) + 1 :] if since in ids else list(known)

    async def _write(self, response: web.StreamResponse, message: dict[str, Any]) -> None:
        await response.write(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        self.soon(lambda: [queue.put_nowait(None) for _, queue in self._listeners])

    async def on_stop(self) -> None:
        for _, queue in self._listeners:
            queue.put_nowait(None)
        await asyncio.sleep(0.02)
