"""The real tools with the integrations, offline: headless runs ask through MCP, agents of editors through ACP.

A permission that is refused, expires, or loses its hub leaves no trace on the disk.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.conftest import HubApi
from tests.real_tools.mockmodel import MockModel
from tests.real_tools.realtool import Launch, find_tool, prepare_launch
from tests.support.hubs import NO_WEB, hub_process
from tests.support.mcp_settings import TOLD
from tests.support.person import Person
from tests.support.waiting import wait_for

from atlasbridge.adapters.codex.prepare import trusted_hash

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]
ALL = os.environ.get("ATLASBRIDGE_LAB_REAL") == "1"
HOOK_S = 86_400  # a person may take a day
PROGRAMS_OF_A_MACHINE = ("goose", "kilo", "vibe")
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"


@pytest.fixture(autouse=True, scope="module")
def installed_tools() -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))


@pytest.fixture
def hub_api() -> Iterator[HubApi]:
    person = Person()
    with hub_process() as hub:
        yield HubApi(hub, person)
    person.close()


class Headless:
    """`claude -p` whose permissions are asked through our MCP server."""

    def __init__(self, hub_api: HubApi, root: Path, model: MockModel, ttl_s: float | None = None) -> None:
        binary = find_tool("claude")
        assert binary is not None, "claude is missing: run tools/install-extras"
        self.launch = prepare_launch("claude", binary, root, model.address)
        server = {"command": sys.executable, "args": ["-m", "atlasbridge", "mcp"], "env": dict(hub_api.hub.environ)}
        config = root / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"atlasbridge": server}}))
        self.made = self.launch.folder / "made-by-bash.txt"
        self.process = subprocess.Popen(
            [
                *(self.launch.argv[0], "-p", "please lab:bash now", "--mcp-config", str(config)),
                *("--permission-prompt-tool", "mcp__atlasbridge__approve"),
            ],
            env=self.launch.env,
            cwd=self.launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> str:
        out, _ = self.process.communicate()
        return out


@pytest.fixture
def model(tmp_path: Path) -> Iterator[MockModel]:
    (tmp_path / "work").mkdir()
    with MockModel(str(tmp_path / "work")).serving() as server:
        yield server


def test_headless_claude_runs_what_a_person_allowed(hub_api: HubApi, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(hub_api, tmp_path, model)
    prompt = hub_api.answer("y")
    claude.end()
    assert prompt["subject"] == prompt["subject"] | {"kind": "command", "text": "touch made-by-bash.txt"}
    assert claude.made.exists()


def test_headless_claude_does_not_run_what_a_person_refused(hub_api: HubApi, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(hub_api, tmp_path, model)
    hub_api.answer("not today", as_text=True)
    claude.end()
    assert not claude.made.exists()


def test_headless_claude_tells_the_model_what_the_person_said(
    hub_api: HubApi, model: MockModel, tmp_path: Path
) -> None:
    claude = Headless(hub_api, tmp_path, model)
    hub_api.answer("not today, use make", as_text=True)
    claude.end()
    assert any("not today, use make" in heard for heard in model.heard)


def test_nobody_in_time_is_a_denial(model: MockModel, tmp_path: Path) -> None:
    person = Person()
    with hub_process(f"{NO_WEB}[prompts]\ntimeout_seconds = 2\n") as hub:
        claude = Headless(HubApi(hub, person), tmp_path, model)
        claude.end()
        assert not claude.made.exists()
        assert any(entry["event"] == "PROMPT_EXPIRED" for entry in hub.ask("audit")["entries"])
    assert any("in time" in heard or "said no" in heard for heard in model.heard)
    person.close()


def test_a_hub_that_was_killed_meanwhile_still_brings_a_persons_yes(
    hub_api: HubApi, model: MockModel, tmp_path: Path
) -> None:
    claude = Headless(hub_api, tmp_path, model)
    hub_api.next()
    hub_api.hub.kill_9()
    hub_api.hub.start()
    hub_api.answer("y")
    claude.end()
    assert claude.made.exists()


def test_a_hub_that_is_killed_meanwhile_allows_nothing(hub_api: HubApi, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(hub_api, tmp_path, model)
    hub_api.next()
    hub_api.hub.kill_9()
    assert not claude.made.exists()
    hub_api.hub.start()
    hub_api.answer("n")
    claude.end()
    assert not claude.made.exists()


class AcpClient:
    """The editor's side of the protocol, as much of it as one turn needs; it leaves permissions to the hub."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.messages: list[dict[str, Any]] = []
        self._count = 0
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.messages.append(json.loads(line))

    def send(self, method: str, **params: Any) -> int:
        assert self.process.stdin is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._count

    def result(self, number: int) -> dict[str, Any]:
        wait_for(lambda: self._found(number) is not None, deadline_s=90)
        found = self._found(number)
        assert found is not None and "result" in found, found
        result: dict[str, Any] = found["result"]
        return result

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _found(self, number: int) -> dict[str, Any] | None:
        answers = [item for item in list(self.messages) if item.get("id") == number and "method" not in item]
        return answers[0] if answers else None


