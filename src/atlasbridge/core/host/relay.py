"""The bytes between the tool and the attached terminal: `pty_reader` copies the output, `stdin_relay` the keys.

The loops do as little as possible, because they limit the tool's speed. The watchdog interprets the bytes.
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.queries import part_answers
from atlasbridge.core.tty import Pty

if TYPE_CHECKING:
    from atlasbridge.core.host.attachment import Attachment


_SWITCHES = lazy(rb"\x1b\[\?[0-9;]{1,32}[hl]|\x1b\[[<>=][0-9;]{0,16}u|\x1b[=>c]")
_MAX_SWITCHES = 256
_TORRENT = 4 << 20  # after this many lost bytes, nothing of the earlier screen is left,
_TORRENT_KEEPS = 64 << 10  # and the current screen is in the last bytes


class Ring:
    """Keeps the tool's latest output, at least `capacity` bytes, until the analysis reads it. If a flood overflows it,
    the dropped bytes are counted and their terminal mode switches are kept, because modes stay in effect."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._chunks: deque[tuple[bytes, bool]] = deque()
        self._switches: deque[bytes] = deque(maxlen=_MAX_SWITCHES)
        self._lost = 0
        self.size = 0
        self.on_output: Callable[[], None] | None = None  # set by a sleeping reader that wants to be woken

    def append(self, chunk: bytes, switches: bool = True) -> None:
        """`switches`: the chunk can contain terminal mode switches."""
        with self._lock:
            self._chunks.append((chunk, switches))
            self.size += len(chunk)
            if self.size > self._capacity:
                self._keep(self._capacity)
        if wake := self.on_output:
            wake()

    def _keep(self, size: int) -> None:
        """Drops the oldest chunks as long as the others contain at least `size` bytes."""
        while self.size - len(self._chunks[0][0]) >= size:
            dropped, switched = self._chunks.popleft()
            self.size -= len(dropped)
            self._lost += len(dropped)
            if switched:
                self._switches.extend(_SWITCHES.findall(dropped))

    def take(self) -> tuple[bytes, int]:
        """Returns everything kept, preceded by the mode switches of dropped chunks, and the number of dropped bytes."""
        with self._lock:
            if self._lost > _TORRENT:
                self._keep(_TORRENT_KEEPS)
            data = b"".join((*self._switches, *(chunk for chunk, _ in self._chunks)))
            lost = self._lost
            self._chunks.clear()
            self._switches.clear()
            self.size = self._lost = 0
            return data, lost

    @property
    def flooded(self) -> bool:
        return self._lost > 0


class GateTimeout(Exception):
    """Another injection did not end in time."""


