"""Starts Claude Code with a PermissionRequest hook of ours, for this run only, through its `--settings` argument.

The person's own settings and hooks stay in force and nothing is written into their home: Claude Code lays the argument
over its settings files and runs the hooks of both.  Settings that the person passes are kept, with ours added; those
of a file stay in a file, beside the session's socket, because everybody on this machine can read a program's arguments.
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
from atlasbridge.core.system import OWN_FILE

HOOK = Path(__file__).parent / "permission_hook.py"
OPTION = "--settings"
ON_WINDOWS = os.name == "nt"
_TIMEOUT_S = 5
_PLAIN = re.compile(r"[\w.:/~+-]+")
_WAITING_S = 3600 + _TIMEOUT_S  # of a hook that also answers


def with_hook(command: Sequence[str], attach_socket: str, answers: bool = False) -> tuple[str, ...]:
    """The command with our hook, which speaks to the session behind `door`; unchanged where that cannot be done.
    `answers`: it may also take the answer, in a version where the dialog stays usable meanwhile."""
    program, *arguments = command
    at, own = _find_settings(arguments)
    settings: dict[str, Any] | None = {} if at < 0 else _read_settings(own)
    if settings is None:
        return tuple(command)  # Claude Code shall say itself what is wrong with it
    merged = json.dumps(_merged(settings, attach_socket, answers))
    if _belong_in_a_file(own):
        try:
            merged = write_private(Path(attach_socket).with_suffix(SETTINGS_SUFFIX), merged)
        except OSError:
            return tuple(command)  # without our hook, then: the screen tells what it asks
    if at < 0:
        return (program, OPTION, merged, *arguments)
    if arguments[at].startswith(f"{OPTION}="):
        arguments[at] = f"{OPTION}={merged}"
    else:
        arguments[at + 1] = merged
    return (program, *arguments)


def _belong_in_a_file(own: str) -> bool:
    """Settings of a file stay in one.  On Windows all do: a tool may be a batch file there, whose arguments are read
    once more, by other rules of quoting."""
    return (bool(own) and not _is_json(own)) or ON_WINDOWS


def hook_command(attach_socket: str, answers: bool = False, *more: str) -> str:
    """For a shell.  Whatever happens to us, Claude Code sees a hook that ended well and said nothing."""
    words = (sys.executable, "-I", "-S", str(HOOK), attach_socket, *(("answers",) if answers else ()), *more)
    if ON_WINDOWS:
        return " ".join(map(quoted_on_windows, words))
    return " ".join(shlex.quote(word) for word in words) + " 2>/dev/null || true"


def quoted_on_windows(word: str) -> str:
    """There a hook runs in the bash of Git, or in PowerShell where that is missing: both take a path with such slashes,
    and bash one in quotes."""
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


def write_private(path: Path, text: str) -> str:
    """The session's host removes it at the end."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return str(path)


def _read_settings(given: str) -> dict[str, Any] | None:
    """Settings are JSON, or the name of a file with JSON; None: neither, or not ours to understand."""
    try:
        text = given if _is_json(given) else Path(given).expanduser().read_text("utf-8")
        settings = json.loads(text)
    except (OSError, ValueError):
        return None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    fits = isinstance(hooks, dict) and isinstance(hooks.get("PermissionRequest", []), list)
    return settings if fits else None
