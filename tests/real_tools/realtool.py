"""How each real AI CLI is started offline against the mock model: its binary, its seeded home, its environment.

Nothing here touches the user's own settings: every launch has a home folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# What each real AI CLI needs to start offline against the mock model: a seeded home, arguments, environment.
#
# Where its program is, and the folder it works in, is left to `realtool`.

KEY = "sk-ant-lab-0000000000000000000000"
Seeded = tuple[tuple[str, ...], dict[str, str]]


def tool_path(binary: Path) -> str:
    """A tool that needs another Node than the system's has one beside itself."""
    return f"{binary.parent}{os.pathsep}{os.environ['PATH']}"


def _claude(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
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


@lru_cache(maxsize=4)
def _knows(binary: Path, option: str) -> bool:
    """Whether this version has the option: older ones end at one that they do not know."""
    environ = {**os.environ, "PATH": tool_path(binary)}
    done = subprocess.run((str(binary), "--help"), capture_output=True, text=True, check=False, env=environ)
    return option in done.stdout


def _codex(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    alone = ("--no-daemon",) if _knows(binary, "--no-daemon") else ()
    if first_run == "virgin":
        return alone, {}
    trust = "" if first_run else f'[projects."{folder}"]\ntrust_level = "trusted"\n'
    (home / ".codex").mkdir(exist_ok=True)
    approval = () if first_run else ("-a", "on-request")  # anyone who names a policy is not asked for trust
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-5"\nmodel_provider = "lab"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.lab]\nname = "lab"\nbase_url = "{address}/v1"\nwire_api = "responses"\nenv_key = "LAB_KEY"\n'
        f"[analytics]\nenabled = false\n{trust}"
    )
    return (*approval, *alone), {"LAB_KEY": "none"}


def _gemini(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
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


def _open_code_settings(address: str) -> dict[str, Any]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lab",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {"lab-model": {"name": "Lab model", "tool_call": True}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "lab/lab-model",
        "provider": {"lab": provider},
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
    }


def _open_code_home(place: Path, name: str, plugin: str, address: str) -> None:
    """Its settings, and a folder that looks as if what plugins are typed with were installed: else it asks the registry
    for that first, and starts no plugin (ours is one) until the registry has answered or was given up."""
    (place / "node_modules").mkdir(parents=True, exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(_open_code_settings(address)))
    needs = {"dependencies": {plugin: "*"}}
    (place / "package.json").write_text(json.dumps(needs))
    (place / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {"": needs}}))


