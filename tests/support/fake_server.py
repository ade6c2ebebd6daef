"""The ground both fakes stand on: an HTTP server on loopback in a thread of its own, and faults on demand.

A fake adds its routes and its rules. State is guarded by one lock, so a test may play the person from any thread.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

from aiohttp import web
from tests.support.waiting import DEADLINE_S

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")
FaultKind = Literal["status", "slow", "cut_before", "cut_after", "garbage", "error"]


@dataclass(slots=True)
class Fault:
    """One planned failure: `times` requests to `method` fail this way ("*" is every method)."""

    method: str
    kind: FaultKind
    times: int = 1
    status: int = 502
    description: str = "Bad Gateway"
    retry_after: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the server saw it."""

    method: str
    params: dict[str, Any]
    at: float


class FakeServer:
    """Starts and stops the thread; subclasses give routes() and may end their own sockets in on_stop()."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.calls: list[Call] = []
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.port = 0
        self._faults: list[Fault] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event | None = None

    def pass_time(self, seconds: float) -> None:
        """The chat's clock goes on: anyone who writes now has had time to read."""
        earlier = self.clock
        self.clock = lambda: earlier() + seconds

    def routes(self) -> list[web.RouteDef]:
        return []

    async def on_stop(self) -> None:
        """Subclasses wake up whatever still waits."""

    def start(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name=type(self).__name__, daemon=True)
        self._thread.start()
        assert ready.wait(DEADLINE_S), "the fake server did not start"
        return self

    def stop(self) -> None:
        """Ends every open connection; a later start() listens on the same port again (an outage)."""
        if self._loop is None or self._stopping is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(DEADLINE_S)
        self._loop = self._thread = None

    @asynccontextmanager
    async def serving_here(self) -> AsyncIterator[Self]:
        """On the caller's own loop, without a thread: two busy threads of one Python wait for each other."""
        ready = threading.Event()
        serving = asyncio.create_task(self._serve(ready), name=type(self).__name__)
        while not ready.is_set():
            await asyncio.sleep(0.001)
        try:
            yield self
        finally:
            if self._stopping is not None:
                self._stopping.set()
            await serving
            self._loop = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fail(self, method: str, kind: FaultKind, **options: Any) -> Fault:
        """Plan a fault for the next requests of this method."""
        fault = Fault(method, kind, **options)
        with self.lock:
            self._faults.append(fault)
        return fault

    def heal(self) -> None:
        with self.lock:
            self._faults.clear()

    def calls_of(self, method: str) -> list[Call]:
        with self.lock:
            return [call for call in self.calls if call.method == method]

    def wait_for(self, look: Callable[[], T | None], what: str = "", deadline_s: float = DEADLINE_S) -> T:
        """Block until look() is true and give what it gave; the assertion names what never came."""
        until = time.monotonic() + deadline_s
        while not (found := self._look(look)):
            assert time.monotonic() < until, f"never happened: {what or look}"
            with self.changed:
                self.changed.wait(0.05)  # what is looked at may also change elsewhere, unannounced
        return found

    def _look(self, look: Callable[[], T]) -> T:
        with self.lock:
            return look()

    async def until(self, look: Callable[[], T | None], what: str = "", deadline_s: float = DEADLINE_S) -> T:
        """wait_for() for a test whose own event loop must go on meanwhile."""
        return await asyncio.to_thread(self.wait_for, look, what, deadline_s)

    def tell(self) -> None:
        """State changed: wake everyone who waits for a condition."""
        with self.changed:
            self.changed.notify_all()

    def soon(self, action: Callable[[], object]) -> None:
        """Run something on the server's own loop, from any thread; nothing when it is down."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(action)

    def note(self, method: str, params: dict[str, Any]) -> None:
        with self.lock:
            self.calls.append(Call(method, params, self.clock()))
        self.tell()

    def take_fault(self, method: str) -> Fault | None:
        with self.lock:
            for fault in self._faults:
                if fault.method in (method, "*"):
                    fault.times -= 1
                    if fault.times <= 0:
                        self._faults.remove(fault)
                    return fault
        return None

    def _run(self, ready: threading.Event) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(self.routes())
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", self.port))
        await web.SockSite(runner, listener).start()
        self.port = listener.getsockname()[1]
        ready.set()
        await self._stopping.wait()
        self._loop.remove_reader(
            listener
        )  # asyncio loses a socket that it accepted when the server closes at that moment
        await asyncio.sleep(0.02)
        await self.on_stop()
        await runner.cleanup()
        await asyncio.sleep(0.02)  # closed transports let go of their sockets in the next rounds of the loop


def cut(request: web.Request) -> web.StreamResponse:
    """Close the connection without a word, as a dying proxy does."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
