"""The client: passes its terminal to a session, waits, restores the terminal, and exits with the tool's status.

It copies no bytes itself: the host reads and writes the terminal. `run` and `attach` both use it.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import termios

from atlasbridge.core import wire
from atlasbridge.core.fast_imports import signal, socket
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.ids import short_id
from atlasbridge.core.process import hide_memory, send_with_fds, spawn_alone
from atlasbridge.core.tty import LEFT, Ending, Size, parting_words

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


# The person's own terminal: raw while it shows a session, and restored in any case.
#
# A terminal restorer, a small shell in its own session, restores it if the client is killed.

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _ISPEED, _OSPEED, _CC = range(7)
_TERMINAL_FD = 3  # the descriptor of the terminal in the restorer

# Waits for a word or for the end of the pipe. Without the word, the client was killed: if the terminal is still as raw
# as we made it (a shell can have taken it over already), the restorer resets it.
_TERMINAL_RESTORER = """trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE
read -r word
[ "$word" = bye ] && exit 0
case $(stty -a <&3) in *-icanon*) ;; *) exit 0 ;; esac
case $(stty -a <&3) in *-isig*) ;; *) exit 0 ;; esac
exec stty "$1" <&3
"""


def raw_attributes(attributes: list[Any]) -> list[Any]:
    """The same as cfmakeraw: every key and every byte passes unchanged."""
    raw = [*attributes[:_CC], list(attributes[_CC])]
    raw[_IFLAG] &= ~(
        termios.IGNBRK
        | termios.BRKINT
        | termios.PARMRK
        | termios.ISTRIP
        | termios.INLCR
        | termios.IGNCR
        | termios.ICRNL
        | termios.IXON
    )
    raw[_OFLAG] &= ~termios.OPOST
    raw[_CFLAG] = raw[_CFLAG] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[_LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    raw[_CC][termios.VMIN] = b"\x01"
    raw[_CC][termios.VTIME] = b"\x00"
    return raw


def window_size(fd: int) -> Size:
    try:
        told = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return Size(0, 0)
    return Size(*(int.from_bytes(told[place : place + 2], sys.byteorder) for place in (0, 2, 4, 6)))


class RawTerminal:
    """Raw from `enter` to `leave`, any number of times. The terminal restorer runs in the meantime."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved: list[Any] = termios.tcgetattr(fd)
        self._terminal_restorer = _start_terminal_restorer(fd, _stty_words(self._saved))
        self._entered = False

    def enter(self) -> int:
        """Returns the number of bytes that were typed before. The kernel counts them only without lines; the echo is
        switched off afterwards, so that the terminal has shown all of them and none of the later ones. Signals are
        switched off at once, because by both the restorer knows our doing."""
        without_lines = [*self._saved]
        without_lines[_LFLAG] &= ~(termios.ICANON | termios.ISIG)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, without_lines)
        told = fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4)
        termios.tcsetattr(self._fd, termios.TCSANOW, raw_attributes(self._saved))
        self._entered = True
        return int.from_bytes(told, sys.byteorder)

    @property
    def end_of_file(self) -> int:
        char = self._saved[_CC][termios.VEOF]
        return char if isinstance(char, int) else char[0]

    def leave(self) -> None:
        """Restores only a terminal that we made raw: in the background it belongs to another process."""
        if not self._entered:
            return
        self._entered = False
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
        except (termios.error, OSError):
            pass  # the terminal is gone

    def close(self) -> None:
        self.leave()
        if self._terminal_restorer >= 0:
            try:
                os.write(self._terminal_restorer, b"bye\n")
            except OSError:
                pass  # the restorer was killed, so it does not have to be told
            os.close(self._terminal_restorer)
            self._terminal_restorer = -1


