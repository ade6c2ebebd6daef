"""What one thread of a Linux program waits for: this terminal, other descriptors, time, or nothing relevant.

It turns a blocked system call into a `Wait`. `linux` decides what the waits of a whole program mean.
"""

from __future__ import annotations

import os
import platform
import struct
from enum import Enum, auto

from atlasbridge.core.values import frozen
from atlasbridge.os.tty import procfs, sockdiag

# System call numbers by what a blocked caller waits for, per machine. `procfs` reads them. A 32-bit program on a 64-bit
# kernel has different numbers. They never collide with blocking calls of the 64-bit table, and a match in the second
# table is trusted only for a 32-bit executable.


class Waits(Enum):
    """What a system call blocks on."""

    READ = auto()  # (fd, ...)
    POLL = auto()  # (pollfd*, count, milliseconds)
    PPOLL = auto()  # (pollfd*, count, timespec*)
    SELECT = auto()  # (count, read set*, write set*, except set*, time*)
    EPOLL = auto()  # (epoll fd, events*, count, milliseconds)
    EPOLL_TIMESPEC = auto()  # (epoll fd, events*, count, timespec*)
    RESTART = auto()  # a poll, sleep or futex continued after a signal; the arguments are the first call's
    URING = auto()
    FUTEX = auto()  # (word*, operation, value, timespec*)
    SLEEP = auto()
    CHILD = auto()
    SIGNAL = auto()
    SOCKET = auto()  # (fd, ...)


def _table(groups: dict[Waits, tuple[int, ...]]) -> dict[int, Waits]:
    return {number: waits for waits, numbers in groups.items() for number in numbers}


_X86_64 = _table(
    {
        Waits.READ: (0, 17, 19, 275, 295, 327),  # read pread64 readv splice preadv preadv2
        Waits.POLL: (7,),
        Waits.PPOLL: (271,),
        Waits.SELECT: (23, 270),
        Waits.EPOLL: (232, 281),
        Waits.EPOLL_TIMESPEC: (441,),
        Waits.RESTART: (219,),
        Waits.URING: (426,),
        Waits.FUTEX: (202, 449, 455),
        Waits.SLEEP: (35, 230),
        Waits.CHILD: (61, 247, 58),  # wait4 waitid vfork
        Waits.SIGNAL: (34, 128, 130),  # pause rt_sigtimedwait rt_sigsuspend
        Waits.SOCKET: (42, 43, 45, 47, 288, 299),  # connect accept recvfrom recvmsg accept4 recvmmsg
    }
)
_AARCH64 = _table(
    {
        Waits.READ: (63, 65, 67, 69, 76, 286),  # read readv pread64 preadv splice preadv2
        Waits.PPOLL: (73,),
        Waits.SELECT: (72,),
        Waits.EPOLL: (22,),
        Waits.EPOLL_TIMESPEC: (441,),
        Waits.RESTART: (128,),
        Waits.URING: (426,),
        Waits.FUTEX: (98, 449, 455),
        Waits.SLEEP: (101, 115),
        Waits.CHILD: (95, 260),
        Waits.SIGNAL: (133, 137),
        Waits.SOCKET: (202, 203, 207, 212, 242, 243),
    }
)
_I386 = _table(
    {
        Waits.READ: (3, 145),
        Waits.POLL: (168,),
        Waits.PPOLL: (309, 414),
        Waits.SELECT: (142, 308, 413),
        Waits.EPOLL: (256, 319),
        Waits.FUTEX: (240, 422),
        Waits.SLEEP: (162, 267, 407),
        Waits.CHILD: (114, 284),
        Waits.SIGNAL: (29, 177, 179),
    }
)
_ARM = _table(
    {
        Waits.READ: (3, 145),
        Waits.POLL: (168,),
        Waits.PPOLL: (336, 414),
        Waits.SELECT: (142, 335, 413),
        Waits.EPOLL: (252, 346),
        Waits.FUTEX: (240, 422),
        Waits.SLEEP: (162, 265, 407),
        Waits.CHILD: (114, 280),
        Waits.SIGNAL: (29, 177, 179),
    }
)

