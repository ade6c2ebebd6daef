"""Runs a session on the console of this process, or without one for consoles that attach later: it refuses unsupported
options, starts the program, opens the session's port, and waits for the end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from types import TracebackType
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.session_processes import find_peer
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.analysis import HostParts
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import Peer
from atlasbridge.core.process import first_line, own_environ, own_python, start_alone
from atlasbridge.core.session.settings import HOSTED, SETTINGS_SUFFIX, Plan, SessionSettings
from atlasbridge.core.system import POLLIN, make_poller
from atlasbridge.core.tty import LEFT, Console, Ending, Size, SpawnRefused, parting_words
from atlasbridge.os.tty.windows import WindowsPTY
from atlasbridge.os.windows.attach_port import Address
from atlasbridge.os.windows.session import ConsoleSession

# The client of a session without Unix sockets (Windows): shows the session's output on this console, and sends the keys
# that are typed here.
#
# `console` handles the console's keys and its size. On Unix, the terminal is handed over instead.

_LOOK_S = 0.2  # a console does not report a new size
_READ_BYTES = 65536


class PortClient:
    def __init__(self, link: socket.socket, console: Console) -> None:
        self._link = link
        self._console = console
        self._buffer = wire.LineBuffer()
        self._speaking = threading.Lock()
        self._session_id = ""
        self._size = console.size()
        self._waiter = make_poller()
        self._waiter.register(link, POLLIN)

    def run(self) -> Ending:
        """Run until the session ends or this console leaves it."""
        try:
            while True:
                ending = self._turn()
                if ending is not None:
                    return ending
        finally:
            self._link.close()

    def type(self, keys: bytes) -> None:
        self._say({"m": "keys", "data": keys.decode("latin-1")})

    def _turn(self) -> Ending | None:
        """Handle the next message, or check the console's size if there is none."""
        if not self._waiter.poll(_LOOK_S * 1000):
            self._follow_size()
            return None
        try:
            data = self._link.recv(_READ_BYTES)
        except OSError:
            data = b""
        if not data:
            return self._host_died()
        for message in self._buffer.feed(data):
            ending = self._on_message(message)
            if ending is not None:
                return ending
        return None

    def _on_message(self, message: dict[str, Any]) -> Ending | None:
        match message.get("m"):
            case "started":
                self._session_id = str(message["session_id"])
                self._say({"m": "attach", "past": True, **_size_fields(self._size)})
            case "attached":
                threading.Thread(target=self._relay_keys, name="keys", daemon=True).start()
            case "out":
                self._console.write(str(message["data"]).encode("latin-1"))
            case "detached":
                return Ending(LEFT, parting_words(str(message["why"]), short_id(self._session_id)))
            case "ended":
                return Ending(int(message["status"]), str(message.get("text", "")))
            case "failed":
                return Ending(int(message["status"]), str(message["text"]), str(message.get("hint", "")))
        return None

    def _relay_keys(self) -> None:
        while keys := self._console.read_keys():
            self.type(keys)
        self._say({"m": "leave"})  # this console is gone; the session continues without it

    def _follow_size(self) -> None:
        size = self._console.size()
        if size != self._size:
            self._size = size
            self._say({"m": "size", **_size_fields(size)})

    def _host_died(self) -> Ending:
        if self._console.is_terminal:
            from atlasbridge.core.screen.redraw import SAFE_RESET

            self._console.write(SAFE_RESET)
        name = short_id(self._session_id)
        return Ending(1, "the session host died, and the tool with it", f"its log: sessions/{name}.log")

    def _say(self, message: dict[str, Any]) -> None:
        try:
            with self._speaking:
                self._link.sendall(wire.encode(message))
        except OSError:
            pass  # the host is gone; the next read reports it


def _size_fields(size: Size) -> dict[str, int]:
    return {"rows": size.rows, "cols": size.cols}


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


# A session without its own console (`run --detach` on Windows): a separate process hosts it. The process reports its
# start in one line and then runs until its program ends.


_PATIENCE_S = 60.0


def start_hosted(plan: Plan) -> Ending:
    """Ending 0 means that the session runs."""
    environ = own_environ(os.environ, **{HOSTED: plan.session_id})
    process = start_alone(own_python("atlasbridge", "run", *hosted_words(plan)), environ, answer=True)
    line = first_line(process, _PATIENCE_S)
    said = json.loads(line) if line else {}
    if said.get("started"):
        process.returncode = 0  # it continues to run, and nobody waits for its exit status
        return Ending(0)
    process.kill()  # it has ended, or would start after we stopped waiting
    process.wait()
    if "status" not in said:
        return Ending(1, "the session did not start", f"its log: sessions/{plan.session_id[:8]}.log")
    return Ending(int(said["status"]), str(said["text"]), str(said["hint"]))


def hosted_words(plan: Plan) -> tuple[str, ...]:
    """The arguments of `run`, without `--detach`."""
    words = ["--backend", plan.backend]
    words += ["--name", plan.label] if plan.label else []
    words += [word for name in plan.channels or () for word in ("--channel", name)]
    words += ["--channel", "none"] if plan.channels == () else []
    words += ["--ttl", repr(plan.ttl_s)] if plan.ttl_s is not None else []
    words += ["--dialect", plan.dialect] if plan.dialect else []
    words += [] if plan.hub else ["--no-hub"]
    return (*words, "--", *plan.command)


def tell_starter(refused: Ending | None) -> None:
    """Write the one line for the process that started this one."""
    said: dict[str, Any] = {"started": True}
    if refused is not None:
        said = {"status": refused.status, "text": refused.text, "hint": refused.hint}
    try:
        os.write(1, json.dumps(said).encode() + b"\n")
    except OSError:
        pass  # the starter did not wait
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.close(nowhere)
