"""PtyPool: a limited number of children, each on its own terminal.

It counts slots, assigns them in turn, and ends every child when it is closed. The counting is exact from any thread; a
handle belongs to the event loop that it was spawned in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from ptypool.backend import Backend, Started, of_this_system
from ptypool.errors import AtCapacity, HandleNotFound, PtyInternalError
from ptypool.handle import Count, Duration, Environment, PtyHandle, end_handles, environment, seconds_or_none
from ptypool.termination import DEFAULT_GRACE_S

_REMEMBERED_IDS = 1024


class PtyPool:
    """A pool of at most `max_ptys` PTYs. Close it, or use it as `async with PtyPool(10) as pool`.

    `release_on_exit` frees a slot as soon as its child ends by itself; otherwise release, kill and close free it.
    """

    def __init__(
        self,
        max_ptys: int,
        *,
        release_on_exit: bool = False,
        grace_s: float = DEFAULT_GRACE_S,
        backend: Backend | None = None,
    ) -> None:
        if max_ptys < 1:
            raise ValueError(f"a pool needs room for at least one PTY, not {max_ptys}")
        self.max_ptys = max_ptys
        self._release_on_exit = release_on_exit
        self._grace_s = grace_s
        self._backend = backend or of_this_system()
        self._held: dict[UUID, PtyHandle] = {}
        self._open: set[PtyHandle] = set()
        self._settled: OrderedDict[UUID, None] = OrderedDict()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._promised = 0  # slots of running spawns, and of waiting calls whose turn has come
        self._counting = threading.RLock()  # a finalizer can call us again in the thread that has the lock
        self._closed = False
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _abandon, self._open, self._owner)

    @classmethod
    def new(cls, max_ptys: int) -> Self:
        """As in the specification; `ptypool.pty_pool` has its other calls."""
        return cls(max_ptys)

    def __repr__(self) -> str:
        return f"<PtyPool {self.active_count}/{self.max_ptys}>"

    @property
    def active_count(self) -> Count:
        """Slots in use; can also be called."""
        return Count(len(self._held))

    @property
    def available(self) -> Count:
        """Slots that spawn() can take now, without those promised to a waiting acquire(); can also be called."""
        return Count(self.max_ptys - len(self._held) - self._promised)

    @property
    def waiting(self) -> int:
        """How many acquire() calls wait for a slot."""
        return len(self._waiting)

    @property
    def handles(self) -> tuple[PtyHandle, ...]:
        """The handles that have a slot, oldest first."""
        with self._counting:
            return tuple(self._held.values())

    async def spawn(
        self,
        cmd: str,
        args: Sequence[str] = (),
        env: Environment | None = None,
        cwd: str | os.PathLike[str] | None = None,
        size: tuple[int, int] = (24, 80),
        *,
        inherit_env: bool = True,
        termios_attrs: list[Any] | None = None,
    ) -> PtyHandle:
        """Start `cmd` on a new PTY of `size` (rows, cols). Raises AtCapacity or SpawnFailed.

        `env` (a mapping, or pairs) is added to our own environment, or replaces it if `inherit_env` is false.
        """
        environ = _environment(environment(env), inherit_env, cwd)
        with self._promise():
            return self._adopt(self._backend.start([cmd, *args], environ, cwd, size, termios_attrs))

    async def acquire(
        self,
        cmd: str,
        args: Sequence[str] = (),
        env: Environment | None = None,
        cwd: str | os.PathLike[str] | None = None,
        size: tuple[int, int] = (24, 80),
        *,
        timeout_s: Duration | None = None,
        inherit_env: bool = True,
        termios_attrs: list[Any] | None = None,
    ) -> PtyHandle:
        """Like spawn, but wait in turn for a free slot. Raises AtCapacity after `timeout_s`."""
        self._check_open()
        environ = _environment(environment(env), inherit_env, cwd)
        waiter = self._join_queue()
        if waiter is not None:
            await self._wait_for_slot(waiter, seconds_or_none(timeout_s))
        with self._promise(promised=waiter is not None):
            return self._adopt(self._backend.start([cmd, *args], environ, cwd, size, termios_attrs))

    def release(self, id: UUID) -> None:
        """Free the slot. A running child continues with its handle until the pool is closed."""
        self._check_owner()
        with self._counting:
            if id not in self._held and id not in self._settled:
                raise HandleNotFound(id)
            self._settled.pop(id, None)
            self._held.pop(id, None)
            self._serve_waiting()

    async def kill(self, id: UUID) -> int | None:
        """End the child and free its slot. Returns its exit status, or None if its own end had freed the slot."""
        self._check_owner()
        handle = self._held.get(id)
        if handle is None:
            self.release(id)
            return None
        await end_handles([handle], self._grace_s)
        with self._counting:
            self._settled.pop(id, None)
            self._held.pop(id, None)  # a handle whose loop no longer runs cannot do it itself
            self._serve_waiting()
        if handle.exit_status is None:
            raise PtyInternalError(f"process {handle.pid} has survived SIGKILL, it hangs in the kernel")
        return handle.exit_status

    async def close(self) -> None:
        """End every child, also released ones, and refuse new ones. It can be called twice."""
        self._check_owner()
        await end_handles(self._shut(), self._grace_s)
        self._forget_all()

    def close_now(self) -> None:
        """Kill and reap every child at once, without an event loop: if the loop was closed before the pool."""
        self._check_owner()
        for handle in self._shut():
            handle.abandon()
        self._forget_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextlib.contextmanager
    def _promise(self, promised: bool = False) -> Iterator[None]:
        """Reserve a slot while a child is being started, so that no other thread can take it."""
        with self._counting:
            self._check_open()
            if not promised:
                if self.available <= 0:
                    raise AtCapacity(self.max_ptys)
                self._promised += 1
        try:
            yield
        finally:
            with self._counting:
                self._promised -= 1
                self._serve_waiting()  # a failed spawn frees the slot for the next

    def _adopt(self, started: Started) -> PtyHandle:
        pool = weakref.ref(self)  # a handle must not keep a forgotten pool alive
        try:
            handle = PtyHandle(started, lambda changed: _tell(pool, changed), self._grace_s, self._backend)
        except BaseException:
            self._backend.discard(started)
            raise
        with self._counting:
            self._open.add(handle)
            if not self._closed:
                self._held[handle.id] = handle
                return handle
        handle.abandon()
        raise PtyInternalError("the pool was closed")

    def _join_queue(self) -> asyncio.Future[None] | None:
        """Return None if there is a free slot and no queue; the slot is then taken as by spawn()."""
        with self._counting:
            if self.available > 0 and not self._waiting:
                return None
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            return waiter

    async def _wait_for_slot(self, waiter: asyncio.Future[None], timeout_s: float | None) -> None:
        """Return when a slot is promised to us (counted in `_promised`)."""
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except BaseException as error:
            with self._counting:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                elif not self._closed:
                    self._promised -= 1  # too late for us: the next one can have it
                self._serve_waiting()
            if isinstance(error, TimeoutError):
                raise AtCapacity(self.max_ptys) from error
            raise

    def _serve_waiting(self) -> None:
        while self._waiting and self.available > 0:
            waiter = self._waiting.popleft()
            if _settle(waiter, None):
                self._promised += 1

    def _handle_changed(self, handle: PtyHandle) -> None:
        with self._counting:
            if handle.closed:
                self._open.discard(handle)
            exited = self._release_on_exit and handle.exit_status is not None
            if handle.id in self._held and (exited or handle.killed):
                del self._held[handle.id]
                self._settled[handle.id] = None  # so that a following release() is not an error
                if len(self._settled) > _REMEMBERED_IDS:
                    self._settled.popitem(last=False)
                self._serve_waiting()

    def _shut(self) -> list[PtyHandle]:
        """Refuse new children; return those that must be ended."""
        with self._counting:
            self._closed = True
            while self._waiting:
                _settle(self._waiting.popleft(), PtyInternalError("the pool was closed"))
            return list({*self._open, *self._held.values()})

    def _forget_all(self) -> None:
        with self._counting:
            self._held.clear()
            self._open.clear()

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise PtyInternalError("this pool belongs to the process that this one was forked from")

    def _check_open(self) -> None:
        self._check_owner()
        if self._closed:
            raise PtyInternalError("the pool is closed")


def _environment(added: Mapping[str, str], inherit: bool, cwd: str | os.PathLike[str] | None) -> dict[str, str]:
    """PWD follows the working directory, because some tools trust it more than the kernel."""
    environ = {**(os.environ if inherit else {}), **added}
    environ.setdefault("TERM", "xterm-256color")
    if cwd is not None and "PWD" not in added:
        environ["PWD"] = os.path.abspath(cwd)
    return environ


def _settle(waiter: asyncio.Future[None], error: PtyInternalError | None) -> bool:
    """Wake one waiting call in its own loop; return whether it still waited."""
    if waiter.done() or waiter.get_loop().is_closed():
        return False
    waiter.get_loop().call_soon_threadsafe(_finish, waiter, error)
    return True


def _finish(waiter: asyncio.Future[None], error: PtyInternalError | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)


def _tell(pool: weakref.ref[PtyPool], handle: PtyHandle) -> None:
    if (owner := pool()) is not None:
        owner._handle_changed(handle)


def _abandon(handles: set[PtyHandle], owner: int) -> None:
    """The pool was not closed, but its children must not outlive it."""
    if owner != os.getpid() or not handles:
        return
    warnings.warn(f"a PtyPool was not closed, {len(handles)} children were killed", ResourceWarning, stacklevel=2)
    for handle in list(handles):
        handle.abandon()
    handles.clear()
