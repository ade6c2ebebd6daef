"""`pty_reader`: copies every byte of the tool at once and in order to the attached terminal and into the ring.

The loop does as little as possible, because it limits the tool's speed. The watchdog interprets the bytes.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.attachment import Attachment
from atlasbridge.core.host.terminal.input_writer import InputWriter
from atlasbridge.core.host.terminal.ring import Ring
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.tty import Pty

STATUS_QUERY = b"\x1b]7501;?"  # a query for program status support, sent by tools that can report when they wait
STATUS_ANSWER = b"\x1b]7501;?\x1b\\"
_FULL_READ = 4095  # the maximum of one read on Linux: there is probably more
_BURST = 4  # full reads that are passed on as one write
_REOPEN_S = 0.05
_SCAN_BYTES = 1 << 20  # bytes to search for sequences at the start of a burst, and per second in a flood


class OutputRelay:
    def __init__(
        self,
        pty: Pty,
        input_writer: InputWriter,
        ring: Ring,
        clock: Clock,
        ended: Callable[[], None],
        lost: Callable[[Attachment], None],
    ) -> None:
        self._pty = pty
        self._input_writer = input_writer
        self._ring = ring
        self._clock = clock
        self._ended = ended  # nothing more will come
        self._lost = lost  # a terminal accepts no more
        self._wakeup = Wakeup()
        self._tail = b""
        self._scan_room = float(_SCAN_BYTES)
        self._scanned_at = clock.now()
        self._returns = ReturnStripper()
        self.lock = threading.Lock()  # held while a chunk is in transit, so that its holder sees only whole chunks
        self.attachment: Attachment | None = None
        self.last_output_at = clock.now()
        self.started = False
        self.finished = False
        self.blocked = False  # a terminal makes us wait
        self._fetching = False  # a chunk is, or can be, between the terminal and the ring

    @property
    def pending(self) -> bool:
        """Whether the tool has written something that is not in the ring yet."""
        waiter = select.poll()
        waiter.register(self._pty.fileno(), select.POLLIN)
        # Checked in the direction of the data, so that nothing is missed: first the terminal, then the chunk in
        # transit.
        return any(event & select.POLLIN for _, event in waiter.poll(0)) or self._fetching

    @property
    def terminal_answers(self) -> bool:
        """Whether a real terminal is attached, which answers the tool's queries itself."""
        attachment = self.attachment
        return attachment is not None and attachment.is_terminal

    def stop(self) -> None:
        self.finished = True
        self._wakeup.set()

    def run(self, beat: Beat) -> None:
        fd = self._pty.fileno()
        waiter = select.poll()
        waiter.register(fd, select.POLLIN)
        waiter.register(self._wakeup.fileno(), select.POLLIN)
        more = False
        while not (self.finished or beat.retired):
            try:
                if not more:
                    beat.busy_since = None
                    self._fetching = False
                    waiter.poll()
                    self._fetching = True
                chunk = os.read(fd, _FULL_READ)
            except BlockingIOError:
                more = False
                continue
            except OSError:
                chunk = b""
            if chunk:
                more = self.pass_on(fd, chunk, beat)
            elif self._is_over(beat):
                break
        self.finished, self._fetching = True, False
        self._ended()

    def _is_over(self, beat: Beat) -> bool:
        """No process has the terminal open. While the tool is alive, it can open it again."""
        if self._pty.poll() is not None:
            return True
        beat.rest()
        self._wakeup.wait(_REOPEN_S)
        return False

    def pass_on(self, fd: int, chunk: bytes, beat: Beat) -> bool:
        """Writes to the terminal first, because any delay is noticeable at every key. Returns whether more output is
        expected."""
        more = len(chunk) == _FULL_READ
        if more:
            chunk, more = _read_on(fd, chunk)
        lost = None
        lock = self.lock
        lock.acquire()  # faster than `with`
        try:
            attachment = self.attachment
            if attachment is not None:
                shown = chunk if attachment.output_is_terminal else self._without_returns(chunk)
                done = attachment.write_some(shown)
                if done < len(shown) and not self._show_slowly(attachment, shown[done:], beat):
                    lost, self.attachment = attachment, None
            beat.busy_since = self.last_output_at = self._clock.now()
            self._ring.append(chunk, self._scan(chunk))
        finally:
            lock.release()
        if lost is not None:
            self._lost(lost)  # outside the lock, because a terminal that takes over waits for it
        return more

    def take_in(self, chunk: bytes) -> None:
        """Takes output that the caller has read from the terminal. It is not shown anywhere."""
        self.last_output_at = self._clock.now()
        self._ring.append(chunk, self._scan(chunk))

    def _without_returns(self, chunk: bytes) -> bytes:
        return self._returns.feed(chunk, self._pty.flags().adds_returns)

    def _scan(self, chunk: bytes) -> bool:
        """Answers the status query. Returns True if the chunk switches terminal modes.

        Searching costs more than relaying, so in a flood only a limited number of bytes per second is searched.
        """
        if not (self._tail or b"\x1b" in chunk):
            return False
        now = self.last_output_at
        room = min(self._scan_room + (now - self._scanned_at) * _SCAN_BYTES, _SCAN_BYTES) - len(chunk)
        self._scanned_at = now
        if room < 0:
            self._scan_room, self._tail = 0.0, b""
            return False
        self._scan_room = room
        seen = self._tail + chunk
        for _ in range(seen.count(STATUS_QUERY)):
            self._input_writer.send(STATUS_ANSWER)
        tail = seen[1 - len(STATUS_QUERY) :]
        self._tail = tail if b"\x1b" in tail else b""
        return b"\x1b[?" in seen

    def _show_slowly(self, attachment: Attachment, rest: bytes, beat: Beat) -> bool:
        """Returns False if the terminal accepts no more."""
        beat.rest()  # a slow terminal is allowed to make us wait
        self.blocked = True
        try:
            return attachment.write_rest(rest)
        finally:
            self.blocked = False

    def show_rest(self, attachment: Attachment) -> None:
        """Writes, after the end, a byte that was kept until the next one arrives."""
        with self.lock:
            if rest := self._returns.finish():
                attachment.write_soon(rest)

    def drained(self) -> bool:
        """Whether nothing waits to be read and nothing is in transit."""
        waiter = select.poll()
        waiter.register(self._pty.fileno(), select.POLLIN)
        return not self.blocked and not any(events & select.POLLIN for _, events in waiter.poll(0))


def _read_on(fd: int, first: bytes) -> tuple[bytes, bool]:
    """Reads on after a full read, because a terminal processes one large write faster than several small ones. Also
    returns whether even more is expected; the next round detects the end."""
    burst = [first]
    while len(burst[-1]) == _FULL_READ and len(burst) < _BURST:
        try:
            burst.append(os.read(fd, _FULL_READ))
        except OSError:
            burst.append(b"")
    return b"".join(burst), len(burst[-1]) == _FULL_READ


class ReturnStripper:
    """For a pipe or a file: removes the carriage return that the tool's terminal added before every newline."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, chunk: bytes, adds_returns: bool) -> bytes:
        chunk = self._kept + chunk
        self._kept = b""
        if not adds_returns:
            return chunk
        if chunk.endswith(b"\r"):
            self._kept = b"\r"
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n")

    def finish(self) -> bytes:
        kept, self._kept = self._kept, b""
        return kept