def _opencode(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    _open_code_home(home / ".config" / "opencode", "opencode", "@opencode-ai/plugin", address)
    off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return (), dict.fromkeys((*off, "OPENCODE_DISABLE_SHARE"), "1")


def _kilo(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    _open_code_home(home / ".config" / "kilo", "kilo", "@kilocode/plugin", address)
    off = ("KILO_DISABLE_AUTOUPDATE", "KILO_DISABLE_MODELS_FETCH", "KILO_DISABLE_LSP_DOWNLOAD", "KILO_DISABLE_SHARE")
    return (), dict.fromkeys(off, "1")


def _aider(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    env = {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "none"}
    quiet = ("--no-check-update", "--analytics-disable", "--no-show-release-notes", "--no-show-model-warnings")
    git = () if first_run else ("--no-git",)
    arguments = ("--model", "openai/gpt-4o", "--edit-format", "diff", "--map-tokens", "0", *quiet, *git)
    return arguments, {**env, "AIDER_ANALYTICS": "false", "AIDER_CHECK_UPDATE": "false"}


def _qwen(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    settings: dict[str, Any] = {
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"folderTrust": {"enabled": first_run == "folder"}},
    }
    if first_run != "virgin":
        settings["security"]["auth"] = {"selectedType": "openai"}
    (home / ".qwen").mkdir(exist_ok=True)
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    if first_run == "virgin":
        return (), {}
    env = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "lab-model"}
    return ("--auth-type", "openai", "-m", "lab-model", "--approval-mode", "default"), env


def _cn(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    model = {
        "name": "Lab",
        "provider": "openai",
        "model": "lab-model",
        "apiBase": f"{address}/v1",
        "apiKey": "none",
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
    }
    settings = {"name": "lab", "version": "1.0.0", "schema": "v1", "models": [model]}
    (home / "cn.yaml").write_text(json.dumps(settings))  # JSON is YAML
    if first_run == "virgin":
        return (), {}
    env = {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_AUTO_UPDATED": "1"}
    return ("--config", str(home / "cn.yaml")), env


def _kimi(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return (), {}
    (home / ".kimi-code").mkdir(exist_ok=True)
    (home / ".kimi-code" / "config.toml").write_text(
        'default_model = "lab"\ntelemetry = false\n'
        f'[providers.lab]\ntype = "openai"\nbase_url = "{address}/v1"\napi_key = "none"\n'
        '[models.lab]\nprovider = "lab"\nmodel = "lab-model"\nmax_context_size = 128000\n'
    )
    return (), {"KIMI_CODE_NO_AUTO_UPDATE": "1"}


def _copilot(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    trusted = [] if first_run else [str(folder)]
    settings = {"trusted_folders": trusted, "trustedFolders": trusted, "banner": "never"}
    (home / ".copilot").mkdir(exist_ok=True)
    (home / ".copilot" / "config.json").write_text(json.dumps(settings))
    env = {
        "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
        "COPILOT_MODEL": "lab-model",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }
    return ("--no-auto-update",), env


def _vibe(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    (home / ".vibe").mkdir(exist_ok=True)
    (home / ".vibe" / "config.toml").write_text(
        'active_model = "lab"\nenable_update_checks = false\nenable_auto_update = false\nenable_telemetry = false\n'
        f'[[providers]]\nname = "lab"\napi_base = "{address}/v1"\napi_key_env_var = "LAB_KEY"\nbackend = "generic"\n'
        '[[models]]\nname = "lab-model"\nprovider = "lab"\nalias = "lab"\n'
    )
    return ("--agent", "ask", *(() if first_run else ("--trust",))), {"LAB_KEY": "none"}


def _grok(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return (), {}
    return ("-k", "none", "-u", f"{address}/v1", "-m", "lab-model"), {}


def _cline(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return ("--auto-approve", "false", "-i"), {}
    settings = {"provider": "openai-compatible", "apiKey": "none", "model": "lab-model", "baseUrl": f"{address}/v1"}
    known = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    wanted = {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {"openai-compatible": known}}
    (home / ".cline" / "data" / "settings").mkdir(parents=True, exist_ok=True)
    (home / ".cline" / "data" / "settings" / "providers.json").write_text(json.dumps(wanted))
    alone = {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_SESSION_BACKEND_MODE": "local"}  # else a hub of its own stays behind
    env = alone | ({} if first_run else {"CLINE_DISABLE_CLINE_PASS_NOTICE": "1"})
    return ("--auto-approve", "false", "-i"), env


def _goose(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return ("session",), {}
    env = {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
        "GOOSE_MODE": "approve",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
        "GOOSE_TELEMETRY_OFF": "1",
        "OPENAI_HOST": address,
        "OPENAI_BASE_PATH": "v1/chat/completions",
        "OPENAI_API_KEY": "none",
    }
    return ("session", "--with-builtin", "developer"), env


def _gptme(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    env = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "none", "GPTME_TIKTOKEN_TIMEOUT": "0"}
    return ("-m", "local/lab-model", "--tool-format", "tool", "-t", "+choice"), env


def _hermes(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    if first_run == "virgin":
        return ("chat",), {}
    settings = {
        "model": {"provider": "custom", "default": "lab-model", "base_url": f"{address}/v1", "api_key": "none"},
        "approvals": {"mode": "manual", "timeout": 300},
    }
    (home / ".hermes").mkdir(exist_ok=True)
    (home / ".hermes" / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
    tools = ("-t", "terminal,file,clarify")  # with all of them it looks for their services for a minute
    return ("chat", *tools), {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "none"}


def _openhands(binary: Path, home: Path, folder: Path, address: str, first_run: str) -> Seeded:
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1", "DO_NOT_TRACK": "1"}
    if first_run == "virgin":
        return (), quiet
    env = {"LLM_MODEL": "openai/lab-model", "LLM_BASE_URL": f"{address}/v1", "LLM_API_KEY": "none"}
    return ("--override-with-envs",), env | quiet


SEEDS: dict[str, Callable[[Path, Path, Path, str, str], Seeded]] = {
    "claude": _claude,
    "claude-2.1.197": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "kilo": _kilo,
    "aider": _aider,
    "qwen": _qwen,
    "cn": _cn,
    "kimi": _kimi,
    "copilot": _copilot,
    "vibe": _vibe,
    "grok": _grok,
    "cline": _cline,
    "goose": _goose,
    "gptme": _gptme,
    "hermes": _hermes,
    "openhands": _openhands,
}


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
    "claude-agent-acp": "node_modules/.bin/claude-agent-acp",
    "codex-acp": "node_modules/.bin/codex-acp",
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
