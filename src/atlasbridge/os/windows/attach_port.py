"""The attach port of a session without Unix sockets: a port of this machine with a key, in a file beside the session's
log. Other consoles and the hooks of its tool connect to it.

This module checks the key. `session.Viewers` decides what a caller is allowed to do.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.hub_connection import (
    HOST,
    SUFFIX,
    Pass,
    answer_loopback,
    bind_alone,
    new_key,
    pass_file,
    read_pass,
    write_pass,
)
from atlasbridge.core.peer import (
    Peer,
    Process,
    SessionProcesses,
    decide_inside_session,
    look_at,
    own_uid,
    started_at,
    trace_ancestry,
)
from atlasbridge.core.values import replace

_MOST_CALLERS = 64
_READ_BYTES = 65536
_SEND_S = 5.0  # a caller that reads nothing for this long is gone

Address = tuple[str, int]
Whose = Callable[[Address, Address], Peer]
Message = dict[str, Any]


class PortCaller:
    """A connected caller, with messages in both directions. Several threads can use it."""

    def __init__(self, link: socket.socket, peer: Peer) -> None:
        self._link = link
        self._speaking = threading.Lock()
        self.peer = peer
        link.settimeout(_SEND_S)

    def say(self, message: Message) -> None:
        self.tell(message)

    def tell(self, message: Message) -> bool:
        """Return whether the message was sent."""
        try:
            with self._speaking:
                self._link.sendall(wire.encode(message))
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[Message]:
        """Yield the caller's messages until it disconnects or sends an invalid one."""
        buffer = wire.LineBuffer()
        while True:
            try:
                data = self._link.recv(_READ_BYTES)
            except TimeoutError:
                continue
            except OSError:
                return
            if not data:
                return
            try:
                yield from buffer.feed(data)
            except ValueError:
                return

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for its messages
        self._link.close()


class AttachPort:
    """`whose` returns the process at the other end of a connection, if the system can tell."""

    def __init__(
        self,
        greeting: Message,
        whose: Whose,
        heard: Callable[[PortCaller, Message], None],
        left: Callable[[PortCaller], None],
    ) -> None:
        self._greeting = greeting
        self._whose = whose
        self._heard = heard
        self._left = left
        self._listener: socket.socket | None = None
        self._pass = Pass(0, new_key())
        self._file: Path | None = None
        self._callers: list[PortCaller] = []
        self._inside = 0
        self._lock = threading.Lock()

    def open(self, path: Path) -> None:
        """`path` is where the session's socket would be."""
        listener = bind_alone(HOST, 0)
        listener.listen(_MOST_CALLERS)
        self._pass = Pass(int(listener.getsockname()[1]), self._pass.key)
        self._listener, self._file = listener, pass_file(path)
        write_pass(self._file, self._pass)
        threading.Thread(target=self._accept, args=(listener,), name="attach-port", daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return  # the port is closed
            with self._lock:
                crowded = self._inside >= _MOST_CALLERS
                self._inside += not crowded
            if crowded:
                link.close()
            else:
                threading.Thread(target=self._serve, args=(link,), name="caller", daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        try:
            if answer_loopback(link, self._pass):
                self._hear(PortCaller(link, self._find(link)))
        except OSError:
            pass  # the caller does not have the key, or has disconnected
        finally:
            link.close()
            with self._lock:
                self._inside -= 1

    def _find(self, link: socket.socket) -> Peer:
        peer = self._whose(link.getpeername(), link.getsockname())
        return peer if peer.uid == own_uid() else Peer(0, peer.uid)

    def _hear(self, caller: PortCaller) -> None:
        with self._lock:
            self._callers.append(caller)
        try:
            caller.say(self._greeting)
            for message in caller.messages():
                self._heard(caller, message)
        finally:
            self._left(caller)
            with self._lock:
                self._callers.remove(caller)
            caller.close()

    def tell_all(self, message: Message) -> None:
        with self._lock:
            present = list(self._callers)
        for caller in present:
            caller.say(message)

    def close(self) -> None:
        if self._listener is None or self._file is None:
            return
        self._file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        with self._lock:
            present = list(self._callers)
        for caller in present:
            caller.close()


# Decides whether a caller is a person's console or comes from the session's own tool. The rules are the same as at a
# socket; the system's tables identify the process at the other end.

_PATIENCE_S = 0.5


def is_inside_session(peer: Peer, tool_pid: int, own: Path, whose: Whose) -> bool:
    """Whether the caller was started inside a session; also true if that is unknown. `own` is this session's path."""
    ancestry = trace_ancestry(peer.pid, look_at) if peer.pid > 0 else ()
    if not ancestry:
        return True
    sessions = [SessionProcesses(own.stem, os.getpid(), tool_pid, started_at(os.getpid()), started_at(tool_pid))]
    for file in own.parent.glob(f"*{SUFFIX}"):
        if file != pass_file(own) and (host := _holder(file, whose)):
            sessions.append(SessionProcesses(file.stem, host, 0, started_at(host)))
    return bool(decide_inside_session(ancestry, sessions))


def is_inside(peer: Peer, tool_pid: int) -> bool:
    """Whether the caller is this session's tool, or a descendant of it, such as a hook. Processes above this one are
    not checked, because they could have ended."""
    here = os.getpid()

    def look_up_to_us(pid: int) -> Process | None:
        found = look_at(pid)
        return found if found is None or pid != here else replace(found, parent=0)

    ancestry = [process.pid for process in (trace_ancestry(peer.pid, look_up_to_us) if peer.pid > 0 else ())]
    return tool_pid in ancestry and here in ancestry[ancestry.index(tool_pid) + 1 :]


def _holder(file: Path, whose: Whose) -> int:
    """The host process of another session's port; 0 if there is none."""
    issued = read_pass(file)
    if issued is None:
        return 0
    try:
        with socket.create_connection((HOST, issued.port), _PATIENCE_S) as link:
            return whose(link.getpeername(), link.getsockname()).pid
    except OSError:
        return 0
