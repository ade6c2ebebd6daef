"""Stands for pywinpty where there is no Windows: its `PtyProcess`, as strict as the real one, on a terminal of Unix.

Text goes in and out, never bytes; `read` blocks and raises EOFError at the end; an interrupt comes before force.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
from typing import Self

from ptypool.process import SpawnedProcess, set_window_size, spawn_process, window_size


class WinptyError(Exception):
    pass


class PtyProcess:
    def __init__(self, process: SpawnedProcess) -> None:
        self.pid = process.pid
        self.exitstatus: int | None = None
        self.closed = False
        self._fd = process.master_fd
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @classmethod
    def spawn(
        cls,
        argv: list[str],
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        dimensions: tuple[int, int] = (24, 80),
    ) -> Self:
        try:
            return cls(spawn_process(argv, env=env, cwd=cwd, size=dimensions))
        except Exception as error:
            raise WinptyError(str(error)) from error

    def read(self, size: int = 1024) -> str:
        try:
            data = os.read(self._fd, size)
        except OSError:
            data = b""
        if not data:
            raise EOFError("Pty is closed")
        return self._decoder.decode(data)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("text is written, not bytes")
        if not self.isalive():
            raise EOFError("Pty is closed")
        data = text.encode()
        while data:
            data = data[os.write(self._fd, data) :]
        return len(text)

    def isalive(self) -> bool:
        if self.exitstatus is None:
            with contextlib.suppress(ChildProcessError):
                found, status = os.waitpid(self.pid, os.WNOHANG)
                if found:
                    self.exitstatus = os.waitstatus_to_exitcode(status) & 0xFF
        return self.exitstatus is None

    def sendintr(self) -> None:
        self.write("\x03")

    def terminate(self, force: bool = False) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL if force else signal.SIGINT)
        return not self.isalive()

    def setwinsize(self, rows: int, cols: int) -> None:
        set_window_size(self._fd, rows, cols)

    def getwinsize(self) -> tuple[int, int]:
        return window_size(self._fd)

    def close(self, force: bool = True) -> None:
        """A real console is closed under the thread that reads it; here that thread ends with the child's terminal."""
        self.closed = True
        self.terminate(force)
