"""How each real AI CLI is told of our MCP server, and run once without a terminal: as the how-to page says it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real_tools.realtool import Launch

Server = dict[str, Any]  # command, args, env
Told = Callable[[Path, Launch, Server, str], list[str]]


def _claude(home: Path, launch: Launch, server: Server, words: str) -> list[str]:
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"atlasbridge": server}}))
    allowed = ("--allowedTools", "mcp__atlasbridge__ask_human")
    return [launch.argv[0], "-p", words, "--mcp-config", str(config), *allowed]


def _codex(home: Path, launch: Launch, server: Server, words: str) -> list[str]:
    config = home / ".codex" / "config.toml"
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in server["env"].items())
    config.write_text(
        f"{config.read_text()}\n[mcp_servers.atlasbridge]\ncommand = {json.dumps(server['command'])}\n"
        f"args = {json.dumps(server['args'])}\nenv = {{{env}}}\n"
        "required = true\nstartup_timeout_sec = 60\ntool_timeout_sec = 86400\n"
    )
    return [launch.argv[0], "exec", "--skip-git-repo-check", words]


def _gemini(home: Path, launch: Launch, server: Server, words: str) -> list[str]:
    _add(home / ".gemini" / "settings.json", "mcpServers", {**server, "timeout": 86_400_000, "trust": True})
    return [*launch.argv, "-p", words]


def _opencode(home: Path, launch: Launch, server: Server, words: str) -> list[str]:
    entry = {"type": "local", "command": [server["command"], *server["args"]], "environment": server["env"]}
    _add(home / ".config" / "opencode" / "opencode.json", "mcp", {**entry, "timeout": 60_000})
    return [launch.argv[0], "run", words]


def _copilot(home: Path, launch: Launch, server: Server, words: str) -> list[str]:
    _add(home / ".copilot" / "mcp-config.json", "mcpServers", {"type": "local", **server, "tools": ["*"]})
    return [*launch.argv, "-p", words, "--allow-tool", "atlasbridge"]


def _add(path: Path, name: str, entry: dict[str, Any]) -> None:
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**settings, name: {"atlasbridge": entry}}))


TOLD: dict[str, Told] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
}
