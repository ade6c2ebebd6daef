"""MCP over HTTP at the hub's page, driven by the protocol's own client library, with a token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import httpx
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitRequestParams, ElicitResult
from tests.integrations.conftest import HubApi
from tests.integrations.test_client_http import credentials
from tests.integrations.test_mcp import BASH, answer, call
from tests.support.hubs import hub_process, with_page
from tests.support.person import Person

from atlasbridge.web.mcp_api import McpEndpoint

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}


@pytest.fixture
def hub_api() -> Iterator[HubApi]:
    person = Person()
    with hub_process(with_page()) as hub:
        yield HubApi(hub, person)
    person.close()


@asynccontextmanager
async def session_of(hub_api: HubApi, scope: str = "ask", elicit: Any = None) -> AsyncIterator[ClientSession]:
    made = await asyncio.to_thread(credentials, hub_api.hub, scope)
    client = create_mcp_http_client(headers={"Authorization": f"Bearer {made['token']}"})
    async with (
        client,
        streamable_http_client(f"{made['url']}/mcp", http_client=client) as (read, write),
        ClientSession(read, write, elicitation_callback=elicit) as session,
    ):
        await session.initialize()
        yield session


async def test_the_official_client_asks_and_is_answered_over_http(hub_api: HubApi) -> None:
    async with session_of(hub_api) as session:
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert sorted(names) == ["approve", "ask_human", "notify_human"]
        asked = asyncio.create_task(call(session, "ask_human", {"question": "Which?", "choices": ["red", "blue"]}))
        await answer(hub_api, "blue")
        assert await asked == "blue"
        asking = asyncio.create_task(call(session, "approve", BASH))
        prompt = await answer(hub_api, "y")
        assert prompt["subject"]["text"] == BASH["input"]["command"]  # type: ignore[index]
        assert json.loads(await asking) == {"behavior": "allow", "updatedInput": BASH["input"]}
        denied = asyncio.create_task(call(session, "approve", BASH))
        await answer(hub_api, "n")
        assert json.loads(await denied)["behavior"] == "deny"
        assert await call(session, "notify_human", {"message": "It is done."}) == "Told."


async def test_the_client_of_the_newest_version_finds_its_way_by_itself(hub_api: HubApi) -> None:
    made = await asyncio.to_thread(credentials, hub_api.hub, "ask")
    client = create_mcp_http_client(headers={"Authorization": f"Bearer {made['token']}"})
    async with client, Client(streamable_http_client(f"{made['url']}/mcp", http_client=client)) as session:
        asked = asyncio.create_task(session.call_tool("ask_human", {"question": "Go on?"}))
        await answer(hub_api, "y")
        (content,) = (await asked).content
        assert getattr(content, "text", "") == "yes"


async def test_nobody_in_time_and_a_bad_argument_are_told_as_that(hub_api: HubApi) -> None:
    async with session_of(hub_api) as session:
        verdict = json.loads(await call(session, "approve", {**BASH, "ttl_s": 0.5}))
        assert verdict["behavior"] == "deny" and "in time" in verdict["message"]
        late = await call(session, "ask_human", {"question": "Anybody?", "ttl_s": 0.5})
        assert "Nobody answered in time" in late
        wrong = await session.call_tool("ask_human", {"question": 7})
        assert wrong.is_error and "'question' must be a text" in str(wrong.content[0])


async def test_a_form_of_the_client_is_an_answer_and_one_that_is_closed_is_none(hub_api: HubApi) -> None:
    shown: list[str] = []

    async def fill(context: Any, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.message)
        if params.message == "First?":
            return ElicitResult(action="accept", content={"answer": "yes"})
        return ElicitResult(action="decline")

    async with session_of(hub_api, elicit=fill) as session:
        assert await call(session, "ask_human", {"question": "First?"}) == "yes"
        await asyncio.to_thread(hub_api.wait_quiet)
        asked = asyncio.create_task(call(session, "ask_human", {"question": "Second?"}))
        await answer(hub_api, "n")
        assert await asked == "no" and shown == ["First?", "Second?"]
        json.loads(await call(session, "approve", {**BASH, "ttl_s": 0.5}))
        assert len(shown) == 2  # a permission is never the client's own to give


async def test_a_client_that_cancels_or_goes_withdraws_its_question(hub_api: HubApi) -> None:
    async with session_of(hub_api) as session:
        asked = asyncio.create_task(call(session, "ask_human", {"question": "Still there?"}))
        await asyncio.to_thread(hub_api.next)
        asked.cancel()
    await asyncio.to_thread(hub_api.wait_quiet)


async def test_a_client_that_goes_leaves_no_task_behind() -> None:
    class Waiting:
        params: ClassVar[dict[str, Any]] = {}

        def __init__(self) -> None:
            self.out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
            self.begun = asyncio.Event()

        async def run(self) -> None:
            self.begun.set()
            await asyncio.Event().wait()

    before, waiting = asyncio.all_tasks(), Waiting()
    stream = McpEndpoint(None).pour(waiting, ("caller", "1"), 1)  # type: ignore[arg-type]
    reading = asyncio.ensure_future(anext(stream))
    await waiting.begun.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert asyncio.all_tasks() == before


async def test_without_a_token_that_may_ask_nothing_is_served(hub_api: HubApi) -> None:
    made = await asyncio.to_thread(credentials, hub_api.hub, "read")
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    async with httpx.AsyncClient(base_url=made["url"]) as client:
        assert (await client.post("/mcp", json=message)).status_code == 401
        headers = {"Authorization": f"Bearer {made['token']}"}
        assert (await client.post("/mcp", json=message, headers=headers)).status_code == 403


async def test_odd_messages_are_refused_in_the_protocols_own_words(hub_api: HubApi) -> None:
    made = await asyncio.to_thread(credentials, hub_api.hub, "ask")
    headers = {"Authorization": f"Bearer {made['token']}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=made["url"], headers=headers) as client:
        hello = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        assert hello.json()["result"]["protocolVersion"] == "2025-06-18"
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
        half = b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}'  # half a character
        for body, code in ((b"{", -32700), (b"[]", -32700), (half, -32700), (b'{"id": 1}', -32600)):
            answer = await client.post("/mcp", content=body)
            assert answer.status_code == 400 and answer.json()["error"]["code"] == code
        unknown = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "resources/list"})
        assert unknown.json()["error"]["code"] == -32601
        for name in ("rm", ["rm"], {"rm": 1}, None):
            no_tool = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": name}}
            assert (await client.post("/mcp", json=no_tool)).json()["error"]["code"] == -32602
        assert (await client.get("/mcp")).status_code == 405
        notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await client.post("/mcp", json=notice, headers=session)).status_code == 202
        future = await client.post("/mcp", json=notice, headers={"MCP-Protocol-Version": "1999-01-01"})
        assert future.status_code == 400
        assert (await client.delete("/mcp", headers=session)).status_code == 204
        assert (await client.delete("/mcp", headers=session)).status_code == 404
