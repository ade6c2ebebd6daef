"""What a process asks of the kernel for its own protection: no other program of this user may look into it, and what
its children leave behind comes back to it instead of vanishing.  Does nothing where the system has no such call.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.lean import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
