"""Starts a shell in a session of its own: no signal of ours reaches it, and it outlives us."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def spawn_shell(command: list[str], environ: Mapping[str, str], **how: Any) -> int:
    """The shell's pid; `how` as `os.posix_spawn` has it.  OSError: there is no shell, or no process to be had."""
    try:
        return os.posix_spawn("/bin/sh", command, environ, setsid=True, **how)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID: a process group of its own must do
        return os.posix_spawn("/bin/sh", command, environ, setpgroup=0, **how)
