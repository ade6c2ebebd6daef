"""Runs a session on the console of this process, or without one for consoles that come later: refuses what cannot be
had there, starts the program, opens the session's line, sees the program out.
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

# The Windows console that a person sits at: its keys as a terminal would send them, its size, what is shown on it.

_OUTPUT, _INTERPRETS = -11, 0x0004  # the standard output's handle; sequences are obeyed, not shown
_UTF_8 = 65001
_GONE = "\uffff"  # what Windows reads from a console that is gone, again and again; no key gives it


class OwnConsole:
    """As a context: sequences and UTF-8 are understood while it lasts, and the console is as before afterwards."""

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
        """The next key, with the sequence that a terminal would send for a special one; blocks.  b"": the console is
        gone."""
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
            if "\ud800" <= key <= "\udbff":  # half a character
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
    """Of a session that nobody has in front of them: nothing is typed, and nobody looks."""

    is_terminal = False

    def __enter__(self) -> NoConsole:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        """Nothing was changed."""

    def read_keys(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None:
        """Others are shown it."""

    def size(self) -> Size:
        return Size()


def heed_interrupts() -> None:
    """What is started in a process group of its own ignores Ctrl-C, and so would every program that it starts."""
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("kernel32").SetConsoleCtrlHandler(None, False)


def _prepare() -> tuple[int, int] | None:
    """What must be put back; None where there is no console of Windows."""
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
    """Said before anything is looked for."""
    if plan.backend != "conpty":
        raise ConfigError(
            "on Windows sessions are experimental", "say that you know: atlasbridge run --backend conpty ..."
        )


def run_on_console(plan: Plan, home: Home, parts: HostParts, settings: SessionSettings) -> Ending:
    """Where the session is hosted for others, whoever started this process is told how it went."""
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
    """Show a session on the console of this process, and type into it, until it ends or is left."""
    with OwnConsole() as console:
        client = PortClient(link, console)
        before = signal.signal(signal.SIGINT, lambda *_: client.type(b"\x03"))
        try:
            return client.run()
        finally:
            signal.signal(signal.SIGINT, before)


def _whose(client: Address, server: Address) -> Peer:
    return find_peer(client, server, ())
