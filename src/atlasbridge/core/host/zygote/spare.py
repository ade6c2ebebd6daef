"""The host that is forked before anybody asks for one: it has done all that does not depend on who asks, and waits.

It is handed the caller's connection, and is then a host like any other.  One that was killed meanwhile costs its zygote
a fork; one that dies with a connection in its hands lets it go, and that caller takes the plain way.
"""

from __future__ import annotations

import os

from atlasbridge.core.host.terminal.lending import send_with_fds, unpack_fds
from atlasbridge.core.lean import socket

_KNOCK = b"!"
_FD_BYTES = 4


class Spare:
    """As the zygote sees it: a process, and the line to it."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line

    def fileno(self) -> int:
        """Readable when it is gone: it has nothing to say."""
        return self._line.fileno()

    def hand_over(self, fd: int) -> bool:
        """False: it is gone, and the connection is still ours alone."""
        try:
            send_with_fds(self._line, _KNOCK, (fd,))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """One that waits ends by this; one that has a caller is not disturbed."""
        self._line.close()


def fork_spare() -> tuple[Spare | None, int]:
    """In the zygote: the spare.  In the child: None, and the descriptor of its line.  OSError: none is to be had."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        ours.close()
        return None, theirs.detach()
    theirs.close()
    return Spare(pid, ours), -1


def await_caller(fd: int) -> int:
    """In the spare: the connection of whoever it is for; -1: the zygote has ended, and nobody will come."""
    line = socket.socket(fileno=fd)
    try:
        _, ancillary, _, _ = line.recvmsg(len(_KNOCK), socket.CMSG_SPACE(_FD_BYTES), socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return -1
    finally:
        line.close()
    given = [fd for level, kind, payload in ancillary for fd in unpack_fds(payload)]
    return given[0] if given else -1
