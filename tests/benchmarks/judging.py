"""What the detector costs: one judgement of a settled screen, and 24 simulated hours of a busy session."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    Command,
    Event,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    RaisePrompt,
    ReplyTyped,
    RequestProbe,
    RequestWakeup,
    WakeupDue,
)
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.lab.replay import Player, Recording, read_recording

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
READING = ProbeAnswered(ProbeAnswer(ProbeState.READING, echo=True, canonical=True))
BUSY = ProbeAnswered(ProbeAnswer(ProbeState.BUSY))
BLIND = ProbeAnswered(ProbeAnswer(ProbeState.UNKNOWN))


@dataclass(frozen=True, slots=True)
class Day:
    asked: int
    raised: int
    kb_after_an_hour: float
    kb_at_the_end: float


def analysis_us(rounds: int = 300) -> float:
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


@dataclass(frozen=True, slots=True)
class Animated:
    """A recording of a full-screen tool, judged as it was played: its share of the time, and its slowest looks."""

    name: str
    seconds: float
    looks: int
    share: float
    p99_ms: float


def animated_tools() -> list[Animated]:
    """The longest recording of each AI CLI of the corpus, with its own dialect and as a tool that nobody knows."""
    found = []
    for tool in ("claude", "codex", "gemini", "opencode", "aider", "copilot", "cn", "kimi", "qwen"):
        paths = (CORPUS / tool).rglob("*.cast")
        longest = max(map(read_recording, paths), key=lambda recording: recording.ends_at)
        found += [
            _judged(tool, longest, load_dialect(tool)),
            _judged(f"{tool}, unknown", longest, load_dialect("generic")),
        ]
    return found


def _judged(name: str, recording: Recording, dialect: Dialect) -> Animated:
    detector = _Timed(dialect, recording.rows, recording.cols)
    while compile_next():
        pass  # as a session does when it has nothing else to do
    player = Player(detector, ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False))
    for at, kind, data in recording.events:
        if kind == "o":
            list(player.pass_time(at))
            list(player.tell(OutputReceived(data.encode("utf-8", "surrogateescape")), at))
    list(player.pass_time(recording.ends_at + 1.0))
    seconds = recording.ends_at + 1.0
    return Animated(name, seconds, len(detector.took), sum(detector.took) / seconds, 1e3 * _p99(detector.took))


class _Timed(Detector):
    """Writes down what each look at the screen took, in processor time."""

    def __init__(self, dialect: Dialect, rows: int, cols: int) -> None:
        super().__init__(dialect, rows, cols)
        self.took: list[float] = []

    def handle(self, event: Event, now: float) -> list[Command]:
        begun = time.thread_time()
        commands = super().handle(event, now)
        if isinstance(event, ProbeAnswered):
            self.took.append(time.thread_time() - begun)
        return commands


def _p99(samples: list[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.99)]


def large_look_ms(rounds: int = 300) -> float:
    """The slowest of a hundred looks at 200 columns and 60 rows of frames and blanks, a list of 60 among them."""
    detector = _Timed(load_dialect("generic"), 60, 200)
    frame = "".join(f"\x1b[{row};1H│ \x1b[1mpart {row}\x1b[m{' ' * 150}│ {row % 7} of 9 \x1b[K" for row in range(1, 60))
    detector.handle(OutputReceived(b"\x1b[?1049h" + frame.encode()), 0.0)
    for i in range(rounds):
        spot = f"\x1b[{1 + i % 50};20H{'⠋⠙⠹⠸'[i % 4]} {i} s\x1b[60;1H❯ {i}\x1b[{i % 9 + 2};30H".encode()
        detector.handle(OutputReceived(spot), i)
        detector.handle(ProbeAnswered(ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False)), i + 0.5)
    return 1e3 * _p99(detector.took)
