"""The session host: owns one tool's terminal from start to end, whichever client watches and whatever else fails.

Its main thread serves the clients (attach, resize, leave), reaps the tool and supervises the four tasks. The detector
decides about prompts, and the relays copy the bytes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.analysis import HostParts, SessionBase
from atlasbridge.core.host.attachment import AttachedClient, Attachment, AttachSocket, Caller
from atlasbridge.core.host.relay import DetachKey, InputRelay, InputWriter, OutputRelay
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Pty, Size, size_in

if TYPE_CHECKING:
    from atlasbridge.core.detection.events import Event
    from atlasbridge.core.host.hub_link import HubSide
    from atlasbridge.core.host.watchdog import StallWatchdog


# Reaps orphans that the kernel has reparented to us, so that no zombies remain.
#
# The tool itself is not reaped here, because its exit status belongs to another waiter.


def reap_orphans(tool_pid: int) -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        # no child is left, or the system lacks the call, and then it does not reparent orphans to us
        except (ChildProcessError, AttributeError):
            return
        if ended is None or ended.si_pid == tool_pid:
            return
        try:
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            pass  # the process that started it has reaped it first


_LONGEST_GRACE_S = 2.0  # for processes that an ended tool left behind and that never stop writing
_LAST_LOOKS, _LAST_LOOK_S = 50, 0.002  # to read what a tool wrote before job control stopped it
_AFTER_BROKEN_PIPE_S = 1.0  # for a tool that ignores SIGPIPE
_PERSONS_WORDS = ("attach", "signal", "continue")  # the tool is not allowed to send these messages itself
_INSIDE_SESSION = {
    "text": "this terminal was started inside a session, and only a person types into one",
    "hint": "use a terminal of your own",
}
_FIRST_ATTACH_S = 5.0  # how long a tool's output waits for the terminal that started it


class SessionHost(SessionBase):
    _output: OutputRelay

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
        super().__init__(plan, pty, size, parts, settings, clock, journal)
        self._attach_socket = AttachSocket(self._greeting)
        self._stopped = False
        self._end_by: float | None = None
        self._input_writer = InputWriter(pty.fileno(), clock, lambda: self._keyboard.wake())
        self._keyboard = InputRelay(
            pty,
            self._input_writer,
            DetachKey(settings.detach_key),
            settings.input_backlog_bytes,
            typed=self._analysis.keys_typed,
            paused=self._analysis.notice,
            left=lambda attachment: self._attached_client.detach(attachment, "detached"),
            lost=lambda attachment: self._attached_client.detach(attachment, "closed"),
        )
        self._output = OutputRelay(
            pty, self._input_writer, self._ring, clock, ended=self._output_ended, lost=self._output_lost
        )
        self._attached_client = AttachedClient(
            pty, size, self._output, self._keyboard, self._analysis, self._wakeup.set, parts.rows_alone(plan)
        )

    def _build_analysis(self, size: Size, events: deque[Event | bytes]) -> tuple[StallWatchdog, HubSide]:
        watch, hub = super()._build_analysis(size, events)
        hub.continue_tool = self.continue_tool
        hub.signal_terminal = self._attached_client.signal
        hub.lend_size = self._attached_client.lend_size
        return watch, hub

    def listen(self, path: Path) -> None:
        self._attach_socket.open(path)

    def serve(self, first: socket.socket | None) -> int:
        """Runs until the tool has ended and all its output is shown. Returns its exit status."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup.write_fd, warn_on_full_buffer=False)
        self._supervisor.start("stdin_relay", self._keyboard.run)
        self._supervisor.start("stall_watchdog", self._analysis.run)
        start_by = self._clock.now() + _FIRST_ATTACH_S
        if first is not None:
            self._attach_socket.admit(first)
        else:
            self._attached_client.grow()
        while not self._is_over():
            if self._attached_client.is_attached or self._attach_socket.empty or self._clock.now() > start_by:
                self._start_reading()
            if self._supervisor.failed:
                self._give_up()
            self._wait_and_serve()
            reap_orphans(self._pty.pid)
        return self._pty.poll() or 0

    def _output_lost(self, attachment: Attachment) -> None:
        """Releases a terminal that is gone. If nobody reads from the pipe, the tool gets SIGPIPE, as it would without
        us."""
        if attachment.output_is_terminal:
            self._attached_client.detach(attachment, "closed")
            return
        self._pty.signal(signal.SIGPIPE)
        self._end_by = self._clock.now() + _AFTER_BROKEN_PIPE_S
        self._wakeup.set()

    def _start_reading(self) -> None:
        """Starts reading only when somebody can see the output, so that the first bytes of a fast tool reach its
        terminal."""
        if not self._output.started:
            self._output.started = True
            self._supervisor.start("pty_reader", self._output.run)

    def _wait_and_serve(self) -> None:
        waiter = select.poll()
        waiter.register(self._wakeup.fileno(), select.POLLIN)
        self._attach_socket.register(waiter)
        timeout_s = self._supervisor.check()
        if self._ended_at is not None:
            timeout_s = min(timeout_s, self._settings.exit_grace_ms / 4000)
        elif not self._output.started:
            timeout_s = min(timeout_s, _FIRST_ATTACH_S)
        elif self._end_by is not None:
            timeout_s = self._hang_up_in_time(timeout_s)
        ready = [fd for fd, _ in waiter.poll(timeout_s * 1000)]
        self._wakeup.clear()
        for caller, message in self._attach_socket.serve(ready):
            if message is None:
                self._attached_client.detach(caller.attachment, "gone")
                self._adapter.leave(caller)
                if self._hook is not None:
                    self._hook.leave(caller)
            else:
                self._obey(caller, message)

    def _adapter_reported(self, text: str) -> None:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(told, dict):
            if fault := told.get("fault"):
                self._journal.note("the adapter failed", fault=str(fault), traceback=str(told.pop("traceback", "")))
            self._analysis.adapter_reported(told)

    def _hang_up_in_time(self, timeout_s: float) -> float:
        left_s = (self._end_by or 0.0) - self._clock.now()
        if left_s > 0:
            return min(timeout_s, left_s)
        self._end_by = None
        self._pty.signal(signal.SIGHUP)
        return timeout_s

    def _is_over(self) -> bool:
        if self._pty.poll() is None:
            self._notice_stop()
            return False
        now = self._clock.now()
        if self._ended_at is None:
            self._ended_at = now
        if not self._output.started:
            return False  # the terminal that started it has not attached yet
        quiet_since = max(self._ended_at, self._output.last_output_at)
        overdue = now - self._ended_at > _LONGEST_GRACE_S and not self._output.blocked
        return (
            self._output.finished
            or overdue
            or (now - quiet_since > self._settings.exit_grace_ms / 1000 and self._output.drained())
        )

    def _notice_stop(self) -> None:
        """A tool that job control has stopped gives the terminal back, as it would without us."""
        if self._pty.stopped() is not self._stopped:
            self._stopped = not self._stopped
            self._analysis.stopped(self._stopped)
        if self._stopped and self._attached_client.is_attached:
            self._let_output_through()
            self._attached_client.detach(self._attached_client.attachment, "stopped")

    def _let_output_through(self) -> None:
        """Output from before a stop still belongs on the terminal that is about to be released."""
        for _ in range(_LAST_LOOKS):
            if not self._output.pending:
                return
            time.sleep(_LAST_LOOK_S)

    def _show(self, caller: Caller, fds: tuple[int, int], message: dict[str, Any]) -> None:
        """Attaches a terminal. A stopped tool continues when its terminal returns or another one attaches."""
        back, past, steal = (bool(message.get(name)) for name in ("back", "past", "steal"))
        ahead, eof = int(message.get("ahead", 0)), int(message.get("eof", 4)) & 0xFF
        self._attached_client.attach(caller, fds, size_in(message), past, back, steal, ahead, eof)
        if steal:
            self._attach_socket.tell_viewers({"m": "detached", "why": "stolen"})
        if back or (caller.peer is not None and self._pty.poll() is None and self._pty.stopped()):
            self.continue_tool()

    def continue_tool(self) -> None:
        """Continues a stopped tool: its terminal is back, or a person requested it."""
        self._pty.signal(signal.SIGCONT)

    def _obey(self, caller: Caller, message: dict[str, Any]) -> None:
        if message.get("m") in _PERSONS_WORDS and self._attach_socket.is_inside_session(caller, self._pty.pid):
            caller.say({"m": "failed", "status": 1, **_INSIDE_SESSION})
            return
        match message.get("m"):
            case "attach" if (fds := caller.take_terminal()) is not None:
                self._show(caller, fds, message)
            case "size" if caller.attachment is not None and caller.attachment is self._attached_client.attachment:
                self._attached_client.resize(size_in(message))
            case "leave":
                self._attached_client.detach(caller.attachment, "detached")
            case "injected" if self._attach_socket.is_inside(caller, self._pty.pid):
                self._adapter.take_result(message)
            case "structured" if message.get("kind") == "adapter" and self._attach_socket.is_inside(
                caller, self._pty.pid
            ):
                self._adapter_reported(str(message.get("text", "")))
            case "structured" if self._attach_socket.is_inside(caller, self._pty.pid):
                if self._adapter.report(caller, message):
                    self._analysis.hook_reported(message)
                    if self._hook is not None:
                        self._hook.offer(caller, message)
            case "structured":
                self._journal.note("somebody outside the session spoke for its tool")
            case "continue":
                self.continue_tool()
            case "signal":
                self._pty.signal(int(message.get("number", signal.SIGTERM)))

    def finish(self, status: int) -> None:
        """Everything is shown: tells the clients and the hub, and releases all resources."""
        self._output.stop()
        self._attached_client.finish(status)
        self._attach_socket.tell_all({"m": "ended", "status": status, "text": self._last_words})
        self._attach_socket.shut()
        self._analysis.finish(status, self._clock.now() + self._settings.hub_farewell_s)
        self._supervisor.stop()
        self._keyboard.stop()
        self._analysis.wake()
        self._attach_socket.close()
        self._journal.note("session ended", status=status)
