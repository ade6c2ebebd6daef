"""The wake-up of a system on which only sockets can be waited for: the same calls, over a pair of them."""

from __future__ import annotations

import select
import socket


class SocketWakeup:
    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def __del__(self) -> None:
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        return self._reader.fileno()

    @property
    def write_fd(self) -> int:
        return self._writer.fileno()

    def set(self) -> None:
        try:
            self._writer.send(b"!")
        except BlockingIOError:
            pass  # it is full of calls already

    def clear(self) -> None:
        self.take()

    def take(self) -> bytes:
        try:
            return self._reader.recv(65536)
        except BlockingIOError:
            return b""

    def wait(self, timeout_s: float | None) -> bool:
        ready, _, _ = select.select([self._reader], [], [], None if timeout_s is None else max(0.0, timeout_s))
        if ready:
            self.clear()
        return bool(ready)
