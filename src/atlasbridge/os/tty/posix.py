"""A program on a POSIX terminal: implements `BasePTY` with ptypool, for Linux and macOS."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import struct
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from atlasbridge.core.fast_imports import signal
from atlasbridge.core.tty import LineFlags, Size, SpawnRefused
from atlasbridge.os.tty.base import BasePTY
from ptypool.errors import SpawnFailed
from ptypool.process import CANONICAL_LINE_LIMIT, SpawnedProcess, TermiosAttributes, spawn_process
from ptypool.termination import termination_steps

# Terminal state that is the same on every Unix: the foreground process group and the input mode.

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


_TIOCGPTPEER = 0x5441  # Linux: opens the slave of a master, also if its path is in another namespace
_OFLAG, _LFLAG, _CC = 1, 3, 6
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_LOOK_S = 0.05


class PosixPTY(BasePTY):
    def __init__(self, pid: int, master_fd: int, lifeline: int = -1) -> None:
        """While `lifeline` is open, job control stops the program like a shell's job."""
        self.pid = pid
        self._master = master_fd
        self._lifeline = lifeline
        self._status: int | None = None
        self._stopped = False
        self._muted = False
        self._reaping = threading.Lock()
        os.set_blocking(master_fd, False)

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        size: Size | None = None,
        attributes: TermiosAttributes | None = None,
        stderr: int = -1,
        limits: tuple[tuple[int, int], ...] = (),
    ) -> Self:
        """Start `command`. `SpawnRefused` contains the exit status that a shell would have returned."""
        size = size or Size()
        pixels = (size.rows, size.cols, size.width, size.height)
        how: dict[str, Any] = {"env": os.environ if env is None else env, "cwd": cwd, "size": pixels}
        how |= {"termios_attrs": attributes, "stderr": stderr, "limits": limits}
        try:
            child, lifeline = _start(command, how)
        except SpawnFailed as error:
            raise SpawnRefused(error.what(), error.what_to_do(), _shell_status(error)) from error
        return cls(child.pid, child.master_fd, lifeline)

    def read(self, size: int = 65536) -> bytes:
        while self._master >= 0:
            self._ready(select.POLLIN)
            try:
                return os.read(self._master, size)
            except BlockingIOError:
                continue
            except OSError:  # no process has the terminal open, but a live program could open it again
                if self.poll() is not None:
                    break
                threading.Event().wait(_LOOK_S)
        return b""

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._ready(select.POLLOUT)
            if self.poll() is not None:
                raise BrokenPipeError("the program has ended")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._master, view) :]

    def _ready(self, events: int) -> None:
        """Wait until the terminal is readable or writable, or the program could have ended."""
        waiter = select.poll()
        waiter.register(self._master, events)
        waiter.poll(_LOOK_S * 1000)

    def fileno(self) -> int:
        return self._master

    def resize(self, size: Size) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(
                self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, size.width, size.height)
            )

    def flags(self) -> LineFlags:
        try:
            attributes = termios.tcgetattr(self._master)
        except (termios.error, OSError):
            return LineFlags()
        end, kill = attributes[_CC][termios.VEOF], attributes[_CC][termios.VKILL]
        return LineFlags(
            canonical=bool(attributes[_LFLAG] & termios.ICANON),
            echo=bool(attributes[_LFLAG] & termios.ECHO) or self._muted,
            adds_returns=attributes[_OFLAG] & (termios.OPOST | termios.ONLCR) == termios.OPOST | termios.ONLCR,
            end_of_file=end if isinstance(end, bytes) and end != b"\0" else b"\x04",
            kill=kill if isinstance(kill, bytes) and kill != b"\0" else b"",
            line_limit=CANONICAL_LINE_LIMIT,
        )

    def set_echo(self, on: bool) -> None:
        """Off while input comes from a pipe, because nobody types it; `flags` still reports the tool's own setting."""
        with contextlib.suppress(termios.error, OSError):
            attributes = termios.tcgetattr(self._master)
            has_echo = bool(attributes[_LFLAG] & termios.ECHO)
            if on == has_echo or (on and not self._muted):
                return
            attributes[_LFLAG] ^= termios.ECHO
            termios.tcsetattr(self._master, termios.TCSANOW, attributes)
            self._muted = not on

    def unread(self) -> int:
        slave = self._open_slave()
        if slave < 0:
            return -1
        try:
            waiter = select.poll()  # polling makes the kernel deliver buffered input
            waiter.register(slave, select.POLLIN)
            readable = any(events & select.POLLIN for _, events in waiter.poll(0))
            count = int(struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0\0\0\0"))[0])
            return max(count, int(readable))  # a pending end-of-file has no bytes
        except OSError:
            return -1
        finally:
            os.close(slave)

    def _open_slave(self) -> int:
        flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            if sys.platform == "linux":
                return fcntl.ioctl(self._master, _TIOCGPTPEER, flags)
            name: str = os.ptsname(self._master)
            return os.open(name, flags)
        except (OSError, AttributeError):  # os.ptsname exists since Python 3.13
            return -1

    def signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            group = os.tcgetpgrp(self._master)
            if number == signal.SIGCONT and group == self.pid:
                with self._reaping:
                    self._stopped = False  # a program that ends at once is no longer reported as continued
            os.killpg(group, number)

    def poll(self) -> int | None:
        with self._reaping:  # several threads ask, but a child can be reaped only once
            while self._status is None:
                try:
                    pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                except ChildProcessError:
                    self._status = 0  # reaped by other code, so its exit status is unknown
                    break
                if pid == 0:
                    break
                self._stopped = os.WIFSTOPPED(status)
                if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                    self._status = os.waitstatus_to_exitcode(status)
            return self._status

    def stopped(self) -> bool:
        return self._stopped

    def is_own(self, fd: int) -> bool:
        slave = self._open_slave()
        if slave < 0:
            return False
        try:
            return os.isatty(fd) and os.fstat(slave).st_rdev == os.fstat(fd).st_rdev
        finally:
            os.close(slave)

    def end_steps(self, grace_s: float) -> Iterator[float]:
        if self._status is None:
            yield from termination_steps((self.pid,), grace_s=grace_s)

    def close(self) -> None:
        for fd in (self._master, self._lifeline):
            if fd >= 0:
                os.close(fd)
        self._master = self._lifeline = -1


def _start(command: Sequence[str], how: dict[str, Any]) -> tuple[SpawnedProcess, int]:
    end_of_job, lifeline = os.pipe()
    try:
        # All our descriptors are close-on-exec; the person's own (a shell's `9<file`) belong to the tool.
        return spawn_process(command, **how, close_fds=False, lifeline=end_of_job), lifeline
    except SpawnFailed:
        os.close(lifeline)
        raise
    finally:
        os.close(end_of_job)


def _shell_status(error: SpawnFailed) -> int:
    """127 if the program does not exist, 126 if it cannot be run, as in shells."""
    if error.stage == "program" and "was not found" in error.what():
        return _NOT_FOUND
    return _NOT_EXECUTABLE if error.stage == "program" else 1


def own_line_settings() -> list[Any] | None:
    """The person's terminal settings (erase key, UTF-8), with which the tool's terminal starts."""
    for fd in (0, 1, 2):
        try:
            return termios.tcgetattr(fd)
        except termios.error:
            continue
    return None
