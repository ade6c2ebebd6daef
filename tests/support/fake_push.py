"""A push service on loopback that takes what a hub posts, and a browser's half of the keys that opens it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from typing import Any

import http_ece
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class PushService:
    """Takes what a hub posts; answers with `status`."""

    def __init__(self) -> None:
        self.status = 201
        self.location = ""
        self.received: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.port = 0
        self.bodies: list[bytes] = []
        self.times: list[float] = []

    async def start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/send/{name}", self._take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.times.append(time.time())
        self.bodies.append(body)
        await self.received.put((dict(request.headers), body))
        headers = {"Location": self.location} if self.location else None
        return web.Response(status=self.status, headers=headers)


class Subscriber:
    """A browser's half: its key pair, its secret, and how it opens a message."""

    def __init__(self, service: PushService, name: str = "phone") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.endpoint = f"http://127.0.0.1:{service.port}/send/{name}"

    def to_json(self) -> dict[str, Any]:
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": b64(point), "auth": b64(self.auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    def open(self, body: bytes) -> dict[str, Any]:
        """The message with its texts as the service worker shows them in English."""
        text = http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm")
        return as_shown(json.loads(text))


def as_shown(message: dict[str, Any]) -> dict[str, Any]:
    values = message.get("values", {})
    title, note = (_form(message.get(name, ""), values) for name in ("title", "note"))
    return {**message, "title": title, "body": "\n".join(part for part in (message["body"], note) if part)}


def _form(text: str, values: dict[str, Any]) -> str:
    one, _, many = text.partition("|")
    return (many if many and values.get("count") != 1 else one).format_map(values)