MCP_TOOLS = ("claude", "codex", "gemini", "opencode", "copilot") if ALL else ("claude", "codex")
ACP_AGENTS = (
    *("gemini", "qwen", "copilot", "opencode", "kilo", "kimi", "hermes", "goose", "vibe"),
    *("claude-agent-acp", "codex-acp"),  # what editors start Claude Code and Codex with
)


def acp_command(agent: str, launch: Launch) -> list[str]:
    """The words that an editor's settings have for this agent."""
    binary, *own = launch.argv
    match agent:
        case "gemini" | "qwen" | "copilot":
            return [binary, *own, "--acp"]
        case "goose":
            return [binary, "acp", "--with-builtin", "developer"]
        case "vibe":
            return [f"{binary}-acp"]
        case "claude-agent-acp" | "codex-acp":
            return [str(find_tool(agent))]
    return [binary, "acp"]


@pytest.mark.parametrize("tool", MCP_TOOLS)
def test_a_tool_asks_a_person_through_mcp_and_hears_the_answer(
    hub_api: HubApi, model: MockModel, tmp_path: Path, tool: str
) -> None:
    binary = find_tool(tool)
    assert binary is not None, f"{tool} is missing: run tools/install-extras tools-all"
    launch = prepare_launch(tool, binary, tmp_path, model.address)
    here = {"ATLASBRIDGE_HOME": str(hub_api.hub.home.root)}
    server = {"command": sys.executable, "args": ["-m", "atlasbridge", "mcp"], "env": here}
    command = TOLD[tool](tmp_path / "home", launch, server, "please lab:human now")
    with subprocess.Popen(
        command,
        env=launch.env,
        cwd=launch.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            wait_for(lambda: bool(hub_api.prompts()) or running.poll() is not None, deadline_s=120)
            prompt = hub_api.answer("Blue")
            running.wait(120)
        finally:
            running.kill()
    assert prompt["tool"] == "mcp" and tool in prompt["label"].lower()
    assert any("Blue" in heard for heard in model.heard)


@pytest.mark.skipif(not ALL, reason="agents of editors belong to make lab-real")
@pytest.mark.parametrize(("value", "made"), [("y", True), ("n", False)])
@pytest.mark.parametrize("agent", ACP_AGENTS)
def test_an_agents_permission_in_an_editor_is_answered_at_the_hub_api(
    hub_api: HubApi, model: MockModel, tmp_path: Path, agent: str, value: str, made: bool
) -> None:
    if find_tool(agent) is None and agent in PROGRAMS_OF_A_MACHINE:
        pytest.skip(f"{agent} has no program for this machine, or needs another Python")
    tool = agent.removesuffix("-acp").removesuffix("-agent")
    binary = find_tool(tool)
    assert binary is not None and find_tool(agent), f"{agent} is missing: run tools/install-extras tools-all"
    launch = prepare_launch(tool, binary, tmp_path, model.address)
    command = [*hub_api.hub.command("acp", "--"), *acp_command(agent, launch)]
    as_root = {"IS_SANDBOX": "1"}  # else Claude Code refuses to have a mode that asks nothing, which its editors offer
    editor = AcpClient(command, {**hub_api.hub.environ, **launch.env, **as_root}, launch.folder)
    try:
        editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities={}))
        opened = editor.result(editor.send("session/new", cwd=str(launch.folder), mcpServers=[]))
        if agent == "codex-acp":  # its own choice asks only for what its sandbox refuses
            editor.result(editor.send("session/set_mode", sessionId=opened["sessionId"], modeId="read-only"))
        asked = [{"type": "text", "text": "please lab:bash now"}]
        turn = editor.send("session/prompt", sessionId=opened["sessionId"], prompt=asked)
        prompt = hub_api.answer(value)
        editor.result(turn)
    finally:
        editor.end()
    assert prompt["tool"] == "acp" and agent in prompt["label"]
    assert "touch made-by-bash.txt" in prompt["subject"]["text"]
    assert (launch.folder / "made-by-bash.txt").exists() is made


