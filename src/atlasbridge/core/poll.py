"""Waits for several sockets: `poll` where the system has it, otherwise `select` with the same interface.

On Windows it is possible to wait only for sockets, not for pipes or files.
"""

from __future__ import annotations

import os
import select
from typing import Protocol

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16  # the same numbers on every system that has `poll`


class Watched(Protocol):
    def fileno(self) -> int: ...


class ReadyWait(Protocol):
    def register(self, fd: int | Watched, eventmask: int, /) -> None: ...
    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]: ...


class SelectPoller:
    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def register(self, fd: int | Watched, eventmask: int, /) -> None:
        self._masks[fd if isinstance(fd, int) else fd.fileno()] = eventmask

    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]:
        readers = [fd for fd, mask in self._masks.items() if mask & POLLIN]
        writers = [fd for fd, mask in self._masks.items() if mask & POLLOUT]
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        readable, writable, broken = select.select(readers, writers, list(self._masks), timeout_s)
        found = dict.fromkeys([*readable, *writable, *broken], 0)
        for ready, event in ((readable, POLLIN), (writable, POLLOUT), (broken, POLLERR)):
            for fd in ready:
                found[fd] |= event
        return list(found.items())


def make_poller() -> ReadyWait:
    return select.poll() if hasattr(select, "poll") else SelectPoller()


class Wakeup:
    """A pipe that wakes one sleeping thread. Several calls before it wakes count as one."""

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
            os.write(self._write_fd, b"!")
        except BlockingIOError:
            pass  # the pipe is full of calls already

    def clear(self) -> None:
        self.take()

    def take(self) -> bytes:
        """Returns what was written into the pipe: signal numbers, if `signal.set_wakeup_fd` uses it."""
        try:
            return os.read(self._read_fd, 65536)
        except BlockingIOError:
            return b""

    def wait(self, timeout_s: float | None) -> bool:
        """Sleeps until it is woken or the time is over, and discards the calls so far."""
        waiter = select.poll()
        waiter.register(self._read_fd, select.POLLIN)
        woken = bool(waiter.poll(None if timeout_s is None else max(0, timeout_s * 1000)))
        if woken:
            self.clear()
        return woken


class SocketWakeup:
    """The same with a socket pair, for systems that can wait only for sockets."""

    def __init__(self) -> None:
        from socket import socketpair  # late: `socket` costs a client several milliseconds

        self._reader, self._writer = socketpair()
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
            pass  # the buffer is full of calls already

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


if not hasattr(select, "poll"):  # Windows
    Wakeup = SocketWakeup  # type: ignore[assignment, misc]
