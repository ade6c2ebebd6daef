"""The example channel against an endpoint on loopback that checks every signature."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.channels import prompts
from tests.channels.conftest import serving
from tests.channels.mini_hub import MiniHub

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.prompt.model import Receipt

SECRET = "shared"


def load_example() -> Any:
    """The module as an installed package would give it."""
    spec = importlib.util.spec_from_file_location("webhook_channel", Path(__file__).with_name("webhook_channel.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Endpoint:
    """Keeps what was posted, and hands out answers to anyone who asks."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.post("/hook", self._post), web.get("/hook/replies", self._replies)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def answer(self, value: str, by: str = "alice", **changes: Any) -> None:
        asked = [post["prompt"] for post in self.posted if post["event"] == "prompt"][-1]
        ids = {name: asked[name] for name in ("prompt_id", "session_id", "nonce")}
        self.answers.append({"id": len(self.answers) + 1, "by": by, "value": value, **ids, **changes})

    async def _post(self, request: web.Request) -> web.Response:
        body = await request.read()
        good = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(good, request.headers.get("X-AtlasBridge-Signature", "")):
            return web.Response(status=403)
        self.posted.append(json.loads(body))
        return web.Response(status=204)

    async def _replies(self, request: web.Request) -> web.Response:
        after = int(request.query["after"])
        await asyncio.sleep(0.01)
        return web.json_response([answer for answer in self.answers if answer["id"] > after])


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    await made.start()
    yield made
    await made.stop()


def settings(endpoint: Endpoint) -> dict[str, Any]:
    return {"url": endpoint.url, "secret": SECRET, "allowed_users": ["alice"], "retry_s": 0.02}


async def until(look: Any) -> None:
    while not look():
        await asyncio.sleep(0.01)


async def test_a_prompt_goes_out_and_its_answer_comes_back_once(endpoint: Endpoint) -> None:
    hub = MiniHub()
    channel = load_example().WebhookChannel(settings(endpoint), hub, SystemClock())
    async with serving(hub, channel):
        record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
        await hub.ask(channel, record)
        endpoint.answer("y", by="mallory")
        endpoint.answer("n", nonce="forged")
        endpoint.answer("y")
        await until(lambda: record.prompt_id in hub.answers)
        await until(lambda: any(post["event"] == "update" for post in endpoint.posted))
        await channel.notify("over")
    assert [reply.identity for reply in hub.replies] == ["webhook:alice", "webhook:alice"]
    outcomes = [post for post in endpoint.posted if post["event"] == "outcome"]
    assert [outcome["taken"] for outcome in outcomes] == [False, True]
    assert endpoint.posted[-1]["message"] == "over"


async def test_a_restart_does_not_read_old_answers_again(endpoint: Endpoint) -> None:
    hub, module = MiniHub(), load_example()
    record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
    for _ in range(2):
        channel = module.WebhookChannel(settings(endpoint), hub, SystemClock())
        async with serving(hub, channel):
            if not endpoint.posted:
                await hub.ask(channel, record)
                endpoint.answer("y")
            await until(lambda: record.prompt_id in hub.answers)
            await until(lambda: channel.health()["state"] == "ok")  # noqa: B023
    assert len(hub.replies) == 1


async def test_a_dead_address_is_a_channel_error() -> None:
    hub = MiniHub()
    table = {"url": "http://127.0.0.1:9/hook", "secret": SECRET}
    channel = load_example().WebhookChannel(table, hub, SystemClock())
    async with serving(hub, channel):
        record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
        with pytest.raises(ChannelError):
            await hub.ask(channel, record)
        with pytest.raises(ChannelError):
            await channel.update_prompt(record.prompt_id, record, Receipt("taken", "Taken."))
