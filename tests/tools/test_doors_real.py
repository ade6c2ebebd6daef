"""The real tools at the doors, offline: headless Claude Code asks through MCP, Gemini CLI through ACP.

A permission that is refused, expires, or loses its hub leaves no trace on the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.doors.conftest import Desk
from tests.support.hubs import hub_process, wait_until
from tests.support.person import Person

from atlasbridge.lab.mockmodel import MockModel
from atlasbridge.lab.realtool import find_tool, prepare_launch

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]
ALL = os.environ.get("ATLASBRIDGE_LAB_REAL") == "1"
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"


@pytest.fixture(autouse=True, scope="module")
def installed_tools() -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))


@pytest.fixture
def desk() -> Iterator[Desk]:
    person = Person()
    with hub_process() as hub:
        yield Desk(hub, person)
    person.close()


class Headless:
    """`claude -p` whose permissions are asked through our MCP server."""

    def __init__(self, desk: Desk, root: Path, model: MockModel, ttl_s: float | None = None) -> None:
        binary = find_tool("claude")
        assert binary is not None, "claude is missing: run tools/install-extras"
        self.launch = prepare_launch("claude", binary, root, model.address)
        server = {"command": sys.executable, "args": ["-m", "atlasbridge", "mcp"], "env": dict(desk.hub.environ)}
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
        out, _ = self.process.communicate(timeout=120)
        return out


@pytest.fixture
def model(tmp_path: Path) -> Iterator[MockModel]:
    (tmp_path / "work").mkdir()
    with MockModel(str(tmp_path / "work")).serving() as server:
        yield server


def test_headless_claude_runs_what_a_person_allowed(desk: Desk, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(desk, tmp_path, model)
    prompt = desk.answer("y")
    claude.end()
    assert prompt["subject"] == prompt["subject"] | {"kind": "command", "text": "touch made-by-bash.txt"}
    assert claude.made.exists()


def test_headless_claude_does_not_run_what_a_person_refused(desk: Desk, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(desk, tmp_path, model)
    desk.answer("not today", as_text=True)
    claude.end()
    assert not claude.made.exists()


def test_a_hub_that_is_killed_meanwhile_allows_nothing(desk: Desk, model: MockModel, tmp_path: Path) -> None:
    claude = Headless(desk, tmp_path, model)
    desk.next()
    desk.hub.kill_9()
    assert not claude.made.exists()
    desk.hub.start()
    desk.answer("n")
    claude.end()
    assert not claude.made.exists()


class AcpClient:
    """The editor's side of the protocol, as much of it as one turn needs; it leaves permissions to the desk."""

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
        wait_until(lambda: self._found(number) is not None, 90)
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


@pytest.mark.skipif(not ALL, reason="Gemini CLI belongs to make lab-real")
@pytest.mark.parametrize(("value", "made"), [("y", True), ("n", False)])
def test_geminis_permission_in_an_editor_is_answered_at_the_desk(
    desk: Desk, model: MockModel, tmp_path: Path, value: str, made: bool
) -> None:
    binary = find_tool("gemini")
    assert binary is not None, "gemini is missing: run tools/install-extras tools-all"
    launch = prepare_launch("gemini", binary, tmp_path, model.address)
    command = [*desk.hub.command("acp", "--"), *launch.argv, "--acp"]
    editor = AcpClient(command, {**launch.env, **desk.hub.environ, **launch.env}, launch.folder)
    try:
        editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities={}))
        opened = editor.result(editor.send("session/new", cwd=str(launch.folder), mcpServers=[]))
        asked = [{"type": "text", "text": "please lab:bash now"}]
        turn = editor.send("session/prompt", sessionId=opened["sessionId"], prompt=asked)
        desk.answer(value)
        editor.result(turn)
    finally:
        editor.end()
    assert (launch.folder / "made-by-bash.txt").exists() is made
