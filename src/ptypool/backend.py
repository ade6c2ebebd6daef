"""The interface to the operating system: a child on a terminal, its input and output, its end.

Unix has pseudo-terminals (`posix`), Windows has pseudo-consoles (`console`); pool and handle know neither.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ptypool.errors import PtyError

if TYPE_CHECKING:
    import signal

UNKNOWN_STATUS = 255
"""Reported when another part of the program has reaped the child before us (as asyncio does)."""


class Started(Protocol):
    """A running child. Its owner must end it."""

    @property
    def pid(self) -> int: ...


class Stream(Protocol):
    """Moves bytes between a terminal and two bounded queues; it owns the terminal."""

    @property
    def closed(self) -> bool: ...
    @property
    def at_end(self) -> bool: ...
    @property
    def backlog(self) -> int: ...
    @property
    def size(self) -> tuple[int, int]: ...
    async def read(self) -> bytes: ...
    def read_now(self) -> bytes | None: ...
    def read_available(self) -> bytes: ...
    async def write(self, message: bytes) -> None: ...
    async def flush(self) -> None: ...
    def resize(self, cols: int, rows: int) -> None: ...
    def set_attributes(self, attributes: list[Any]) -> None: ...
    def drain(self) -> None: ...
    def stop_writing(self, reason: str) -> None: ...
    def close(self) -> None: ...


class Backend(Protocol):
    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        size: tuple[int, int],
        attributes: list[Any] | None,
    ) -> Any:
        """Return a new `Started`; raises SpawnFailed."""

    def stream(self, loop: asyncio.AbstractEventLoop, child: Any, on_end: Callable[[], None]) -> Stream: ...
    def watch(self, loop: asyncio.AbstractEventLoop, child: Any, on_exit: Callable[[int], None]) -> ExitWatch: ...
    def signal(self, child: Any, number: signal.Signals) -> None: ...

    def is_ours(self, child: Any, ended: bool) -> bool:
        """Whether the child's pid still belongs to us and can be signalled."""

    def ending(self, children: Sequence[Any], grace_s: float) -> Iterator[float]:
        """End them with SIGTERM, then by force; yields how long to wait before the next check."""

    def end_now(self, child: Any) -> int | None:
        """End it at once, without an event loop; return its exit status if it is known."""

    def discard(self, child: Any) -> None:
        """End a child for which no handle could be made, and close its terminal."""


# The two bounded queues of a terminal: an inbox for the child's output, an outbox for its input.

MESSAGE_LIMIT = 256
_FIRST_LOOK_S = 0.02


class Inbox:
    """Chunks that wait to be read. `full` asks the owner to stop reading; then the kernel stops the child."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self.at_end = False
        self.error: PtyError | None = None

    @property
    def full(self) -> bool:
        return len(self._chunks) >= self._limit

    @property
    def wants_more(self) -> bool:
        """Only when half empty again: with a single mark, a flood would switch reading on and off for every chunk."""
        return len(self._chunks) <= self._limit // 2

    def __len__(self) -> int:
        return len(self._chunks)

    def put(self, chunk: bytes, *, drop_oldest: bool = False) -> None:
        if drop_oldest and self.full:
            self._chunks.popleft()
        self._chunks.append(chunk)
        self._changed.set()

    def take(self) -> bytes | None:
        """The oldest chunk, b"" at the end, None if there is nothing yet."""
        if self._chunks:
            return self._chunks.popleft()
        if self.error is not None:
            raise self.error
        return b"" if self.at_end else None

    def end(self, error: PtyError | None = None) -> None:
        if not self.at_end:
            self.at_end = True
            self.error = error
        self._changed.set()

    async def wait(self) -> None:
        """Wait until a chunk was added or the end was reached."""
        if not self._chunks and not self.at_end:
            self._changed.clear()
            await self._changed.wait()


class Outbox:
    """Messages that wait to be written, in the order of their `reserve` calls."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._room = asyncio.Semaphore(limit)
        self._messages: deque[memoryview] = deque()
        self._empty = asyncio.Event()
        self._empty.set()
        self.error: PtyError | None = None

    def __len__(self) -> int:
        return len(self._messages)

    async def reserve(self) -> None:
        """Wait for space for one message; the caller adds one, or frees the space with `cancel`."""
        self._raise_error()
        await self._room.acquire()
        if self.error is not None:
            self._room.release()  # wake the next waiting caller
            raise self.error

    def cancel(self) -> None:
        self._room.release()

    def put(self, message: bytes) -> None:
        self._messages.append(memoryview(message))
        self._empty.clear()

    def first(self) -> memoryview | None:
        return self._messages[0] if self._messages else None

    def advance(self, written: int) -> None:
        """Remove the written bytes of the first message; the rest stays first."""
        rest = self._messages[0][written:]
        if rest:
            self._messages[0] = rest
            return
        self._messages.popleft()
        self._room.release()
        if not self._messages:
            self._empty.set()

    def fail(self, error: PtyError) -> None:
        """Drop the remaining messages and wake all waiting callers."""
        if self.error is None:
            self.error = error
        self._messages.clear()
        self._room.release()
        self._empty.set()

    async def wait_empty(self) -> None:
        await self._empty.wait()
        self._raise_error()

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error


