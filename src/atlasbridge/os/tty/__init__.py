"""Terminals for each operating system, and the probe that tells whether a program waits for input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlasbridge.core.ports import WaitingProbe


def make_probe(master_fd: int, pid: int) -> WaitingProbe:
    """The waiting probe of this system; where there is none, a probe that always answers "unknown"."""
    if sys.platform == "linux":
        from atlasbridge.os.tty.linux import LinuxProbe

        return LinuxProbe(master_fd, pid)
    if sys.platform == "darwin":
        from atlasbridge.os.tty.macos import MacProbe

        return MacProbe(master_fd, pid)
    from atlasbridge.os.tty.base import NoProbe

    return NoProbe(master_fd)
