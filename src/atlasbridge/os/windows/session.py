"""A session on a console, in one process: it shows the program's output, sends the typed keys, and runs the usual
analysis (screen, detector, watchdog, typist, hub).

It ends with its console; a session without one runs until its program ends. Other consoles and the hooks of its tool
connect to its port (`Viewers`).
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.analysis import HostParts, LazyAnalysis, SessionBase
from atlasbridge.core.host.relay import DetachKey, InputWriter
from atlasbridge.core.host.supervisor import Beat, SessionLog
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Console, ConsolePty, Size, size_in
from atlasbridge.os.windows.attach_port import AttachPort, Message, PortCaller, Whose, is_inside, is_inside_session

if TYPE_CHECKING:
    from atlasbridge.core.detection.events import Event
    from atlasbridge.core.host.hub_link import HubSide
    from atlasbridge.core.host.typist import HookConnection
    from atlasbridge.core.host.watchdog import StallWatchdog


# The input writer of a console: the same gate and order, but a separate thread writes, because a write can block.


class ConsoleInputWriter(InputWriter):
    def __init__(self, write: Callable[[bytes], None], clock: Clock) -> None:
        super().__init__(-1, clock, lambda: None)
        self._write = write
        self._letters: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone = False

    def _put(self, data: bytes) -> bool:
        """Queued data counts as pending until it is written. The caller has the lock."""
        if self._gone:
            return False
        self.last_input_at = self._clock.now()
        self._queue += data
        self._letters.put(data)
        return True

    def flush(self) -> None:
        """Nothing to do: the writing thread works by itself."""

    def stop(self) -> None:
        self._letters.put(None)

    def run(self, beat: Beat) -> None:
        """The task `pty_writer`. A program that does not read can block it for any time."""
        beat.rest()
        while not beat.retired and (data := self._letters.get()) is not None:
            try:
                self._write(data)
            except OSError:
                self._gone = True
            with self._lock:
                del self._queue[: len(data)]


# `pty_reader` of a console: copies every byte of the program, at once and in order, to this console and the ring. A
# read blocks, because a console cannot be polled.


class ConsoleOutputReader:
    """`read` returns the next bytes, b"" at the end. `show` writes to the person's console, `keep` serves everything
    else. `answers`: whether a terminal is there that answers queries. `ended` is set when nothing more will come."""

    def __init__(
        self,
        read: Callable[[], bytes],
        show: Callable[[bytes], None],
        keep: Callable[[bytes], None],
        answers: Callable[[], bool],
        clock: Clock,
        ended: Callable[[], None],
    ) -> None:
        self._read = read
        self._show = show
        self._keep = keep
        self._clock = clock
        self._ended = ended
        self._fetching = False
        self._answers = answers
        self.last_output_at = clock.now()
        self.finished = False
        self.blocked = False  # this console, in which somebody marks text, makes us wait

    @property
    def pending(self) -> bool:
        """Only data that has arrived here; the system's buffer cannot be queried."""
        return self._fetching

    @property
    def terminal_answers(self) -> bool:
        return self._answers()

    def run(self, beat: Beat) -> None:
        while not beat.retired:
            beat.rest()
            self._fetching = False
            chunk = self._read()
            self._fetching = True
            if not chunk:
                break
            self.blocked = True
            self._show(chunk)
            self.blocked = False
            self.last_output_at = self._clock.now()
            self._keep(chunk)
        self.finished, self._fetching = True, False
        self._ended()


# A remote console that shows the session: the program's output is sent there at the speed of the console. A separate
# thread sends, so that nothing else waits. A console that falls too far behind gets the current screen instead of the
# missed output.

_MOST_BYTES = 1 << 20  # queued for one console
_PART_BYTES = 1 << 16  # of one message


class Viewer:
    """`fresh` calls its argument with the current screen, while nothing more is shown to any viewer. `gone` is called
    when the connection has ended."""

    def __init__(
        self,
        caller: PortCaller,
        size: Size,
        key: DetachKey,
        fresh: Callable[[Callable[[bytes], None]], None],
        gone: Callable[[PortCaller], None],
    ) -> None:
        self.caller = caller
        self.size = size
        self.key = key
        self._fresh = fresh
        self._gone = gone
        self._waiting = bytearray()
        self._behind = True  # the screen will include what is written now
        self._closed = False
        self._word: Message | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="viewer", daemon=True)

    def begin(self, screen: bytes) -> None:
        self._catch_up(screen)
        self._thread.start()

    def show(self, data: bytes) -> None:
        """Never waits."""
        with self._changed:
            if self._behind or self._closed:
                return
            self._waiting += data
            if len(self._waiting) > _MOST_BYTES:
                self._waiting.clear()
                self._behind = True
            self._changed.notify()

    def finish(self, last: bytes, word: Message) -> None:
        """After the queued data, show `last` and send `word`."""
        self.show(last)
        with self._changed:
            if not self._closed:
                self._word, self._closed = word, True
                self._changed.notify()

    def join(self, patience_s: float) -> None:
        self._thread.join(patience_s)

    def _run(self) -> None:
        while part := self._next():
            if not self.caller.tell({"m": "out", "data": part.decode("latin-1")}):
                with self._changed:
                    self._closed = True
                self._gone(self.caller)
                return
        if self._word is not None:
            self.caller.say(self._word)

    def _next(self) -> bytes:
        """The next part; b"" if it is closed and everything was shown."""
        while True:
            with self._changed:
                while not (self._waiting or self._behind or self._closed):
                    self._changed.wait()
                if self._waiting or self._closed:
                    part = bytes(self._waiting[:_PART_BYTES])
                    del self._waiting[:_PART_BYTES]
                    return part
            self._fresh(self._catch_up)

    def _catch_up(self, screen: bytes) -> None:
        with self._changed:
            self._waiting[:] = screen
            self._behind = False