def _start_terminal_restorer(terminal_fd: int, words: str) -> int:
    """Returns the pipe whose end wakes the terminal restorer. The restorer runs in its own session, so none of our
    signals reaches it."""
    reader, writer = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, terminal_fd, _TERMINAL_FD),
        (os.POSIX_SPAWN_DUP2, reader, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    command = ("sh", "-c", _TERMINAL_RESTORER, "atlasbridge-terminal restorer", words)
    try:
        spawn_alone("/bin/sh", command, os.environ, file_actions=actions)
    except OSError:
        os.close(writer)  # without a shell the session works; only a killed client leaves its terminal raw
        return -1
    finally:
        os.close(reader)
    return writer


def _stty_words(attributes: list[Any]) -> str:
    """The settings in the format of `stty -g`, which `stty` accepts."""
    control = [value if isinstance(value, int) else value[0] for value in attributes[_CC]]
    if sys.platform == "darwin":
        flags = {"cflag": _CFLAG, "iflag": _IFLAG, "lflag": _LFLAG, "oflag": _OFLAG}
        words = [f"{name}={attributes[index]:x}" for name, index in flags.items()]
        names = (
            *("eof", "eol", "eol2", "erase", "intr", "kill", "lnext", "min", "quit"),
            *("reprint", "start", "stop", "susp", "time", "werase"),
        )
        words += [f"{name}={control[getattr(termios, 'V' + name.upper())]:x}" for name in names]
        return ":".join(["gfmt1", *words, f"ispeed={attributes[_ISPEED]}", f"ospeed={attributes[_OSPEED]}"])
    flags_in_order = (attributes[index] for index in (_IFLAG, _OFLAG, _CFLAG, _LFLAG))
    return ":".join(f"{value:x}" for value in (*flags_in_order, *control))


_HANDLED = (
    *(signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP, signal.SIGINT),
    *(signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT),
)
_BACKGROUND_LOOK_MS = 250.0  # how often a client that was continued with `bg` checks whether it has the terminal
_LEAVE_S = 2.0  # how long a client that must exit waits for the host to release its terminal


def told_size() -> Size | None:
    """The size of the terminal behind standard output, input or error; None if there is none, or it was closed."""
    sizes = (window_size(fd) for fd in (1, 0, 2))
    return next((size for size in sizes if size.rows and size.cols), None)


def terminal_size() -> Size:
    """The size of the terminal; otherwise the size in the environment."""
    if (size := told_size()) is not None:
        return size
    rows, cols = (os.environ.get(name, "") for name in ("LINES", "COLUMNS"))
    return Size(int(rows) if rows.isdigit() else 0, int(cols) if cols.isdigit() else 0).or_default()


class Client:
    def __init__(
        self,
        connection: socket.socket,
        past: bool = False,
        steal: bool = False,
        share: Callable[[str, int], str] | None = None,
    ) -> None:
        """`past`: this terminal has not shown the session yet, so it gets the lines that scrolled off, once. `steal`:
        other terminals are detached for good. `share`: shows the session while another terminal has the keyboard."""
        self._steal = steal
        self._share = share
        self._sharing = False
        self._was_shown = False  # on this terminal, which has been raw since then
        self._connection = connection
        self._past = past
        self._buffer = wire.LineBuffer()
        self._messages: list[dict[str, Any]] = []
        self._signals = Wakeup()
        self._terminal: RawTerminal | None = None
        self._session_id = ""
        self._attached = False
        self.plan: dict[str, Any] = {}  # the command line as parsed by a host of the zygote

    def await_start(self) -> Ending | None:
        """Waits until the host reports that the tool runs (returns None) or why it does not."""
        message = self._next()
        while message is not None and message["m"] == "plan":
            self.plan = message
            if not message.get("detach"):
                self._stand_by()
            message = self._next()
        if message is None:
            return Ending(1, "the session host ended before it could start the tool", "look into the log folder")
        if message["m"] == "failed":
            return Ending(int(message["status"]), str(message["text"]), str(message["hint"]))
        self._session_id = str(message["session_id"])
        return None

    @property
    def session_id(self) -> str:
        return self._session_id

    def _next(self) -> dict[str, Any] | None:
        while not self._messages:
            if not self._read():
                return None
        return self._messages.pop(0)

    def _read(self) -> bool:
        try:
            data = self._connection.recv(65536)
        except OSError:
            return False
        self._messages += self._buffer.feed(data)
        return bool(data)

    def run(self) -> Ending:
        """Shows the session here until it ends, the person detaches, or the host dies."""
        hide_memory()  # only the host sees what is typed here
        self._install_handlers()
        self._stand_by()
        try:
            return self._wait()
        finally:
            self.close()

    def _stand_by(self) -> None:
        """Prepares everything that is possible before the terminal is passed on; does not change the terminal yet."""
        if self._terminal is None and os.isatty(0) and os.isatty(1):
            self._terminal = RawTerminal(0)

    def close(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
        self._connection.close()

    def _install_handlers(self) -> None:
        for number in _HANDLED:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # respects `nohup`
                signal.signal(number, _noted)
        signal.set_wakeup_fd(self._signals.write_fd, warn_on_full_buffer=False)

    def _attach(self, back: bool = False) -> None:
        """`back`: this terminal left because the tool had stopped; the tool continues as soon as its terminal is
        back."""
        greeting: dict[str, str | int] = {"m": "attach", "past": self._past, "back": back, "steal": self._steal}
        if self._terminal is not None:
            ahead = self._terminal.enter()
            if not self._was_shown:  # the kernel has replaced each end-of-file character by NUL; the host restores them
                greeting |= {"ahead": ahead, "eof": self._terminal.end_of_file}
        greeting |= _size_fields(terminal_size())
        send_with_fds(self._connection, wire.encode_plain(greeting), (0, 1))
        self._past = self._steal = False
        self._attached = self._was_shown = True

    def _wait(self) -> Ending:
        waiter = select.poll()
        waiter.register(self._connection, select.POLLIN)
        waiter.register(self._signals.fileno(), select.POLLIN)
        while True:
            if self._sharing and not self._messages:
                ending = self._look_on()
                if ending is not None:
                    return ending
            elif not self._attached and not self._in_background():
                self._attach()
            patience_ms = 0.0 if self._sharing else None if self._attached else _BACKGROUND_LOOK_MS
            ready = [fd for fd, _ in waiter.poll(patience_ms)]
            if self._signals.fileno() in ready:
                for number in self._signals.take():
                    ending = self._on_signal(number)
                    if ending is not None:
                        return ending
            if self._connection.fileno() in ready and not self._read() and not self._messages:
                return self._host_died()
            while self._messages:
                ending = self._on_message(self._messages.pop(0))
                if ending is not None:
                    return ending

    def _on_message(self, message: dict[str, Any]) -> Ending | None:
        match message["m"]:
            case "ended":
                status = int(message["status"])
                return Ending(status if status >= 0 else 128 - status, str(message.get("text", "")))
            case "failed":
                return Ending(int(message["status"]), str(message["text"]), str(message.get("hint", "")))
            case "detached":
                self._attached = False
                return self._on_detached(str(message["why"]))
        return None

    def _on_detached(self, why: str) -> Ending | None:
        words = parting_words(why, short_id(self._session_id))
        if why == "taken" and self._terminal is not None and self._share is not None:
            self._sharing = True
            return None
        if why == "stopped":
            self._stop_here()
        return Ending(LEFT, words) if words else None

    def _look_on(self) -> Ending | None:
        """Another terminal has the keyboard: shows the session until this one takes it back or detaches, or the session
        has ended."""
        assert self._share is not None and self._terminal is not None
        self._terminal.leave()
        outcome = self._share(self._session_id, self._connection.fileno())
        self._install_handlers()  # the view had its own handlers
        if outcome == "heard":
            return None
        self._sharing = False
        if outcome == "take":
            self._attach()
            return None
        return Ending(LEFT, parting_words("detached" if outcome == "leave" else "taken", short_id(self._session_id)))

    def _stop_here(self) -> None:
        """The tool has stopped, so this process and the others of its job stop, too. When the job is continued, the
        tool continues.

        The signal has no effect where nobody could continue us: then the tool continues at once.
        """
        if self._terminal is not None:
            self._terminal.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _noted)
        if self._in_background():
            self._say({"m": "continue"})
        else:
            self._attach(back=True)

    def _in_background(self) -> bool:
        """Whether a shell continued us with `bg`: then the terminal is not ours, and the tool runs without it."""
        try:
            return self._terminal is not None and os.tcgetpgrp(0) != os.getpgrp()
        except OSError:
            return False  # the terminal is gone; attaching will report it

    def _on_signal(self, number: int) -> Ending | None:
        if number in (signal.SIGWINCH, signal.SIGCONT):
            if self._attached and (size := told_size()) is not None:  # closing a terminal sends SIGCONT as well
                self._say({"m": "size", **_size_fields(size)})
        elif number == signal.SIGHUP or (number == signal.SIGTERM and self._terminal is not None):
            return self._leave(number)
        else:
            self._say({"m": "signal", "number": number})
        return None

    def _leave(self, number: int) -> Ending:
        """The session continues without us. The host first resets the modes that the tool has switched on."""
        self._say({"m": "leave"})
        self._connection.settimeout(_LEAVE_S)
        while self._attached and (message := self._next()) is not None:
            self._attached = message["m"] not in ("detached", "ended")
        if self._attached:
            self._reset_terminal()
        return Ending(128 + number, f"session {short_id(self._session_id)} continues without this terminal")

    def _host_died(self) -> Ending:
        self._reset_terminal()
        return Ending(
            1, "the session host died, and the tool with it", f"its log: sessions/{short_id(self._session_id)}.log"
        )

    def _reset_terminal(self) -> None:
        """The host cannot reset the modes that the tool has switched on: resets everything that is safe to reset
        blindly."""
        if self._terminal is not None:
            from atlasbridge.core.screen.redraw import SAFE_RESET  # rarely needed, and slow to import

            os.write(1, SAFE_RESET)

    def _say(self, message: dict[str, str | int]) -> None:
        try:
            self._connection.sendall(wire.encode_plain(message))
        except OSError:
            pass  # the host is gone: the next read reports it


def _noted(*_: object) -> None:
    """Ignores the signal here: its number arrives through the wakeup pipe."""


def _size_fields(size: Size) -> dict[str, int]:
    return {"rows": size.rows, "cols": size.cols, "width": size.width, "height": size.height}
