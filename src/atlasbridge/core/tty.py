"""Types for terminals that the session and the operating-system modules share. This module makes no system call."""

from __future__ import annotations

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.values import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol
else:
    Protocol = object  # a client starts without importing `typing`


@frozen
class Size:
    """The size of a terminal in characters, and in pixels where the terminal reports it (otherwise 0)."""

    rows: int = 24
    cols: int = 80
    width: int = 0
    height: int = 0

    def or_default(self) -> Size:
        """Treats a terminal that reports 0 x 0 (such as a serial line) as 24 x 80."""
        return self if self.rows and self.cols else Size(self.rows or 24, self.cols or 80, self.width, self.height)


def size_in(message: Mapping[str, Any]) -> Size:
    """The size that a client reports of its terminal."""
    rows, cols, width, height = (int(message.get(name, 0)) & 0xFFFF for name in ("rows", "cols", "width", "height"))
    return Size(rows, cols, width, height).or_default()


@frozen
class LineFlags:
    """The terminal's line settings. The defaults apply if nothing is known."""

    canonical: bool = False
    echo: bool = True
    adds_returns: bool = False  # the terminal prints a newline as carriage return and newline
    end_of_file: bytes = b"\x04"
    kill: bytes = b""  # the key that erases the whole line in canonical mode; b"": there is none
    line_limit: int = 4096  # bytes of a line, including its end, that the kernel keeps; it drops the rest silently


class SpawnRefused(AtlasBridgeError):
    """The program could not be started; `status` is the exit status that a shell would use."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


@frozen
class Ending:
    """How the client ended: its exit status, and the text for standard error."""

    status: int
    text: str = ""
    hint: str = ""


LEFT = 120  # exit status of `run` and `attach` when this terminal detached and the session continues


def parting_words(why: str, name: str) -> str:
    """The message for a person whose terminal a session has released; "" if the release is only temporary."""
    if why == "detached":
        return f"detached; the session continues. Come back with: atlasbridge attach {name}"
    if why in ("taken", "stolen"):
        return f"session {name} was taken over by another terminal"
    return f"the terminal is gone; session {name} goes on" if why == "closed" else ""


class Pty(Protocol):
    """The terminal of a session's program; `os/tty/base.py` documents the guarantees."""

    pid: int

    def fileno(self) -> int: ...
    def resize(self, size: Size) -> None: ...
    def flags(self) -> LineFlags: ...
    def unread(self) -> int: ...
    def set_echo(self, on: bool) -> None: ...
    def signal(self, number: int) -> None: ...
    def poll(self) -> int | None: ...
    def stopped(self) -> bool: ...
    def is_own(self, fd: int) -> bool: ...
    def end_steps(self, grace_s: float) -> Iterator[float]: ...
    def close(self) -> None: ...


class ConsolePty(Pty, Protocol):
    """A program on a Windows pseudo-console, which is read and written by calls instead of a descriptor."""

    def read(self) -> bytes: ...
    def write(self, data: bytes) -> None: ...


class Console(Protocol):
    """The console in front of the person."""

    is_terminal: bool

    def read_keys(self) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def size(self) -> Size: ...
