"""Terminal state that is the same on every Unix: the foreground process group and the input mode."""

from __future__ import annotations

import array
import fcntl
import termios

TURNS = 3  # how often a probe looks again if the flags change during a look


def foreground_group(master_fd: int) -> int:
    """The process group that can read the terminal; 0 if there is none."""
    group = array.array("i", [0])
    try:
        fcntl.ioctl(master_fd, termios.TIOCGPGRP, group)
    except OSError:
        return 0
    return group[0]


def echo_and_canon(fd: int) -> tuple[bool | None, bool | None]:
    """Whether the terminal echoes, and whether it is in canonical (line) mode."""
    try:
        local = termios.tcgetattr(fd)[3]
    except (termios.error, OSError):
        return None, None
    return bool(local & termios.ECHO), bool(local & termios.ICANON)
