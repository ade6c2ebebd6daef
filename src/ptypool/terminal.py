"""Pseudo-terminals: creation, size, and the limits of the line discipline.

`process` starts a program on one; the handle reads and writes.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
from typing import Any

from ptypool.errors import SpawnFailed

TermiosAttributes = list[Any]
"""What termios.tcgetattr returns."""

CANONICAL_LINE_LIMIT = 1024 if sys.platform == "darwin" else 4096
"""Bytes of one line, its newline included, that a kernel keeps in canonical mode; it drops the rest without a word."""

_IUTF8 = 0x4000 if sys.platform in ("linux", "darwin") else 0  # the termios module does not define it yet
_IFLAG, _OFLAG, _LFLAG, _CC = 0, 1, 3, 6


def open_terminal(
    size: tuple[int, int] | tuple[int, int, int, int], attributes: TermiosAttributes | None
) -> tuple[int, int]:
    """A new (master, slave) pair, both close-on-exec and above the standard streams, with its size already set."""
    try:
        master, slave = (above_stdio(fd) for fd in os.openpty())
    except OSError as error:
        raise SpawnFailed(f"no pseudo-terminal: {error.strerror}", error.errno, "terminal") from error
    try:
        set_window_size(slave, *size)
        if attributes is None:
            attributes = termios.tcgetattr(slave)
            attributes[_IFLAG] |= _IUTF8  # as terminals do, so that erase removes a whole character
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    return master, slave


def plain_attributes() -> TermiosAttributes:
    """Attributes that leave output unchanged and do not echo input; Ctrl-Z does not stop the program."""
    master, slave = open_terminal((24, 80), None)
    try:
        attributes: TermiosAttributes = termios.tcgetattr(slave)
    finally:
        os.close(master)
        os.close(slave)
    attributes[_OFLAG] &= ~termios.ONLCR
    attributes[_LFLAG] &= ~termios.ECHO
    attributes[_CC][termios.VSUSP] = b"\0" if sys.platform == "linux" else b"\xff"
    return attributes


def above_stdio(fd: int) -> int:
    """Move a descriptor away from 0 to 2, where it lands in a daemon that has closed its standard streams."""
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def set_window_size(fd: int, rows: int, cols: int, width: int = 0, height: int = 0) -> None:
    """Set the size, in pixels too if known; the foreground processes get SIGWINCH if it changed."""
    if not all(0 <= number <= 0xFFFF for number in (rows, cols, width, height)):
        raise ValueError(f"a terminal cannot have {rows} rows and {cols} columns")
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, width, height))


def window_size(fd: int) -> tuple[int, int]:
    """The terminal's (rows, cols)."""
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))
    return rows, cols


def line_enders(fd: int) -> bytes | None:
    """The bytes that end a line of input now, or None if the terminal is not in canonical mode."""
    attributes = termios.tcgetattr(fd)
    if not attributes[_LFLAG] & termios.ICANON:
        return None
    control = attributes[_CC]
    special = b"".join(control[index] for index in (termios.VEOF, termios.VEOL, termios.VEOL2))
    returns = b"\r" if attributes[_IFLAG] & termios.ICRNL else b""
    return b"\n" + returns + special.replace(b"\0", b"").replace(b"\xff", b"")
