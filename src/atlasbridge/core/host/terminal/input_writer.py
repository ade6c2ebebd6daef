"""All input to the tool passes through here: the person's keys, answers to prompts, answers to queries.

Writes never block: bytes that the tool does not accept yet are queued. The injection gate delays the person's keys
while an answer is typed, and then sends them in order.
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
        self._wake = wake  # wakes the thread that polls for `flush`
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
        """Whether bytes wait for the tool to read."""
        return bool(self._queue)

    def type(self, data: bytes) -> bool:
        """Types keys of the person at the terminal: now, or after the running injection. Returns False if some are
        delayed."""
        with self._lock:
            if self._holding:
                held, data = part_answers(data)  # the tool can wait for these while an answer is typed
                self._held += held
            if data:
                self._put(data)
            return not (self._queue or self._held)

    def send(self, data: bytes) -> bool:
        """Writes now, past the gate. What the tool does not accept is queued. Returns False if the terminal is gone."""
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
            return False  # nothing will read it
        self.last_input_at = self._clock.now()
        if done < len(data):
            self._queue += data[done:]
            self._wake()
        return True

    def flush(self) -> None:
        """Writes the queue, as far as the tool accepts it."""
        with self._lock:
            waiting, self._queue = bytes(self._queue), bytearray()
            if waiting:
                self._put(waiting)

    @contextmanager
    def injection(self, timeout_s: float) -> Iterator[None]:
        """Closes the gate: the person's keys are delayed until the end of the block."""
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
                    self._wake()  # the keyboard thread can have stopped at the backlog limit
            self._turn.release()
