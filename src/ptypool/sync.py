"""The pool without asyncio, from any thread: the calls of the at-session specification, as in its examples.

One event loop in a separate thread does the work for all pools of the process. Outside of asyncio, the calls wait for
their result. Inside a running loop they return an awaitable, as in the examples: `await handle.read_timeout(1)`. So the
same names serve both, and no call blocks a loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, runtime_checkable
from uuid import UUID

from ptypool import cli, pool
from ptypool.cli import CliType, Status
from ptypool.errors import AtCapacity, HandleNotFound, PtyError, PtyInternalError, PtyIoError, SpawnFailed
from ptypool.handle import Child, Environment, Master, Name, Reader, Words, Writer
from ptypool.handle import PtyHandle as LoopHandle
from ptypool.termination import DEFAULT_GRACE_S

# One event loop in a separate thread, for callers without one: started on first use, and again after a fork. It runs
# coroutines and plain calls for other threads, and returns or raises their results.

T = TypeVar("T")
P = ParamSpec("P")

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in the loop's thread and wait for its end; an interrupt here cancels it there."""
    try:
        loop = _running_loop()
    except BaseException:
        coroutine.close()
        raise
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def call(function: Callable[[], T]) -> T:
    """Call it in the loop's thread, because plain calls must not run in parallel with the loop either."""

    async def calling() -> T:
        return function()

    return run(calling())


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _owner
    with _starting:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="ptypool-loop", daemon=True).start()
        loop = _loop
    if threading.current_thread().name == "ptypool-loop":
        raise PtyInternalError("a call that waits was made inside the loop's own thread")
    return loop


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_after_fork)


__all__ = [
    "AtCapacity",
    "CliAdapter",
    "CliType",
    "HandleNotFound",
    "PtyError",
    "PtyHandle",
    "PtyInternalError",
    "PtyIoError",
    "PtyPool",
    "SpawnFailed",
    "adapter_for",
]


def _starts(
    method: Callable[Concatenate[pool.PtyPool, P], Coroutine[Any, Any, LoopHandle]],
) -> Callable[Concatenate[PtyPool, P], PtyHandle]:
    """The same method of the pool without asyncio: it waits, and returns a handle for any thread."""

    @wraps(method)
    def start(self: PtyPool, /, *given: P.args, **named: P.kwargs) -> PtyHandle:
        return PtyHandle(self, run(method(self._pool, *given, **named)))

    return start


class PtyPool:
    """At most `max_ptys` children, from any number of threads. It cleans up when it is closed, dropped, or at exit."""

    def __init__(self, max_ptys: int, *, release_on_exit: bool = False, grace_s: float = DEFAULT_GRACE_S) -> None:
        self._pool = pool.PtyPool(max_ptys, release_on_exit=release_on_exit, grace_s=grace_s)
        self._close = weakref.finalize(self, _close, self._pool, os.getpid())

    @classmethod
    def new(cls, max_ptys: int) -> Self:
        return cls(max_ptys)

    def clone(self) -> Self:
        """The same pool for another owner: it lives until all of them have dropped it."""
        return self

    __copy__ = clone

    @property
    def max_ptys(self) -> int:
        return self._pool.max_ptys

    def active_count(self) -> int:
        return self._pool.active_count()

    def available(self) -> int:
        return self._pool.available()

    spawn = _starts(pool.PtyPool.spawn)
    acquire = _starts(pool.PtyPool.acquire)

    def release(self, id: UUID) -> None:
        call(lambda: self._pool.release(id))

    def kill(self, id: UUID) -> Any:
        return now_or_later(self._pool.kill(id))

    def close(self) -> None:
        """End every child. It can be called twice."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sync.PtyPool {self.active_count()}/{self.max_ptys}>"


def _later(name: str) -> Any:
    """A method of the handle that waits; inside a running loop it returns an awaitable."""

    @wraps(getattr(LoopHandle, name))
    def method(self: PtyHandle, *values: Any) -> Any:
        return now_or_later(getattr(self._handle, name)(*values))

    return method


def _called(name: str) -> Any:
    """A method of the handle that never waits; it runs in the loop's thread."""

    @wraps(getattr(LoopHandle, name))
    def method(self: PtyHandle, *values: Any) -> Any:
        return call(lambda: getattr(self._handle, name)(*values))

    return method


class PtyHandle:
    """A child on a PTY; it can be used from any thread. It has the methods of the handle for asyncio."""

    def __init__(self, owner: PtyPool, handle: LoopHandle) -> None:
        self._owner = owner  # a handle keeps its pool alive
        self._handle = handle
        self.id: UUID = handle.id
        self.pid: int = handle.pid
        here = weakref.proxy(self)  # a cycle would keep pool and child until the next garbage collection
        self.reader, self.writer, self.child, self.master = Reader(here), Writer(here), Child(here), Master(here)

    def clone(self) -> Self:
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        """For `await pool.spawn(…)`; the handle exists already."""
        return self
        yield

    __copy__ = clone

    send, send_line = _later("send"), _later("send_line")
    read, read_chunk, read_timeout = _later("read"), _later("read_chunk"), _later("read_timeout")
    wait, kill = _later("wait"), _later("kill")
    read_now, read_all_available = _called("read_now"), _called("read_all_available")
    is_alive, signal, resize = _called("is_alive"), _called("signal"), _called("resize")

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read():
            yield chunk

    @property
    def exit_status(self) -> int | None:
        return self._handle.exit_status

    @property
    def size(self) -> tuple[int, int]:
        """(rows, cols)."""
        return call(lambda: self._handle.size)

    def __repr__(self) -> str:
        return f"<sync.PtyHandle {self.id} pid={self.pid}>"


@runtime_checkable
class CliAdapter(Protocol):
    """The interface of a tool's adapter; write your own for other tools."""

    def cli_type(self) -> CliType: ...
    def binary_name(self) -> str: ...
    def default_args(self) -> list[str]: ...
    def spawn(self, pool: PtyPool, task: str, workdir: str | os.PathLike[str]) -> PtyHandle: ...
    def parse_status_output(self, output: str) -> str | None: ...


class _TaskAdapter:
    def __init__(self, adapter: cli.TaskAdapter) -> None:
        self._adapter = adapter
        self.cli_type: CliType = adapter.cli_type
        self.binary_name: Name = adapter.binary_name
        self.default_args: Words = adapter.default_args

    def spawn(
        self, pool: PtyPool, task: str, workdir: str | os.PathLike[str], *, env: Environment | None = None
    ) -> PtyHandle:
        """Start the tool on its task in `workdir`; it ends when the task is done."""
        return pool.spawn(self.binary_name, self._adapter.arguments(task), env, workdir)

    def parse_status_output(self, output: str) -> Status | None:
        return self._adapter.parse_status_output(output)


def adapter_for(cli_type: CliType | str, **choices: Any) -> _TaskAdapter:
    """The adapter of a tool; the same choices as `ptypool.cli.adapter_for`."""
    return _TaskAdapter(cli.adapter_for(cli_type, **choices))


def now_or_later(coroutine: Coroutine[Any, Any, T]) -> Any:
    """Return the result, or an awaitable inside a running loop, where nothing must block. The coroutine runs in both
    cases."""
    if not is_inside_a_loop():
        return run(coroutine)
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _running_loop()))


def is_inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _close(inner: pool.PtyPool, owner: int) -> None:
    """Also called by the garbage collector: in any thread, inside a loop or at interpreter exit."""
    if owner != os.getpid():
        return
    if not is_inside_a_loop():
        run(inner.close())
    elif _loop is not None:
        asyncio.run_coroutine_threadsafe(inner.close(), _loop)
