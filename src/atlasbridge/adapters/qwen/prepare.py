"""Starts Qwen Code with our hook for this run. The hook reports the complete request.

It is configured in the file of system defaults, which all other settings override. An administrator's file is kept with
ours added, and nothing is written to the person's home.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from atlasbridge.adapters.claude.hook import hook_command, takes_hook, write_settings
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

VARIABLE = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
USUAL = "/etc/qwen-code/system-defaults.json"
_TIMEOUT_MS = 5000


def prepare(start: ToolStart) -> ToolStart:
    theirs = _read(Path(start.environ.get(VARIABLE) or USUAL)) if os.name != "nt" else None
    if theirs is None:
        return start  # unknown content: the detector reads the screen
    try:
        path = write_settings(start.attach_socket, json.dumps(with_hook(theirs, start.attach_socket)))
    except OSError:
        return start
    return replace(start, environ={**start.environ, VARIABLE: path})


def with_hook(settings: dict[str, Any], attach_socket: str) -> dict[str, Any]:
    hooks = dict(settings.get("hooks", {}))
    ours = {
        "type": "command",
        "name": "atlasbridge",
        "command": hook_command(attach_socket, False, "qwen"),
        "timeout": _TIMEOUT_MS,
    }
    hooks["PermissionRequest"] = [*hooks.get("PermissionRequest", []), {"matcher": "*", "hooks": [ours]}]
    return {**settings, "hooks": hooks}


def _read(path: Path) -> dict[str, Any] | None:
    """Return {} if there is no such file, and None if its content is not as expected."""
    try:
        settings = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return settings if takes_hook(settings) else None