NATIVE = {"x86_64": _X86_64, "amd64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
COMPAT = {"x86_64": _I386, "amd64": _I386, "aarch64": _ARM, "arm64": _ARM}


_NATIVE = NATIVE.get(platform.machine().lower(), {})
_COMPAT = COMPAT.get(platform.machine().lower(), {})
_DEV_TTY = os.makedev(5, 0)
_PTS_MAJOR = 136
_FOREVER_S = 3600  # a longer timeout counts as none
_SOME_S = 1.0  # for a timer whose length is unknown
_SHORTEST_S = 0.001
_MAX_NESTING = 3

_POLLS = (Waits.POLL, Waits.PPOLL, Waits.SELECT, Waits.EPOLL, Waits.EPOLL_TIMESPEC, Waits.RESTART)


@frozen
class Line:
    """A terminal, identified by its number and, if known, by its file system."""

    index: int
    filesystem: int | None

    @classmethod
    def of(cls, index: int) -> Line:
        device = os.makedev(_PTS_MAJOR, index)
        try:
            status = os.stat(f"/dev/pts/{index}")
        except OSError:
            return cls(index, None)
        return cls(index, status.st_dev if status.st_rdev == device else None)

    @property
    def device(self) -> int:
        return os.makedev(_PTS_MAJOR, self.index)

    def is_open_as(self, process: procfs.Process, fd: int) -> bool:
        """Whether a descriptor is this terminal, by its own name or as /dev/tty.

        Containers have their own file systems, in which terminal numbers start again.
        """
        found = procfs.character_device(process.pid, fd)
        if found is None:
            return False
        filesystem, device = found
        if device == _DEV_TTY:
            return process.terminal == self.device
        return device == self.device and self.filesystem in (None, filesystem)


NOWHERE = Line((1 << 20) - 1, -1)  # no descriptor is this terminal


@frozen
class Wait:
    """`reads`: blocked in read on the terminal; `watches`: in poll, select or epoll with the terminal among others."""

    call: Waits | None  # None: the thread runs
    reads: bool = False
    watches: bool = False
    timeout: float = 0.0  # wakes by itself after this many seconds, as far as visible; 0: never
    others: tuple[str, ...] = ()  # other descriptors it waits for, except internal wake-ups

    @property
    def idle(self) -> bool:
        """Only another thread of the same program, or a signal, wakes it."""
        quiet = self.call in (Waits.FUTEX, Waits.SIGNAL) or (self.call in _POLLS and not self.timeout)
        return quiet and not self.others


def classify(process: procfs.Process, tid: int, line: Line) -> Wait:
    """Raises PermissionError if the thread cannot be inspected."""
    call = procfs.blocked_call(process.pid, tid)
    if call is None:
        return Wait(None)
    waits = _NATIVE.get(call.number)
    if waits is None and call.number in _COMPAT and procfs.is_32_bit(process.pid):
        waits = _COMPAT[call.number]
    if waits in (Waits.READ, Waits.SOCKET):
        return _wait_on_one(process, call.args[0], waits, line)
    if waits in _POLLS:
        return _wait_on_many(process, call, waits, line)
    if waits is Waits.FUTEX:
        return Wait(waits, timeout=_SOME_S if call.args[3] else 0.0)
    return Wait(waits or Waits.SLEEP, timeout=_SOME_S if waits is Waits.SLEEP else 0.0)


def _wait_on_one(process: procfs.Process, fd: int, waits: Waits, line: Line) -> Wait:
    if line.is_open_as(process, fd):
        return Wait(waits, reads=True)
    return Wait(waits, others=_outside(process.pid, [fd]))


def _wait_on_many(process: procfs.Process, call: procfs.BlockedCall, waits: Waits, line: Line) -> Wait:
    try:
        fds = _watched(process.pid, call, waits)
    except PermissionError:
        raise
    except OSError:  # the memory is not such a list, or the process is exiting
        return Wait(waits, timeout=_SOME_S)
    ours = [fd for fd in fds if line.is_open_as(process, fd)]
    rest = [fd for fd in fds if fd not in ours]
    timers = any(procfs.timer_is_set(process.pid, fd) for fd in rest if "timerfd" in procfs.descriptor(process.pid, fd))
    timeout = _wakes_after(process.pid, call, waits) or (_SOME_S if timers else 0.0)
    return Wait(waits, watches=bool(ours), timeout=timeout, others=_outside(process.pid, rest))


def _watched(pid: int, call: procfs.BlockedCall, waits: Waits) -> list[int]:
    if waits is Waits.SELECT:
        return procfs.select_set(pid, call.args[1], call.args[0] & 0xFFFF)
    if waits in (Waits.EPOLL, Waits.EPOLL_TIMESPEC):
        return _epoll_leaves(pid, call.args[0], _MAX_NESTING)
    return procfs.poll_set(pid, call.args[0], call.args[1])


def _epoll_leaves(pid: int, fd: int, depth: int) -> list[int]:
    """The descriptors that an epoll instance watches, including nested instances."""
    leaves: list[int] = []
    for target in procfs.epoll_set(pid, fd):
        if depth and procfs.descriptor(pid, target) == "anon_inode:[eventpoll]":
            leaves += _epoll_leaves(pid, target, depth - 1)
        else:
            leaves.append(target)
    return leaves


def _wakes_after(pid: int, call: procfs.BlockedCall, waits: Waits) -> float:
    """The call's timeout in seconds; 0 if it has no relevant one."""
    if waits in (Waits.POLL, Waits.RESTART, Waits.EPOLL):
        seconds = (call.args[3 if waits is Waits.EPOLL else 2] & 0xFFFFFFFF) / 1000
    else:
        address = call.args[{Waits.PPOLL: 2, Waits.SELECT: 4}.get(waits, 3)]
        if address == 0:
            return 0.0
        try:
            whole, part = struct.unpack("=qq", procfs.read_memory(pid, address, 16))
        except (OSError, struct.error):
            return _SOME_S
        seconds = whole + part / (1e9 if part >= 1e6 else 1e6)  # select uses either unit, depending on its number
    return max(seconds, _SHORTEST_S) if seconds < _FOREVER_S else 0.0


def _outside(pid: int, fds: list[int]) -> tuple[str, ...]:
    """The links of the descriptors that something outside the program can make ready."""
    if not fds:
        return ()
    links = {fd: procfs.descriptor(pid, fd) for fd in fds}
    suspects = {fd: link for fd, link in links.items() if not _is_wake_up(link)}
    if any(link.startswith(("pipe:", "socket:")) for link in suspects.values()):
        own = procfs.descriptors(pid)
        suspects = {fd: link for fd, link in suspects.items() if not _is_own_end(fd, link, own)}
    return tuple(suspects.values())


def _is_wake_up(link: str) -> bool:
    kinds = ("eventfd", "signalfd", "timerfd", "io_uring", "eventpoll")
    return link.startswith("anon_inode:") and any(kind in link for kind in kinds)


def _is_own_end(fd: int, link: str, own: dict[int, str]) -> bool:
    """Whether the program itself has the other end: a pipe or socket pair to wake its own loop."""
    if link.startswith("pipe:"):
        return any(other == link for number, other in own.items() if number != fd)
    inode = sockdiag.socket_inode(link)
    return inode != 0 and sockdiag.unix_peer(inode) in sockdiag.inodes_of(own)
