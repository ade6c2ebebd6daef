"""One connected client as the host sees it: messages both ways, and the descriptors that come with them."""

from __future__ import annotations

import os
import socket
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.host.terminal.attachment import Attachment
from atlasbridge.core.host.terminal.lending import unpack_fds
from atlasbridge.core.peer import Peer

_MAX_FDS = 4
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Caller:
    def __init__(self, connection: socket.socket, peer: Peer | None = None) -> None:
        self._connection = connection
        self.peer = peer
        self._buffer = wire.LineBuffer()
        self._fds: list[int] = []
        self.attachment: Attachment | None = None
        connection.setblocking(False)

    def fileno(self) -> int:
        return self._connection.fileno()

    def read(self) -> list[dict[str, Any]] | None:
        """What it said; None: it is gone."""
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
            return None  # not one of ours

    def _keep(self, payload: bytes) -> None:
        """A terminal is two descriptors: whoever sends more and never attaches must not use up ours."""
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
        """A client reads at once or is gone: nothing is queued for it."""
        try:
            self._connection.send(wire.encode(message))
        except OSError:
            pass

    def tell(self, message: dict[str, Any]) -> bool:
        """The same, and whether it was there to hear it."""
        data = wire.encode(message)
        try:
            if self._connection.recv(1, socket.MSG_PEEK) == b"":
                return False
        except BlockingIOError:
            pass  # it is there, and has nothing to say
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
