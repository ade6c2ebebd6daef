"""How each real AI CLI is started offline against the mock model: its binary, its seeded home, its environment.

Nothing here touches the user's own settings: every launch has a home folder of its own.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from atlasbridge.lab.seeds import SEEDS, tool_path

__all__ = ["BINARIES", "Launch", "find_tool", "prepare_launch", "tool_path"]
BINARIES = {
    "claude": "node_modules/.bin/claude",
    "claude-2.1.197": "node_modules/.bin/claude",
    "codex": "node_modules/.bin/codex",
    "gemini": "node_modules/.bin/gemini",
    "opencode": "node_modules/.bin/opencode",
    "aider": "bin/aider",
    "qwen": "node_modules/.bin/qwen",
    "cn": "node_modules/.bin/cn",
    "kimi": "node_modules/.bin/kimi",
    "copilot": "node_modules/.bin/copilot",
    "vibe": "bin/vibe",
    "grok": "node_modules/.bin/grok",
    "cline": "node_modules/.bin/cline",
    "goose": "bin/goose",
    "gptme": "bin/gptme",
    "hermes": "bin/hermes",
    "kilo": "bin/kilo",
    "openhands": "bin/openhands",
}


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    env: dict[str, str]
    folder: Path


def find_tool(tool: str) -> Path | None:
    """In $ATLASBRIDGE_TOOLS/<tool> (where `make test-all` installs), else on the PATH."""
    base = os.environ.get("ATLASBRIDGE_TOOLS")
    if base and (found := Path(base) / tool / BINARIES[tool]).exists():
        return found
    on_path = shutil.which(tool)
    return Path(on_path) if on_path else None


def prepare_launch(tool: str, binary: Path, root: Path, address: str, first_run: str = "") -> Launch:
    """A fresh work folder and home under `root`.

    `first_run` is "" (the tool starts at its input box), "folder" (it does not know the folder yet) or "virgin" (it
    was never started before).
    """
    folder, home = root / "work", root / "home"
    folder.mkdir(parents=True, exist_ok=True)
    home.mkdir(exist_ok=True)
    (folder / "seed.txt").write_text("colour = red\n")
    env = {"PATH": tool_path(binary), "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    arguments, more = SEEDS[tool](binary, home, folder, address, first_run)
    return Launch((str(binary), *arguments), env | more, folder)