# Callers at a session's port while its program runs: other consoles that show it and type into it, and hooks of its
# tool. They come in addition to the session's own console, if it has one.

_INSIDE_SESSION: Message = {
    "text": "this console was started inside a session, or it cannot be told where, and only a person types into one",
    "hint": "use a console of your own",
}

_LAST_S = 2.0


class Viewers:
    """`typed` receives keys for the program. `changed` is called when a viewer came, left or was resized."""

    def __init__(
        self,
        greeting: Message,
        tool_pid: int,
        analysis: LazyAnalysis,
        detach_key: str,
        journal: SessionLog,
        typed: Callable[[bytes], None],
        changed: Callable[[], None],
    ) -> None:
        self._tool_pid = tool_pid
        self._analysis = analysis
        self._detach_key = detach_key
        self._journal = journal
        self._typed = typed
        self._changed = changed
        self._greeting = greeting
        # held while data is shown to all viewers, so that a screen and the following output match
        self.lock = threading.RLock()
        self._viewers: list[Viewer] = []
        self._attach_socket: AttachPort | None = None
        self._path = Path()
        self._whose: Whose | None = None
        self.hook: HookConnection | None = None  # set when the analysis exists

    def open(self, path: Path, whose: Whose) -> None:
        """`path` is where the session's socket would be."""
        self._path, self._whose = path, whose
        self._attach_socket = AttachPort(self._greeting, whose, self._hear, self._leave)
        self._attach_socket.open(path)

    @property
    def size(self) -> Size | None:
        """The size of the console that attached last; None if there is none."""
        viewers = self._viewers
        return viewers[-1].size if viewers else None

    def show(self, data: bytes) -> None:
        """The caller has the lock, and feeds the data to the screen before releasing it."""
        for viewer in self._viewers:
            viewer.show(data)

    def finish(self, status: int, last_words: str) -> None:
        """The program has ended and everything was shown: slow consoles get a moment for the rest."""
        ended: Message = {"m": "ended", "status": status, "text": last_words}
        with self.lock:
            viewers, self._viewers = self._viewers, []
            farewell = self._analysis.farewell() if status != 0 and viewers else b""
            for viewer in viewers:
                viewer.finish(farewell, ended)
        for viewer in viewers:
            viewer.join(_LAST_S)
        if self._attach_socket is not None:
            self._attach_socket.tell_all(ended)
            self._attach_socket.close()

    def _hear(self, caller: PortCaller, message: Message) -> None:
        viewer = self._viewer_of(caller)
        match message.get("m"):
            case "attach" if viewer is None:
                self._admit(caller, message)
            case "keys" if viewer is not None:
                self._type(viewer, str(message.get("data", "")))
            case "size" if viewer is not None:
                viewer.size = size_in(message)
                self._changed()
            case "leave":
                self._let_go(caller, "detached")
            case "structured" if is_inside(caller.peer, self._tool_pid):
                self._analysis.hook_reported(message)
                if self.hook is not None:
                    self.hook.offer(caller, message)
            case "structured":
                self._journal.note("somebody outside the session spoke for its tool")

    def _viewer_of(self, caller: PortCaller) -> Viewer | None:
        return next((viewer for viewer in self._viewers if viewer.caller is caller), None)

    def _admit(self, caller: PortCaller, message: Message) -> None:
        assert self._whose is not None
        if is_inside_session(caller.peer, self._tool_pid, self._path, self._whose):
            caller.say({"m": "failed", "status": 1, **_INSIDE_SESSION})
            return
        caller.say({"m": "attached"})
        viewer = Viewer(caller, size_in(message), DetachKey(self._detach_key), self._redraw, self._leave)
        with self.lock:
            self._viewers.append(viewer)
            self._changed()
            viewer.begin(self._analysis.redraw(bool(message.get("past"))))

    def _redraw(self, draw: Callable[[bytes], None]) -> None:
        with self.lock:
            draw(self._analysis.redraw())

    def _type(self, viewer: Viewer, data: str) -> None:
        keys, leaves = viewer.key.feed(data.encode("latin-1", "ignore"))
        if keys:
            self._typed(keys)
        if leaves:
            self._let_go(viewer.caller, "detached")

    def _let_go(self, caller: PortCaller, why: str) -> None:
        with self.lock:
            viewer = self._viewer_of(caller)
            if viewer is None:
                return
            self._viewers.remove(viewer)
            viewer.finish(self._analysis.farewell(parting=True), {"m": "detached", "why": why})
        self._changed()

    def _leave(self, caller: PortCaller) -> None:
        """The caller has disconnected."""
        if self.hook is not None:
            self.hook.leave(caller)
        self._let_go(caller, "closed")


