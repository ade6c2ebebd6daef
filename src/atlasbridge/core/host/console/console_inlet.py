"""The inlet of a console: the same gate and the same order, but a thread of its own writes: a write may block."""

from __future__ import annotations

import queue
from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.inlet import Inlet


class ConsoleInlet(Inlet):
    def __init__(self, write: Callable[[bytes], None], clock: Clock) -> None:
        super().__init__(-1, clock, lambda: None)
        self._write = write
        self._letters: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone = False

    def _put(self, data: bytes) -> bool:
        """What is queued counts as waiting until it is written.  The caller holds the lock."""
        if self._gone:
            return False
        self.last_input_at = self._clock.now()
        self._queue += data
        self._letters.put(data)
        return True

    def flush(self) -> None:
        """The writing thread needs nobody to call it."""

    def stop(self) -> None:
        self._letters.put(None)

    def run(self, beat: Beat) -> None:
        """The task `pty_writer`.  A program that reads nothing may keep it as long as it likes."""
        beat.rest()
        while not beat.retired and (data := self._letters.get()) is not None:
            try:
                self._write(data)
            except OSError:
                self._gone = True
            with self._lock:
                del self._queue[: len(data)]
