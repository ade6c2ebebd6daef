"""The session's door: the socket through which terminals come, and whoever is inside.

Knows who may enter and what they say; what is done about it is the host's business.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlasbridge.core.host.terminal.caller import Caller
from atlasbridge.core.peer import Peer, read_peer

_MOST_CALLERS = 64  # terminals and hooks that are inside at a time; each takes a descriptor of the host


class Door:
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
        """`peer`: who came in by the door; None: the terminal that started the session."""
        caller = Caller(connection, peer)
        self._callers[caller.fileno()] = caller
        caller.say(self._greeting)

    def register(self, waiter: select.poll) -> None:
        if self._listener is not None:
            waiter.register(self._listener, select.POLLIN)
        for fd in self._callers:
            waiter.register(fd, select.POLLIN)

    def serve(self, ready: list[int]) -> Iterator[tuple[Caller, dict[str, Any] | None]]:
        """What the callers among `ready` say; None: this one is gone."""
        for fd in ready:
            if self._listener is not None and fd == self._listener.fileno():
                self._accept(self._listener)
            elif fd in self._callers:
                yield from self._hear(self._callers[fd])

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # gone again
        peer = read_peer(connection)
        crowded = len(self._callers) >= _MOST_CALLERS
        if peer.uid == os.getuid() and not crowded:  # root is another user, and who is not named by the system is none
            self.admit(connection, peer)
        else:
            connection.close()

    def is_kindred(self, caller: Caller, tool_pid: int) -> bool:
        """Whether this caller was started inside a session; the terminal that started this one is always its own."""
        if caller.peer is None or self._path is None:
            return False
        from atlasbridge.core.host.terminal.kindred import is_kindred  # few terminals ever come in by the door

        return is_kindred(caller.peer, tool_pid, self._path.parent, self._path)

    def is_inside(self, caller: Caller, tool_pid: int) -> bool:
        """Whether this caller belongs to the session's own tool: nobody else speaks for it."""
        if caller.peer is None:
            return False
        from atlasbridge.core.host.terminal.kindred import is_inside  # hooks are few, and most tools have none

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

    def shut(self) -> None:
        """Nobody comes in any more; whoever is inside stays."""
        if self._listener is not None and self._path is not None:
            self._listener.close()
            self._path.unlink(missing_ok=True)
            self._listener = None

    def close(self) -> None:
        self.shut()
        for caller in self._callers.values():
            caller.close()
        self._callers.clear()
