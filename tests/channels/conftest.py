"""A Telegram channel that is up, with its fake server, its hub and a router in miniature."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.channels.mini_hub import MiniHub
from tests.support.fake_discord import ADA as DISCORD_ADA
from tests.support.fake_discord import TOKEN, FakeDiscord
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, TEAM, FakeSlack
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.ports import Channel

ADA, BOB = 1001, 1002


@pytest.fixture
def server() -> Iterator[FakeTelegram]:
    with FakeTelegram() as fake:
        yield fake


@pytest.fixture
def hub_api() -> MiniHub:
    return MiniHub()


def telegram_settings(server: FakeTelegram, **changes: Any) -> dict[str, Any]:
    return {
        "bot_token": server.token,
        "allowed_users": [ADA],
        "api_url": server.url,
        "poll_timeout_s": 20,
        "backoff_first_s": 0.02,
        "messages_per_s": 1000.0,
        "host_name": "atlas",
        **changes,
    }


@asynccontextmanager
async def serving(hub_api: MiniHub, *channels: Channel) -> AsyncIterator[None]:
    """Started channels and a router over them, all ended afterwards."""
    for channel in channels:
        await channel.start()
    router = asyncio.create_task(hub_api.serve(*channels))
    try:
        yield
    finally:
        router.cancel()
        with suppress(asyncio.CancelledError):
            await router
        for channel in channels:
            await channel.close()


@pytest.fixture
async def channel(server: FakeTelegram, hub_api: MiniHub) -> AsyncIterator[TelegramChannel]:
    made = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, made):
        yield made


def discord_settings(server: FakeDiscord, **changes: Any) -> dict[str, Any]:
    return {
        "bot_token": TOKEN,
        "allowed_users": [DISCORD_ADA],
        "api_url": f"{server.url}/api",
        "backoff_first_s": 0.02,
        "messages_per_s": 1000.0,
        "host_name": "atlas",
        **changes,
    }


def slack_settings(slack: FakeSlack, **changes: Any) -> dict[str, Any]:
    return {
        "bot_token": BOT_TOKEN,
        "app_token": APP_TOKEN,
        "team_id": TEAM,
        "allowed_users": ["U0ADA"],
        "api_url": f"{slack.url}/api/",
        "backoff_first_s": 0.02,
        "messages_per_s": 1000.0,
        "ping_interval_s": 1.0,
        "host_name": "atlas",
        **changes,
    }


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(ack_s=1.0) as fake:
        yield fake


@pytest.fixture
async def slack_channel(slack: FakeSlack, hub_api: MiniHub) -> AsyncIterator[SlackChannel]:
    made = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    async with serving(hub_api, made):
        await slack.until(lambda: slack.sockets, "the socket")
        yield made
