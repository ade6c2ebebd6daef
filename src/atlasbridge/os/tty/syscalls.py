"""System call numbers by what a blocked caller waits for, per machine.  Numbers only; reading them is `procfs`'s work.

A 32-bit program on a 64-bit kernel has its own numbers.  They never collide with calls of the 64-bit table that can
block, and a match in the second table is trusted only for a 32-bit executable.
"""

from __future__ import annotations

from enum import Enum, auto


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
