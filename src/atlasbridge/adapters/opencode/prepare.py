"""Starts OpenCode with our plugin, which reports its requests to the session."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

# Starts OpenCode with our plugin, for this run only, with settings in its environment. The person's settings and
# plugins stay in effect, and nothing is written to their home: OpenCode combines the plugins of all its settings. Its
# HTTP server reports the same events, but to every user of this machine and without a password.

PLUGIN = Path(__file__).parent / "events.js"
SETTINGS = "OPENCODE_CONFIG_CONTENT"
ATTACH_SOCKET = "OPENCODE_ATLASBRIDGE_SOCKET"


def with_events(environ: Mapping[str, str], attach_socket: str) -> dict[str, str]:
    """Return the environment with our plugin, which connects to this session; unchanged if that is impossible."""
    settings = _read_settings(environ.get(SETTINGS, ""))
    if settings is None:
        return dict(environ)  # let OpenCode report the error itself
    settings["plugin"] = [*settings.get("plugin", []), PLUGIN.as_uri()]
    return {**environ, SETTINGS: json.dumps(settings), ATTACH_SOCKET: attach_socket}


def _read_settings(given: str) -> dict[str, Any] | None:
    try:
        settings = json.loads(given) if given.strip() else {}
    except ValueError:
        return None
    fits = isinstance(settings, dict) and isinstance(settings.get("plugin", []), list)
    return settings if fits else None


EVENT_S = 0.4  # the plugin reports when the dialog is drawn, with details that the dialog omits


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt":
        return start  # the plugin can only connect to a Unix socket
    return replace(start, environ=with_events(start.environ, start.attach_socket), hook_s=EVENT_S)
