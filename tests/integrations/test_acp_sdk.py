"""The proxy between an editor and an agent that both use the protocol's own package for Python or npm."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse
from tests.integrations.conftest import HubApi

pytestmark = pytest.mark.landing  # the same lines as test_acp.py has; the package alone takes a second to import

AGENT = """
import asyncio, acp
from acp.schema import AllowedOutcome, InitializeResponse, NewSessionResponse
from acp.schema import PermissionOption, PromptResponse, ToolCallUpdate

class Agent(acp.Agent):
    def on_connect(self, conn):
        self.conn = conn
    async def initialize(self, protocol_version, **kwargs):
        return InitializeResponse(protocol_version=protocol_version)
    async def new_session(self, cwd, mcp_servers=None, **kwargs):
        return NewSessionResponse(session_id="s1")
    async def prompt(self, prompt, session_id, **kwargs):
        options = [PermissionOption(kind="allow_once", name="Allow", option_id="go"),
                   PermissionOption(kind="reject_once", name="Deny", option_id="stop")]
        call = ToolCallUpdate(tool_call_id="c1", title="Run", kind="execute", raw_input={"command": "make deploy"})
        told = await self.conn.request_permission(session_id=session_id, tool_call=call, options=options)
        chosen = told.outcome.option_id if isinstance(told.outcome, AllowedOutcome) else "cancelled"
        return PromptResponse(stop_reason="end_turn" if chosen == "go" else "refusal")

asyncio.run(acp.run_agent(Agent()))
"""


class Editor:
    """Answers a permission after so long; `None`: never."""

    def __init__(self, answer: str | None) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        pass

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call.title)
        if self._answer is None:
            await asyncio.Event().wait()
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=str(self._answer), outcome="selected"))


async def run_turn(hub_api: HubApi, editor: Editor, meanwhile: Any) -> str:
    words = hub_api.hub.command("acp", "--", sys.executable, "-c", AGENT)
    client: Any = editor  # it has no files and no terminals to offer
    async with acp.spawn_agent_process(client, words[0], *words[1:], env=dict(hub_api.hub.environ)) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd="/tmp", mcp_servers=[])
        turn = asyncio.create_task(agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go on")]))
        await asyncio.to_thread(meanwhile)
        return str((await turn).stop_reason)


async def test_a_person_elsewhere_answers_while_the_editor_still_asks(hub_api: HubApi) -> None:
    editor = Editor(None)
    assert await run_turn(hub_api, editor, lambda: hub_api.answer("y")) == "end_turn"
    assert editor.asked == ["Run"]


async def test_the_editor_answers_and_the_question_goes_everywhere_else(hub_api: HubApi) -> None:
    assert await run_turn(hub_api, Editor("stop"), lambda: None) == "refusal"
    await asyncio.to_thread(hub_api.wait_quiet)


NPM = Path("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")


async def run_npm_turn(hub_api: HubApi, answer: str, meanwhile: Any) -> list[str]:
    """Editor and agent of the official npm package, with the proxy between them; what the editor printed."""
    tools = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
    sdk, node, scripts = tools / "acp-sdk" / NPM, shutil.which("node"), Path(__file__).parents[1] / "support"
    assert node and sdk.is_file(), "run tools/install-extras first"
    command = hub_api.hub.command("acp", "--", node, str(scripts / "acp_agent.mjs"), str(sdk))
    editor = await asyncio.create_subprocess_exec(
        node,
        str(scripts / "acp_editor.mjs"),
        str(sdk),
        answer,
        *command,
        stdout=asyncio.subprocess.PIPE,
        env=dict(hub_api.hub.environ),
    )
    await asyncio.to_thread(meanwhile)
    printed, _ = await editor.communicate()
    return printed.decode().split()


@pytest.mark.heavy
async def test_the_npm_package_as_editor_and_agent(hub_api: HubApi) -> None:
    """A person elsewhere agrees and refuses while the editor still asks; then the editor decides."""
    assert await run_npm_turn(hub_api, "never", lambda: hub_api.answer("y")) == ["asked", "end_turn"]
    assert await run_npm_turn(hub_api, "never", lambda: hub_api.answer("n")) == ["asked", "refusal"]
    assert await run_npm_turn(hub_api, "stop", lambda: None) == ["asked", "refusal"]
    await asyncio.to_thread(hub_api.wait_quiet)
