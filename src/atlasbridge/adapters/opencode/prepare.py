"""OpenCode is told in its environment whom to tell what it asks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

# Starts OpenCode with a plugin of ours, for this run only, through the settings it takes from its environment.
#
# The person's own settings and plugins stay in force and nothing is written into their home: OpenCode adds the plugins
# of all its settings.  Its HTTP server tells the same, but to everybody on this machine and without a password.

PLUGIN = Path(__file__).parent / "events.js"
SETTINGS = "OPENCODE_CONFIG_CONTENT"
ATTACH_SOCKET = "OPENCODE_ATLASBRIDGE_DOOR"


def with_events(environ: Mapping[str, str], attach_socket: str) -> dict[str, str]:
    """The environment with our plugin, which speaks to this session; unchanged where that cannot be."""
    settings = _read_settings(environ.get(SETTINGS, ""))
    if settings is None:
        return dict(environ)  # OpenCode shall say itself what is wrong with it
    settings["plugin"] = [*settings.get("plugin", []), PLUGIN.as_uri()]
    return {**environ, SETTINGS: json.dumps(settings), ATTACH_SOCKET: attach_socket}


def _read_settings(given: str) -> dict[str, Any] | None:
    try:
        settings = json.loads(given) if given.strip() else {}
    except ValueError:
        return None
    fits = isinstance(settings, dict) and isinstance(settings.get("plugin", []), list)
    return settings if fits else None


EVENT_S = 0.4  # its plugin speaks when the dialog is drawn, and knows what that leaves out


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt":
        return start  # its plugin knows the way to a socket alone
    return replace(start, environ=with_events(start.environ, start.attach_socket), hook_s=EVENT_S)
