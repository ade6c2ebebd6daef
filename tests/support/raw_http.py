"""Bytes straight to a web channel's port, for requests that no client library would send."""

from __future__ import annotations

import asyncio

from tests.support.fake_hub_api import FakeHub


def port_of(hub: FakeHub) -> str:
    return hub.channel.url.rpartition(":")[2]


async def raw(hub: FakeHub, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port_of(hub)))
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def connect(hub: FakeHub) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(port_of(hub)))
