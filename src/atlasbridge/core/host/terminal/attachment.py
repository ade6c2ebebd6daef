"""A person's terminal, or the pipes in its place, as the session host has it after the client passed it over.

The host opens its own file description where it can: non-blocking mode must never leak into the person's shell.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import sys

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
