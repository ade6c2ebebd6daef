"""The two bounded queues of a PTY: an inbox for the child's output, an outbox for its input.

Both contain at most `limit` messages. The handle moves the bytes to and from the kernel.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ptypool.errors import PtyError

MESSAGE_LIMIT = 256


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
