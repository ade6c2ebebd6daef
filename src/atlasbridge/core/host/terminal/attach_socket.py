"""The socket through which terminals and hooks connect to a session, and the connected clients.

It checks who is allowed to connect and reads their messages; the host acts on them.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.ancestry import SessionProcesses, decide_inside_session, look_at, started_at, trace_ancestry
from atlasbridge.core.host.terminal.attachment import Attachment
from atlasbridge.core.host.terminal.terminal_handover import unpack_fds
from atlasbridge.core.peer import UNPROVEN, Peer, line_of, meet, read_peer

# One connected client from the host's view: messages in both directions, and the descriptors that come with them.

_MAX_FDS = 4
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Caller:
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
        """Returns its messages; None if it is gone."""
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
        """The two descriptors that came with an `attach`."""
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
# `core.ancestry` finds the ancestors of a process. The hub's own socket has its own list of sessions.

_PATIENCE_S = 0.2


def is_inside_session(peer: Peer, tool_pid: int, attach_sockets: Path, own: Path) -> bool:
    """Also true if it is unknown: a person's terminal exists as long as the person uses it."""
    line = line_of(peer)
    if not line:
        return True
    homes = [SessionProcesses(own.stem, os.getpid(), tool_pid, started_at(os.getpid()), started_at(tool_pid))]
    if sys.platform != "linux":  # on Linux, a host is recognised by its name
        found = (
            (attach_socket, _holder(attach_socket))
            for attach_socket in attach_sockets.glob("*.sock")
            if attach_socket != own
        )
        homes += [
            SessionProcesses(attach_socket.stem, host.pid, 0, host.started) for attach_socket, host in found if host.pid
        ]
    return bool(decide_inside_session(line, homes))


def is_inside(peer: Peer, tool_pid: int) -> bool:
    """Whether the peer is this host's own tool, or a descendant that is still attached to it, such as a hook. An orphan
    of the tool is a child of the host, so it does not count; neither does a process that has ended."""
    found = trace_ancestry(peer.pid, look_at) if peer.started == UNPROVEN else line_of(peer)  # a hook has no nonce
    line = [process.pid for process in found]
    return tool_pid in line and os.getpid() in line[line.index(tool_pid) + 1 :]


def _holder(attach_socket: Path) -> Peer:
    """The host behind another session's socket; pid 0 if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        try:
            connection.connect(str(attach_socket))
        except OSError:
            return Peer(0, 0)
        return read_peer(connection)
