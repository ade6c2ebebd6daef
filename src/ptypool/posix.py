"""Children on Unix pseudo-terminals for the pool: their bytes, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import signal
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence

from ptypool.backend import UNKNOWN_STATUS, ExitWatch, QueuedStream
from ptypool.errors import PtyIoError
from ptypool.process import (
    CANONICAL_LINE_LIMIT,
    SpawnedProcess,
    TermiosAttributes,
    line_enders,
    set_window_size,
    spawn_process,
    window_size,
)
from ptypool.termination import reap, terminate_group, termination_steps

# TerminalStream: moves bytes between a terminal's master side and two bounded queues, without a thread. It owns the
# descriptor. It knows nothing of processes: the handle tells it when to drain and when to close.

_READ_SIZE = 8192
_READS_PER_TURN = 16
_LAST_READS = 256


class TerminalStream(QueuedStream):
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, on_end: Callable[[], None]) -> None:
        super().__init__(loop, on_end)
        self._fd = fd
        self._reading = False
        self._line_length = 0
        self._last_size = window_size(fd)
        os.set_blocking(fd, False)
        self._start_reading()

    @property
    def closed(self) -> bool:
        return self._fd < 0

    @property
    def size(self) -> tuple[int, int]:
        return self._last_size if self.closed else window_size(self._fd)

    def read_now(self) -> bytes | None:
        if not len(self._inbox):
            self._fill_inbox()
        return super().read_now()

    def read_available(self) -> bytes:
        self._fill_inbox()
        return super().read_available()

    async def write(self, message: bytes) -> None:
        await self._outbox.reserve()
        try:
            self._check_lines(message)
        except PtyIoError:
            self._outbox.cancel()
            raise
        self._outbox.put(message)
        if len(self._outbox) == 1:
            self._write_some()

    def resize(self, cols: int, rows: int) -> None:
        try:
            set_window_size(self._open_fd(), rows, cols)
        except OSError as error:
            raise PtyIoError.from_os("cannot resize the terminal", error) from error

    def set_attributes(self, attributes: TermiosAttributes) -> None:
        try:
            termios.tcsetattr(self._open_fd(), termios.TCSAFLUSH, attributes)
        except termios.error as error:
            raise PtyIoError(f"cannot set the terminal: {error.args[1]}", error.args[0]) from error

    def drain(self) -> None:
        """From now on, read everything and keep the newest, so that no child blocks on a full terminal."""
        self._draining = True
        self._start_reading()

    def stop_writing(self, reason: str) -> None:
        self._outbox.fail(PtyIoError(reason, errno.EPIPE))
        self._forget_writer()

    def close(self) -> None:
        """Read the rest of the output, then close."""
        if self._fd < 0:
            return
        self._draining = True
        for _ in range(_LAST_READS):  # bounded, because a daemon can still have the other side open and write
            if self._inbox.at_end or not self._read_once():
                break
        with contextlib.suppress(OSError):
            self._last_size = window_size(self._fd)
        self._stop_reading()
        self.stop_writing("the terminal is closed")
        self._inbox.end()
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _start_reading(self) -> None:
        if not self._reading and self._fd >= 0 and not self._inbox.at_end:
            self._loop.add_reader(self._fd, self._fill_inbox)
            self._reading = True

    def _stop_reading(self) -> None:
        if self._reading and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._reading = False

    def _taken(self) -> None:
        if self._inbox.wants_more:
            self._start_reading()

    def _fill_inbox(self) -> None:
        """Read a few chunks at a time, so that other terminals get their turn."""
        if self._fd < 0 or self._inbox.at_end:
            return
        for _ in range(_READS_PER_TURN):
            if self._inbox.full and not self._draining:
                self._stop_reading()
                return
            if not self._read_once():
                break
        if self._inbox.at_end:
            self._stop_reading()
            self._on_end()

    def _read_once(self) -> bool:
        """Return whether there could be more."""
        try:
            chunk = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        except OSError as error:
            # EIO means that the other side is closed everywhere: the end, not an error.
            self._inbox.end(None if error.errno == errno.EIO else PtyIoError.from_os("cannot read the terminal", error))
            return False
        if not chunk:
            self._inbox.end()
            return False
        self._inbox.put(chunk, drop_oldest=self._draining)
        return True

    def _write_some(self) -> None:
        while (message := self._outbox.first()) is not None:
            try:
                self._outbox.advance(os.write(self._fd, message))
            except BlockingIOError:
                self._loop.add_writer(self._fd, self._write_some)
                return
            except OSError as error:
                self._outbox.fail(PtyIoError.from_os("cannot write to the terminal", error))
        self._forget_writer()

    def _forget_writer(self) -> None:
        if self._fd >= 0 and not self._loop.is_closed():
            self._loop.remove_writer(self._fd)

    def _check_lines(self, message: bytes) -> None:
        """Refuse a line that a canonical terminal would silently cut."""
        enders = line_enders(self._open_fd())
        if enders is None:
            self._line_length = 0
            return
        pieces = re.split(b"[" + re.escape(enders) + b"]", message)
        lengths = [self._line_length + len(pieces[0]), *map(len, pieces[1:])]
        if max(lengths) >= CANONICAL_LINE_LIMIT:
            raise PtyIoError(
                f"a line of {max(lengths)} bytes is longer than the {CANONICAL_LINE_LIMIT - 1} that the terminal takes",
                errno.EMSGSIZE,
                "Send shorter lines, or wait until the program has switched the terminal to raw mode.",
            )
        self._line_length = lengths[-1]

    def _open_fd(self) -> int:
        if self._fd < 0:
            raise PtyIoError("the terminal is closed", errno.EBADF)
        return self._fd


_LOOK_EVERY_S = 0.5


def _open_pidfd(pid: int) -> int | None:
    opener: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    with contextlib.suppress(OSError):  # an old kernel, or no descriptors left: polling works, too
        return opener(pid)
    return None


class Posix:
    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        size: tuple[int, int],
        attributes: TermiosAttributes | None,
    ) -> SpawnedProcess:
        return spawn_process(argv, env=env, cwd=cwd, size=size, termios_attrs=attributes)

    def stream(
        self, loop: asyncio.AbstractEventLoop, child: SpawnedProcess, on_end: Callable[[], None]
    ) -> TerminalStream:
        return TerminalStream(loop, child.master_fd, on_end)

    def watch(
        self, loop: asyncio.AbstractEventLoop, child: SpawnedProcess, on_exit: Callable[[int], None]
    ) -> ExitWatch:
        return ExitWatch(loop, lambda: reap(child.pid, UNKNOWN_STATUS), on_exit, _LOOK_EVERY_S, _open_pidfd(child.pid))

    def signal(self, child: SpawnedProcess, number: signal.Signals) -> None:
        """Signal the whole process group."""
        os.killpg(child.pid, number)

    def is_ours(self, child: SpawnedProcess, ended: bool) -> bool:
        """After the child is reaped, its pid is still its process group's id, unless a new process has it."""
        if not ended:
            return True
        try:
            os.kill(child.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def ending(self, children: Sequence[SpawnedProcess], grace_s: float) -> Iterator[float]:
        return termination_steps([child.pid for child in children], grace_s=grace_s)

    def end_now(self, child: SpawnedProcess) -> int | None:
        return terminate_group(child.pid, grace_s=0)

    def discard(self, child: SpawnedProcess) -> None:
        terminate_group(child.pid, grace_s=0)
        os.close(child.master_fd)
