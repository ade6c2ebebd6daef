"""What the detector costs: one judgement of a settled screen, and 24 simulated hours of a busy session."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from dataclasses import dataclass

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.commands import Command, RaisePrompt, RequestProbe, RequestWakeup
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    ReplyTyped,
    WakeupDue,
)

READING = ProbeAnswered(ProbeAnswer(ProbeState.READING, echo=True, canonical=True))
BUSY = ProbeAnswered(ProbeAnswer(ProbeState.BUSY))
BLIND = ProbeAnswered(ProbeAnswer(ProbeState.UNKNOWN))


@dataclass(frozen=True, slots=True)
class Day:
    asked: int
    raised: int
    kb_after_an_hour: float
    kb_at_the_end: float


def judgement_us(rounds: int = 300) -> float:
    """Median microseconds of one look at a full screen whose last line asks."""
    detector = Detector(load_dialect("generic"), 40, 120)
    text = "".join(f"line {i} of a build log that fills the screen\r\n" for i in range(60)) + "Continue? (y/n) "
    detector.handle(OutputReceived(text.encode()), 0.0)
    samples = []
    for i in range(rounds):
        detector.handle(OutputReceived(b"\x1b[1;1H%d\x1b[40;17H" % (i % 10)), i)
        begun = time.perf_counter()
        detector.handle(READING, i + 0.5)
        samples.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(samples)


def raised_without_probe_s(limit_s: float = 10.0) -> float:
    """Seconds on a virtual clock from the last byte to the prompt, where the system says nothing about the tool."""
    detector = Detector(load_dialect("generic"), 40, 120)
    now, wake_at = 0.0, 0.0
    queue: list[Command] = detector.handle(OutputReceived(b"Continue? (y/n) "), now)
    while now < limit_s:
        while queue:
            command = queue.pop(0)
            if isinstance(command, RaisePrompt):
                return now
            if isinstance(command, RequestProbe):
                queue += detector.handle(BLIND, now)
            elif isinstance(command, RequestWakeup):
                wake_at = command.at
        now = max(wake_at, now + 0.001)
        queue += detector.handle(WakeupDue(), now)
    raise RuntimeError("the prompt was never raised")


def a_busy_day(hours: int = 24, step_s: float = 60.0) -> Day:
    """Every simulated minute: some output, a prompt, an answer.  Memory after the first hour and at the end."""
    detector = Detector(load_dialect("generic"), 40, 120)
    raised, now, marks = 0, 0.0, []
    tracemalloc.start()
    for minute in range(int(hours * 3600 / step_s)):
        now += step_s
        detector.handle(OutputReceived(f"working on part {minute}\r\n".encode() * 200), now)
        detector.handle(WakeupDue(), now + 0.02)
        detector.handle(BUSY, now + 0.02)
        detector.handle(OutputReceived(f"Keep part {minute}? (y/n) ".encode()), now + 1)
        for look in (0.03, 0.06, 0.1, 0.2):
            for command in detector.handle(READING, now + 1 + look):
                if isinstance(command, RaisePrompt):
                    raised += 1
                    detector.handle(ReplyTyped(command.prompt.digest), now + 2)
        detector.handle(OutputReceived(b"y\r\n"), now + 2.01)
        detector.handle(BUSY, now + 2.05)
        if minute in (60, int(hours * 3600 / step_s) - 1):
            gc.collect()  # what waits to be collected has not grown
            marks.append(tracemalloc.get_traced_memory()[0] / 1024)
    tracemalloc.stop()
    return Day(int(hours * 3600 / step_s), raised, marks[0], marks[-1])
