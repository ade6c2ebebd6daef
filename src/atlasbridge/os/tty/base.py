"""What a session needs of a terminal with a program on it, whatever the operating system.

A session moves bytes by the descriptor, for hours; `read`, `write` and `terminate` are for programs that make calls.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.tty import LineFlags, Size


class BasePTY(ABC):
    """One running program and the master side of its terminal."""

    pid: int

    @classmethod
    @abstractmethod
    def spawn(
        cls,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        size: Size | None = None,
    ) -> Self:
        """Start a program on a terminal of its own; without `env` it gets ours.  SpawnRefused: it cannot be started."""

    @abstractmethod
    def read(self, size: int = 65536) -> bytes:
        """Wait for output and return at most `size` bytes of it; b"" once the program has ended."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Type all of it, waiting where the program is slow to read; OSError once nobody reads any more."""

    @abstractmethod
    def fileno(self) -> int:
        """The master's descriptor, non-blocking; -1 where the system has none."""

    @abstractmethod
    def resize(self, size: Size) -> None:
        """Tell the terminal its size; its foreground processes are told when it changed."""

    @abstractmethod
    def flags(self) -> LineFlags:
        """How the line discipline treats lines now."""

    @abstractmethod
    def unread(self) -> int:
        """Bytes typed that the program has not read yet; -1 where the system cannot tell."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to the terminal's foreground processes."""

    @abstractmethod
    def poll(self) -> int | None:
        """The exit status (negative: the signal that ended it), or None while the program runs."""

    @abstractmethod
    def stopped(self) -> bool:
        """Whether the last `poll` saw the program stopped by job control."""

    @abstractmethod
    def is_own(self, fd: int) -> bool:
        """Whether a descriptor is this very terminal's inner side."""

    def set_echo(self, on: bool) -> None:  # noqa: B027 (a console has no such switch)
        """Whether the terminal shows what is typed; off while input comes from a pipe."""

    @abstractmethod
    def end_steps(self, grace_s: float) -> Iterator[float]:
        """End the whole session of the program; yields how long to wait before the next step."""

    def terminate(self, grace_s: float = 3.0) -> int | None:
        """SIGTERM, `grace_s` seconds, SIGKILL; waits for the end and returns the exit status."""
        pause = threading.Event()
        for pause_s in self.end_steps(grace_s):
            pause.wait(pause_s)
        for _ in range(100):
            if self.poll() is not None:
                break
            pause.wait(0.01)
        return self.poll()

    @abstractmethod
    def close(self) -> None:
        """Let go of the terminal."""


# The waiting probe of a system that cannot tell: it says `unknown`, which is a valid answer.
#
# The terminal's own flags can be had wherever there is a terminal of the POSIX kind: whether lines are edited, and
# whether what is typed is shown.


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
