"""Starts detached processes, which outlive us and receive none of our signals, and protects our own processes."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import Any


def start_alone(command: Sequence[str], environ: Mapping[str, str], answer: bool = False) -> subprocess.Popen[bytes]:
    """Starts a process without a shell, in a process group of its own and without a console. With `answer`, its
    standard output can be read."""
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
    """Returns the first line of a process that was started with `answer`, or b"" if none arrives in time or the process
    has ended. A thread reads it, because not every system can wait for a pipe."""
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
    """Returns the shell's pid. `how` is passed to `os.posix_spawn`. Raises OSError if there is no shell, or no process
    can be created."""
    try:
        return os.posix_spawn("/bin/sh", command, environ, setsid=True, **how)
    except NotImplementedError:  # the C library lacks POSIX_SPAWN_SETSID; use a new process group instead
        return os.posix_spawn("/bin/sh", command, environ, setpgroup=0, **how)


# How we start Python again: never with the current folder in its module search path or in PATH.
#
# The current folder usually belongs to a project. Its `socket.py`, `atlasbridge/` or `notify-send` must not run inside
# our processes or as a child of them: such a process has no session among its ancestors and would be treated as a
# person's.

_PATHS = ("PYTHONPATH", "PATH")


def own_python(module: str, *words: str) -> tuple[str, ...]:
    """Returns the command that runs one of our modules; `-P` keeps the current folder out of the module search path."""
    return (sys.executable, "-P", "-m", module, *words)


def own_environ(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """Returns the environment for such a process. Search paths keep only their absolute entries, because an empty entry
    (from a stray colon) or a relative one means the current folder."""
    out = {**environ, **more}
    for name in _PATHS:
        if name in out:
            out[name] = os.pathsep.join(place for place in out[name].split(os.pathsep) if os.path.isabs(place))
            if not out[name]:
                del out[name]
    return out


# Protections that a process requests from the kernel: other programs of the same user cannot inspect it, and orphaned
# descendants are reparented to it. Without effect where the system lacks these calls.

_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_SECUREBITS = 27
_NUMBERS = {"x86_64": (250, 252), "aarch64": (219, 31), "riscv64": (219, 31)}  # keyctl and ioprio_get
_IOPRIO_WHO_PROCESS = 1
_GET_KEYRING_ID = 0
_SESSION_KEYRING = -3


def hide_memory() -> bool:
    """Other processes of the same user can no longer trace this process or read its memory and environment. `exec`
    resets it."""
    return _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Makes this process the parent of its orphaned descendants, so that `setsid` and a second fork do not hide where a
    process comes from.

    Returns True on success; the caller must then reap them.
    """
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def call_self(name: str) -> bool:
    """Sets the name of this process in the system's process list; no other process can change it."""
    return _prctl(_PR_SET_NAME, name.encode() + b"\0")


def inherited_numbers() -> list[int | None]:
    """Attributes that a child inherits and that no file shows: secure bits, session keyring, I/O priority."""
    keyctl, ioprio_get = _NUMBERS.get(os.uname().machine, (None, None))
    keyring = None if keyctl is None else _call("syscall", keyctl, _GET_KEYRING_ID, _SESSION_KEYRING, 0)
    priority = None if ioprio_get is None else _call("syscall", ioprio_get, _IOPRIO_WHO_PROCESS, 0)
    return [_call("prctl", _PR_GET_SECUREBITS, 0, 0, 0, 0), keyring, priority]


def _prctl(option: int, value: int | bytes) -> bool:
    return _call("prctl", option, value, 0, 0, 0) == 0


def _call(name: str, *values: int | bytes) -> int | None:
    """Returns None on another system, interpreter or C library. The protection is then missing; nothing else
    changes."""
    if sys.platform != "linux":
        return None
    try:
        # the public `ctypes` package takes three milliseconds, and this delays the start of a tool
        from _ctypes import call_function, dlopen, dlsym

        ours: Any = None  # the program itself, including its C library
        return int(call_function(dlsym(dlopen(ours, 0), name), values))
    except (ImportError, OSError, AttributeError):
        return None