class QueuedStream:
    """What the streams of both systems share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        self._loop, self._on_end = loop, on_end
        self._inbox, self._outbox = Inbox(), Outbox()
        self._draining = False

    def _taken(self) -> None:
        """Called after the inbox was read: there can be room for more."""

    @property
    def at_end(self) -> bool:
        """Whether there is no more output to come."""
        return self._inbox.at_end

    @property
    def backlog(self) -> int:
        """Chunks that were read from the terminal but not yet taken."""
        return len(self._inbox)

    async def read(self) -> bytes:
        while (chunk := self._inbox.take()) is None:
            await self._inbox.wait()
        self._taken()
        return chunk

    def read_now(self) -> bytes | None:
        chunk = self._inbox.take()
        self._taken()
        return chunk

    def read_available(self) -> bytes:
        chunks = [self._inbox.take() or b"" for _ in range(len(self._inbox))]
        self._taken()
        return b"".join(chunks)

    async def flush(self) -> None:
        await self._outbox.wait_empty()


class ExitWatch:
    """Detects the end of a child, without a thread: by a descriptor that becomes readable then, or by looking again and
    again. `status` returns the exit status once the child has ended, and reaps it. `hold` delays that, so that the pid
    stays reserved while its session is being ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        status: Callable[[], int | None],
        on_exit: Callable[[int], None],
        look_every_s: float,
        ends: int | None = None,
    ) -> None:
        """The watch owns the descriptor `ends`."""
        self._loop, self._status, self._on_exit = loop, status, on_exit
        self._look_every_s = look_every_s
        self._held = self._done = False
        self._timer: asyncio.TimerHandle | None = None
        self._ends = ends
        if ends is not None:
            loop.add_reader(ends, self.look)
        else:
            self._timer = loop.call_later(_FIRST_LOOK_S, self._look_again)

    def look(self) -> bool:
        """Reap the child if it has ended; return whether it has."""
        if not self._done and not self._held and (status := self._status()) is not None:
            self.stop()
            self._on_exit(status)
        return self._done

    def hold(self) -> None:
        self._held = True
        self._forget()  # the descriptor of a child that has ended stays readable, so the loop would spin

    def resume(self) -> None:
        """End a `hold`: reap the child if it has ended, otherwise continue to watch."""
        self._held = False
        self._look_again()

    def stop(self) -> None:
        """Stop watching (the event loop is gone, or the child is no longer ours)."""
        self._done = True
        self._forget()

    def _look_again(self) -> None:
        if not self.look():
            self._timer = self._loop.call_later(self._look_every_s, self._look_again)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        ends, self._ends = self._ends, None
        if ends is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(ends)
            os.close(ends)


def of_this_system() -> Backend:
    if sys.platform == "win32":
        from ptypool.console import Console

        return Console()
    from ptypool.posix import Posix

    return Posix()
