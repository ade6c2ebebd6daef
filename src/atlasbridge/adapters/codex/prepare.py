"""Starts Codex with our hook for this run. The hook reports the complete request.

The hook does not answer, because Codex draws no dialog before its hooks have ended: a person at the terminal would see
nothing to answer. So the hook exits at once, and the keys answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256

from atlasbridge.adapters.claude.hook import hook_command
from atlasbridge.adapters.installed import installed_version
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

# Starts Codex with our PermissionRequest hook, for this run only, with its `-c` arguments. The person's settings and
# hooks stay in effect, and nothing is written to their home: Codex combines the hooks of all its layers, and trusts
# each one separately. Ours is trusted by the digest that Codex computes for a hook, so that no other hook is trusted
# with it and Codex does not ask at its start. If that digest is unknown, Codex is started unchanged.

_EVENT, _KEY = "PermissionRequest", "/<session-flags>/config.toml:permission_request:0:0"
_TIMEOUT_S = 5
_SETTING = ("-c", "--config")
_ELSEWHERE = "--remote"  # then a foreign server runs the hooks


def with_hook(command: Sequence[str], attach_socket: str) -> tuple[str, ...]:
    """Return the command with our hook, which connects to this session; unchanged if that is impossible."""
    program, *arguments = command
    ours = hook_command(attach_socket, False, "codex")
    if _is_spoken_for(arguments) or not ours.isprintable():
        return tuple(command)
    hook = f'[{{hooks=[{{type="command",command={_quoted(ours)},timeout={_TIMEOUT_S}}}]}}]'
    trust = f"{{{_quoted(_KEY)}={{trusted_hash={_quoted(trusted_hash(ours))}}}}}"
    return (program, "-c", f"hooks.{_EVENT}={hook}", "-c", f"hooks.state={trust}", *arguments)


def trusted_hash(command: str, timeout_s: int = _TIMEOUT_S) -> str:
    """Codex's digest of such a hook: the SHA-256 of its canonical form."""
    hook = {"async": False, "command": command, "timeout": timeout_s, "type": "command"}
    normal = {"event_name": "permission_request", "hooks": [hook]}
    text = json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _is_spoken_for(arguments: Sequence[str]) -> bool:
    """Whether the person sets hooks on the command line, too: theirs and ours would replace each other."""
    for at, word in enumerate(arguments):
        if word == "--":
            return False
        name = word.partition("=")[0]
        if name == _ELSEWHERE:
            return True
        values = [arguments[at + 1]] if name in _SETTING and "=" not in word and at + 1 < len(arguments) else []
        values += [word.partition("=")[2]] if name in _SETTING and "=" in word else []
        values += [word[2:]] if word.startswith("-c") and len(word) > 2 else []
        if any(value.lstrip(" =\"'").startswith("hooks") for value in values):
            return True
    return False


def _quoted(text: str) -> str:
    """A TOML basic string; for printable text it is the same as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


# Versions whose digest of a hook is known. Other versions would ask at their start whether to trust the hook.
TELLING = ("0.166.0",)


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt" or installed_version(start.command[0], start.environ.get("PATH", "")) not in TELLING:
        return start  # it is unknown how Codex runs hooks on Windows
    return replace(start, command=with_hook(start.command, start.attach_socket))
