"""MCP over HTTP at the fleet server, by the official client library: people of the fleet answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from tests.support.fleet import HubApi, until

from atlasbridge.fleet.server import people

BASH = {"tool_name": "Bash", "input": {"command": "make deploy"}}


@asynccontextmanager
async def session_of(server: HubApi, person: str, scope: str = "ask") -> AsyncIterator[ClientSession]:
    token, _ = await people.add_token(server.database, person, "agent", scope, "test")
    client = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    async with (
        client,
        streamable_http_client(f"{server.url}/mcp", http_client=client) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def call(session: ClientSession, tool: str, given: dict[str, Any]) -> str:
    found = await session.call_tool(tool, given)
    return str(found.content[0].text)  # type: ignore[union-attr]


async def test_the_official_client_asks_the_people_of_a_fleet(fleet_server: HubApi) -> None:
    alice = await fleet_server.person("alice", "admin")
    await fleet_server.person("carl")
    async with session_of(fleet_server, "carl") as session:
        asked = asyncio.create_task(call(session, "ask_human", {"question": "Which?", "choices": ["red", "blue"]}))
        (shown,) = await alice.sees(1)
        assert shown["machine"].startswith("questions-") and shown["question"] == "Which?"
        bad = await alice.decide(shown, "green")
        assert not bad["accepted"] and not asked.done()
        assert (await alice.decide(shown, "2"))["accepted"]
        assert await asked == "blue"
        asking = asyncio.create_task(call(session, "approve", BASH))
        (shown,) = await alice.sees(1)
        assert shown["subject"]["text"] == "make deploy"
        assert (await alice.decide(shown, "y"))["accepted"]
        assert json.loads(await asking) == {"behavior": "allow", "updatedInput": BASH["input"]}
        denied = asyncio.create_task(call(session, "approve", BASH))
        (shown,) = await alice.sees(1)
        assert (await alice.decide(shown, "n"))["accepted"]
        assert json.loads(await denied)["behavior"] == "deny"
        await call(session, "notify_human", {"message": "half way"})
        (told,) = (await alice.get("/api/v1/notices"))["notices"]
        assert told["message"].endswith("half way")
        expired = asyncio.create_task(call(session, "approve", {**BASH, "ttl_s": 1}))
        assert json.loads(await expired)["behavior"] == "deny"
        await alice.sees(0)


async def test_a_program_that_hangs_up_withdraws_its_question(fleet_server: HubApi) -> None:
    alice = await fleet_server.person("alice", "admin")
    async with session_of(fleet_server, "alice") as session:
        asking = asyncio.create_task(call(session, "ask_human", {"question": "Deploy?"}))
        await alice.sees(1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    async def withdrawn() -> bool:
        rows = await fleet_server.database.rows("SELECT state FROM prompts")
        return [one["state"] for one in rows] == ["withdrawn"]

    await until(withdrawn)


async def test_a_token_does_not_answer_what_it_asked(fleet_server: HubApi) -> None:
    """Its person does, on the page."""
    alice = await fleet_server.person("alice", "admin")
    token, _ = await people.add_token(fleet_server.database, "alice", "agent", "answer", "test")
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=fleet_server.url, headers=headers, timeout=60) as program:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body |= {"params": {"name": "approve", "arguments": BASH}}
        asking = asyncio.create_task(program.post("/mcp", json=body))
        (shown,) = await alice.sees(1)
        own = await program.post(
            f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/reply", json={"value": "y"}
        )
        assert own.status_code == 409 and own.json()["error"] == "self"
        assert (await alice.decide(shown, "y"))["accepted"]
        assert "allow" in (await asking).text
    async with httpx.AsyncClient(base_url=fleet_server.url) as stranger:
        assert (await stranger.post("/mcp", json=body)).status_code == 401
