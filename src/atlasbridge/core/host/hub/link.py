"""`response_consumer`: the session's connection to the hub.  Tells it what happens and does what it asks.

The hub may be gone at any time: the host connects again and says everything that still matters in its `hello`.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import Clock
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.hub_line import dial
from atlasbridge.core.readiness import POLLERR, POLLHUP, POLLIN, POLLOUT, make_poller
from atlasbridge.core.session.settings import SessionSettings

_MAX_OUTBOX = 256
_SEND_BYTES = 65536
_RESTART_PAUSE_S = 0.5  # whoever restarts a hub on purpose is first, and a hub that dies at once is not hammered

Message = dict[str, Any]


class HubLink:
    def __init__(
        self,
        path: str,
        clock: Clock,
        settings: SessionSettings,
        greet: Callable[[Callable[[Message], None]], None],
        receive: Callable[[Message], None],
        start_hub: Callable[[], None],
    ) -> None:
        self._path = path
        self._clock = clock
        self._settings = settings
        self._greet = greet  # says hello through the function it is given, with nothing said in between
        self._receive = receive
        self._start_hub = start_hub
        self._wakeup = Wakeup()
        self._lock = threading.Lock()
        self._outbox: deque[bytes] = deque()
        self._unsent = b""
        self._connected = False
        self._serving: socket.socket | None = None
        self._stopped = False
        self._may_start_at: float | None = 0.0  # when we may start a hub ourselves; None: that is not our business
        self._hub_means_it = False

    @property
    def connected(self) -> bool:
        return self._connected

    def post(self, message: Message) -> None:
        """Say it now.  While no hub is there it is dropped: `hello` tells what still matters."""
        with self._lock:
            if not self._connected:
                return
            if message.get("m") == "screen" and len(self._outbox) > _MAX_OUTBOX:
                return
            self._outbox.append(wire.encode(message))
        self._wakeup.set()

    def stop(self) -> None:
        self._stopped = True
        self._wakeup.set()

    def run(self, beat: Beat) -> None:
        delay_s = self._settings.hub_retry_min_s
        while not (self._stopped or beat.retired):
            connection = self._connect()
            if connection is None:
                beat.rest()
                self._wakeup.wait(delay_s)
                delay_s = min(delay_s * 2, self._settings.hub_retry_max_s)
                continue
            delay_s = self._settings.hub_retry_min_s
            began = self._clock.now()
            try:
                self._serve(connection, beat)
                if not self._hub_means_it:  # it died: somebody must ask while people are away
                    self._may_start_at = self._clock.now() + _RESTART_PAUSE_S
            finally:
                with self._lock:
                    if self._serving is connection:  # otherwise this thread was replaced meanwhile
                        self._connected = False
                connection.close()
            if self._clock.now() - began < delay_s and not (self._stopped or beat.retired):
                beat.rest()
                self._wakeup.wait(delay_s)  # a hub that hangs up at once (its disk is full) is not hammered

    def _connect(self) -> socket.socket | None:
        try:
            connection = dial(self._path)
        except OSError:
            if self._may_start_at is not None and self._clock.now() >= self._may_start_at:
                self._may_start_at = None
                self._start_hub()
            return None
        self._may_start_at, self._hub_means_it = None, False
        connection.setblocking(False)
        return connection

    def _say_hello(self, message: Message) -> None:
        with self._lock:
            self._outbox.clear()
            self._unsent = wire.encode(message)
            self._connected = True

    def _serve(self, connection: socket.socket, beat: Beat) -> None:
        self._serving = connection
        self._greet(self._say_hello)
        buffer = wire.LineBuffer()
        waiter = make_poller()
        waiter.register(self._wakeup.fileno(), POLLIN)
        while not (self._stopped and not self._outbox and not self._unsent) and not beat.retired:
            wants_out = POLLOUT if self._unsent or self._outbox else 0
            waiter.register(connection, POLLIN | wants_out)
            beat.rest()
            ready = dict(waiter.poll())
            beat.work()
            if self._wakeup.fileno() in ready:
                self._wakeup.clear()
            events = ready.get(connection.fileno(), 0)
            try:
                if events & POLLOUT:
                    self._send_some(connection)
                if events & (POLLIN | POLLHUP | POLLERR) and not self._read(connection, buffer):
                    return
            except (OSError, ValueError):
                return

    def _send_some(self, connection: socket.socket) -> None:
        with self._lock:
            while self._outbox and len(self._unsent) < _SEND_BYTES:
                self._unsent += self._outbox.popleft()
        try:
            self._unsent = self._unsent[connection.send(self._unsent) :]
        except BlockingIOError:
            pass

    def _read(self, connection: socket.socket, buffer: wire.LineBuffer) -> bool:
        try:
            data = connection.recv(_SEND_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        for message in buffer.feed(data):
            if message.get("m") == "goodbye":
                self._hub_means_it = True
            else:
                self._receive(message)
        return True
