"""A session's analysis: the watchdog with its detector, the typist, and the connection to the hub.

They are imported only once the tool runs: a tool must start, and a short one end, as fast as without us. Until the
analysis exists, output waits in the ring.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from atlasbridge.core.clock import Clock
from atlasbridge.core.detection.events import Command, Event
from atlasbridge.core.home import Home
from atlasbridge.core.host.relay import InputWriter, OutputRelay, Ring
from atlasbridge.core.host.supervisor import Beat, SessionLog, Supervisor, end_in_background
from atlasbridge.core.host.typed import AdapterConnection, Outcome
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Pty, Size
from atlasbridge.core.values import frozen

if TYPE_CHECKING:
    from atlasbridge.core.host.hub_link import HubSide
    from atlasbridge.core.host.typist import Encode, HookConnection
    from atlasbridge.core.host.watchdog import StallWatchdog
    from atlasbridge.core.ports import WaitingProbe
    from atlasbridge.core.prompt.model import Answer


@frozen
class HostParts:
    """The parts that the edges provide for a session: created by the composition root, kept through the fork, used once
    the tool runs."""

    spawn: Callable[[Plan, Size, list[Any] | None], Pty]
    judge: Callable[[Plan, Pty, Size], tuple[DetectorLike, WaitingProbe]]
    encode: Encode
    start_hub: Callable[[], None]
    hub_path: str
    rows_alone: Callable[[Plan], int] = lambda _: 0  # see `ToolStart`


class Prepared(NamedTuple):
    home: Home
    parts: HostParts
    settings: SessionSettings
    size: Size
    attributes: list[Any] | None  # the person's own terminal settings


# What a session needs from a detector and from the tool's output, and its open prompt.


class DetectorLike(Protocol):
    screen: Any
    secrets: tuple[str, ...]

    @property
    def open_prompt(self) -> Prompt | None: ...
    @property
    def despite_busy(self) -> bool: ...
    def handle(self, event: Event, now: float) -> list[Command]: ...
    def still_shows(self, digest: str) -> bool: ...
    @property
    def line_begun(self) -> bool: ...
    def begun(self, now: float) -> bool: ...
    def refilled(self, digest: str) -> bool: ...
    def reconsider(self) -> None: ...
    def has_left(self, digest: str) -> bool: ...
    def took_first_key(self) -> None: ...
    def explain(self) -> list[str]: ...


class Outflow(Protocol):
    last_output_at: float
    blocked: bool
    finished: bool

    @property
    def pending(self) -> bool: ...
    @property
    def terminal_answers(self) -> bool: ...


@frozen
class Opened:
    prompt_id: str
    prompt: Prompt


Build = Callable[[Size, "deque[Event | bytes]"], tuple["StallWatchdog", "HubSide"]]


class LazyAnalysis:
    def __init__(
        self,
        build: Build,
        size: Size,
        hub: bool,
        start_hub_task: Callable[[Callable[[Beat], None]], None],
        journal: SessionLog,
    ) -> None:
        self._build = build
        self._journal = journal
        self._size = size
        self._hub = hub
        self._start_hub_task = start_hub_task
        self._building = threading.RLock()
        self._lock = threading.RLock()  # never held during the build, because a terminal must not wait for it
        self._events: deque[Event | bytes] = deque()
        self._parts: tuple[StallWatchdog, HubSide] | None = None
        self._attached = False
        self._stopped = False
        self._adapter: dict[str, Any] = {}

    def _get(self) -> tuple[StallWatchdog, HubSide]:
        with self._building:
            if self._parts is None:
                size = self._size
                watch, hub = self._build(size, self._events)
                with self._lock:
                    self._parts = watch, hub
                    if self._size != size:
                        watch.resized(self._size.rows, self._size.cols)
                    hub.state_changed(self._attached, self._size.rows, self._size.cols)
                    hub.stop_changed(self._stopped)
                    if self._adapter:
                        hub.adapter_reported(self._adapter)
                if self._hub:
                    self._start_hub_task(hub.run)
            return self._parts

    def run(self, beat: Beat) -> None:
        self._get()[0].run(beat)

    def notice(self) -> None:
        """Something has changed. The watchdog detects output through the ring."""
        if self._parts is not None:
            self._parts[0].notice()

    def wake(self) -> None:
        if self._parts is not None:
            self._parts[0].wake()

    @property
    def keys_typed(self) -> Callable[[bytes], None]:
        """Records typed keys without waking any thread, because it is called between a key and its echo."""
        return self._events.append

    def adapter_reported(self, told: dict[str, Any]) -> None:
        if self._parts is None:
            self._adapter |= told
        else:
            self._parts[1].adapter_reported(told)

    def hook_reported(self, message: Mapping[str, Any]) -> None:
        """Handles a report of a hook. Reports from before the analysis exists are kept."""
        from atlasbridge.core.detection.events import StructuredEventReceived
        from atlasbridge.core.prompt.model import parse_subject

        kind, text, source = (str(message.get(name, "")) for name in ("kind", "text", "source"))
        note, missing = str(message.get("note", "")), message.get("missing_lines")
        lines = missing if type(missing) is int and missing > 0 else 0
        told = StructuredEventReceived(kind, text, source, parse_subject(message.get("subject")), note, lines)
        self._events.append(told)
        self.notice()

    def changed(self, size: Size, attached: bool) -> None:
        with self._lock:
            resized = (size.rows, size.cols) != (self._size.rows, self._size.cols)
            self._size, self._attached = size, attached
            if self._parts is None:
                return
        watch, hub = self._parts
        if resized:
            watch.resized(size.rows, size.cols)
        hub.state_changed(attached, size.rows, size.cols)

    def stopped(self, stopped: bool) -> None:
        with self._lock:
            self._stopped = stopped
            if self._parts is None:
                return
        self._parts[1].stop_changed(stopped)

    def redraw(self, past: bool = False, back: bool = False) -> bytes:
        """The screen for a terminal that attaches. `past`: preceded by the lines that scrolled off. `back`: the
        terminal left only while the tool was stopped."""
        from atlasbridge.core.screen.redraw import render_past, render_return, render_screen

        if back:
            return self._look(render_return, b"")
        return self._look(lambda screen: (render_past(screen) if past else b"") + render_screen(screen), b"")

    def farewell(self, parting: bool = False) -> bytes:
        """The sequences that reset the modes that the tool has switched on. `parting`: also starts a fresh line."""
        from atlasbridge.core.screen.redraw import SAFE_RESET, render_farewell, render_parting

        return self._look(render_parting if parting else render_farewell, SAFE_RESET)

    def _look(self, render: Callable[[Any], bytes], otherwise: bytes) -> bytes:
        try:
            watch, _ = self._get()
            with watch.lock:
                watch.absorb()
                return render(watch.screen)
        except Exception as error:  # the session boundary: an error in the analysis must not break the terminal
            self._journal.crash("the screen could not be looked at", error)
            return otherwise

    def finish(self, status: int, until: float) -> None:
        if not self._hub and self._parts is None:
            return
        watch, hub = self._get()
        watch.exited()
        if self._hub:
            hub.say_farewell(status, until)


class SessionBase:
    """The tool, the supervised tasks and the analysis of a session, in its own host or on a Windows console.

    `_output` and `_input_writer` are how the session reads its tool's terminal and writes to it.
    """

    _output: Outflow
    _input_writer: InputWriter

    def __init__(
        self,
        plan: Plan,
        pty: Pty,
        size: Size,
        parts: HostParts,
        settings: SessionSettings,
        clock: Clock,
        journal: SessionLog,
    ) -> None:
        self._plan = plan
        self._pty = pty
        self._parts = parts
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._greeting = {"m": "started", "session_id": plan.session_id, "pid": pty.pid, "tool": plan.tool}
        self._started_at = clock.wall()
        self._ended_at: float | None = None
        self._last_words = ""
        self._wakeup = Wakeup()
        self._supervisor = Supervisor(clock, settings, journal, self._wakeup.set)
        self._ring = Ring(settings.ring_bytes)
        self._adapter = AdapterConnection()
        self._hook: HookConnection | None = None  # set once the analysis runs
        self._analysis = LazyAnalysis(
            self._build_analysis,
            size,
            plan.hub,
            lambda loop: self._supervisor.start("response_consumer", loop),
            journal,
        )

    def _build_analysis(self, size: Size, events: deque[Event | bytes]) -> tuple[StallWatchdog, HubSide]:
        from atlasbridge.core.clock import iso
        from atlasbridge.core.host.hub_link import HubSide
        from atlasbridge.core.host.typist import HookConnection, Typist, Walk
        from atlasbridge.core.host.watchdog import StallWatchdog
        from atlasbridge.core.prompt.redact import redact_text
        from atlasbridge.core.session.model import SessionRecord

        plan, pty, clock, settings, keys = self._plan, self._pty, self._clock, self._settings, self._input_writer
        detector, probe = self._parts.judge(plan, pty, size)
        watch = StallWatchdog(detector, probe, self._output, self._ring, keys, clock, settings, events, pty.unread)
        record = SessionRecord(
            session_id=plan.session_id,
            tool=plan.tool,
            command=redact_text(plan.command, detector.secrets),
            cwd=plan.cwd,
            pid=pty.pid,
            host_pid=os.getpid(),
            started_at=iso(self._started_at),
            rows=size.rows,
            cols=size.cols,
            label=plan.label,
            channels=plan.channels,
        )
        self._hook = HookConnection()
        watch.when_gone = self._hook.over
        typist = Typist(Walk(watch, keys, pty, clock, settings), self._parts.encode, self._hook, self._adapter)
        start_hub, path = self._parts.start_hub, self._parts.hub_path
        hub = HubSide(record, path, plan.ttl_s, watch, typist, clock, settings, start_hub, plan.keep)
        hub.end_tool = self.end_tool
        return watch, hub

    def _output_ended(self) -> None:
        self._analysis.notice()
        self._wakeup.set()

    def end_tool(self, force: bool = False) -> None:
        """Sends SIGTERM and, after a grace period, SIGKILL to everything in the tool's session. Returns at once."""
        end_in_background(self._pty, 0.0 if force else self._settings.kill_grace_s)

    def _give_up(self) -> None:
        name, self._supervisor.failed = self._supervisor.failed, ""
        self._journal.note("the session cannot continue", task=name)
        self._last_words = f"{name} failed too often; the session was ended. See {self._plan.session_id[:8]}.log"
        self.end_tool()


class BareSession:
    """A session without clients and hub, for programs that drive a tool themselves through the fixed adapter interface:
    the caller reads the tool's terminal, and the usual analysis detects prompts and types."""

    def __init__(
        self,
        pty: Pty,
        detector: DetectorLike,
        probe: WaitingProbe,
        encode: Encode,
        clock: Clock,
        settings: SessionSettings,
    ) -> None:
        from atlasbridge.core.host.typist import Typist, Walk
        from atlasbridge.core.host.watchdog import StallWatchdog

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
