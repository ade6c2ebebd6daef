"""`stdin_relay`: sends every key of the attached terminal to the tool, except the detach key.

It also writes queued input once the tool reads again, and passes the end of a piped input on as the terminal's
end-of-file character.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.attachment import Attachment
from atlasbridge.core.host.terminal.detach_key import DetachKey
from atlasbridge.core.host.terminal.input_writer import InputWriter
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.tty import Pty

_READ_BYTES = 4096
_END_FIRST_S, _END_LAST_S = 0.03, 1.0  # how often to check whether the tool has read all of a piped input
_ECHO_MS = 10  # the echo of a key arrives within this time; no other thread should wake up and delay it
_RAW_LOOKS = 8  # a program that reads keys, not lines, gets end-of-file only when it clearly waits for more


class InputRelay:
    def __init__(
        self,
        pty: Pty,
        input_writer: InputWriter,
        detach_key: DetachKey,
        backlog_bytes: int,
        typed: Callable[[bytes], None],
        paused: Callable[[], None],
        left: Callable[[Attachment], None],
        lost: Callable[[Attachment], None],
    ) -> None:
        self._pty = pty
        self._input_writer = input_writer
        self._detach_key = detach_key
        self._backlog_bytes = backlog_bytes
        self._typed = typed  # records what the person typed
        self._paused = paused  # called when the person pauses, for an analysis
        self._left = left  # the person typed the detach key
        self._lost = lost  # the terminal is gone
        self._wakeup = Wakeup()
        self._watched = (-2, -2)
        self._poll = select.poll()
        self._next: list[Attachment | None] = []
        self._current: Attachment | None = None
        self._end: _EndOfInput | None = None
        self._last_input = b""
        self._only_keys: list[tuple[int, int]] | None = None  # the poll result when there are only keys
        self._stopped = False

    def wake(self) -> None:
        self._wakeup.set()

    def switch(self, attachment: Attachment | None) -> None:
        """Reads from another terminal from now on. The reading thread closes the old one's input."""
        self._next.append(attachment)
        self.wake()

    def stop(self) -> None:
        self._stopped = True
        self.wake()

    def run(self, beat: Beat) -> None:
        while not (self._stopped or beat.retired):
            if self._next:
                self._take_switch()
            waiter, timeout_ms = self._waiter()
            beat.rest()
            ready = waiter.poll(timeout_ms)
            beat.work()
            self._serve(ready, beat)

    def _take_switch(self) -> None:
        while self._next:
            old, self._current = self._current, self._next.pop(0)
            if self._last_input:
                self._pty.set_echo(True)
            self._end = None
            self._last_input = b""
            if old is not None:
                old.close_input()

    def _waiter(self) -> tuple[select.poll, float | None]:
        """What to wait for now, and how long; created again only when it changes."""
        input_writer, current = self._input_writer, self._current
        sink = self._pty.fileno() if input_writer.waiting else -1
        if self._end is not None:
            return self._poll_for(-1, sink), self._end.pause_s * 1000
        wanted = current is not None and not current.closed and input_writer.backlog < self._backlog_bytes
        return self._poll_for(current.input_fd if current is not None and wanted else -1, sink), None

    def _poll_for(self, source: int, sink: int) -> select.poll:
        if self._watched != (source, sink):
            self._watched = (source, sink)
            self._only_keys = [(source, select.POLLIN)] if source >= 0 > sink else None
            self._poll = select.poll()
            self._poll.register(self._wakeup.fileno(), select.POLLIN)
            if source >= 0:
                self._poll.register(source, select.POLLIN)
            if sink >= 0:
                self._poll.register(sink, select.POLLOUT)
        return self._poll

    def _serve(self, ready: list[tuple[int, int]], beat: Beat) -> None:
        source, sink = self._watched
        readable = False
        for fd, _ in ready:
            if fd == source:
                readable = True
            elif fd == sink:
                self._input_writer.flush()
            else:
                self._wakeup.clear()
        current = self._current
        if current is None or current.closed or self._next:
            return
        if readable:
            self._pass_on(current, beat)
            self._paused()
        elif self._end is not None:
            self._end.look()

    def _pass_on(self, current: Attachment, beat: Beat) -> None:
        """Passes on keys as long as nothing else happens.

        Latency matters here: every name lookup and every call before the write is noticeable, and so is any work before
        the echo. No sign of life is needed while waiting for keys.
        """
        beat.rest()
        source, poll, only_keys = current.input_fd, self._poll.poll, self._only_keys
        read, write, typed = os.read, self._input_writer.type, self._typed
        prefix, careful = self._detach_key.prefix, self._must_look_at_all(current)
        while True:
            try:
                data = read(source, _READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if careful or len(data) != 1 or data == prefix:
                taken = self._look_at(current, data, beat)
                careful = self._must_look_at_all(current)
            else:
                taken = write(data)
                typed(data)
            if not taken or only_keys is None:
                return
            ready = poll(_ECHO_MS)
            if not ready:
                self._paused()
                if beat.retired:
                    return
                ready = poll()
            if ready != only_keys:
                return

    def _must_look_at_all(self, current: Attachment) -> bool:
        return self._detach_key.pending or current.ahead > 0 or not current.input_is_terminal

    def _look_at(self, current: Attachment, data: bytes, beat: Beat) -> bool:
        """Handles input that can be more than a key for the tool. Returns False if something else must be done before
        the next read."""
        if not data:
            beat.work()
            self._input_ended(current)
            return False
        leave, taken = False, True
        if current.input_is_terminal:
            if current.ahead:
                return self._pass_early(current, data)
            data, leave = self._detach_key.feed(data)
        else:
            if not self._last_input:
                self._pty.set_echo(False)
            self._last_input = data
        if data:
            taken = self._input_writer.type(data)
            self._typed(data)
        if leave:
            beat.work()
            self._left(current)
        return taken and not leave

    def _pass_early(self, current: Attachment, data: bytes) -> bool:
        """Passes on what was typed before the tool ran. The person's terminal has already shown it, so it is not echoed
        again."""
        self._pty.set_echo(False)
        data = current.as_typed(data)
        taken = self._input_writer.type(data)
        self._typed(data)
        self._pty.unread()  # this call makes the kernel process the input now, while echo is off
        self._pty.set_echo(True)
        return taken

    def _input_ended(self, current: Attachment) -> None:
        if current.input_is_terminal:
            self._current = None
            current.close_input()
            self._lost(current)
        else:
            self._end = _EndOfInput(self._pty, self._input_writer, self._last_input)


class _EndOfInput:
    """A pipe that has ended stays ended: whenever the tool has read everything and wants more, it gets end-of-file."""

    def __init__(self, pty: Pty, input_writer: InputWriter, last: bytes) -> None:
        self._pty = pty
        self._input_writer = input_writer
        self._open_line = bool(last) and not last.endswith((b"\n", b"\r"))
        self._had_data = bool(last)
        self._raw_looks = 0
        self._sent = False
        self.pause_s = _END_FIRST_S

    def look(self) -> None:
        self.pause_s = min(self.pause_s * 1.3, _END_LAST_S)
        if self._input_writer.waiting:
            return
        if self._sent and self._had_data and self._pty.unread() <= 0:
            self._pty.set_echo(True)  # everything typed from here on is an answer
            self._had_data = False
        flags = self._pty.flags()
        if flags.canonical:
            if self._open_line:
                self._input_writer.send(flags.end_of_file)  # submits the line without a newline
                self._open_line = False
            elif self._pty.unread() <= 0:
                self._input_writer.send(flags.end_of_file)
                self._sent = True
        elif self._had_data and self._pty.unread() <= 0:
            self._raw_looks += 1
            if self._raw_looks == _RAW_LOOKS:
                self._input_writer.send(flags.end_of_file)
