"""A person's terminal, or the pipes that stand for one, as the session host holds it after the client passed it over.

The host opens its own description wherever it can: non-blocking mode must never leak into the person's shell.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import sys

_OWN_FLAGS = os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_PATIENCE_MS = 100  # a write that waits for a slow terminal looks this often whether it is still wanted
_CAREFUL_BYTES = 512  # of a blocking description: what one write takes at once after it was announced writable


class Attachment:
    """Takes over both descriptors.  The input is closed by the one who reads it, the output by `close`."""

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
        """Whether a real terminal is there, which answers the tool's queries itself."""
        return self.input_is_terminal and self.output_is_terminal

    def as_typed(self, data: bytes) -> bytes:
        """The bytes that were read, with the end-of-file characters that a terminal which edits lines has made NUL."""
        early, self.ahead = data[: self.ahead], max(0, self.ahead - len(data))
        return early.replace(b"\0", self.end_of_file) + data[len(early) :]

    def write(self, data: bytes, patience: int = -1) -> bool:
        """All of `data`, waiting for a slow terminal as long as it is attached.  False: it is gone.

        `patience` bounds the waits (a tenth of a second each) for those who have other things to do.
        """
        done = self.write_some(data)
        return done == len(data) or self.write_rest(data[done:], patience)

    def write_rest(self, data: bytes, patience: int = -1) -> bool:
        """The same, for what `write_some` left: the terminal takes nothing at the moment, or is gone."""
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
        """What goes at once: the fast way, for every chunk.  A terminal that is gone takes nothing."""
        try:
            return os.write(self._output_fd, data) if self._plain else self._put(data)
        except OSError:
            return 0

    def write_soon(self, data: bytes) -> None:
        """As much of `data` as goes at once: a farewell to a terminal that may be gone."""
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
    """A description of our own for the same terminal or pipe, non-blocking; else `fd` itself, as it is."""
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
        names.append(f"/proc/self/fd/{fd}")  # also where the name means nothing: another mount namespace
    return names


def _same_file(one: int, other: int) -> bool:
    a, b = os.fstat(one), os.fstat(other)
    return (a.st_rdev, a.st_ino, a.st_dev) == (b.st_rdev, b.st_ino, b.st_dev)
