"""Starts a process of its own: no signal of ours reaches it, and it outlives us."""

from __future__ import annotations

import os
import sys

from atlasbridge.core.fast_imports import signal

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


# How we start Python again: never with the folder that we happen to be in on its path, or among its programs.
#
# That folder is a project's, and a project's `socket.py`, `atlasbridge/` or `notify-send` must not run in a process of
# ours, or as one that we started: nobody is above those, so they would count as a person's.

_PATHS = ("PYTHONPATH", "PATH")


def own_python(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of ours; `-P` keeps the current folder off its path."""
    return (sys.executable, "-P", "-m", module, *words)


def own_environ(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """The environment for it.  Of the person's own search paths only what names a folder for certain: an empty entry,
    as a stray colon leaves it, and a relative one mean the current folder again."""
    out = {**environ, **more}
    for name in _PATHS:
        if name in out:
            out[name] = os.pathsep.join(place for place in out[name].split(os.pathsep) if os.path.isabs(place))
            if not out[name]:
                del out[name]
    return out


# What a process asks of the kernel for its own protection: no other program of this user may look into it, and what
# its children leave behind comes back to it instead of vanishing.  Does nothing where the system has no such call.

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_SECUREBITS = 27
_NUMBERS = {"x86_64": (250, 252), "aarch64": (219, 31), "riscv64": (219, 31)}  # of keyctl and ioprio_get
_IOPRIO_WHO_PROCESS = 1
_GET_KEYRING_ID = 0
_SESSION_KEYRING = -3


def hide_memory() -> bool:
    """Nobody of the same user may trace this process, or read its memory and environment.  `exec` ends it."""
    return _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Whatever loses its parent below us becomes our child: `setsid` and a second fork no longer hide where it is from.

    True: so it is, and we have to reap them.
    """
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """The kernel ends this process, and no other, at once when the one that forked it is gone."""
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def call_self(name: str) -> bool:
    """The name by which the system lists this process; no other process can change it."""
    return _prctl(_PR_SET_NAME, name.encode() + b"\0")


def inherited_numbers() -> list[int | None]:
    """What a child inherits and no file tells: secure bits, the keys of this login, the priority at the disk."""
    keyctl, ioprio_get = _NUMBERS.get(os.uname().machine, (None, None))
    keyring = None if keyctl is None else _call("syscall", keyctl, _GET_KEYRING_ID, _SESSION_KEYRING, 0)
    priority = None if ioprio_get is None else _call("syscall", ioprio_get, _IOPRIO_WHO_PROCESS, 0)
    return [_call("prctl", _PR_GET_SECUREBITS, 0, 0, 0, 0), keyring, priority]


def _prctl(option: int, value: int | bytes) -> bool:
    return _call("prctl", option, value, 0, 0, 0) == 0


def _call(name: str, *values: int | bytes) -> int | None:
    """None: another system, interpreter or C library.  What it would have hidden stays open, nothing else."""
    if sys.platform != "linux":
        return None
    try:
        # the public package costs three milliseconds, and this stands before a tool's start
        from _ctypes import call_function, dlopen, dlsym

        ours: Any = None  # the program itself, with its C library
        return int(call_function(dlsym(dlopen(ours, 0), name), values))
    except (ImportError, OSError, AttributeError):
        return None
