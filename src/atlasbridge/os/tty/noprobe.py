"""The waiting probe of a system that cannot tell: it says `unknown`, which is a valid answer.

The terminal's own flags can be had wherever there is a terminal of the POSIX kind: whether lines are edited, and
whether what is typed is shown.
"""

from __future__ import annotations

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState


class NoProbe:
    def __init__(self, master_fd: int = -1) -> None:
        self._master = master_fd

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        echo, canonical = _flags(self._master)
        return ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell", echo=echo, canonical=canonical)


def _flags(fd: int) -> tuple[bool | None, bool | None]:
    """(echo, canonical), as far as they are known."""
    try:
        import termios
    except ImportError:  # Windows
        return None, None
    try:
        local = termios.tcgetattr(fd)[3]
    except (termios.error, OSError, ValueError):
        return None, None
    return bool(local & termios.ECHO), bool(local & termios.ICANON)
