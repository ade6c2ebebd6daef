"""Kills its own process before or after a chosen operation on a file, a lock, a socket or the store.

Python's profiler reports every call into C, so the product needs no hook for it: what is counted are the functions by
which a Python program reaches files, locks, sockets and SQLite.  Waiting for events is not counted, since how often a
loop wakes up is a matter of chance.
"""

from __future__ import annotations

import _io
import _socket
import os
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

_OS = {
    "open", "write", "pwrite", "fsync", "close", "unlink", "rename", "replace", "ftruncate", "chmod", "fchmod",
    "mkdir", "read", "pread", "sendfile", "fork", "setsid", "dup2", "umask", "posix_spawn", "waitpid", "stat", "fstat",
}  # fmt: skip
_SOCKET = {
    "connect", "bind", "listen", "_accept", "send", "sendall", "sendmsg", "recv", "recv_into", "recvmsg", "shutdown",
    "close", "setblocking", "setsockopt", "getsockopt",
}  # fmt: skip
_STORE = {"execute", "executemany", "executescript", "commit", "rollback", "close", "fetchall", "fetchone"}
_FILE = {"write", "flush", "read", "readline", "close", "truncate"}
_MODULES = {
    "posix": _OS,
    "fcntl": {"flock", "ioctl", "fcntl"},
    "termios": {"tcgetattr", "tcsetattr"},
    "_io": {"open"},
    "_sqlite3": {"connect"},
    "_socket": {"socketpair"},
}


def is_operation(called: Any) -> bool:
    """Is this C function a way to the world outside the process?"""
    owner, name = getattr(called, "__self__", None), called.__name__
    if isinstance(owner, ModuleType):
        return name in _MODULES.get(owner.__name__, ())
    if isinstance(owner, _socket.socket):
        return name in _SOCKET
    if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
        return name in _STORE
    return isinstance(owner, _io._IOBase) and name in _FILE


def die_at(place: str, tell: int = -1, here: Callable[[], bool] = lambda: True) -> None:
    """From now on die at this place: "NAME#K", the K-th operation of this name.  "": nowhere.

    `tell`: a descriptor to which every place is written.  `here` says whether this process is the one that counts,
    since forks inherit the hook.
    """
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    def hook(frame: FrameType, event: str, called: Any) -> None:
        if event not in ("c_call", "c_return", "c_exception") or not isinstance(called, BuiltinFunctionType):
            return
        if not is_operation(called) or not here():
            return
        name = _name(frame, event, called)
        with lock:
            seen[name] += 1
            reached = f"{name}#{seen[name]}"
        if tell >= 0:
            os.write(tell, reached.encode() + b"\n")
        if reached == place:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(hook)
    sys.setprofile(hook)


def _name(frame: FrameType, event: str, called: Any) -> str:
    """What is called, and the line of the product on whose behalf."""
    asked: FrameType | None = frame
    while asked is not None and f"{os.sep}atlasbridge{os.sep}" not in asked.f_code.co_filename:
        asked = asked.f_back
    code = (asked or frame).f_code
    module = code.co_filename.rpartition(os.sep)[2].removesuffix(".py")
    when = "before" if event == "c_call" else "after"
    return f"{when} {called.__qualname__} for {module}.{code.co_qualname}:{(asked or frame).f_lineno}"
