"""Small stand-ins for the parts of a session: a detector that says what it is told, a probe, a terminal on a pipe."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.detection.events import (
    Command,
    Event,
    OutputReceived,
    ProbeAnswer,
    ProbeState,
    RaisePrompt,
    StructuredEventReceived,
    WithdrawPrompt,
)
from atlasbridge.core.host.relay import InputWriter, OutputRelay, Ring
from atlasbridge.core.host.watchdog import StallWatchdog
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import LineFlags, Size

PROMPT = Prompt(PromptType.TYPE_YES_NO, 0.9, "Continue? (y/n)", digest="d1")


class FakeDetector:
    """Feeds its screen, remembers every event, and answers with the commands it was given."""

    def __init__(self) -> None:
        self.screen: Any = Screen(24, 80)
        self.despite_busy = False
        self.first_keys = 0
        self.line_begun = False
        self.secrets: tuple[str, ...] = ()
        self.open_prompt: Prompt | None = None
        self.events: list[tuple[Event, float]] = []
        self.answers: dict[type, list[Command]] = {}
        self.shows: Callable[[str], bool] = lambda digest: True

    def handle(self, event: Event, now: float) -> list[Command]:
        self.events.append((event, now))
        if isinstance(event, OutputReceived):
            self.screen.feed(event.data)
        commands = self.answers.pop(type(event), [])
        for command in commands:
            if isinstance(command, RaisePrompt):
                self.open_prompt = command.prompt
            elif isinstance(command, WithdrawPrompt) and self.open_prompt and self.open_prompt.digest == command.digest:
                self.open_prompt = None
        return commands

    def still_shows(self, digest: str) -> bool:
        return self.shows(digest)

    def has_left(self, digest: str) -> bool:
        return not self.shows(digest)

    def refilled(self, digest: str) -> bool:
        return False

    def took_first_key(self) -> None:
        self.first_keys += 1

    def begun(self, now: float) -> bool:
        return False

    def explain(self) -> list[str]:
        return ["the probe says reading", "one look is not enough"]

    def reconsider(self) -> None:
        self.open_prompt = None

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event, _ in self.events]


class FakeProbe:
    """Says what the tool does, and remembers when it was asked."""

    def __init__(self, state: ProbeState = ProbeState.READING) -> None:
        self.answer = ProbeAnswer(state)
        self.before_look: Callable[[], None] = lambda: None
        self.looks: list[tuple[float, float | None]] = []

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        self.looks.append((quiet_s, input_age_s))
        self.before_look()
        return self.answer


class FakePty:
    """A terminal whose master is the write end of a pipe: what is typed can be read from `typed`."""

    pid = 1

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self.line = LineFlags(canonical=True)
        self.unread_bytes = 0
        self.signals: list[int] = []
        self.sizes: list[Size] = []

    def typed(self) -> bytes:
        try:
            return os.read(self._read_fd, 1 << 20)
        except BlockingIOError:
            return b""

    def fileno(self) -> int:
        return self._write_fd

    def resize(self, size: Size) -> None:
        self.sizes.append(size)

    def flags(self) -> LineFlags:
        return self.line

    def unread(self) -> int:
        return self.unread_bytes

    def set_echo(self, on: bool) -> None:
        self.echo = on

    def signal(self, number: int) -> None:
        self.signals.append(signal.Signals(number))

    def poll(self) -> int | None:
        return None

    def stopped(self) -> bool:
        return False

    def is_own(self, fd: int) -> bool:
        return False

    def end_steps(self, grace_s: float) -> Iterator[float]:
        return iter(())

    def close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


@dataclass
class Bench:
    """A watchdog with everything around it, on a clock that is advanced by hand."""

    clock: ManualClock = field(default_factory=ManualClock)
    detector: FakeDetector = field(default_factory=FakeDetector)
    probe: FakeProbe = field(default_factory=FakeProbe)
    pty: FakePty = field(default_factory=FakePty)
    settings: SessionSettings = field(default_factory=SessionSettings)

    def __post_init__(self) -> None:
        self._next_id = ""
        self.posted: list[dict[str, Any]] = []
        self.ring = Ring(self.settings.ring_bytes)
        self.input_writer = InputWriter(self.pty.fileno(), self.clock, lambda: None)
        self.output = OutputRelay(self.pty, self.input_writer, self.ring, self.clock, lambda: None, lambda gone: None)
        self.watch = StallWatchdog(
            self.detector,
            self.probe,
            self.output,
            self.ring,
            self.input_writer,
            self.clock,
            self.settings,
            deque(),
            self.pty.unread,
            self._make_id,
        )
        self.watch.tell_hub_by(self.posted.append)

    def _make_id(self) -> str:
        given, self._next_id = self._next_id, ""
        return given or new_id()

    def raise_prompt(self, prompt: Prompt = PROMPT, prompt_id: str = "p1") -> None:
        """As if the detector had raised it a while ago: of that nothing is told and nothing remembered."""
        before = len(self.detector.events), len(self.posted)
        self._next_id = prompt_id
        self.detector.answers[StructuredEventReceived] = [RaisePrompt(prompt)]
        self.watch.handle(StructuredEventReceived("prompt", "", "the test"))
        del self.detector.events[before[0] :], self.posted[before[1] :]

    def show(self, data: bytes) -> None:
        self.ring.append(data)
        self.output.last_output_at = self.clock.now()
