"""Everything that is typed into the tool passes here: the person's keys, answers to prompts, answers to queries.

Writes never block: what the tool does not take yet is queued.  The injection gate holds the person's keys back while
an answer is typed, and lets them follow in order.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atlasbridge.core.clock import Clock
from atlasbridge.core.screen.reports import part_answers


class GateTimeout(Exception):
    """Another injection did not end in time."""


class Inlet:
    def __init__(self, fd: int, clock: Clock, wake: Callable[[], None]) -> None:
        self._fd = fd
        self._clock = clock
        self._wake = wake  # calls whoever polls for `flush`
        self._lock = threading.Lock()  # of all but the person's keys
        self._turn = threading.Lock()  # one injection at a time
        self._queue = bytearray()
        self._held = bytearray()
        self._holding = False
        self._typing = False  # a key is on its way
        self._shut = False  # keys have to wait
        self.last_input_at: float | None = None

    @property
    def backlog(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def waiting(self) -> bool:
        """Whether something waits for the tool to read."""
        return bool(self._queue)

    def type(self, data: bytes) -> bool:
        """Keys of the person at the terminal: now, or behind the injection that is under way.  False: some wait.

        For the thread that reads the keyboard only.  A key would feel a lock, so it takes none: it shows itself before
        it looks whether the way is shut, and whoever shuts the way waits until no key is on it.
        """
        self._typing = True
        try:
            if not self._shut:
                done = os.write(self._fd, data)
                self.last_input_at = self._clock.now()
                return done == len(data) or self._keep(data[done:])
        except BlockingIOError:
            return self._keep(data)
        except OSError:
            return True  # nobody will read it
        finally:
            self._typing = False
        with self._alone():
            if self._holding:
                held, data = part_answers(data)  # the tool may wait for these in the middle of what is typed
                self._held += held
            if data:
                self._put(data)
            return not (self._queue or self._held)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile, not even the person."""
        with self._lock:
            self._shut = True
            while self._typing:
                time.sleep(0)
            try:
                yield
            finally:
                self._shut = self._holding or bool(self._queue)

    def send(self, data: bytes) -> bool:
        """Write now, past the gate; what the tool does not take is queued.  False: there is no terminal any more."""
        with self._alone():
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
            self._keep(data[done:])
        return True

    def _keep(self, rest: bytes) -> bool:
        """False: it waits until the tool reads."""
        self._queue += rest
        self._shut = True
        self._wake()
        return False

    def flush(self) -> None:
        """Write what is queued, as far as the tool takes it."""
        with self._alone():
            waiting, self._queue = bytes(self._queue), bytearray()
            if waiting:
                self._put(waiting)

    @contextmanager
    def injection(self, timeout_s: float) -> Iterator[None]:
        """Hold the gate: the person's keys wait until the end of the block."""
        if not self._turn.acquire(timeout=timeout_s):
            raise GateTimeout
        try:
            with self._alone():
                self._holding = True
            yield
        finally:
            with self._alone():
                self._holding = False
                held, self._held = bytes(self._held), bytearray()
                if held:
                    self._put(held)
                    self._wake()  # whoever reads the keyboard may have stopped at the backlog
            self._turn.release()
