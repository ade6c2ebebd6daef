"""A session without clients and hub: the caller reads the tool's terminal, and the usual analysis detects prompts and
types.

For programs that drive a tool themselves through the fixed adapter interface. Detector, watchdog and typist are those
of every session.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.ports import DetectorLike, Opened
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.input_writer import InputWriter
from atlasbridge.core.host.terminal.relay import OutputRelay
from atlasbridge.core.host.terminal.ring import Ring
from atlasbridge.core.host.typing.steps import Walk
from atlasbridge.core.host.typing.typed import Outcome
from atlasbridge.core.host.typing.typist import Encode, Typist
from atlasbridge.core.host.watchdog import StallWatchdog
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.model import Answer
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Pty


class BareSession:
    def __init__(
        self,
        pty: Pty,
        detector: DetectorLike,
        probe: WaitingProbe,
        encode: Encode,
        clock: Clock,
        settings: SessionSettings,
    ) -> None:
        ring = Ring(settings.ring_bytes)
        self._input_writer = InputWriter(pty.fileno(), clock, lambda: None)
        self._output = OutputRelay(pty, self._input_writer, ring, clock, lambda: None, lambda attachment: None)
        self._watch = StallWatchdog(
            detector, probe, self._output, ring, self._input_writer, clock, settings, deque(), pty.unread
        )
        self._typist = Typist(Walk(self._watch, self._input_writer, pty, clock, settings, self._pause), encode)
        self._tick = threading.Event()
        self._beat = Beat(clock)
        self._task = threading.Thread(target=self._watch.run, args=(self._beat,), name="stall_watchdog", daemon=True)

    def start(self) -> None:
        self._task.start()

    def take_in(self, chunk: bytes) -> None:
        """Takes output that was read from the terminal, in order."""
        self._output.take_in(chunk)
        self._flush()

    @property
    def last_output_at(self) -> float:
        return self._output.last_output_at

    @property
    def screen(self) -> Any:
        return self._watch.screen

    @property
    def opened(self) -> Opened | None:
        with self._watch.lock:
            return self._watch.opened

    def type(self, prompt_id: str, answer: Answer) -> Outcome:
        """Blocks until the keys are typed and the tool has taken them, or until it is known why not."""
        return self._typist.type(prompt_id, answer)

    def type_keys(self, data: bytes) -> bool:
        """Types keys outside any prompt, unchanged."""
        return self._typist.type_keys(data)

    def stop(self) -> None:
        """The tool has ended: its last output is analysed, then the thread stops. Afterwards the terminal can be
        closed."""
        if not self._beat.retired:
            self._beat.retired = True
            self._watch.exited()
            self._watch.wake()
        self._task.join()

    def _pause(self, seconds: float) -> None:
        self._flush()
        self._tick.wait(seconds)

    def _flush(self) -> None:
        """Writes queued keys, because no other thread polls for a tool that did not accept its keys at once."""
        if self._input_writer.waiting:
            self._input_writer.flush()
