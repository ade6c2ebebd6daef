"""PtyHandle: one child on its terminal, for asyncio: read, write, wait, resize, end it.

The backend's stream moves bytes, `termination` ends a session, and the pool counts slots.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Self
from uuid import UUID, uuid4

from ptypool.backend import UNKNOWN_STATUS, Backend, Started, of_this_system
from ptypool.errors import PtyInternalError
from ptypool.termination import DEFAULT_GRACE_S

# Accepted forms of values: numbers and words that can also be called, durations, environments.
#
# The specification writes `pool.active_count()` and `Duration::from_secs(1)`; Python uses attributes and seconds. Both
# forms are accepted.

Duration = float | timedelta
Environment = Mapping[str, str] | Iterable[tuple[str, str]]


class Count(int):
    """A number that can also be called: `pool.available` and `pool.available()` return the same."""

    def __call__(self) -> int:
        return int(self)


class Words(tuple[str, ...]):
    """A tuple that can also be called; the call returns a new list."""

    __slots__ = ()

    def __call__(self) -> list[str]:
        return list(self)


class Name(str):
    """A name that can also be called."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


def seconds(duration: Duration) -> float:
    """A duration as a number of seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def seconds_or_none(duration: Duration | None) -> float | None:
    return None if duration is None else seconds(duration)


def environment(env: Environment | None) -> dict[str, str]:
    """A mapping or pairs of name and value; if a name is given twice, the last one counts, as in a shell."""
    return dict(env or {})


# The four parts of a handle that the specification names: reader, writer, child and master. Each is a narrow view of
# its handle, for code that should have only that capability. What a call returns is what the handle's returns: an
# awaitable, or the result itself for `ptypool.sync`.


class _Part:
    __slots__ = ("_handle",)

    def __init__(self, handle: Any) -> None:
        self._handle = handle


class Reader(_Part):
    """The child's output: at most 256 chunks wait here, then the child waits."""

    __slots__ = ()

    def recv(self) -> Any:
        """The next chunk; waits for one; b"" at the end."""
        return self._handle.read()

    def recv_timeout(self, timeout: Duration) -> Any:
        """The next chunk, b"" at the end, or None after the timeout."""
        return self._handle.read_chunk(timeout)

    def try_recv(self) -> bytes | None:
        """An available chunk, b"" at the end, otherwise None; never waits."""
        chunk: bytes | None = self._handle.read_now()
        return chunk


class Writer(_Part):
    """The child's input: at most 256 messages wait here, then the sender waits."""

    __slots__ = ()

    def send(self, data: bytes | str) -> Any:
        return self._handle.send(data)


class Child(_Part):
    """The process on the terminal."""

    __slots__ = ()

    @property
    def pid(self) -> int:
        return int(self._handle.pid)

    @property
    def exit_status(self) -> int | None:
        status: int | None = self._handle.exit_status
        return status

    def is_alive(self) -> bool:
        return bool(self._handle.is_alive())

    def signal(self, number: signal.Signals) -> None:
        self._handle.signal(number)

    def wait(self) -> Any:
        return self._handle.wait()

    def kill(self) -> Any:
        return self._handle.kill()


class Master(_Part):
    """The master side of the terminal."""

    __slots__ = ()

    @property
    def size(self) -> tuple[int, int]:
        """(rows, cols)."""
        size: tuple[int, int] = self._handle.size
        return size

    def resize(self, cols: int, rows: int) -> None:
        self._handle.resize(cols, rows)


