"""Terminals with programs on them, per operating system, and the probe that tells whether such a program waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from atlasbridge.core.errors import ConfigError

if TYPE_CHECKING:
    from atlasbridge.core.ports import WaitingProbe


def require_backend(name: str) -> None:
    """Refuse a backend that this system does not have."""
    if name == "conpty" and sys.platform != "win32":
        raise ConfigError("conpty is there on Windows only", "leave --backend out, or use --backend pty")


def make_probe(master_fd: int, pid: int) -> WaitingProbe:
    """The waiting probe of this system; one that knows nothing where there is none."""
    if sys.platform == "linux":
        from atlasbridge.os.tty.linux import LinuxProbe

        return LinuxProbe(master_fd, pid)
    if sys.platform == "darwin":
        from atlasbridge.os.tty.macos import MacProbe

        return MacProbe(master_fd, pid)
    from atlasbridge.os.tty.noprobe import NoProbe

    return NoProbe()
