"""Records a program on a terminal as asciicast v2: what it wrote, what was typed, how the window changed."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from atlasbridge.core.clock import Clock, SystemClock
from ptypool.process import spawn_process

CHUNK = 65536


class Cast:
    """An asciicast v2 file that grows line by line: what was written survives a crash."""

    def __init__(self, stream: IO[str], rows: int, cols: int, command: Sequence[str], clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._start = clock.now()
        self._decoders = {kind: codecs.getincrementaldecoder("utf-8")("replace") for kind in "oi"}
        head = {"version": 2, "width": cols, "height": rows, "timestamp": int(clock.wall())}
        head["env"] = {"TERM": os.environ.get("TERM", "xterm-256color")}  # type: ignore[assignment]
        self._line({**head, "title": " ".join(command), "command": " ".join(command)})

    def add(self, kind: str, data: bytes) -> None:
        text = self._decoders[kind].decode(data)
        if text:
            self._event(kind, text)

    def resize(self, rows: int, cols: int) -> None:
        self._event("r", f"{cols}x{rows}")

    def _event(self, kind: str, text: str) -> None:
        self._line([round(self._clock.now() - self._start, 4), kind, text])

    def _line(self, value: object) -> None:
        self._stream.write(json.dumps(value, ensure_ascii=False) + "\n")
        self._stream.flush()


def record(command: Sequence[str], path: Path, clock: Clock | None = None) -> int:
    """Run `command` as if started by hand and keep everything in `path`; returns its exit status."""
    steady = clock or SystemClock()
    rows, cols = window_size()
    child = spawn_process(command, size=(rows, cols))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as stream:
        cast = Cast(stream, rows, cols, command, steady)
        restore = _raw_mode()
        before = signal.signal(signal.SIGWINCH, _follow_size(child.master_fd, cast))
        try:
            _relay(child.master_fd, cast)
        finally:
            signal.signal(signal.SIGWINCH, before)
            restore()
    os.close(child.master_fd)
    _, status = os.waitpid(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def window_size() -> tuple[int, int]:
    """Rows and columns of the person's terminal; 24 x 80 without one."""
    try:
        rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError:
        return 24, 80
    return (rows, cols) if rows and cols else (24, 80)


def _raw_mode() -> Callable[[], None]:
    if not sys.stdin.isatty():
        return lambda: None
    old = termios.tcgetattr(0)
    tty.setraw(0)
    return lambda: termios.tcsetattr(0, termios.TCSADRAIN, old)


def _follow_size(master: int, cast: Cast) -> Callable[[int, FrameType | None], None]:
    def follow(_number: int, _frame: FrameType | None) -> None:
        rows, cols = window_size()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        cast.resize(rows, cols)

    return follow


def _relay(master: int, cast: Cast) -> None:
    sources = [master, 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            typed = os.read(0, CHUNK)
            if not typed:
                sources.remove(0)
            else:
                cast.add("i", typed)
                os.write(master, typed)
        if master in ready:
            try:
                data = os.read(master, CHUNK)
            except OSError:
                return
            if not data:
                return
            cast.add("o", data)
            os.write(1, data)
