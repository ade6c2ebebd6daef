"""The interface of a terminal with a program on it, for every operating system.

A session moves bytes with the descriptor, for hours; `read`, `write` and `terminate` are for simple callers.
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
        """Start a program on its own terminal; without `env` it inherits ours. Raises SpawnRefused if that fails."""

    @abstractmethod
    def read(self, size: int = 65536) -> bytes:
        """Wait for output and return at most `size` bytes of it; b"" once the program has ended."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write all of it, and wait if the program reads slowly. Raises OSError after the program has ended."""

    @abstractmethod
    def fileno(self) -> int:
        """The master's descriptor, non-blocking; -1 if the system has none."""

    @abstractmethod
    def resize(self, size: Size) -> None:
        """Set the terminal's size; its foreground processes get a signal if it changed."""

    @abstractmethod
    def flags(self) -> LineFlags:
        """How the line discipline treats lines now."""

    @abstractmethod
    def unread(self) -> int:
        """Bytes that the program has not read yet; -1 if the system cannot tell."""

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
        """Whether a descriptor is the slave side of this terminal."""

    def set_echo(self, on: bool) -> None:  # noqa: B027 (a console has no such switch)
        """Switch the echo; it is off while input comes from a pipe."""

    @abstractmethod
    def end_steps(self, grace_s: float) -> Iterator[float]:
        """End the program's whole session; yields how long to wait before the next step."""

    def terminate(self, grace_s: float = 3.0) -> int | None:
        """Send SIGTERM, wait `grace_s` seconds, send SIGKILL; return the exit status."""
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
        """Close the terminal."""


# The waiting probe of a system without process information: it answers `unknown`, which is a valid answer. The
# terminal's flags are available on every POSIX terminal: canonical mode and echo.


class NoProbe:
    def __init__(self, master_fd: int = -1) -> None:
        self._master = master_fd

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        echo = canonical = None
        if self._master >= 0:  # a console of Windows has no descriptor
            from atlasbridge.os.tty.posix import echo_and_canon

            echo, canonical = echo_and_canon(self._master)
        return ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell", echo=echo, canonical=canonical)
