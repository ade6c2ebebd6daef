"""A web channel on a real port for every test that asks for one, and clients that enter in each way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.fake_hub_api import FakeHub
from tests.support.page_client import enter

from atlasbridge.core.clock import Clock, SystemClock


@pytest.fixture
def clock() -> Clock:
    """Real time; a test about limits puts a clock in its place that stands still."""
    return SystemClock()


@pytest.fixture
async def hub(tmp_path: Path, clock: Clock) -> AsyncIterator[FakeHub]:
    running = FakeHub(tmp_path, clock)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def anyone(hub: FakeHub) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody without any credential."""
    async with httpx.AsyncClient(base_url=hub.channel.url, timeout=30, verify=False) as client:
        yield client


@pytest.fixture
async def page(hub: FakeHub) -> AsyncIterator[httpx.AsyncClient]:
    """A page that was let in by a link: it has the cookie and signs its requests."""
    async with httpx.AsyncClient(base_url=hub.channel.url, timeout=30, verify=False) as client:
        await log_in(hub, client)
        yield client


async def log_in(hub: FakeHub, client: httpx.AsyncClient, scope: str = "admin", name: str = "page") -> dict[str, str]:
    link = hub.channel.site.access.make_link(name, scope)
    answer = await enter(client, link)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def bearer(hub: FakeHub, scope: str, name: str = "robot") -> dict[str, str]:
    _, secret = hub.channel.site.access.create_token(f"{name}-{scope}", scope)
    return {"Authorization": f"Bearer {secret}"}
