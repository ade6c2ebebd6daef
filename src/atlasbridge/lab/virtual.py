"""How late was a prompt raised, on a clock that no busy machine can slow down?

What a live terminal told its detector is told to a fresh one again, with every wake-up in time to the millisecond and
the probe's answers as they were given next.  What is left is the detector's own patience.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from atlasbridge.core.detection.commands import Command, RaisePrompt, RequestProbe, RequestWakeup
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    Event,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    ReplyTyped,
    WakeupDue,
)

TAIL_S = 40.0


@dataclass(slots=True)
class Trace:
    """What happened on a terminal, with the second of each event, and what the probe said when."""

    events: list[tuple[float, Event, int]] = field(default_factory=list)  # and how many prompts had been raised by then
    looks: list[tuple[float, ProbeAnswer]] = field(default_factory=list)

    def keep(self, event: Event, now: float, raised: int) -> None:
        if isinstance(event, ProbeAnswered):
            self.looks.append((now, event.answer))
        elif not isinstance(event, WakeupDue):
            self.events.append((now, event, raised))

    def look(self, now: float) -> ProbeAnswer:
        """The next answer from this moment on: a machine under load asks late, but it asks about the same program."""
        at = bisect_left(self.looks, now, key=lambda item: item[0])
        return self.looks[min(at, len(self.looks) - 1)][1]

    def look_before(self, now: float) -> ProbeAnswer:
        """The last answer that was given by then."""
        at = bisect_left(self.looks, now, key=lambda item: item[0])
        return self.looks[max(at - 1, 0)][1]


class VirtualClockRun:
    """One run of a trace; `latencies` are the seconds to each raising from the moment it came to rest: from its last
    output, the last answer, or the first look that found it at rest after one that found it at work."""

    def __init__(self, detector: Detector, trace: Trace) -> None:
        self.latencies: list[float] = []
        self._detector = detector
        self._trace = trace
        self._wake_at: float | None = None
        self._last = 0.0
        self._busy = False
        self._held: ProbeAnswer | None = None  # what the probe says while all else is put off
        self._shift = 0.0  # by how much all is later than it was

    def run(self, raised: int) -> list[float]:
        """Until so many prompts were raised, or nothing is left to happen."""
        for at, event, before in self._trace.events:
            self._pass_time(at + self._shift)
            self._await_raised(before, at, self._trace.look_before(at))
            now = at + self._shift
            if isinstance(event, OutputReceived | ReplyTyped):
                self._last = now
            self._obey(self._detector.handle(event, now), now)
        self._await_raised(raised, self._trace.events[-1][0], None)
        return self.latencies

    def _await_raised(self, count: int, at: float, held: ProbeAnswer | None) -> None:
        """Whatever follows a prompt follows it here, too: an answer, above all.  All else is put off until then, and
        the probe says what it said last before (None: nothing follows)."""
        end = at + self._shift + TAIL_S
        self._held = held
        while len(self.latencies) < count and self._wake_at is not None and self._wake_at <= end:
            if held is not None:
                self._shift = max(self._shift, self._wake_at - at)
            self._pass_time(self._wake_at)
        self._held = None

    def _pass_time(self, until: float) -> None:
        while self._wake_at is not None and self._wake_at <= until:
            now, self._wake_at = self._wake_at, None
            self._obey(self._detector.handle(WakeupDue(), now), now)

    def _obey(self, commands: list[Command], now: float) -> None:
        for command in commands:
            if isinstance(command, RequestWakeup):
                self._wake_at = command.at
            elif isinstance(command, RequestProbe):
                answer = self._held or self._trace.look(now - self._shift)
                if self._busy:
                    self._last = now
                self._busy = answer.state is ProbeState.BUSY
                self._obey(self._detector.handle(ProbeAnswered(answer), now), now)
            elif isinstance(command, RaisePrompt):
                self.latencies.append(now - self._last)
