"""A person's terminal for tests: starts a program on a real PTY, types keys, and waits for what the screen shows.

The screen is our own emulator's; the raw bytes are kept too, for tests that compare them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import shlex
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.waiting import DEADLINE_S, pauses

from atlasbridge.core.screen.screen import Screen
from ptypool.process import open_terminal, spawn_process

_SIZES = ("LINES", "COLUMNS")  # of another terminal than this one; a worker of the test runner has them, a lone run not
PYTHON = shlex.quote(sys.executable)  # in a shell's words
SCRIPT = f"#!/bin/sh\n'''exec' {PYTHON} \"$0\" \"$@\"\n' '''\n"  # begins a script; our path may have a blank
ATLASBRIDGE = (sys.executable, "-m", "atlasbridge")


def is_readable(fd: int, timeout_s: float) -> bool:
    """Whatever the descriptor's number: select() takes none above 1023, and a long test run has those."""
    waiter = select.poll()
    waiter.register(fd, select.POLLIN)
    return bool(waiter.poll(timeout_s * 1000))


def _settings_of_a_new_one(size: tuple[int, int]) -> list[Any]:
    master, slave = open_terminal(size, None)
    try:
        return termios.tcgetattr(slave)
    finally:
        os.close(master)
        os.close(slave)


class Terminal:
    """A PTY with a program on it, seen from the person's side."""

    def __init__(
        self,
        command: Sequence[str],
        home: Path | None = None,
        rows: int = 24,
        cols: int = 80,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        environ = {**os.environ, "TERM": "xterm-256color"}
        for name in _SIZES:
            environ.pop(name, None)
        environ |= env or {}
        if home is not None:
            environ["ATLASBRIDGE_HOME"] = str(home)
        self.screen = Screen(rows, cols)
        self.output = bytearray()
        child = spawn_process(command, env=environ, cwd=cwd, size=(rows, cols))
        self.pid, self.master = child.pid, child.master_fd
        self.status: int | None = None
        self.settings_before = _settings_of_a_new_one((rows, cols))  # this one's may have been changed already

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def type(self, keys: bytes | str) -> None:
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self.master, data) :]

    def resize(self, rows: int, cols: int) -> None:
        self.screen.resize(rows, cols)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def pump(self, timeout_s: float = 0.05) -> bool:
        """Take what the program wrote; False once its terminal is closed."""
        if not is_readable(self.master, timeout_s):
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.output += data
        self.screen.feed(data)
        return bool(data)

    def text(self) -> str:
        return "\n".join(self.screen.lines()).rstrip()

    def wait_until(self, condition: Callable[[], object], what: str = "", deadline_s: float = DEADLINE_S) -> None:
        give_up_at = time.monotonic() + deadline_s
        pause = pauses()
        while not condition():
            if time.monotonic() > give_up_at:
                raise AssertionError(f"waited for {what or condition} in vain; the screen shows:\n{self.text()}")
            pause_s = next(pause)
            if not self.pump(pause_s):
                time.sleep(pause_s)

    def wait_for(self, text: str, deadline_s: float = DEADLINE_S) -> None:
        self.wait_until(lambda: text in self.text(), repr(text), deadline_s)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.master)

    def is_raw(self) -> bool:
        return not self.settings()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def wait_raw(self) -> None:
        self.wait_until(self.is_raw, "raw mode")

    def wait_exit(self, deadline_s: float = DEADLINE_S) -> int:
        """The exit status as a shell would show it; all output is taken."""
        give_up_at = time.monotonic() + deadline_s
        while self.status is None:
            self.pump(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
            elif time.monotonic() > give_up_at:
                raise AssertionError(f"the program does not end; the screen shows:\n{self.text()}")
        while self._has_more():
            pass
        return self.status

    def _has_more(self) -> bool:
        before = len(self.output)
        return self.pump(0.05) and len(self.output) > before

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """The terminal disappears, as with the window or the connection that it was in; the program is told."""
        os.close(self.master)
        self.master = -1
        os.waitpid(self.pid, 0)
        self.status = 128 + signal.SIGHUP

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.master)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def run_in(home: Path, *command: str, options: Sequence[str] = ("--no-hub",), **more: Any) -> Terminal:
    """`atlasbridge run` with this command on a terminal of its own."""
    return Terminal((*ATLASBRIDGE, "run", *options, "--", *command), home, **more)
