"""Everything that is typed into the tool passes here: the person's keys, answers to prompts, answers to queries.

Writes never block: what the tool does not take yet is queued.  The injection gate holds the person's keys back while
an answer is typed, and lets them follow in order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atlasbridge.core.clock import Clock
from atlasbridge.core.screen.queries import part_answers


class GateTimeout(Exception):
    """Another injection did not end in time."""


class InputWriter:
    def __init__(self, fd: int, clock: Clock, wake: Callable[[], None]) -> None:
        self._fd = fd
        self._clock = clock
        self._wake = wake  # calls whoever polls for `flush`
        self._lock = threading.Lock()  # one writer at a time; costs a key 0.7 us of an echo of 77
        self._turn = threading.Lock()  # one injection at a time
        self._queue = bytearray()
        self._held = bytearray()
        self._holding = False
        self.last_input_at: float | None = None

    @property
    def backlog(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def waiting(self) -> bool:
        """Whether something waits for the tool to read."""
        return bool(self._queue)

    def type(self, data: bytes) -> bool:
        """Keys of the person at the terminal: now, or behind the injection that is under way.  False: some wait."""
        with self._lock:
            if self._holding:
                held, data = part_answers(data)  # the tool may wait for these in the middle of what is typed
                self._held += held
            if data:
                self._put(data)
            return not (self._queue or self._held)

    def send(self, data: bytes) -> bool:
        """Write now, past the gate; what the tool does not take is queued.  False: there is no terminal any more."""
        with self._lock:
            return self._put(data)

    def _put(self, data: bytes) -> bool:
        done = 0
        try:
            if not self._queue:
                done = os.write(self._fd, data)
        except BlockingIOError:
            pass
        except OSError:
            return False  # nobody will read it
        self.last_input_at = self._clock.now()
        if done < len(data):
            self._queue += data[done:]
            self._wake()
        return True

    def flush(self) -> None:
        """Write what is queued, as far as the tool takes it."""
        with self._lock:
            waiting, self._queue = bytes(self._queue), bytearray()
            if waiting:
                self._put(waiting)

    @contextmanager
    def injection(self, timeout_s: float) -> Iterator[None]:
        """Hold the gate: the person's keys wait until the end of the block."""
        if not self._turn.acquire(timeout=timeout_s):
            raise GateTimeout
        try:
            with self._lock:
                self._holding = True
            yield
        finally:
            with self._lock:
                self._holding = False
                held, self._held = bytes(self._held), bytearray()
                if held:
                    self._put(held)
                    self._wake()  # whoever reads the keyboard may have stopped at the backlog
            self._turn.release()
