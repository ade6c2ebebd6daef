"""A program on a Windows pseudo-console (ConPTY) through pywinpty. Experimental, behind `--backend conpty`.

`os.windows.console` handles the person's own console. Other systems never import this module.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.tty import LineFlags, Size, SpawnRefused
from atlasbridge.os.tty.base import BasePTY

_LOOK_S = 0.02
_NOT_FOUND = 127


def _winpty() -> Any:
    """Import pywinpty, an optional extra that exists for Windows only."""
    try:
        import winpty
    except ImportError as error:
        if sys.platform != "win32":
            raise ConfigError("conpty is there on Windows only", "leave --backend out, or use --backend pty") from error
        raise ConfigError("the conpty backend needs pywinpty", f"install it with: {install_line('windows')}") from error
    return winpty


class WindowsPTY(BasePTY):
    """`process` is a winpty.PtyProcess: `read` blocks in a thread, `write` accepts text. `faults` are
    its exceptions."""

    def __init__(self, process: Any, faults: tuple[type[Exception], ...] = (EOFError,)) -> None:
        self.process = process
        self.pid = int(process.pid)
        self._faults: tuple[type[Exception], ...] = (OSError, *faults)
        self._typed = codecs.getincrementaldecoder("utf-8")("replace")  # a write can end within a character

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        size: Size | None = None,
    ) -> Self:
        """pywinpty chooses its backend itself: ConPTY if the system has it."""
        winpty = _winpty()
        size = size or Size()
        try:
            process = winpty.PtyProcess.spawn(
                list(command),
                cwd=cwd or None,
                env=dict(os.environ if env is None else env),
                dimensions=(size.rows, size.cols),
            )
        except (OSError, winpty.WinptyError) as error:
            raise SpawnRefused(f"{command[0]} could not be started: {error}", "Check its name and PATH.", _NOT_FOUND)
        return cls(process, (EOFError, winpty.WinptyError))

    def fileno(self) -> int:
        return -1  # a console has handles, not descriptors

    def read(self, size: int = 65536) -> bytes:
        """The program's output; b"" after its end. An empty read of pywinpty has no meaning."""
        try:
            while not (text := str(self.process.read(size))):
                continue
        except self._faults:
            return b""
        return text.encode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Raises OSError after the program has ended."""
        try:
            self.process.write(self._typed.decode(data))
        except self._faults as error:
            raise BrokenPipeError(str(error)) from error

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
