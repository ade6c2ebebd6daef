"""What a process asks of the kernel for its own protection: no other program of this user may look into it, and what
its children leave behind comes back to it instead of vanishing.  Does nothing where the system has no such call.
"""

from __future__ import annotations

import sys
from typing import Any

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def hide_memory() -> bool:
    """Nobody of the same user may trace this process, or read its memory and environment.  `exec` ends it."""
    return _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Whatever loses its parent below us becomes our child: `setsid` and a second fork no longer hide where it is from.

    True: so it is, and we have to reap them.
    """
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        # the public package costs three milliseconds, and this stands before a tool's start
        from _ctypes import call_function, dlopen, dlsym

        ours: Any = None  # the program itself, with its C library
        return int(call_function(dlsym(dlopen(ours, 0), "prctl"), (option, value, 0, 0, 0))) == 0
    except (ImportError, OSError, AttributeError):
        return False  # another interpreter or C library: what it would have hidden stays open, nothing else
