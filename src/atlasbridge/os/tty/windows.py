"""A program on a Windows pseudo-console (ConPTY) through pywinpty.  Experimental, behind `--backend conpty`.

One process shows the program on its own console: there is no session host to attach to and no hub on Windows yet, so
nobody is asked from elsewhere.  The rest of AtlasBridge never imports this module on other systems.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.tty import LineFlags, Size, SpawnRefused
from atlasbridge.os.tty.base import BasePTY

_LOOK_S = 0.02
_NOT_FOUND = 127


def _winpty() -> Any:
    """pywinpty, which is an extra: a wheel for other systems does not exist."""
    if sys.platform != "win32":
        raise ConfigError("conpty is there on Windows only", "leave --backend out, or use --backend pty")
    try:
        import winpty
    except ImportError as error:
        raise ConfigError(
            "the conpty backend needs pywinpty", "install it with: pip install 'atlasbridge[windows]'"
        ) from error
    return winpty


class WindowsPTY(BasePTY):
    """`process` is a winpty.PtyProcess: `read` blocks in a thread, `write` takes text."""

    def __init__(self, process: Any) -> None:
        self.process = process
        self.pid = int(process.pid)

    @classmethod
    def spawn(cls, command: Sequence[str], env: Mapping[str, str], cwd: str | None, size: Size) -> WindowsPTY:
        winpty = _winpty()
        try:
            process = winpty.PtyProcess.spawn(
                list(command), cwd=cwd or None, env=dict(env), dimensions=(size.rows, size.cols), backend=1
            )
        except (FileNotFoundError, winpty.WinptyError) as error:
            raise SpawnRefused(f"{command[0]} could not be started: {error}", "Check its name and PATH.", _NOT_FOUND)
        return cls(process)

    def fileno(self) -> int:
        return -1  # a console has handles, not descriptors

    def read(self) -> bytes:
        """What the program wrote; b"" once it has ended."""
        try:
            return str(self.process.read(65536)).encode("utf-8", "replace")
        except EOFError:
            return b""

    def write(self, data: bytes) -> None:
        self.process.write(data.decode("utf-8", "replace"))

    def resize(self, size: Size) -> None:
        self.process.setwinsize(size.rows, size.cols)

    def flags(self) -> LineFlags:
        return LineFlags()

    def unread(self) -> int:
        return -1

    def signal(self, number: int) -> None:
        self.process.kill(number)

    def poll(self) -> int | None:
        if self.process.isalive():
            return None
        return int(self.process.exitstatus or 0)

    def stopped(self) -> bool:
        return False

    def is_own(self, fd: int) -> bool:
        return False

    def end_steps(self, grace_s: float) -> Iterator[float]:
        self.process.terminate(force=False)
        waited_s = 0.0
        while self.process.isalive() and waited_s < grace_s:
            waited_s += _LOOK_S
            yield _LOOK_S
        self.process.terminate(force=True)

    def close(self) -> None:
        self.process.close(force=True)


def show_on_console(pty: WindowsPTY, read_key: Callable[[], bytes]) -> int:
    """Relay between this console and the program until it ends; returns its exit status."""
    done = threading.Event()

    def type_keys() -> None:
        while not done.is_set():
            pty.write(read_key())

    threading.Thread(target=type_keys, name="stdin_relay", daemon=True).start()
    size = _console_size()
    while chunk := pty.read():
        os.write(1, chunk)
        if (now := _console_size()) != size:
            size = now
            pty.resize(size)
    done.set()
    return pty.poll() or 0


def _console_size() -> Size:
    try:
        columns, rows = os.get_terminal_size()
    except OSError:
        return Size()
    return Size(rows, columns)


def console_key() -> bytes:
    """The next key of this console, with the sequences a terminal would send for the special ones."""
    import msvcrt

    key: str = msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
    if key in ("\x00", "\xe0"):
        code: str = msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
        return _SPECIAL.get(code, b"")
    return key.encode("utf-8", "replace")


_SPECIAL = {"H": b"\x1b[A", "P": b"\x1b[B", "M": b"\x1b[C", "K": b"\x1b[D", "G": b"\x1b[H", "O": b"\x1b[F"}
_SPECIAL |= {"S": b"\x1b[3~", "I": b"\x1b[5~", "Q": b"\x1b[6~"}
