"""How each real AI CLI is started offline against the mock model: its binary, its seeded home, its environment.

Nothing here touches the user's own settings: every launch has a home folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY = "sk-ant-lab-0000000000000000000000"
BINARIES = {
    "claude": "node_modules/.bin/claude",
    "claude-2.1.197": "node_modules/.bin/claude",
    "codex": "node_modules/.bin/codex",
    "gemini": "node_modules/.bin/gemini",
    "opencode": "node_modules/.bin/opencode",
    "aider": "bin/aider",
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
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    arguments, more = SEEDS[tool](home, folder, address, first_run)
    return Launch((str(binary), *arguments), env | more, folder)


Seeded = tuple[tuple[str, ...], dict[str, str]]


def _claude(home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    settings: dict[str, Any] = {"hasCompletedOnboarding": True}
    if not first_run:
        settings["customApiKeyResponses"] = {"approved": [KEY[-20:]], "rejected": []}
        settings["projects"] = {str(folder): {"hasTrustDialogAccepted": True}}
    (home / ".claude.json").write_text(json.dumps(settings))
    quiet = (
        "DISABLE_AUTOUPDATER",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    )
    env = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": KEY, **dict.fromkeys(quiet, "1")}
    return ("--permission-mode", "default"), env


def _codex(home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return ("--no-daemon",), {}
    trust = "" if first_run else f'[projects."{folder}"]\ntrust_level = "trusted"\n'
    (home / ".codex").mkdir(exist_ok=True)
    approval = () if first_run else ("-a", "on-request")  # whoever names a policy is not asked for trust
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-5"\nmodel_provider = "lab"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.lab]\nname = "lab"\nbase_url = "{address}/v1"\nwire_api = "responses"\nenv_key = "LAB_KEY"\n'
        f"[analytics]\nenabled = false\n{trust}"
    )
    return (*approval, "--no-daemon"), {"LAB_KEY": "none"}


def _gemini(home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    settings: dict[str, Any] = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    if not first_run:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    if first_run == "virgin":
        return (), {"GOOGLE_GEMINI_BASE_URL": address}
    return ("-m", "gemini-2.5-pro"), {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "none"}


def _opencode(home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lab",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {"lab-model": {"name": "Lab model", "tool_call": True}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "lab/lab-model",
        "provider": {"lab": provider},
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
    }
    (home / ".config" / "opencode").mkdir(parents=True, exist_ok=True)
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(settings))
    off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return (), dict.fromkeys((*off, "OPENCODE_DISABLE_SHARE"), "1")


def _aider(home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    env = {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "none"}
    quiet = ("--no-check-update", "--analytics-disable", "--no-show-release-notes", "--no-show-model-warnings")
    git = () if first_run else ("--no-git",)
    arguments = ("--model", "openai/gpt-4o", "--edit-format", "diff", "--map-tokens", "0", *quiet, *git)
    return arguments, {**env, "AIDER_ANALYTICS": "false", "AIDER_CHECK_UPDATE": "false"}


SEEDS: dict[str, Callable[[Path, Path, str, str], Seeded]] = {
    "claude": _claude,
    "claude-2.1.197": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "aider": _aider,
}
