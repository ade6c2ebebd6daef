"""A real program on a real pseudo-terminal, with the detector and the waiting probe.

A small session host for scenarios: one event loop, no hub, no person. It waits for conditions, never for time.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.detection import events
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import Command, Event, ProbeAnswer, ProbeState, RaisePrompt
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import When
from atlasbridge.core.prompt.model import Prompt, Reject
from atlasbridge.core.tty import Size
from atlasbridge.lab.replay import Player
from atlasbridge.os.tty import make_probe
from atlasbridge.os.tty.base import BasePTY, NoProbe

# Measures how late a prompt was raised, independent of the machine's load. The events of a live terminal are replayed
# to a new detector, with every wake-up on time to the millisecond and the recorded answers of the probe. The result is
# the detector's own delay.

TAIL_S = 40.0


@dataclass(slots=True)
class Trace:
    """The events on a terminal with their times, and the answers of the probe."""

    events: list[tuple[float, Event, int]] = field(default_factory=list)  # with the number of prompts raised by then
    looks: list[tuple[float, ProbeAnswer]] = field(default_factory=list)

    def keep(self, event: Event, now: float, raised: int) -> None:
        if isinstance(event, events.ProbeAnswered):
            self.looks.append((now, event.answer))
        elif not isinstance(event, events.WakeupDue):
            self.events.append((now, event, raised))

    def look(self, now: float) -> ProbeAnswer:
        """The next answer from this moment on: a loaded machine asks late, but about the same program."""
        at = bisect_left(self.looks, now, key=lambda item: item[0])
        return self.looks[min(at, len(self.looks) - 1)][1]

    def look_before(self, now: float) -> ProbeAnswer:
        """The last answer before this moment."""
        at = bisect_left(self.looks, now, key=lambda item: item[0])
        return self.looks[max(at - 1, 0)][1]


class VirtualClockRun(Player):
    """One run of a trace. `latencies` are the seconds from the moment the program came to rest to each prompt: from its
    last output, the last answer, or the first idle probe after a busy one.
    """

    def __init__(self, detector: Detector, trace: Trace) -> None:
        super().__init__(detector, ProbeAnswer(ProbeState.UNKNOWN))
        self.latencies: list[float] = []
        self._trace = trace
        self._last = 0.0
        self._busy = False
        self._held: ProbeAnswer | None = None  # the probe's answer while other events are delayed
        self._shift = 0.0  # the delay of the events compared with the trace

    def run(self, raised: int) -> list[float]:
        """Run until this many prompts were raised, or nothing is left to happen."""
        for at, event, before in self._trace.events:
            self._note(self.pass_time(at + self._shift))
            self._await_raised(before, at, self._trace.look_before(at))
            now = at + self._shift
            if isinstance(event, events.OutputReceived | events.ReplyTyped):
                self._last = now
            self._note(self.tell(event, now))
        self._await_raised(raised, self._trace.events[-1][0], None)
        return self.latencies

    def look(self, now: float) -> ProbeAnswer:
        answer = self._held or self._trace.look(now - self._shift)
        self._last = now if self._busy else self._last
        self._busy = answer.state is ProbeState.BUSY
        return answer

    def _note(self, heard: Iterator[tuple[float, Command]]) -> None:
        for now, command in heard:
            if isinstance(command, RaisePrompt):
                self.latencies.append(now - self._last)

    def _await_raised(self, count: int, at: float, held: ProbeAnswer | None) -> None:
        """Delay the events that followed a prompt, such as its answer, until the prompt is raised here, too. Until then
        the probe repeats its last answer before that (None: nothing follows).
        """
        end = at + self._shift + TAIL_S
        self._held = held
        while len(self.latencies) < count and self.wake_at is not None and self.wake_at <= end:
            if held is not None:
                self._shift = max(self._shift, self.wake_at - at)
            self._note(self.pass_time(self.wake_at))
        self._held = None


PATIENCE_S = 20.0
SILENT_S = 5.0  # without a probe, no prompt is raised after this much silence
CHUNK = 65536
PUT_OFF_S = 0.02
MOST_PUT_OFF = 50  # consecutive postponements; a program that never stops writing is analysed all the same


class LabTimeout(AssertionError):
    """A condition was not met in time; the message shows the screen and the detector's explanation."""


