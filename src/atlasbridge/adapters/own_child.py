"""The tool of another's adapter, seen from outside it: its terminal's other end, and how it ended.

The frozen interface has neither a way to type where nothing is asked nor an exit status.  The adapter runs in this
very process, so both can be had without it: the master of its terminal is one of our descriptors, the tool one of our
children.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import termios
from types import FrameType

_NAME_OF_SLAVE = {"linux": (0x80045430, 4), "darwin": (0x40807453, 128)}  # TIOCGPTN, TIOCPTYGNAME: masters alone know


def find_master(not_these: frozenset[int] = frozenset()) -> int | None:
    """The descriptor of this process that is the master of a terminal; None when an adapter has none here."""
    request, size = _NAME_OF_SLAVE.get(sys.platform, (0, 0))
    for name in os.listdir("/dev/fd") if request else ():
        fd = int(name)
        try:
            fcntl.ioctl(fd, request, b"\0" * size)
        except OSError:
            continue  # no terminal's master, or the descriptor of this very listing
        if fd not in not_these:
            return fd
    return None


def copy_size(terminal: int, master: int) -> None:
    """The tool's terminal becomes as large as the person's."""
    try:
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"\0" * 8)
        if struct.unpack("HHHH", size)[0]:
            fcntl.ioctl(master, termios.TIOCSWINSZ, size)
    except OSError:
        return  # no terminal on one side: nothing to copy


class ExitStatus:
    """How a child ended, whoever reaps it: looked at, and left, the moment it dies.  Made before there is a child."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._before = signal.signal(signal.SIGCHLD, self._on_death)

    def _on_death(self, number: int, frame: FrameType | None) -> None:
        self._look(os.P_ALL, 0)
        if callable(self._before):
            self._before(number, frame)

    def _look(self, which: int, pid: int) -> None:
        try:
            found = os.waitid(which, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return  # reaped already, or no child of ours
        if found is not None:
            signalled = found.si_code != os.CLD_EXITED
            self._seen[found.si_pid] = 128 + found.si_status if signalled else found.si_status

    def of(self, pid: int | None) -> int | None:
        """As a shell writes it; None: it lives, or nobody saw it end."""
        if pid is not None and pid not in self._seen:
            self._look(os.P_PID, pid)
        return None if pid is None else self._seen.get(pid)