_LOOK_S = 0.1  # a console reports neither the end of its program nor a new size
_INTERRUPT = b"\x03"


class ConsoleSession(SessionBase):
    _output: ConsoleOutputReader
    _input_writer: ConsoleInputWriter

    def __init__(
        self,
        plan: Plan,
        pty: ConsolePty,
        console: Console,
        parts: HostParts,
        settings: SessionSettings,
        clock: Clock,
        journal: SessionLog,
    ) -> None:
        self._console, self._size = console, console.size()
        super().__init__(plan, pty, self._size, parts, settings, clock, journal)
        self._sizing = threading.RLock()
        self._present = not plan.hosted
        self._input_writer = ConsoleInputWriter(pty.write, clock)
        self._viewers = Viewers(
            self._greeting, pty.pid, self._analysis, settings.detach_key, journal, self._type, self._follow_size
        )
        self._output = ConsoleOutputReader(
            pty.read, console.write, self._keep, self._has_terminal, clock, self._output_ended
        )

    def listen(self, path: Path, whose: Whose) -> None:
        """Open the port for other consoles and hooks; `path` is where a socket would be."""
        self._viewers.open(path, whose)

    def _keep(self, chunk: bytes) -> None:
        """For the screen and for other consoles: a console that attaches in between sees the data once."""
        with self._viewers.lock:
            self._viewers.show(chunk)
            self._ring.append(chunk)

    def _has_terminal(self) -> bool:
        return self._console.is_terminal or self._viewers.size is not None

    def _build_analysis(self, size: Size, events: deque[Event | bytes]) -> tuple[StallWatchdog, HubSide]:
        watch, hub = super()._build_analysis(size, events)
        self._viewers.hook = self._hook
        return watch, hub

    def run(self) -> int:
        """Run until the program has ended and all its output is shown; return its exit status."""
        self._analysis.changed(self._size, self._present)
        self._supervisor.start("pty_reader", self._output.run)
        self._supervisor.start("pty_writer", self._input_writer.run)
        self._supervisor.start("stdin_relay", self._relay_keys)
        self._supervisor.start("stall_watchdog", self._analysis.run)
        while not self._is_over():
            if self._supervisor.failed:
                self._give_up()
            self._wakeup.wait(min(self._supervisor.check(), _LOOK_S))
            self._follow_size()
        status = self._pty.poll() or 0
        self._finish(status)
        return status

    def interrupt(self) -> None:
        """Send a Ctrl-C that the system has intercepted to the program."""
        self._type(_INTERRUPT)

    def _relay_keys(self, beat: Beat) -> None:
        beat.rest()
        while not beat.retired and (keys := self._console.read_keys()):
            self._type(keys)

    def _type(self, keys: bytes) -> None:
        self._input_writer.type(keys)
        self._analysis.keys_typed(keys)
        self._analysis.notice()

    def _follow_size(self) -> None:
        """Follow the size of its own console, or else of the console that attached last."""
        with self._sizing:
            others = self._viewers.size
            wanted = others or self._size if self._plan.hosted else self._console.size()
            present = not self._plan.hosted or others is not None
            if wanted != self._size:
                self._pty.resize(wanted)
            if (wanted, present) != (self._size, self._present):
                self._size, self._present = wanted, present
                self._analysis.changed(wanted, present)

    def _is_over(self) -> bool:
        """A pseudo-console can stay open after its program: the session is over when no more output comes."""
        if self._pty.poll() is None:
            return False
        now = self._clock.now()
        if self._ended_at is None:
            self._ended_at = now
        quiet_s = now - max(self._ended_at, self._output.last_output_at)
        return self._output.finished or quiet_s > self._settings.exit_grace_ms / 1000

    def _finish(self, status: int) -> None:
        if status != 0 and self._console.is_terminal:
            self._console.write(self._analysis.farewell())  # the program can have left the console in any state
        self._viewers.finish(status, self._last_words)
        self._input_writer.stop()
        self._analysis.finish(status, self._clock.now() + self._settings.hub_farewell_s)
        self._supervisor.stop()
        self._journal.note("session ended", status=status)
