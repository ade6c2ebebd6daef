"""What a terminal says of itself, alike on every Unix: whose turn it is and how it reads."""

from __future__ import annotations

import array
import fcntl
import termios

TURNS = 3  # as often a probe looks at most while the flags change under it


def foreground_group(master_fd: int) -> int:
    """The process group that may read; 0 where nobody is there any more."""
    group = array.array("i", [0])
    try:
        fcntl.ioctl(master_fd, termios.TIOCGPGRP, group)
    except OSError:
        return 0
    return group[0]


def echo_and_canon(fd: int) -> tuple[bool | None, bool | None]:
    """Whether it shows what is typed, and whether it reads by lines."""
    try:
        local = termios.tcgetattr(fd)[3]
    except (termios.error, OSError):
        return None, None
    return bool(local & termios.ECHO), bool(local & termios.ICANON)
