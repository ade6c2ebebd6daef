"""The person's own terminal: raw while a session is shown on it, and back to what it was, whatever happens.

A janitor, a tiny shell of its own session, puts it back when the client is killed before it could.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios

from atlasbridge.core.detached import spawn_shell
from atlasbridge.core.tty import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _ISPEED, _OSPEED, _CC = range(7)
_TERMINAL_FD = 3  # where the janitor finds the terminal

# Waits for a word or for the end of the pipe.  Without the word the client was killed: if the terminal is still as raw
# as we made it (a shell may have taken it over already), put it back.
_JANITOR = """trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE
read -r word
[ "$word" = bye ] && exit 0
case $(stty -a <&3) in *-icanon*) ;; *) exit 0 ;; esac
case $(stty -a <&3) in *-isig*) ;; *) exit 0 ;; esac
exec stty "$1" <&3
"""


def raw_attributes(attributes: list[Any]) -> list[Any]:
    """What cfmakeraw makes of them: every key and every byte passes as it is."""
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
    """The terminal's size; 0 x 0 when it has none."""
    try:
        told = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return Size(0, 0)
    return Size(*(int.from_bytes(told[place : place + 2], sys.byteorder) for place in (0, 2, 4, 6)))


class RawTerminal:
    """Raw from `enter` to `leave`, any number of times; the janitor stands by in between."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved: list[Any] = termios.tcgetattr(fd)
        self._janitor = _start_janitor(fd, _stty_words(self._saved))
        self._entered = False

    def enter(self) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, raw_attributes(self._saved))
        self._entered = True

    def leave(self) -> None:
        """What is not raw is not touched: in the background it is somebody else's."""
        if not self._entered:
            return
        self._entered = False
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
        except (termios.error, OSError):
            pass  # the terminal is gone

    def close(self) -> None:
        self.leave()
        if self._janitor >= 0:
            try:
                os.write(self._janitor, b"bye\n")
            except OSError:
                pass  # somebody has killed it: there is nobody to be sent home
            os.close(self._janitor)
            self._janitor = -1


def _start_janitor(terminal_fd: int, words: str) -> int:
    """Returns the pipe whose end wakes the janitor.  It runs in a session of its own: no signal of ours reaches it."""
    reader, writer = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, terminal_fd, _TERMINAL_FD),
        (os.POSIX_SPAWN_DUP2, reader, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    command = ["sh", "-c", _JANITOR, "atlasbridge-janitor", words]
    try:
        spawn_shell(command, os.environ, file_actions=actions)
    except OSError:
        os.close(writer)  # no shell: the session works, only a killed client leaves its terminal raw
        return -1
    finally:
        os.close(reader)
    return writer


def _stty_words(attributes: list[Any]) -> str:
    """The settings in the form `stty -g` prints and `stty` takes back."""
    control = [value if isinstance(value, int) else value[0] for value in attributes[_CC]]
    if sys.platform == "darwin":
        flags = {"cflag": _CFLAG, "iflag": _IFLAG, "lflag": _LFLAG, "oflag": _OFLAG}
        words = [f"{name}={attributes[index]:x}" for name, index in flags.items()]
        names = (
            "eof",
            "eol",
            "eol2",
            "erase",
            "intr",
            "kill",
            "lnext",
            "min",
            "quit",
            "reprint",
            "start",
            "stop",
            "susp",
        )
        words += [f"{name}={control[getattr(termios, 'V' + name.upper())]:x}" for name in (*names, "time", "werase")]
        return ":".join(["gfmt1", *words, f"ispeed={attributes[_ISPEED]}", f"ospeed={attributes[_OSPEED]}"])
    flags_in_order = (attributes[index] for index in (_IFLAG, _OFLAG, _CFLAG, _LFLAG))
    return ":".join(f"{value:x}" for value in (*flags_in_order, *control))
