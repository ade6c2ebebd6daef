"""Starts detached processes, which outlive us and receive none of our signals, protects our own
processes, and passes descriptors on. Every client imports this module, so it imports almost nothing."""

from __future__ import annotations

import os
import sys

from atlasbridge.core.fast_imports import socket

TYPE_CHECKING = False

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import Any


def start_alone(
    command: Sequence[str], environ: Mapping[str, str], answer: bool = False, **how: Any
) -> subprocess.Popen[bytes]:
    """Starts a process without a shell, in a session of its own and without a console. With `answer`, its standard
    output can be read. `how` is passed to `subprocess.Popen`."""
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
        **how,
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


def spawn_alone(program: str, command: tuple[str, ...], environ: Mapping[str, str], **how: Any) -> int:
    """Like `start_alone`, in a tenth of its time. Returns the pid, which the caller reaps. `how` is passed to
    `os.posix_spawn`. Raises OSError if there is no such program, or no process can be created."""
    try:
        return os.posix_spawn(program, command, environ, setsid=True, **how)
    except NotImplementedError:  # the C library lacks POSIX_SPAWN_SETSID; use a new process group instead
        return os.posix_spawn(program, command, environ, setpgroup=0, **how)


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


# Descriptors: sent over a Unix socket with the first byte, as a client passes its terminal and its open files to a
# host.

_INT = 4


def send_with_fds(connection: socket.socket, data: bytes, fds: Sequence[int]) -> None:
    """Sends all of `data`; the descriptors go with its first byte."""
    packed = b"".join(fd.to_bytes(_INT, sys.byteorder) for fd in fds)
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
    if sent < len(data):
        connection.sendall(data[sent:])


def unpack_fds(payload: bytes) -> list[int]:
    """The descriptors of one SCM_RIGHTS message; an incomplete one is ignored."""
    whole = len(payload) - len(payload) % _INT
    return [int.from_bytes(payload[place : place + _INT], sys.byteorder) for place in range(0, whole, _INT)]


def fill_standard_streams() -> None:
    """Opens closed standard streams, because our own sockets would get their numbers otherwise."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def inheritable_fds() -> list[int]:
    """The descriptors that a tool inherits from this process besides its terminal, such as a shell's `9<file`."""
    found = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the descriptor of the listing itself
    return sorted(found)
