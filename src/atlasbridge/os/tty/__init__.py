"""Terminals with programs on them, per operating system, and the probe that tells whether such a program waits."""

from __future__ import annotations

import sys

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.events import ProbeAnswer, ProbeState


def require_backend(name: str) -> None:
    """Refuse a backend that this system does not have."""
    if name == "conpty" and sys.platform != "win32":
        raise ConfigError("conpty is there on Windows only", "leave --backend out, or use --backend pty")


def make_probe(master_fd: int, pid: int) -> WaitingProbe:
    """The waiting probe of this system; one that knows nothing where there is none."""
    if sys.platform == "linux":
        try:
            from atlasbridge.os.tty.linux import LinuxProbe
        except ImportError:
            return NoProbe()

        return LinuxProbe(master_fd, pid)
    if sys.platform == "darwin":
        from atlasbridge.os.tty.macos import MacProbe

        return MacProbe(master_fd, pid)
    return NoProbe()


class NoProbe:
    """Says `unknown`, which is a valid answer."""

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        return ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell")
