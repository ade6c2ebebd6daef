"""Starts a process of its own: no signal of ours reaches it, and it outlives us."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import Any


def start_alone(command: Sequence[str], environ: Mapping[str, str], answer: bool = False) -> subprocess.Popen[bytes]:
    """Without a shell, where there is none: in a process group of its own, without a console.  `answer`: what it writes
    to its standard output can be read."""
    import subprocess

    flags = sum(getattr(subprocess, name, 0) for name in ("CREATE_NEW_PROCESS_GROUP", "CREATE_NO_WINDOW"))
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        command,
        stdin=nowhere,
        stdout=subprocess.PIPE if answer else nowhere,
        stderr=nowhere,
        env=dict(environ),
        creationflags=flags,
        start_new_session=True,
    )


def first_line(process: subprocess.Popen[bytes], patience_s: float) -> bytes:
    """What a process that was started with `answer` says first; b"": nothing in time, or it has ended.  Where pipes
    cannot be waited for, a thread does."""
    import threading

    said: list[bytes] = []

    def read() -> None:
        assert process.stdout is not None
        with process.stdout as pipe:
            said.append(pipe.readline())

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(patience_s)
    return said[0] if said else b""


def spawn_shell(command: list[str], environ: Mapping[str, str], **how: Any) -> int:
    """The shell's pid; `how` as `os.posix_spawn` has it.  OSError: there is no shell, or no process to be had."""
    try:
        return os.posix_spawn("/bin/sh", command, environ, setsid=True, **how)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID: a process group of its own must do
        return os.posix_spawn("/bin/sh", command, environ, setpgroup=0, **how)
