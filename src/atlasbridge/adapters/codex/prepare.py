"""Codex is started with a hook of ours for this run, which tells in full what is asked.

It could answer, too; but Codex draws no dialog before its hooks have ended, so whoever sits at the terminal would see
nothing to answer.  It ends at once, and the keys answer.
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

# Starts Codex with a PermissionRequest hook of ours, for this run only, through its `-c` arguments.
#
# The person's own settings and hooks stay in force and nothing is written into their home: Codex adds the hooks of all
# its layers, and trusts each by itself.  Ours is vouched for by the digest that Codex makes of a hook, so that no other
# is trusted with it and nobody is asked at the start; where that digest is not known, Codex is left as it is.

_EVENT, _KEY = "PermissionRequest", "/<session-flags>/config.toml:permission_request:0:0"
_TIMEOUT_S = 5
_SETTING = ("-c", "--config")
_ELSEWHERE = "--remote"  # then a server that is not ours runs the hooks


def with_hook(command: Sequence[str], attach_socket: str) -> tuple[str, ...]:
    """The command with our hook, which speaks to this session; unchanged where that cannot be done."""
    program, *arguments = command
    ours = hook_command(attach_socket, False, "codex")
    if _is_spoken_for(arguments) or not ours.isprintable():
        return tuple(command)
    hook = f'[{{hooks=[{{type="command",command={_quoted(ours)},timeout={_TIMEOUT_S}}}]}}]'
    trust = f"{{{_quoted(_KEY)}={{trusted_hash={_quoted(trusted_hash(ours))}}}}}"
    return (program, "-c", f"hooks.{_EVENT}={hook}", "-c", f"hooks.state={trust}", *arguments)


def trusted_hash(command: str) -> str:
    """Codex's digest of such a hook: the SHA-256 of its normal form."""
    hook = {"async": False, "command": command, "timeout": _TIMEOUT_S, "type": "command"}
    normal = {"event_name": "permission_request", "hooks": [hook]}
    text = json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _is_spoken_for(arguments: Sequence[str]) -> bool:
    """Whether the person names hooks on the command line as well: ours would take their place, or theirs ours."""
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
    """A basic string of TOML: of printable text the same as one of JSON."""
    return json.dumps(text, ensure_ascii=False)


# Versions whose digest of a hook is known.  Any other would ask at its start whether the hook may be trusted.
TELLING = ("0.166.0",)


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt" or installed_version(start.command[0], start.environ.get("PATH", "")) not in TELLING:
        return start  # of Windows it is not known how it runs its hooks
    return replace(start, command=with_hook(start.command, start.attach_socket))
