"""What a tool leaves behind when it ends: daemons of its own, known by the home folder that it was started with.

Walks end them, so that none lives on after its home is gone.  Where the system does not show what a process was started
with, nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_PROCESSES = Path("/proc")


def find_left_behind(home: Path) -> list[int]:
    """The processes that were started with this home folder."""
    wanted = b"HOME=" + os.fsencode(home)
    found = []
    for entry in _PROCESSES.iterdir() if _PROCESSES.is_dir() else ():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_left_behind(home: Path) -> list[int]:
    """Ends them, and what they start meanwhile; gives back which."""
    ended: list[int] = []
    while found := [pid for pid in find_left_behind(home) if pid not in ended]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended += found
    return ended
