"""Children on pseudo-consoles of Windows (ConPTY), through pywinpty. Experimental.

An event loop cannot watch a console: one thread reads, one writes, and both pass their results to the loop. A full
inbox stops the reading thread, and with it the child.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ptypool.backend import ExitWatch, QueuedStream
from ptypool.errors import PtyIoError, SpawnFailed

_READ_SIZE = 8192
_LOOK_S = 0.02
_KILL_WAIT_S = 2.0


def _winpty() -> Any:
    try:
        import winpty
    except ImportError as error:
        raise SpawnFailed("pseudo-consoles need pywinpty: pip install pywinpty", errno.ENOSYS, "terminal") from error
    return winpty


class ConsoleChild:
    """A running winpty.PtyProcess, and the last size of its console."""

    def __init__(self, process: Any, size: tuple[int, int]) -> None:
        self.process = process
        self.pid = int(process.pid)
        self.size = size

    def status(self) -> int | None:
        return None if self.process.isalive() else int(self.process.exitstatus or 0)


class Console:
    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        size: tuple[int, int],
        attributes: list[Any] | None,
    ) -> ConsoleChild:
        if attributes is not None:
            raise SpawnFailed("a console of Windows has no termios attributes", errno.ENOTSUP, "terminal")
        winpty = _winpty()
        folder = None if cwd is None else os.fspath(cwd)
        try:
            process = winpty.PtyProcess.spawn(list(argv), cwd=folder, env=dict(env), dimensions=size)
        except (OSError, winpty.WinptyError) as error:
            raise SpawnFailed(f"{argv[0]} could not be started: {error}", errno.ENOENT) from error
        return ConsoleChild(process, size)

    def stream(self, loop: asyncio.AbstractEventLoop, child: ConsoleChild, on_end: Callable[[], None]) -> ConsoleStream:
        return ConsoleStream(loop, child, on_end)

    def watch(self, loop: asyncio.AbstractEventLoop, child: ConsoleChild, on_exit: Callable[[int], None]) -> ExitWatch:
        return ExitWatch(loop, child.status, on_exit, _LOOK_S)

    def signal(self, child: ConsoleChild, number: signal.Signals) -> None:
        """An interrupt is sent as its key, as at a console; any other signal ends the program."""
        if number == signal.SIGINT:
            child.process.sendintr()
        else:
            child.process.terminate(force=True)

    def is_ours(self, child: ConsoleChild, ended: bool) -> bool:
        return not ended

    def ending(self, children: Sequence[ConsoleChild], grace_s: float) -> Iterator[float]:
        for force, limit_s in ((False, grace_s), (True, _KILL_WAIT_S)):
            for child in children:
                if child.process.isalive():
                    child.process.terminate(force=force)
            give_up_at = time.monotonic() + limit_s
            while any(child.process.isalive() for child in children) and time.monotonic() < give_up_at:
                yield _LOOK_S

    def end_now(self, child: ConsoleChild) -> int | None:
        child.process.terminate(force=True)
        return child.status()

    def discard(self, child: ConsoleChild) -> None:
        child.process.close(force=True)


class ConsoleStream(QueuedStream):
    def __init__(self, loop: asyncio.AbstractEventLoop, child: ConsoleChild, on_end: Callable[[], None]) -> None:
        super().__init__(loop, on_end)
        self._child = child
        self._room = threading.Event()
        self._room.set()
        self._closed = False
        self._typed: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for work, name in ((self._read_on, "ptypool-read"), (self._write_on, "ptypool-write")):
            threading.Thread(target=work, name=name, daemon=True).start()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def size(self) -> tuple[int, int]:
        return self._child.size

    async def write(self, message: bytes) -> None:
        await self._outbox.reserve()
        if self._closed:
            self._outbox.cancel()
            raise PtyIoError("the terminal is closed", errno.EBADF)
        self._outbox.put(message)
        self._typed.put(message)

    def resize(self, cols: int, rows: int) -> None:
        if self._closed:
            raise PtyIoError("the terminal is closed", errno.EBADF)
        self._child.process.setwinsize(rows, cols)
        self._child.size = (rows, cols)

    def set_attributes(self, attributes: list[Any]) -> None:
        raise PtyIoError("a console of Windows has no termios attributes", errno.ENOTSUP)

    def drain(self) -> None:
        self._draining = True
        self._room.set()

    def stop_writing(self, reason: str) -> None:
        self._outbox.fail(PtyIoError(reason, errno.EPIPE))
        self._typed.put(None)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.drain()
        self.stop_writing("the terminal is closed")
        self._inbox.end()
        self._child.process.close(force=True)

    def _taken(self) -> None:
        if self._inbox.wants_more:
            self._room.set()

    def _read_on(self) -> None:
        while True:
            self._room.wait()
            try:
                text = self._child.process.read(_READ_SIZE)
            except (EOFError, OSError):  # the other side is closed
                break
            if text:
                self._room.clear()  # until the loop has taken it and there is space for more
                self._hand_over(self._took, text.encode("utf-8", "replace"))
        self._hand_over(self._ended)

    def _took(self, chunk: bytes) -> None:
        self._inbox.put(chunk, drop_oldest=self._draining)
        if self._draining or not self._inbox.full:
            self._room.set()

    def _ended(self) -> None:
        if not self._closed:
            self._inbox.end()
            self._on_end()

    def _write_on(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a message can end within a character
        while (message := self._typed.get()) is not None:
            try:
                self._child.process.write(decoder.decode(message))
            except (EOFError, OSError) as error:
                self._hand_over(self._outbox.fail, PtyIoError(f"cannot write to the terminal: {error}", errno.EIO))
                return
            self._hand_over(self._wrote, len(message))

    def _wrote(self, count: int) -> None:
        if self._outbox.first() is not None:  # an error can have dropped it in the meantime
            self._outbox.advance(count)

    def _hand_over(self, call: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)
