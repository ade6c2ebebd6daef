"""Uses this terminal in full screen with single keys, and restores it on exit, suspend or a signal."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from types import FrameType
from typing import Any

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?2004h"  # alternate screen, no cursor, bracketed paste
_LEAVE = "\x1b[?2004l\x1b[?25h\x1b[?1049l"
_LFLAG = 3


class FullScreen:
    """A context manager. `wake` is a descriptor that gets a byte when the window's size changes."""

    def __init__(self, wake: int) -> None:
        self._wake = wake
        self._saved: list[Any] = termios.tcgetattr(0)
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> FullScreen:
        self._handlers = {
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: None),
            signal.SIGTERM: signal.signal(signal.SIGTERM, _abort),
            signal.SIGHUP: signal.signal(signal.SIGHUP, _abort),
        }
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self.enter()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows from the terminal itself, because LINES and COLUMNS can be outdated."""
        size = os.get_terminal_size(1)
        return size.columns or 80, size.lines or 24

    def enter(self) -> None:
        keys = [*self._saved]
        keys[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(0, termios.TCSADRAIN, keys)
        self.write(_ENTER)

    def leave(self) -> None:
        try:
            self.write(_LEAVE)
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
        except (OSError, termios.error):
            pass  # the terminal is gone

    def without(self, action: Callable[[], None]) -> None:
        """Run an action with the terminal restored in between."""
        self.leave()
        try:
            action()
        finally:
            self.enter()

    def suspend(self) -> None:
        """Stop the process, as Ctrl-Z does."""
        self.without(lambda: os.kill(os.getpid(), signal.SIGSTOP))

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _abort(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