class LiveTerminal:
    """`blind` simulates a system that cannot tell who reads the terminal. `console` uses a Windows console with
    pywinpty."""

    def __init__(
        self,
        dialect: str = "generic",
        rows: int = 24,
        cols: int = 80,
        clock: Clock | None = None,
        blind: bool = False,
        console: bool = sys.platform == "win32",
    ) -> None:
        self._console = console
        self._pty: BasePTY | None = None
        self._reader: threading.Thread | None = None
        self._reading = False
        self._came = self._seen = 0  # chunks of output: read, and analysed
        self._put_off = 0
        self.detector = Detector(load_dialect(dialect), rows, cols)
        self.clock = clock or SystemClock()
        self.blind = blind
        self.trace = Trace()
        self.raised: list[Prompt] = []
        self.withdrawn: list[str] = []
        self.latency_s: list[float] = []
        self.read_bytes = 0
        self.exited = False
        self._watched = -1
        self._probe: WaitingProbe = NoProbe()
        self._last_output = self.clock.now()
        self._last_input: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, slave_fd: int) -> None:
        """Treat data that is written to the master of this pair as the output of a program that cannot be probed."""
        import tty  # not available on Windows

        tty.setraw(slave_fd)
        os.set_blocking(slave_fd, False)
        self._watched = slave_fd
        asyncio.get_running_loop().add_reader(slave_fd, self._watched_readable)

    def _watched_readable(self) -> None:
        try:
            data = os.read(self._watched, CHUNK)
        except OSError:  # its master was closed
            self.unwatch()
            return
        self.blind = True
        self._take_in(data)

    def unwatch(self) -> None:
        if self._watched >= 0:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = -1

    async def rest(self) -> None:
        """Wait until a prompt is raised for the last output, or until it has been silent for so long
        that none will be."""
        if self._watched >= 0:
            seen = len(self.raised)
            until = self._last_output + SILENT_S
            while self.clock.now() < until and (len(self.raised) == seen or self.detector.open_prompt is None):
                await asyncio.sleep(0.005)

    def start(self, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self.unwatch()
        screen = self.detector.screen
        self._loop = asyncio.get_running_loop()
        whole = {**os.environ, "TERM": "xterm-256color", **(environ or {})}
        size = Size(screen.rows, screen.cols)
        if self._console:
            from atlasbridge.os.tty.windows import WindowsPTY

            self.blind = True  # on Windows it is unknown who reads
            self._pty = WindowsPTY.spawn(command, whole, None, size)
        else:
            from atlasbridge.os.tty.posix import PosixPTY

            self._pty = PosixPTY.spawn(command, whole, None, size)
            fd, pid = self._pty.fileno(), self._pty.pid
            self._probe = NoProbe(fd) if self.blind else make_probe(fd, pid)
        self._last_output = self.clock.now()
        self._tell(events.OutputReceived(b""))
        self._reader = threading.Thread(target=self._read, args=(self._pty,), name="lab", daemon=True)
        self._reader.start()

    def type(self, keys: bytes) -> None:
        """Type as the person at the terminal."""
        self._tell(events.KeysTyped(keys))
        self._write(keys)

    def answer(self, value: str) -> None:
        """Type an accepted reply to the open prompt, as the host does. Answers with steps that wait for the screen need
        the host's own code (`core/host/typist.py`), and are refused here."""
        prompt = self.detector.open_prompt
        if prompt is None:
            raise LabTimeout("there is no open prompt to answer\n" + self._state())
        decided = decide_answer(prompt, value)
        if isinstance(decided, Reject):
            raise LabTimeout(decided.sentence)
        steps = encode_answer(prompt, decided)
        waits = [step.until for step in steps[:-1] if step.until not in (When.AT_ONCE, When.DRAINED)]
        if waits:
            raise LabTimeout(f"this answer waits between its keys ({waits[0]}); a scenario types only keys at once")
        self._tell(events.ReplyTyped(prompt.digest))
        for step in steps:
            self._write(step.keys)

    async def until(self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        deadline = self.clock.now() + patience_s
        while not condition():
            if self.clock.now() > deadline:
                raise LabTimeout(f"waited in vain until {what}\n{self._state()}")
            await asyncio.sleep(0.005)

    async def until_raised(self, count: int = 1) -> Prompt:
        await self.until(lambda: len(self.raised) >= count, f"prompt number {count} is raised")
        return self.raised[count - 1]

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in "\n".join(self.detector.screen.lines()), f"the screen shows {text!r}")

    async def until_ended(self) -> None:
        await self.until(lambda: self.exited, "the program ends")

    def explain(self) -> list[str]:
        return self.detector.explain()

    def virtual_latency_s(self) -> list[float]:
        """The delays from the last output or answer to each prompt, as on a machine without load."""
        if not self.trace.events:
            return []
        screen = self.detector.screen
        fresh = Detector(self.detector.dialect, screen.rows, screen.cols, self.detector.settings)
        return VirtualClockRun(fresh, self.trace).run(len(self.raised))

    async def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        self.unwatch()
        if self._pty is None or self._reader is None:
            return
        await asyncio.to_thread(self._pty.terminate, 0.5)
        await asyncio.to_thread(self._reader.join)  # it speaks to this loop, which ends after the scenario
        self._pty.close()
        self._pty = None

    def _read(self, pty: BasePTY) -> None:
        """Runs in a thread of its own, because a console cannot be polled. The event loop gets the output, b"" last."""
        data = b"..."
        while data:
            if not self._console:
                select.select([pty.fileno()], [], [])
            self._reading = True
            data = pty.read()
            self._came += 1
            self._reading = False
            self._loop.call_soon_threadsafe(self._took, data)

    @property
    def _behind(self) -> bool:
        """Whether there is output that the detector has not seen yet. It is checked in the order of its way here."""
        if self._pty is None or self._console:
            return False
        return bool(select.select([self._pty.fileno()], [], [], 0)[0]) or self._reading or self._came != self._seen

    def _took(self, data: bytes) -> None:
        self._seen += 1
        if self.exited or self._pty is None:
            return  # the scenario is over
        if not data:
            self.exited = True
            self._tell(events.ChildExited())
            return
        self._take_in(data)
        answers = self.detector.screen.take_queries()
        if answers and self._pty.poll() is None:
            self._write(b"".join(answers))

    def _take_in(self, data: bytes) -> None:
        self.read_bytes += len(data)
        self._last_output = self.clock.now()
        self._tell(events.OutputReceived(data))

    def _write(self, data: bytes) -> None:
        self._last_input = self.clock.now()
        if self._pty is not None:
            self._pty.write(data)

    def _tell(self, event: Event) -> None:
        now = self.clock.now()
        self.trace.keep(event, now, len(self.raised))
        commands = list(self.detector.handle(event, now))
        while commands:
            commands += self._obey(commands.pop(0), now)

    def _obey(self, command: Command, now: float) -> list[Command]:
        match command:
            case RaisePrompt(prompt):
                self.raised.append(prompt)
                self.latency_s.append(now - self._last_output)
            case events.WithdrawPrompt(reason=reason):
                self.withdrawn.append(reason)
            case events.RequestWakeup(at):
                self._wake_at(at)
            case events.RequestProbe():
                age = None if self._last_input is None else now - self._last_input
                looked = events.ProbeAnswered(self._probe.look(now - self._last_output, age))
                if self._behind and self._put_off < MOST_PUT_OFF:  # what it does now says nothing about an older screen
                    self._put_off += 1
                    self._wake_at(now + PUT_OFF_S)
                    return []
                self._put_off = 0
                self.trace.keep(looked, now, len(self.raised))
                return self.detector.handle(looked, now)
        return []

    def _wake_at(self, at: float) -> None:
        if self._timer:
            self._timer.cancel()
        delay = max(0.0, at - self.clock.now())
        self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        running = self._watched >= 0 or self._pty is not None
        if running and not self.exited:
            self._tell(events.WakeupDue())

    def _state(self) -> str:
        shown = "\n".join(line for line in self.detector.screen.lines() if line)
        return f"{shown}\n{'; '.join(self.explain())}"
