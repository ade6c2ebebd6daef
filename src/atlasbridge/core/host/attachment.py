"""The terminals attached to a session: the socket to which they connect, the one that is shown, and its descriptors.

The host opens its own file description where it can: non-blocking mode must never leak into the person's shell.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core import wire
from atlasbridge.core.peer import (
    UNPROVEN,
    Peer,
    SessionProcesses,
    ancestry_of,
    decide_inside_session,
    look_at,
    meet,
    read_peer,
    started_at,
    trace_ancestry,
)
from atlasbridge.core.process import unpack_fds
from atlasbridge.core.tty import Pty, Size

if TYPE_CHECKING:
    from atlasbridge.core.host.analysis import LazyAnalysis
    from atlasbridge.core.host.relay import InputRelay, OutputRelay


_OWN_FLAGS = os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_PATIENCE_MS = 100  # a write that waits for a slow terminal checks this often whether it is still needed
_CAREFUL_BYTES = 512  # maximum size of one write to a blocking description after it was reported writable


class Attachment:
    """Takes over both descriptors. The reading thread closes the input; `close_output` closes the output."""

    def __init__(self, stdin_fd: int, stdout_fd: int) -> None:
        self.input_is_terminal = os.isatty(stdin_fd)
        self.output_is_terminal = os.isatty(stdout_fd)
        self.closed = False
        self.ahead, self.end_of_file = 0, b"\x04"  # bytes that were typed before the terminal was raw; see the client
        self.input_fd = _own(stdin_fd, os.O_RDONLY)
        self._output_fd = _own(stdout_fd, os.O_WRONLY)
        kind = os.fstat(self._output_fd).st_mode
        self._socket = socket.socket(fileno=os.dup(self._output_fd)) if stat.S_ISSOCK(kind) else None
        self._careful = os.get_blocking(self._output_fd) and not stat.S_ISREG(kind)
        self._plain = self._socket is None and not self._careful

    @property
    def is_terminal(self) -> bool:
        """Whether it is a real terminal, which answers the tool's queries itself."""
        return self.input_is_terminal and self.output_is_terminal

    def as_typed(self, data: bytes) -> bytes:
        """Restores end-of-file characters, which a terminal in line mode has changed to NUL."""
        early, self.ahead = data[: self.ahead], max(0, self.ahead - len(data))
        return early.replace(b"\0", self.end_of_file) + data[len(early) :]

    def write(self, data: bytes, patience: int = -1) -> bool:
        """Writes all of `data`, and waits for a slow terminal as long as it is attached. Returns False if it is gone.

        `patience` limits the waits (a tenth of a second each), for callers that have other work.
        """
        done = self.write_some(data)
        return done == len(data) or self.write_rest(data[done:], patience)

    def write_rest(self, data: bytes, patience: int = -1) -> bool:
        """Like `write`, for what `write_some` left: the terminal accepts nothing at the moment, or is gone."""
        try:
            while data:
                if self.closed or patience == 0:
                    return False
                if self._writable(_PATIENCE_MS):
                    data = data[self._put(data) :]
                else:
                    patience -= 1
        except OSError:
            return False
        return True

    def write_some(self, data: bytes) -> int:
        """Writes what is accepted at once: the fast path for every chunk. A terminal that is gone accepts nothing."""
        try:
            return os.write(self._output_fd, data) if self._plain else self._put(data)
        except OSError:
            return 0

    def write_soon(self, data: bytes) -> None:
        """Writes as much of `data` as is accepted at once: a last message to a terminal that could be gone."""
        with contextlib.suppress(OSError):
            self._put(data)

    def _put(self, data: bytes) -> int:
        try:
            if self._socket is not None:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            if self._careful:
                return os.write(self._output_fd, data[:_CAREFUL_BYTES]) if self._writable(0) else 0
            return os.write(self._output_fd, data)
        except BlockingIOError:
            return 0

    def _writable(self, timeout_ms: int) -> bool:
        waiter = select.poll()
        waiter.register(self._output_fd, select.POLLOUT)
        return bool(waiter.poll(timeout_ms))

    def close_input(self) -> None:
        if self.input_fd >= 0:
            os.close(self.input_fd)
            self.input_fd = -1

    def close_output(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._output_fd >= 0:
            os.close(self._output_fd)
            self._output_fd = -1


def _own(fd: int, access: int) -> int:
    """Opens our own non-blocking description of the same terminal or pipe. If that fails, returns `fd` unchanged."""
    for path in _names(fd):
        try:
            own = os.open(path, access | _OWN_FLAGS)
        except OSError:
            continue
        if _same_file(own, fd):
            os.close(fd)
            return own
        os.close(own)
    return fd


def _names(fd: int) -> list[str]:
    names = []
    with contextlib.suppress(OSError):
        names.append(os.ttyname(fd))
    if sys.platform == "linux" and (names or stat.S_ISFIFO(os.fstat(fd).st_mode)):
        names.append(f"/proc/self/fd/{fd}")  # also works where the name is invalid: in another mount namespace
    return names


def _same_file(one: int, other: int) -> bool:
    a, b = os.fstat(one), os.fstat(other)
    return (a.st_rdev, a.st_ino, a.st_dev) == (b.st_rdev, b.st_ino, b.st_dev)


# The socket through which terminals and hooks connect. It checks who is allowed to connect and reads their messages;
# the host acts on them.

_MAX_FDS = 4
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Caller:
    """One connected client: messages in both directions, and the descriptors that come with them."""

    def __init__(self, connection: socket.socket, peer: Peer | None = None) -> None:
        self._connection = connection
        self.peer = peer
        self._buffer = wire.LineBuffer()
        self._fds: list[int] = []
        self.attachment: Attachment | None = None
        self.shows = False  # another terminal took the keyboard, and this one still shows the session
        connection.setblocking(False)

    def fileno(self) -> int:
        return self._connection.fileno()

    def read(self) -> list[dict[str, Any]] | None:
        try:
            data, ancillary, _, _ = self._connection.recvmsg(65536, socket.CMSG_SPACE(_MAX_FDS * 4), _CLOEXEC)
        except BlockingIOError:
            return []
        except OSError:
            return None
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._keep(payload)
        if not data:
            return None
        try:
            return list(self._buffer.feed(data))
        except ValueError:
            return None  # not one of our clients

    def _keep(self, payload: bytes) -> None:
        """Keeps received descriptors. A terminal needs two; a client that sends more and never attaches must not
        exhaust ours."""
        for fd in unpack_fds(payload):
            if len(self._fds) >= _MAX_FDS:
                os.close(fd)
                continue
            os.set_inheritable(fd, False)
            self._fds.append(fd)

    def take_terminal(self) -> tuple[int, int] | None:
        if len(self._fds) < 2:
            return None
        stdin_fd, stdout_fd, *rest = self._fds
        self._fds = rest
        return stdin_fd, stdout_fd

    def say(self, message: dict[str, Any]) -> None:
        """Sends without queueing: a client reads at once or is gone."""
        try:
            self._connection.send(wire.encode(message))
        except OSError:
            pass

    def tell(self, message: dict[str, Any]) -> bool:
        """Like `say`, and returns whether the client was there to receive it."""
        data = wire.encode(message)
        try:
            if self._connection.recv(1, socket.MSG_PEEK) == b"":
                return False
        except BlockingIOError:
            pass  # it is connected and has sent nothing
        except OSError:
            return False
        try:
            return self._connection.send(data) == len(data)
        except OSError:
            return False

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._connection.close()


_MOST_CALLERS = 64  # connected terminals and hooks; each uses a descriptor of the host


class AttachSocket:
    def __init__(self, greeting: dict[str, Any]) -> None:
        self._greeting = greeting
        self._listener: socket.socket | None = None
        self._path: Path | None = None
        self._callers: dict[int, Caller] = {}

    @property
    def empty(self) -> bool:
        return not self._callers

    def open(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        os.chmod(path, 0o600)
        listener.listen(8)
        listener.setblocking(False)
        self._listener, self._path = listener, path

    def admit(self, connection: socket.socket, peer: Peer | None = None) -> None:
        """`peer` is the process that connected through the socket; None for the terminal that started the session."""
        caller = Caller(connection, peer)
        self._callers[caller.fileno()] = caller
        caller.say(self._greeting)

    def register(self, waiter: select.poll) -> None:
        if self._listener is not None:
            waiter.register(self._listener, select.POLLIN)
        for fd in self._callers:
            waiter.register(fd, select.POLLIN)

    def serve(self, ready: list[int]) -> Iterator[tuple[Caller, dict[str, Any] | None]]:
        """Yields the messages of the callers in `ready`; None means that the caller is gone."""
        for fd in ready:
            if self._listener is not None and fd == self._listener.fileno():
                self._accept(self._listener)
            elif fd in self._callers:
                yield from self._hear(self._callers[fd])

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # it is gone again
        peer = meet(connection, listens=True)
        crowded = len(self._callers) >= _MOST_CALLERS
        # root counts as another user, and a peer without a known uid is refused
        if peer.uid == os.getuid() and not crowded:
            self.admit(connection, peer)
        else:
            connection.close()

    def is_inside_session(self, caller: Caller, tool_pid: int) -> bool:
        """Whether this caller was started inside a session. The terminal that started this session never counts as
        inside."""
        if caller.peer is None or self._path is None:
            return False

        return is_inside_session(caller.peer, tool_pid, self._path.parent, self._path)

    def is_inside(self, caller: Caller, tool_pid: int) -> bool:
        """Whether this caller belongs to the session's own tool: no other process is allowed to report for it."""
        if caller.peer is None:
            return False

        return is_inside(caller.peer, tool_pid)

    def _hear(self, caller: Caller) -> Iterator[tuple[Caller, dict[str, Any] | None]]:
        messages = caller.read()
        if messages is not None:
            for message in messages:
                yield caller, message
            return
        del self._callers[caller.fileno()]
        yield caller, None
        caller.close()

    def tell_all(self, message: dict[str, Any]) -> None:
        for caller in self._callers.values():
            caller.say(message)

    def tell_viewers(self, message: dict[str, Any]) -> None:
        for caller in self._callers.values():
            if caller.shows:
                caller.shows = False
                caller.say(message)

    def shut(self) -> None:
        """Accepts no more connections; existing ones stay open."""
        if self._listener is not None and self._path is not None:
            self._listener.close()
            self._path.unlink(missing_ok=True)
            self._listener = None

    def close(self) -> None:
        self.shut()
        for caller in self._callers.values():
            caller.close()
        self._callers.clear()


# Checks whether a client of a session's socket was started inside a session: a tool must not act as its own person.
#
# `core.peer` finds the ancestors of a process. The hub's own socket has its own list of sessions.

_PATIENCE_S = 0.2


def is_inside_session(peer: Peer, tool_pid: int, attach_sockets: Path, own: Path) -> bool:
    """Also true if it is unknown: a person's terminal exists as long as the person uses it."""
    ancestry = ancestry_of(peer)
    if not ancestry:
        return True
    sessions = [SessionProcesses(own.stem, os.getpid(), tool_pid, started_at(os.getpid()), started_at(tool_pid))]
    if sys.platform != "linux":  # on Linux, a host is recognised by its name
        found = (
            (attach_socket, _holder(attach_socket))
            for attach_socket in attach_sockets.glob("*.sock")
            if attach_socket != own
        )
        sessions += [
            SessionProcesses(attach_socket.stem, host.pid, 0, host.started) for attach_socket, host in found if host.pid
        ]
    return bool(decide_inside_session(ancestry, sessions))


def is_inside(peer: Peer, tool_pid: int) -> bool:
    """Whether the peer is this host's own tool, or a descendant that is still attached to it, such as a hook. An orphan
    of the tool is a child of the host, so it does not count; neither does a process that has ended."""
    found = trace_ancestry(peer.pid, look_at) if peer.started == UNPROVEN else ancestry_of(peer)  # a hook has no nonce
    ancestry = [process.pid for process in found]
    return tool_pid in ancestry and os.getpid() in ancestry[ancestry.index(tool_pid) + 1 :]


def _holder(attach_socket: Path) -> Peer:
    """The host behind another session's socket; pid 0 if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        try:
            connection.connect(str(attach_socket))
        except OSError:
            return Peer(0, 0)
        return read_peer(connection)


_PATIENCE = 20  # tenths of a second to wait for a terminal that accepts nothing, while the host has others to serve


class AttachedClient:
    """The one attached terminal of a session. The newest one has the keyboard, and the session has its size. The
    previous one gets its modes reset, and its client is told; it shows the screen until it takes the keyboard back."""

    def __init__(
        self,
        pty: Pty,
        size: Size,
        output: OutputRelay,
        keyboard: InputRelay,
        analysis: LazyAnalysis,
        changed: Callable[[], None],
        rows_alone: int = 0,
    ) -> None:
        self._pty = pty
        self._size = size
        self._rows_alone = rows_alone
        self._output = output
        self._keyboard = keyboard
        self._analysis = analysis
        self._changed = changed
        self._lock = threading.RLock()
        self._caller: Caller | None = None
        self._own_size: Size | None = None  # while the session has the size of somebody who watches from elsewhere
        self._left_at = 0.0  # time of the tool's last output when a terminal was released

    @property
    def attachment(self) -> Attachment | None:
        return None if self._caller is None else self._caller.attachment

    @property
    def is_attached(self) -> bool:
        return self._caller is not None

    def signal(self, data: bytes) -> None:
        """Sends a notification to the attached terminal: as much as fits at once, between two chunks."""
        with self._output.lock:
            attachment = self.attachment
            if data and attachment is not None and attachment.output_is_terminal:
                attachment.write_soon(data)

    def attach(
        self,
        caller: Caller,
        fds: tuple[int, int],
        size: Size,
        past: bool = False,
        back: bool = False,
        steal: bool = False,
        ahead: int = 0,
        eof: int = 4,
    ) -> None:
        """Shows the session on this terminal from now on. `back`: it left while the tool was stopped, and its content
        is kept, unless the tool has written something in the meantime."""
        if self._pty.is_own(fds[0]) or self._pty.is_own(fds[1]):
            for fd in fds:
                os.close(fd)
            caller.say({"m": "failed", "status": 1, "text": "a session cannot be shown inside itself"})
            return
        with self._lock:
            self.detach(self.attachment, "stolen" if steal else "taken")
            attachment = caller.attachment = Attachment(*fds)
            attachment.ahead, attachment.end_of_file = ahead, bytes((eof,))
            self._caller, self._own_size, caller.shows = caller, None, False
            with self._output.lock:
                self.resize(size)
                if self._output.started and attachment.output_is_terminal:
                    unchanged = back and self._output.last_output_at == self._left_at
                    attachment.write(self._analysis.redraw(past, unchanged), _PATIENCE)
                self._output.attachment = attachment
            self._keyboard.switch(attachment)
            caller.say({"m": "attached"})
            self._analysis.changed(self._size, True)
        self._changed()

    def resize(self, size: Size) -> None:
        with self._lock:
            if size == self._size:
                return
            self._size = size
            self._pty.resize(size)
            self._analysis.changed(size, self.is_attached)

    def lend_size(self, rows: int, cols: int) -> None:
        """To a page that watches, while no terminal is attached; 0: the session gets its own size back."""
        with self._lock:
            own, self._own_size = self._own_size or self._size, None
            if self.is_attached:
                return
            if rows and cols:
                self._own_size = own
                self.resize(Size(rows, cols))
            else:
                self.resize(own)

    def grow(self) -> None:
        """No terminal is attached: a tool that hides what does not fit gets the height that it needs."""
        with self._lock:
            self.resize(Size(max(self._size.rows, self._rows_alone), self._size.cols))

    def detach(self, attachment: Attachment | None, why: str) -> None:
        """Releases this terminal, unless another one has already taken over."""
        with self._lock:
            caller = self._caller
            if attachment is None or caller is None or caller.attachment is not attachment:
                return
            self._caller = None
            attachment.closed = True
            self._keyboard.switch(None)
            self._release(attachment, quietly=why == "closed", parting=why in ("detached", "taken", "stolen"))
            caller.attachment, caller.shows = None, why == "taken"
            caller.say({"m": "detached", "why": why})
            self._analysis.changed(self._size, False)
            if why not in ("taken", "stolen", "stopped"):
                self.grow()
        self._analysis.wake()
        self._changed()

    def _release(self, attachment: Attachment, quietly: bool, parting: bool) -> None:
        with self._output.lock:  # a chunk in transit stops soon, because the attachment is marked as closed
            if self._output.attachment is attachment:
                self._output.attachment = None
                self._left_at = self._output.last_output_at
            if not quietly and attachment.output_is_terminal and self._output.started:
                attachment.write_soon(self._analysis.farewell(parting))
            attachment.close_output()

    def finish(self, status: int) -> None:
        """The tool has ended. If it failed, it could have left the terminal in any state."""
        with self._lock:
            attachment = self.attachment
            if attachment is None:
                return
            self._output.show_rest(attachment)
            if status != 0 and attachment.output_is_terminal:
                attachment.write(self._analysis.farewell(), _PATIENCE)
            attachment.closed = True
            self._caller = None
            self._output.attachment = None
            self._keyboard.switch(None)
            attachment.close_output()