HOOK_KEY = "/<session-flags>/config.toml:permission_request:0:0"


class CodexWithHook:
    """Codex without a terminal (`codex app-server`), whose permissions `atlasbridge ask --hook` decides."""

    def __init__(self, hub_api: HubApi, root: Path, model: MockModel) -> None:
        binary = find_tool("codex")
        assert binary is not None, "codex is missing: run tools/install-extras"
        launch = prepare_launch("codex", binary, root, model.address)
        self.made = launch.folder / "made-by-bash.txt"
        words = shlex.join(hub_api.hub.command("ask", "--hook"))
        hook = f'[{{hooks=[{{type="command",command={json.dumps(words)},timeout={HOOK_S}}}]}}]'
        trust = f"{{{json.dumps(HOOK_KEY)}={{trusted_hash={json.dumps(trusted_hash(words, HOOK_S))}}}}}"
        set_up = ("-c", f"hooks.PermissionRequest={hook}", "-c", f"hooks.state={trust}")
        env = {**launch.env, "ATLASBRIDGE_HOME": str(hub_api.hub.home.root)}
        self.client = AcpClient([launch.argv[0], *set_up, "app-server"], env, launch.folder)
        self.client.result(self.client.send("initialize", clientInfo={"name": "test", "version": "1"}))
        asks = {"approvalPolicy": "on-request", "sandbox": "workspace-write"}
        started = self.client.result(self.client.send("thread/start", cwd=str(launch.folder), **asks))
        turn = [{"type": "text", "text": "please lab:bash now"}]
        self.client.result(self.client.send("turn/start", threadId=started["thread"]["id"], input=turn))

    def wait_end(self) -> None:
        wait_for(lambda: any(one.get("method") == "turn/completed" for one in self.client.messages), deadline_s=90)

    def end(self) -> None:
        assert self.client.process.stdin is not None
        self.client.process.stdin.close()  # then the server ends, and its wrapper with it
        self.client.process.wait(30)
        self.client.end()


@pytest.mark.parametrize(("value", "made"), [("y", True), ("n", False)])
def test_codex_does_what_a_person_decided_through_its_hook(
    hub_api: HubApi, model: MockModel, tmp_path: Path, value: str, made: bool
) -> None:
    codex = CodexWithHook(hub_api, tmp_path, model)
    try:
        prompt = hub_api.answer(value)
        codex.wait_end()
        assert prompt["subject"]["text"] == "touch made-by-bash.txt" and codex.made.exists() is made
    finally:
        codex.end()


def test_codex_does_nothing_when_the_hub_dies_before_an_answer(
    hub_api: HubApi, model: MockModel, tmp_path: Path
) -> None:
    codex = CodexWithHook(hub_api, tmp_path, model)
    try:
        hub_api.next()
        hub_api.hub.kill_9()
        hub_api.hub.start()
        assert not codex.made.exists()
        hub_api.answer("n")
        codex.wait_end()
        assert not codex.made.exists()
    finally:
        codex.end()


@pytest.mark.skipif(not ALL, reason="agents of editors belong to make lab-real")
def test_an_agent_in_an_editor_does_nothing_when_the_hub_dies_before_an_answer(
    hub_api: HubApi, model: MockModel, tmp_path: Path
) -> None:
    binary = find_tool("opencode")
    assert binary is not None, "opencode is missing: run tools/install-extras tools-all"
    launch = prepare_launch("opencode", binary, tmp_path, model.address)
    command = [*hub_api.hub.command("acp", "--"), *launch.argv, "acp"]
    editor = AcpClient(command, {**hub_api.hub.environ, **launch.env}, launch.folder)
    try:
        editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities={}))
        opened = editor.result(editor.send("session/new", cwd=str(launch.folder), mcpServers=[]))
        asked = [{"type": "text", "text": "please lab:bash now"}]
        turn = editor.send("session/prompt", sessionId=opened["sessionId"], prompt=asked)
        hub_api.next()
        hub_api.hub.kill_9()
        hub_api.hub.start()
        hub_api.answer("n")
        editor.result(turn)
    finally:
        editor.end()
    assert not (launch.folder / "made-by-bash.txt").exists()
