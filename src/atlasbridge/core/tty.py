"""The words about terminals that the session and the operating-system parts share.  No system call here."""

from __future__ import annotations

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.values import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol
else:
    Protocol = object  # a client starts without `typing`


@frozen
class Size:
    """Of a terminal: in characters, and in pixels where the terminal tells (0: it does not)."""

    rows: int = 24
    cols: int = 80
    width: int = 0
    height: int = 0

    def or_default(self) -> Size:
        """A terminal that says 0 x 0 (a serial line, an unset one) is taken for 24 x 80."""
        return self if self.rows and self.cols else Size(self.rows or 24, self.cols or 80, self.width, self.height)


@frozen
class LineFlags:
    """How a terminal treats lines.  The defaults stand where nothing is known."""

    canonical: bool = False
    echo: bool = True
    adds_returns: bool = False  # a newline leaves the terminal as return and newline
    end_of_file: bytes = b"\x04"
    line_limit: int = 4096  # bytes of a line, its end included, that the kernel keeps; the rest is cut silently


class SpawnRefused(AtlasBridgeError):
    """The program never came to run; `status` is what a shell would exit with."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


@frozen
class Ending:
    """How the client's part ended: its exit status, and what to say on standard error."""

    status: int
    text: str = ""
    hint: str = ""


LEFT = 120  # exit status of `run` and `attach` when this terminal left and the session goes on


def parting_words(why: str, name: str) -> str:
    """What a person is told whose terminal a session has let go; "": nothing, for it is not for good."""
    if why == "detached":
        return f"detached; the session continues. Come back with: atlasbridge attach {name}"
    if why in ("taken", "stolen"):
        return f"session {name} was taken over by another terminal"
    return f"the terminal is gone; session {name} goes on" if why == "closed" else ""


class Pty(Protocol):
    """What a session asks of the terminal its program runs on; see `os/tty/base.py` for the promises."""

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
    """A program on a pseudo-console: its terminal is read and written by calls, not by a descriptor."""

    def read(self) -> bytes: ...
    def write(self, data: bytes) -> None: ...


class Console(Protocol):
    """The console that the person sits at."""

    is_terminal: bool

    def read_keys(self) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def size(self) -> Size: ...