class PtyHandle:
    """A child on a PTY, as PtyPool.spawn returns it. It belongs to the event loop and the process that created it."""

    def __init__(
        self,
        started: Started,
        on_change: Callable[[PtyHandle], None],
        grace_s: float = DEFAULT_GRACE_S,
        backend: Backend | None = None,
    ) -> None:
        self.id: UUID = uuid4()
        self.pid: int = started.pid
        self._started, self._backend = started, backend or of_this_system()
        self._grace_s = grace_s
        self._on_change = on_change
        self._owner = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._status: int | None = None
        self._exited = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._stream = self._backend.stream(self._loop, started, self._output_ended)
        self._watch = self._backend.watch(self._loop, started, self._child_exited)

    def __repr__(self) -> str:
        state = "alive" if self._status is None else f"exit_status={self._status}"
        return f"<PtyHandle {self.id} pid={self.pid} {state}>"

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that this handle belongs to."""
        return self._loop

    @property
    def reader(self) -> Reader:
        return Reader(self)

    @property
    def writer(self) -> Writer:
        return Writer(self)

    @property
    def child(self) -> Child:
        return Child(self)

    @property
    def master(self) -> Master:
        return Master(self)

    async def read(self) -> bytes:
        """The next chunk of output; waits for one; b"" at the end."""
        self._check_usable()
        return await self._stream.read()

    async def read_timeout(self, timeout_s: Duration) -> bytes | None:
        """All output that has arrived, b"" at the end, or None after the timeout (seconds, or a timedelta)."""
        first = await self.read_chunk(timeout_s)
        return first + self.read_all_available() if first else first

    async def read_chunk(self, timeout_s: Duration) -> bytes | None:
        """The next chunk of output, b"" at the end, or None after the timeout."""
        try:
            async with asyncio.timeout(seconds(timeout_s)):
                return await self.read()
        except TimeoutError:
            return None

    def read_now(self) -> bytes | None:
        """An available chunk, b"" at the end, otherwise None; never waits."""
        self._check_usable()
        return self._stream.read_now()

    def read_all_available(self) -> bytes:
        """All the output that has arrived, without waiting."""
        self._check_usable()
        return self._stream.read_available()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self.read():
            yield chunk

    async def send(self, data: bytes | str) -> None:
        """Queue bytes for the child; waits while 256 messages are queued because the child does not read them."""
        self._check_usable()
        if data:
            await self._stream.write(data.encode() if isinstance(data, str) else bytes(data))

    async def send_line(self, line: bytes | str) -> None:
        """Queue a line and its newline."""
        await self.send(line + "\n" if isinstance(line, str) else line + b"\n")

    async def drain(self) -> None:
        """Wait until the kernel has taken everything that was sent."""
        self._check_usable()
        await self._stream.flush()

    def is_alive(self) -> bool:
        """Whether the child runs: checks the process, not the state of the event loop."""
        self._check_owner()
        return self._status is None and not self._watch.look()

    @property
    def exit_status(self) -> int | None:
        """None while the child runs; negative for a signal; 255 if other code has reaped it."""
        return self._status

    @property
    def killed(self) -> bool:
        """Whether kill() was called and has finished."""
        return self._ending is not None and self._stream.closed

    @property
    def closed(self) -> bool:
        """Whether the terminal is closed: by kill(), or because the child and its output have ended."""
        return self._stream.closed

    @property
    def backlog(self) -> int:
        """How many chunks of output wait to be read; at the limit the kernel stops the child."""
        return self._stream.backlog

    async def wait(self) -> int:
        """Wait for the end of the child and return its exit status."""
        self._check_usable()
        await self._exited.wait()
        return UNKNOWN_STATUS if self._status is None else self._status

    async def kill(self) -> int:
        """End the child and the process groups of its session: SIGTERM, grace period, SIGKILL; then close the terminal.

        The newest output (at most 256 messages) can still be read. It can be called twice, and be cancelled.
        """
        self._check_usable()
        await end_handles([self], self._grace_s)
        if self._status is None:
            raise PtyInternalError(f"process {self.pid} has survived SIGKILL, it hangs in the kernel")
        return self._status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the child's process group."""
        if self.is_alive():
            self._backend.signal(self._started, number)

    def resize(self, cols: int, rows: int) -> None:
        """Change the terminal's size; its foreground program gets SIGWINCH."""
        self._check_usable()
        self._stream.resize(cols, rows)

    @property
    def size(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self._stream.size

    def reset_terminal(self, attributes: list[Any]) -> None:
        """Set these termios attributes and drop unread input, whatever state the last program left."""
        self._check_usable()
        self._stream.set_attributes(attributes)

    def abandon(self) -> None:
        """Kill, reap and close at once, without an event loop: for a pool that was not closed."""
        if self._owner != os.getpid():
            return
        self._watch.stop()
        if self._session_is_ours():
            status = self._backend.end_now(self._started)
            self._status = status if self._status is None else self._status
        self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    def _output_ended(self) -> None:
        self._watch.look()
        self._close_if_over()

    def _child_exited(self, status: int) -> None:
        self._status = status
        self._exited.set()
        self._stream.stop_writing("the child has ended")
        self._close_if_over()

    def _close_if_over(self) -> None:
        if self._status is not None and self._stream.at_end:
            self._stream.close()
        self._on_change(self)

    def _session_is_ours(self) -> bool:
        return self._backend.is_ours(self._started, ended=self._status is not None)

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise PtyInternalError("this handle belongs to the process that this one was forked from")
        if self._thread != threading.get_ident() and self._loop.is_running():
            raise PtyInternalError(
                "this handle belongs to the event loop of another thread: use it there, or use ptypool.sync"
            )

    def _check_usable(self) -> None:
        self._check_owner()
        if self._loop.is_closed():
            raise PtyInternalError("the event loop of this handle is closed")


async def end_handles(handles: Sequence[PtyHandle], grace_s: float) -> None:
    """End many children together, with one grace period for all, also if the caller is cancelled.

    Children of other threads are ended by their own loops; children of loops that no longer run are ended at once.
    """
    here = asyncio.get_running_loop()
    elsewhere = [handle for handle in handles if handle.loop is not here]
    handles = [handle for handle in handles if handle.loop is here]
    calls = [_end_elsewhere(handle, grace_s) for handle in elsewhere]
    fresh = [handle for handle in handles if handle._ending is None]
    if fresh:
        task = asyncio.create_task(_end_together(fresh, grace_s), name="ptypool-end")
        for handle in fresh:
            handle._ending = task
    for task in {handle._ending for handle in handles if handle._ending is not None}:
        await asyncio.shield(task)
    for call in calls:
        if call is not None:
            await asyncio.shield(asyncio.wrap_future(call))


def _end_elsewhere(handle: PtyHandle, grace_s: float) -> Future[None] | None:
    if handle.loop.is_running():
        return asyncio.run_coroutine_threadsafe(end_handles([handle], grace_s), handle.loop)
    handle.abandon()
    return None


async def _end_together(handles: Sequence[PtyHandle], grace_s: float) -> None:
    """The cleanup order: terminate, drain the output, reap, close."""
    ours = [handle for handle in handles if handle._session_is_ours()]
    for handle in handles:
        handle._watch.hold()
        handle._stream.drain()
    if ours:
        for pause_s in ours[0]._backend.ending([handle._started for handle in ours], grace_s):
            await asyncio.sleep(pause_s)
    for handle in handles:
        handle._watch.resume()
        handle._stream.close()
        handle._on_change(handle)