class InputWriter:
    """All input to the tool: the person's keys, answers to prompts, answers to queries. Writes never block: bytes that
    the tool does not accept yet are queued. The injection gate delays the person's keys while an answer is typed."""

    def __init__(self, fd: int, clock: Clock, wake: Callable[[], None]) -> None:
        self._fd = fd
        self._clock = clock
        self._wake = wake  # wakes the thread that polls for `flush`
        self._lock = threading.Lock()  # one writer at a time; costs a key 0.7 us of an echo of 77
        self._injecting = threading.Lock()  # one injection at a time
        self._queue = bytearray()
        self._held = bytearray()
        self._holding = False
        self.last_input_at: float | None = None

    @property
    def backlog(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def type(self, data: bytes) -> bool:
        """Types keys of the person at the terminal: now, or after the running injection. Returns False if some are
        delayed."""
        with self._lock:
            if self._holding:
                held, data = part_answers(data)  # the tool can wait for these while an answer is typed
                self._held += held
            if data:
                self._put(data)
            return not (self._queue or self._held)

    def send(self, data: bytes) -> bool:
        """Writes now, past the gate. What the tool does not accept is queued. Returns False if the terminal is gone."""
        with self._lock:
            return self._put(data)

    def _put(self, data: bytes) -> bool:
        done = 0
        try:
            if not self._queue:
                done = os.write(self._fd, data)
        except BlockingIOError:
            pass
        except OSError:
            return False  # nothing will read it
        self.last_input_at = self._clock.now()
        if done < len(data):
            self._queue += data[done:]
            self._wake()
        return True

    def flush(self) -> None:
        with self._lock:
            waiting, self._queue = bytes(self._queue), bytearray()
            if waiting:
                self._put(waiting)

    @contextmanager
    def injection(self, timeout_s: float) -> Iterator[None]:
        """Closes the gate: the person's keys are delayed until the end of the block."""
        if not self._injecting.acquire(timeout=timeout_s):
            raise GateTimeout
        try:
            with self._lock:
                self._holding = True
            yield
        finally:
            with self._lock:
                self._holding = False
                held, self._held = bytes(self._held), bytearray()
                if held:
                    self._put(held)
                    self._wake()  # the keyboard thread can have stopped at the backlog limit
            self._injecting.release()


_KITTY = rb"\x1b\[%d(?::\d*)*;%s(?::[12])?(?:;[\d:]*)?u"
_OTHER_KEYS = rb"\x1b\[27;%s;%d~"
_NOISE = lazy(rb"(?:\x1b\[[\d:]*;\d+:3[\d:;]*u|\x1b\[574[45]\d[\d:;]*u)+")  # key releases, modifiers
_known: dict[tuple[bytes, bytes], tuple[re.Pattern[bytes], re.Pattern[bytes]]] = {}


class DetachKey:
    """Finds the detach key in a person's input: a prefix key and a letter, for example `Ctrl-] d`, also in the longer
    encodings of kitty and xterm. The prefix typed twice is sent once; before any other key it is sent with it."""

    def __init__(self, spec: str) -> None:
        self.prefix, self._letter = _parse(spec)
        self._pending = b""
        self._is_prefix, self._is_letter = _patterns(self.prefix, self._letter)

    @property
    def pending(self) -> bool:
        """Whether a prefix waits for its letter. While none does, a single byte other than `prefix` does not have to be
        fed."""
        return bool(self._pending)

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Returns the bytes for the tool, and whether the person wants to detach."""
        if not self._pending and self._is_plain(data):
            return data, False
        out = b""
        while data:
            if self._pending:
                out, data, leave = self._after_prefix(out, data)
                if leave:
                    return out, True
                continue
            found = self._is_prefix.search(data)
            if found is None:
                return out + data, False
            out += data[: found.start()]
            self._pending = found.group()
            data = data[found.end() :]
        return out, False

    def _is_plain(self, data: bytes) -> bool:
        return self.prefix not in data and b"\x1b[" not in data

    def _after_prefix(self, out: bytes, data: bytes) -> tuple[bytes, bytes, bool]:
        if noise := _NOISE.match(data):
            return out + noise.group(), data[noise.end() :], False
        pending, self._pending = self._pending, b""
        if letter := self._is_letter.match(data):
            return out, data[letter.end() :], True
        if again := self._is_prefix.match(data):
            return out + pending, data[again.end() :], False
        return out + pending, data, False

    @property
    def name(self) -> str:
        code = ord(self.prefix)
        return (f"Ctrl-{chr(code ^ 0x40)}" if code < 0x20 else self.prefix.decode()) + f" {self._letter.decode()}"


def _patterns(prefix: bytes, letter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """The patterns of the prefix and of the letter in all encodings. They are cached, so that a fork server shares them
    with its hosts."""
    if (prefix, letter) not in _known:
        number = ord(prefix) ^ 0x40 if ord(prefix) < 0x20 else ord(prefix)
        forms = [re.escape(prefix)]
        for code in {number, ord(chr(number).lower())}:
            forms += [_KITTY % (code, rb"5"), _OTHER_KEYS % (rb"5", code)]
        small = ord(letter)
        letters = re.escape(letter) + b"|" + _KITTY % (small, rb"1?") + rb"|\x1b\[%d(?::\d*)*u" % small
        _known[prefix, letter] = lazy(b"|".join(forms)), lazy(letters)
    return _known[prefix, letter]


def _parse(spec: str) -> tuple[bytes, bytes]:
    prefix, _, letter = spec.strip().replace("Ctrl-", "^").replace("ctrl-", "^").partition(" ")
    if len(prefix) == 2 and prefix[0] == "^" and "@" <= prefix[1].upper() <= "_" and len(letter.strip()) == 1:
        return bytes([ord(prefix[1].upper()) ^ 0x40]), letter.strip().encode("ascii", "replace")
    raise ConfigError(f"detach_key: cannot read {spec!r}", 'write a control key and a letter, for example "^] d"')


_READ_BYTES = 4096
_END_FIRST_S, _END_LAST_S = 0.03, 1.0  # how often to check whether the tool has read all of a piped input
_ECHO_MS = 10  # the echo of a key arrives within this time; no other thread should wake up and delay it
_RAW_LOOKS = 8  # a program that reads keys, not lines, gets end-of-file only when it clearly waits for more


class InputRelay:
    """`stdin_relay`: sends every key of the attached terminal to the tool, except the detach key. It also writes queued
    input once the tool reads again, and passes the end of a piped input on as end-of-file."""

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


STATUS_QUERY = b"\x1b]7501;?"  # a query for program status support, sent by tools that can report when they wait
STATUS_ANSWER = b"\x1b]7501;?\x1b\\"
_FULL_READ = 4095  # the maximum of one read on Linux: there is probably more
_BURST = 4  # full reads that are passed on as one write
_REOPEN_S = 0.05
_SCAN_BYTES = 1 << 20  # bytes to search for sequences at the start of a burst, and per second in a flood


class OutputRelay:
    """`pty_reader`: copies every byte of the tool at once and in order to the attached terminal and into the ring."""

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
