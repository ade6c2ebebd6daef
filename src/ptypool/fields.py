"""The four parts of a handle that the specification names: reader, writer, child and master.

Each is a narrow view of its handle, and can be handed to code that should be able to do just that.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from ptypool.forms import Duration

if TYPE_CHECKING:
    from ptypool.handle import PtyHandle


class Reader:
    """What the child writes: at most 256 chunks wait here, then the child waits."""

    __slots__ = ("_handle",)

    def __init__(self, handle: PtyHandle) -> None:
        self._handle = handle

    async def recv(self) -> bytes:
        """The next chunk; waits for one; b"" at the end."""
        return await self._handle.read()

    async def recv_timeout(self, timeout: Duration) -> bytes | None:
        """The next chunk, b"" at the end, or None when nothing came in time."""
        return await self._handle.read_timeout(timeout)

    def try_recv(self) -> bytes | None:
        """A chunk that is there, b"" at the end, else None; never waits."""
        return self._handle.read_now()


class Writer:
    """What the child is to read: at most 256 messages wait here, then the sender waits."""

    __slots__ = ("_handle",)

    def __init__(self, handle: PtyHandle) -> None:
        self._handle = handle

    async def send(self, data: bytes | str) -> None:
        await self._handle.send(data)


class Child:
    """The process on the terminal."""

    __slots__ = ("_handle",)

    def __init__(self, handle: PtyHandle) -> None:
        self._handle = handle

    @property
    def pid(self) -> int:
        return self._handle.pid

    @property
    def exit_status(self) -> int | None:
        return self._handle.exit_status

    def is_alive(self) -> bool:
        return self._handle.is_alive()

    def signal(self, number: signal.Signals) -> None:
        self._handle.signal(number)

    async def wait(self) -> int:
        return await self._handle.wait()

    async def kill(self) -> int:
        return await self._handle.kill()


class Master:
    """The terminal's own side."""

    __slots__ = ("_handle",)

    def __init__(self, handle: PtyHandle) -> None:
        self._handle = handle

    @property
    def size(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self._handle.size

    def resize(self, cols: int, rows: int) -> None:
        self._handle.resize(cols, rows)
