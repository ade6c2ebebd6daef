"""`atlasbridge mcp`: an MCP server through which agents ask people.  stdio only; each question is a door of its own.

`approve` answers in the form that Claude Code's --permission-prompt-tool wants.  Whatever goes wrong is a denial.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from atlasbridge import __version__
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.daemon.starter import ensure_hub
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.question import Handed, Question, prompt_of, words_of
from atlasbridge.core.system import own_parent
from atlasbridge.doors.door import Door
from atlasbridge.doors.origin import Origin
from atlasbridge.doors.tool_use import question_of
from atlasbridge.doors.waiting import ask_async

PROGRESS_S = 5.0  # clients give up on a call that says nothing for a minute or less
MAX_TTL_S = 86_400.0
INSTRUCTIONS = (
    "Ask the person who runs this agent. Use ask_human when you need a decision or information that only a person has, "
    "and notify_human to tell them something without waiting."
)

# asking changes nothing: clients that ask before each tool that might change something need not ask before asking
HARMLESS = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

Ttl = Annotated[float | None, Field(gt=0, le=MAX_TTL_S, description="How many seconds to wait")]


def make_server(home: Home, label: str = "") -> MCPServer:
    server = MCPServer("atlasbridge", instructions=INSTRUCTIONS, version=__version__)

    @server.tool(structured_output=False, annotations=HARMLESS)
    async def ask_human(
        question: Annotated[str, Field(description="The question, with all that is needed to answer it")],
        ctx: Context[Any, Any],
        choices: Annotated[list[str] | None, Field(description="Two or more answers to choose from")] = None,
        free_text: Annotated[bool, Field(description="Whether own words are an answer")] = False,
        ttl_s: Ttl = None,
    ) -> str:
        """Ask a person and wait for the answer.  Without choices and free_text it is a yes-or-no question."""
        asked = Question(question, tuple(choices or ()), free_text, folder=os.getcwd())
        handed, words = await _ask(home, _origin(label, ctx), asked, ttl_s, ctx)
        match handed.outcome:
            case "answered":
                return words
            case "expired":
                return "Nobody answered in time. Do not take this for a yes."
        return "The question was withdrawn. Do not take this for a yes."

    @server.tool(structured_output=False, annotations=HARMLESS)
    async def notify_human(message: str, ctx: Context[Any, Any]) -> str:
        """Tell the person something without waiting for an answer."""
        origin = _origin(label, ctx)
        await asyncio.to_thread(_notify, home, message, origin.label)
        return "Told."

    @server.tool(structured_output=False, annotations=HARMLESS)
    async def approve(
        tool_name: str, input: dict[str, Any], ctx: Context[Any, Any], tool_use_id: str = "", ttl_s: Ttl = None
    ) -> str:
        """Whether the agent may use a tool: for --permission-prompt-tool mcp__atlasbridge__approve."""
        try:
            asked = question_of(tool_name, input, os.getcwd())
            handed, words = await _ask(home, _origin(label, ctx), asked, ttl_s, ctx)
        except AtlasBridgeError as error:
            return _deny(f"Nobody could be asked: {error}.")
        return _verdict(handed, words, asked, input)

    return server


def _verdict(handed: Handed, words: str, asked: Question, arguments: dict[str, Any]) -> str:
    """Only the choice that allows allows; own words deny and say why."""
    if handed.outcome == "expired":
        return _deny("Nobody answered in time.")
    if handed.answer is None:
        return _deny("The question was withdrawn.")
    if words == asked.choices[0]:
        return json.dumps({"behavior": "allow", "updatedInput": arguments})
    return _deny("The person said no." if words in asked.choices else words)


def _deny(message: str) -> str:
    return json.dumps({"behavior": "deny", "message": message})


async def _ask(
    home: Home, origin: Origin, question: Question, ttl_s: float | None, ctx: Context[Any, Any]
) -> tuple[Handed, str]:
    """With a sign of life now and then; a cancelled call withdraws its question."""
    prompt = prompt_of(question)
    asking = asyncio.create_task(ask_async(Door(home, origin), prompt, ttl_s))
    waited_s = 0.0
    try:
        while not (await asyncio.wait({asking}, timeout=PROGRESS_S))[0]:
            waited_s += PROGRESS_S
            await ctx.report_progress(waited_s, ttl_s, "waiting for a person")
    finally:
        asking.cancel()  # nothing to do where it is answered; where the call was cancelled, the question goes with it
    handed = asking.result()
    return handed, words_of(prompt, handed.answer) if handed.answer is not None else ""


def _notify(home: Home, message: str, label: str) -> None:
    ensure_hub(home)
    with HubClient(home) as hub:
        hub.ask("notify", message=message, label=label)


def _origin(label: str, ctx: Context[Any, Any]) -> Origin:
    """The client's own name for itself; it is shown, never believed."""
    client = getattr(ctx.request_context.session.client_params, "client_info", None)
    name = label or (f"{client.name} {client.version}".strip() if client is not None else "an MCP client")
    return Origin("mcp", name, ("atlasbridge", "mcp"), os.getcwd(), asker=own_parent())
