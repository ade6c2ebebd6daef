"""Starts Claude Code with our PermissionRequest hook, for this run only, with its `--settings` argument.

The person's settings and hooks stay in effect, and nothing is written to their home: Claude Code merges the argument
with its settings files and runs the hooks of both. Settings that the person passes are kept, with ours added. If they
came from a file, the merged settings also go to a file, beside the session's socket, because every user of this machine
can read a program's arguments.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atlasbridge.core.session.settings import SETTINGS_SUFFIX
from atlasbridge.core.system import write_private

HOOK = Path(__file__).parent / "permission_hook.py"
OPTION = "--settings"
ON_WINDOWS = os.name == "nt"
_TIMEOUT_S = 5
_PLAIN = re.compile(r"[\w.:/~+-]+")
_WAITING_S = 3600 + _TIMEOUT_S  # for a hook that also answers


def with_hook(command: Sequence[str], attach_socket: str, answers: bool = False) -> tuple[str, ...]:
    """Return the command with our hook, which connects to the session at `attach_socket`; unchanged if that is
    impossible. With `answers`, the hook also returns the answer; this needs a version whose dialog stays usable
    meanwhile."""
    program, *arguments = command
    at, own = _find_settings(arguments)
    settings: dict[str, Any] | None = {} if at < 0 else _read_settings(own)
    if settings is None:
        return tuple(command)  # let Claude Code report the error itself
    merged = json.dumps(_merged(settings, attach_socket, answers))
    if _belong_in_a_file(own):
        try:
            merged = write_settings(attach_socket, merged)
        except OSError:
            return tuple(command)  # without the hook, the detector reads the screen
    if at < 0:
        return (program, OPTION, merged, *arguments)
    if arguments[at].startswith(f"{OPTION}="):
        arguments[at] = f"{OPTION}={merged}"
    else:
        arguments[at + 1] = merged
    return (program, *arguments)


def _belong_in_a_file(own: str) -> bool:
    """Settings from a file stay in a file. On Windows all do: the tool can be a batch file, whose arguments are parsed
    a second time with other quoting rules."""
    return (bool(own) and not _is_json(own)) or ON_WINDOWS


def hook_command(attach_socket: str, answers: bool = False, *more: str) -> str:
    """A command line for a shell. If our hook fails, Claude Code still sees success without output."""
    words = (sys.executable, "-I", "-S", str(HOOK), attach_socket, *(("answers",) if answers else ()), *more)
    if ON_WINDOWS:
        return " ".join(map(quoted_on_windows, words))
    return " ".join(shlex.quote(word) for word in words) + " 2>/dev/null || true"


def quoted_on_windows(word: str) -> str:
    """On Windows, a hook runs in Git's bash, or else in PowerShell. Both accept a path with forward slashes; bash also
    accepts quotes."""
    plain = word.replace("\\", "/")
    return plain if _PLAIN.fullmatch(plain) else '"' + re.sub(r'(["$`])', r"\\\1", plain) + '"'


def _merged(settings: dict[str, Any], attach_socket: str, answers: bool) -> dict[str, Any]:
    hooks = dict(settings.get("hooks", {}))
    ours = {
        "hooks": [
            {
                "type": "command",
                "command": hook_command(attach_socket, answers),
                "timeout": _WAITING_S if answers else _TIMEOUT_S,
            }
        ]
    }
    hooks["PermissionRequest"] = [*hooks.get("PermissionRequest", []), ours]
    return {**settings, "hooks": hooks}


def _find_settings(arguments: Sequence[str]) -> tuple[int, str]:
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == OPTION and at + 1 < len(arguments):
            return at, arguments[at + 1]
        if word.startswith(f"{OPTION}="):
            return at, word.partition("=")[2]
    return -1, ""


def _is_json(given: str) -> bool:
    return given.lstrip().startswith("{")


def write_settings(attach_socket: str, text: str) -> str:
    """Write a private file; the session's host removes it at the end."""
    path = Path(attach_socket).with_suffix(SETTINGS_SUFFIX)
    write_private(path, text)
    return str(path)


def _read_settings(given: str) -> dict[str, Any] | None:
    """Settings are JSON, or the name of a file with JSON. None if they are neither, or cannot be understood."""
    try:
        text = given if _is_json(given) else Path(given).expanduser().read_text("utf-8")
        settings = json.loads(text)
    except (OSError, ValueError):
        return None
    return settings if takes_hook(settings) else None


def takes_hook(settings: Any) -> bool:
    """Whether these settings are an object to whose hooks ours can be added."""
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    return isinstance(hooks, dict) and isinstance(hooks.get("PermissionRequest", []), list)
