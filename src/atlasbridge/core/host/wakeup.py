"""A pipe that wakes one sleeping thread. Several calls before it wakes count as one."""

from __future__ import annotations

import os
import select


class Wakeup:
    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)

    def __del__(self) -> None:
        """Closes the pipe when the last user is gone: its threads end in any order, and a program can have many
        sessions in turn."""
        os.close(self._read_fd)
        os.close(self._write_fd)

    def fileno(self) -> int:
        return self._read_fd

    @property
    def write_fd(self) -> int:
        return self._write_fd

    def set(self) -> None:
        try:
            self._send()
        except BlockingIOError:
            pass  # the pipe is full of calls already

    def clear(self) -> None:
        self.take()

    def take(self) -> bytes:
        """Returns what was written into the pipe: signal numbers, if `signal.set_wakeup_fd` uses it."""
        try:
            return self._receive()
        except BlockingIOError:
            return b""

    def wait(self, timeout_s: float | None) -> bool:
        """Sleeps until it is woken or the time is over, and discards the calls so far."""
        woken = self._sleep(timeout_s)
        if woken:
            self.clear()
        return woken

    def _sleep(self, timeout_s: float | None) -> bool:
        waiter = select.poll()
        waiter.register(self._read_fd, select.POLLIN)
        return bool(waiter.poll(None if timeout_s is None else max(0, timeout_s * 1000)))

    def _send(self) -> None:
        os.write(self._write_fd, b"!")

    def _receive(self) -> bytes:
        return os.read(self._read_fd, 65536)


class SocketWakeup(Wakeup):
    """The same with a socket pair, for systems that can wait only for sockets."""

    def __init__(self) -> None:
        from socket import socketpair  # late: `socket` costs a client several milliseconds

        self._reader, self._writer = socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._read_fd, self._write_fd = self._reader.fileno(), self._writer.fileno()

    def __del__(self) -> None:
        self._reader.close()
        self._writer.close()

    def _sleep(self, timeout_s: float | None) -> bool:
        return bool(select.select([self._reader], [], [], None if timeout_s is None else max(0.0, timeout_s))[0])

    def _send(self) -> None:
        self._writer.send(b"!")

    def _receive(self) -> bytes:
        return self._reader.recv(65536)


if not hasattr(select, "poll"):  # Windows
    Wakeup = SocketWakeup  # type: ignore[misc]
