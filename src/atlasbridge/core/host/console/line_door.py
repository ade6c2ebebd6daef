"""The door of a session that has no socket of Unix: a port of this machine with a key, in a file beside the session's
log.  Other consoles come in by it, and the hooks of its tool.

Who may enter is decided here as far as the key goes; what a caller may do, and does, is `company`'s.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.loopback import HOST, Pass, answer_loopback, new_key, pass_file, write_pass
from atlasbridge.core.own_port import bind_alone
from atlasbridge.core.peer import Peer, own_uid

_MOST_CALLERS = 64
_READ_BYTES = 65536
_SEND_S = 5.0  # who reads nothing for so long is gone

Address = tuple[str, int]
Whose = Callable[[Address, Address], Peer]
Message = dict[str, Any]


class LineCaller:
    """Somebody who has come in: words both ways.  Several threads may speak to it."""

    def __init__(self, link: socket.socket, peer: Peer) -> None:
        self._link = link
        self._speaking = threading.Lock()
        self.peer = peer
        link.settimeout(_SEND_S)

    def say(self, message: Message) -> None:
        self.tell(message)

    def tell(self, message: Message) -> bool:
        """Whether it was there to hear it."""
        try:
            with self._speaking:
                self._link.sendall(wire.encode(message))
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[Message]:
        """What it says, until it is gone or says something that is none of our words."""
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
            self._link.shutdown(socket.SHUT_RDWR)  # whoever waits for its words wakes up
        self._link.close()


class LineDoor:
    """`whose`: which process has the other end of a connection, as far as the system tells."""

    def __init__(
        self,
        greeting: Message,
        whose: Whose,
        heard: Callable[[LineCaller, Message], None],
        left: Callable[[LineCaller], None],
    ) -> None:
        self._greeting = greeting
        self._whose = whose
        self._heard = heard
        self._left = left
        self._listener: socket.socket | None = None
        self._pass = Pass(0, new_key())
        self._file: Path | None = None
        self._callers: list[LineCaller] = []
        self._inside = 0
        self._lock = threading.Lock()

    def open(self, path: Path) -> None:
        """`path`: where the session's socket would be."""
        listener = bind_alone(HOST, 0)
        listener.listen(_MOST_CALLERS)
        self._pass = Pass(int(listener.getsockname()[1]), self._pass.key)
        self._listener, self._file = listener, pass_file(path)
        write_pass(self._file, self._pass)
        threading.Thread(target=self._accept, args=(listener,), name="door", daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return  # it is shut
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
                self._hear(LineCaller(link, self._find(link)))
        except OSError:
            pass  # it does not have the key, or is gone again
        finally:
            link.close()
            with self._lock:
                self._inside -= 1

    def _find(self, link: socket.socket) -> Peer:
        peer = self._whose(link.getpeername(), link.getsockname())
        return peer if peer.uid == own_uid() else Peer(0, peer.uid)

    def _hear(self, caller: LineCaller) -> None:
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
