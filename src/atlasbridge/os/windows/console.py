"""Runs a session on the console of this process, or without one for consoles that attach later: it refuses unsupported
options, starts the program, opens the session's port, and waits for the end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from types import TracebackType
from typing import Any

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.tcp_owner import find_peer
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.ports import HostParts
from atlasbridge.core.host.session_log import SessionLog
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import Peer
from atlasbridge.core.session.settings import SETTINGS_SUFFIX, Plan, SessionSettings
from atlasbridge.core.tty import Ending, Size, SpawnRefused
from atlasbridge.os.tty.hosted import tell_starter
from atlasbridge.os.tty.windows import WindowsPTY
from atlasbridge.os.windows.attach_port import Address
from atlasbridge.os.windows.client import PortClient
from atlasbridge.os.windows.session import ConsoleSession

# The person's Windows console: its keys as terminal sequences, its size, and its output.

_OUTPUT, _INTERPRETS = -11, 0x0004  # the handle of standard output; interpret escape sequences
_UTF_8 = 65001
_GONE = "\uffff"  # Windows returns this again and again for a console that is gone; no key produces it


class OwnConsole:
    """A context manager: it enables escape sequences and UTF-8, and restores the console afterwards."""

    def __init__(self) -> None:
        self.is_terminal = os.isatty(0) and os.isatty(1)
        self._before: tuple[int, int] | None = None

    def __enter__(self) -> OwnConsole:
        self._before = _prepare()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            _restore(*self._before)

    def read_keys(self) -> bytes:
        """Return the next key, special keys as terminal sequences; blocks. b"" if the console is gone."""
        import msvcrt

        windows: Any = msvcrt
        while True:
            key = str(windows.getwch())
            if key == _GONE:
                return b""
            if key in ("\x00", "\xe0"):
                if sent := _SPECIAL.get(str(windows.getwch()), b""):
                    return sent
                continue
            if "\ud800" <= key <= "\udbff":  # the first half of a surrogate pair
                key = (key + str(windows.getwch())).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return key.encode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(1)
        except OSError:
            return Size()
        return Size(rows, columns).or_default()


class NoConsole:
    """The console of a session without one: no input, no output."""

    is_terminal = False

    def __enter__(self) -> NoConsole:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        """Nothing was changed."""

    def read_keys(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None:
        """Not shown here; viewers get the output."""

    def size(self) -> Size:
        return Size()


def heed_interrupts() -> None:
    """A process in a new process group ignores Ctrl-C, and so would its children: enable it again."""
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("kernel32").SetConsoleCtrlHandler(None, False)


def _prepare() -> tuple[int, int] | None:
    """Return the modes to restore; None if there is no Windows console."""
    if sys.platform != "win32":
        return None
    import ctypes

    kernel = ctypes.WinDLL("kernel32")
    handle, mode = kernel.GetStdHandle(_OUTPUT), ctypes.c_ulong()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return None
    page = int(kernel.GetConsoleOutputCP())
    kernel.SetConsoleMode(handle, mode.value | _INTERPRETS)
    kernel.SetConsoleOutputCP(_UTF_8)
    return mode.value, page


def _restore(mode: int, page: int) -> None:
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.WinDLL("kernel32")
        kernel.SetConsoleMode(kernel.GetStdHandle(_OUTPUT), mode)
        kernel.SetConsoleOutputCP(page)


_SPECIAL = {"H": b"\x1b[A", "P": b"\x1b[B", "M": b"\x1b[C", "K": b"\x1b[D", "G": b"\x1b[H", "O": b"\x1b[F"}
_SPECIAL |= {"S": b"\x1b[3~", "I": b"\x1b[5~", "Q": b"\x1b[6~"}


def refuse_on_console(plan: Plan) -> None:
    """Refuse the default backend before anything else is checked."""
    if plan.backend != "conpty":
        raise ConfigError(
            "on Windows sessions are experimental", "say that you know: atlasbridge run --backend conpty ..."
        )


def run_on_console(plan: Plan, home: Home, parts: HostParts, settings: SessionSettings) -> Ending:
    """A hosted session also reports its start to the process that started it."""
    clock, attach_socket = SystemClock(), home.sessions / f"{short_id(plan.session_id)}.sock"
    console = NoConsole() if plan.hosted else OwnConsole()
    if plan.hosted:
        heed_interrupts()
    try:
        pty = parts.spawn(plan, console.size(), None)
    except SpawnRefused as error:
        ending = Ending(error.status, str(error), error.hint)
        if plan.hosted:
            tell_starter(ending)
        return ending
    assert isinstance(pty, WindowsPTY)
    journal = SessionLog(attach_socket.with_suffix(".log"), clock)
    journal.note("session started", tool=plan.tool, pid=pty.pid)
    with console:
        session = ConsoleSession(plan, pty, console, parts, settings, clock, journal)
        before = signal.signal(signal.SIGINT, lambda *_: session.interrupt())
        try:
            session.listen(attach_socket, _whose)
            if plan.hosted:
                tell_starter(None)
            return Ending(session.run())
        finally:
            signal.signal(signal.SIGINT, before)
            pty.close()
            attach_socket.with_suffix(SETTINGS_SUFFIX).unlink(missing_ok=True)


def attach_on_console(link: socket.socket) -> Ending:
    """Show a session on the console of this process, and send its keys, until it ends or is left."""
    with OwnConsole() as console:
        client = PortClient(link, console)
        before = signal.signal(signal.SIGINT, lambda *_: client.type(b"\x03"))
        try:
            return client.run()
        finally:
            signal.signal(signal.SIGINT, before)


def _whose(client: Address, server: Address) -> Peer:
    return find_peer(client, server, ())
