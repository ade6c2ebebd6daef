"""`pty_reader`: every byte the tool writes, at once and in order, to the attached terminal, and into the ring.

The loop does as little as it can: its speed is the tool's speed.  What the bytes mean is the watchdog's business.
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

STATUS_QUERY = b"\x1b]7501;?"  # "do you understand program status?", asked by tools that can say when they wait
STATUS_ANSWER = b"\x1b]7501;?\x1b\\"
_FULL_READ = 4095  # what Linux gives at most: there is probably more
_BURST = 4  # full reads that are passed on as one
_REOPEN_S = 0.05
_SCAN_BYTES = 1 << 20  # looked through for sequences at the start of a burst, and so much per second in a flood


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
        self._lost = lost  # a terminal takes no more
        self._wakeup = Wakeup()
        self._tail = b""
        self._scan_room = float(_SCAN_BYTES)
        self._scanned_at = clock.now()
        self._returns = ReturnStripper()
        self.lock = threading.Lock()  # held while a chunk is on its way: who holds it sees whole chunks only
        self.attachment: Attachment | None = None
        self.last_output_at = clock.now()
        self.started = False
        self.finished = False
        self.blocked = False  # a terminal makes us wait
        self._fetching = False  # a chunk is, or may be, between the terminal and the ring

    @property
    def pending(self) -> bool:
        """Has the tool written something that is not in the ring yet?"""
        waiter = select.poll()
        waiter.register(self._pty.fileno(), select.POLLIN)
        # In the direction in which it moves, so that nothing slips by: first the terminal, then the way.
        return any(event & select.POLLIN for _, event in waiter.poll(0)) or self._fetching

    @property
    def terminal_answers(self) -> bool:
        """Whether a real terminal is there, which answers the tool's queries itself."""
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
        """Nobody has the terminal open.  While the tool lives it may open it again."""
        if self._pty.poll() is not None:
            return True
        beat.rest()
        self._wakeup.wait(_REOPEN_S)
        return False

    def pass_on(self, fd: int, chunk: bytes, beat: Beat) -> bool:
        """The terminal first: whatever comes before it is felt at every key.  Returns whether more is expected."""
        more = len(chunk) == _FULL_READ
        if more:
            chunk, more = _read_on(fd, chunk)
        lost = None
        lock = self.lock
        lock.acquire()  # `with` takes the longer way to the same
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
            self._lost(lost)  # outside the lock: whoever takes the seat waits for it
        return more

    def take_in(self, chunk: bytes) -> None:
        """What somebody else has read from the terminal; it is shown nowhere."""
        self.last_output_at = self._clock.now()
        self._ring.append(chunk, self._scan(chunk))

    def _without_returns(self, chunk: bytes) -> bytes:
        return self._returns.feed(chunk, self._pty.flags().adds_returns)

    def _scan(self, chunk: bytes) -> bool:
        """Answer the status query; True when the chunk switches terminal modes.

        Searching costs more than relaying: in a flood only so many bytes per second are searched.
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
        """False: this terminal takes no more."""
        beat.rest()  # a terminal that takes nothing may make us wait as long as it likes
        self.blocked = True
        try:
            return attachment.write_rest(rest)
        finally:
            self.blocked = False

    def show_rest(self, attachment: Attachment) -> None:
        """After the end: what was kept back for lack of the next byte."""
        with self.lock:
            if rest := self._returns.finish():
                attachment.write_soon(rest)

    def drained(self) -> bool:
        """Nothing waits to be read, nothing is on its way."""
        waiter = select.poll()
        waiter.register(self._pty.fileno(), select.POLLIN)
        return not self.blocked and not any(events & select.POLLIN for _, events in waiter.poll(0))


def _read_on(fd: int, first: bytes) -> tuple[bytes, bool]:
    """After a full read there is probably more: some of it at once, for a terminal takes one large write faster than
    several small ones.  Says also whether even more is expected; the end is for the next round to find out."""
    burst = [first]
    while len(burst[-1]) == _FULL_READ and len(burst) < _BURST:
        try:
            burst.append(os.read(fd, _FULL_READ))
        except OSError:
            burst.append(b"")
    return b"".join(burst), len(burst[-1]) == _FULL_READ


class ReturnStripper:
    """For a pipe or a file: takes back the return that the tool's terminal put before every newline."""

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
