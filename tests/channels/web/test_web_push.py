"""Web Push as far as a machine without internet allows: a push service on loopback and a browser's half of the keys."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import http_ece
import httpx
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from tests.channels.web.conftest import log_in
from tests.support.fake_desk import FakeHub
from tests.support.sample_prompt import MENU, SECRET

API = "/api/v1"
pytestmark = pytest.mark.timeout(180)


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class PushService:
    """Takes what a hub posts; answers with `status`."""

    def __init__(self) -> None:
        self.status = 201
        self.received: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.port = 0

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
        await self.received.put((dict(request.headers), await request.read()))
        return web.Response(status=self.status)


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
        text = http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm")
        return dict(json.loads(text))


async def serve(tmp_path: Path) -> tuple[FakeHub, PushService, web.AppRunner, httpx.AsyncClient]:
    service = PushService()
    runner = await service.start()
    hub = FakeHub(tmp_path, push_hosts=[f"127.0.0.1:{service.port}"])
    await hub.start()
    client = httpx.AsyncClient(base_url=hub.channel.url, timeout=60, verify=False)
    await log_in(hub, client)
    return hub, service, runner, client


async def stop(hub: FakeHub, runner: web.AppRunner, client: httpx.AsyncClient) -> None:
    await client.aclose()
    await hub.stop()
    await runner.cleanup()


async def test_a_prompt_reaches_a_sleeping_phone_encrypted_and_signed(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    offered = (await client.get(f"{API}/push")).json()
    assert offered["available"] is True
    assert (await client.post(f"{API}/push/subscriptions", json=phone.to_json())).status_code == 200
    record = await hub.raise_prompt(hub.desk.add_session(), MENU)
    headers, body = await asyncio.wait_for(service.received.get(), 90)
    message = phone.open(body)
    assert message == {
        "title": "claude is waiting for you", "body": "Do you want to proceed?", "prompt_id": record.prompt_id
    }  # fmt: skip
    assert b"proceed" not in body
    scheme, _, claim = headers["Authorization"].partition(" ")
    assert scheme == "vapid"
    assert Vapid02.verify(headers["Authorization"])
    assert offered["public_key"] in claim
    key_file = tmp_path / "web-push.pem"
    assert key_file.stat().st_mode & 0o777 == 0o600
    await stop(hub, runner, client)


async def test_a_subscription_that_is_gone_is_forgotten_and_a_secret_is_not_quoted(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    service.status = 410
    await hub.raise_prompt(hub.desk.add_session(), SECRET)
    _, body = await asyncio.wait_for(service.received.get(), 90)
    assert phone.open(body)["body"] == "It asks for a secret."
    async with asyncio.timeout(60):
        while hub.desk.notes["web.push"] != "[]":
            await asyncio.sleep(0.02)
    await stop(hub, runner, client)


async def test_a_push_service_that_is_away_keeps_nobody_waiting(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    await client.post(f"{API}/push/subscriptions", json=Subscriber(service).to_json())
    await runner.cleanup()
    async with asyncio.timeout(5):
        record = await hub.raise_prompt(hub.desk.add_session(), MENU)
        answer = await client.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "1"})
    assert answer.status_code == 200
    await stop(hub, runner, client)


async def test_a_browser_can_take_its_subscription_back(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    answer = await client.request("DELETE", f"{API}/push/subscriptions", json={"endpoint": phone.endpoint})
    assert answer.json() == {"removed": True}
    assert hub.desk.notes["web.push"] == "[]"
    await stop(hub, runner, client)
