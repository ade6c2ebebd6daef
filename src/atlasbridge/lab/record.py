"""Records a program on a terminal as asciicast v2: its output, the typed keys, and window sizes.

Input without echo, and output that looks like a secret, is written as dots, because a recording is meant to be shared.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.prompt.redact import mask_rows, redact_text, typed_text, with_secret
from ptypool.errors import SpawnFailed
from ptypool.process import set_window_size, spawn_process, window_size

CHUNK = 65536
QUIET_S = 0.2  # after this pause, the pending output is checked as a whole
MOST_HELD = 65536  # characters
_SPOKEN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|[^\x00-\x1f\x7f]", re.DOTALL)
_DOT = "•"


class Cast:
    """An asciicast v2 file that is written line by line, so that it survives a crash.

    Output is held back until its line ends or a pause follows, because half a secret is not recognised.
    """

    def __init__(
        self, stream: IO[str], rows: int, cols: int, command: Sequence[str], clock: Clock, verbatim: bool = False
    ) -> None:
        self._verbatim = verbatim
        self._secrets: tuple[str, ...] = ()
        self._unseen = b""  # the current line of input without echo
        self._held: list[tuple[float, str]] = []
        self._stream = stream
        self._clock = clock
        self._start = clock.now()
        self._decoders = {kind: codecs.getincrementaldecoder("utf-8")("replace") for kind in "oi"}
        head = {"version": 2, "width": cols, "height": rows, "timestamp": int(clock.wall())}
        head["env"] = {"TERM": os.environ.get("TERM", "xterm-256color")}  # type: ignore[assignment]
        words = " ".join(command if verbatim else redact_text(tuple(command)))
        self._line({**head, "title": words, "command": words})

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def wrote(self, data: bytes) -> None:
        text = self._decoders["o"].decode(data)
        if not text:
            return
        self._held.append((self._at(), text))
        if self._verbatim or text.endswith("\n") or sum(len(part) for _, part in self._held) > MOST_HELD:
            self.let_out()

    def let_out(self) -> None:
        held, self._held = self._held, []
        whole = "".join(text for _, text in held)
        shown = whole if self._verbatim else "\n".join(mask_rows(whole.split("\n"), self._secrets))
        begin = 0
        for at, text in held:
            self._line([at, "o", shown[begin : begin + len(text)]])
            begin += len(text)

    def typed(self, data: bytes, echoes: bool) -> None:
        """Keys without echo are stored as dots, and are also redacted in later output."""
        self.let_out()
        text = self._decoders["i"].decode(data)
        if not echoes:
            self._unseen += data
            if self._unseen.endswith((b"\r", b"\n")):
                self._secrets = with_secret(self._secrets, typed_text(self._unseen))
                self._unseen = b""
            text = _SPOKEN.sub(lambda key: key[0] if key[0].startswith("\x1b") else _DOT, text)
        if text:
            self._event("i", text)

    def resize(self, rows: int, cols: int) -> None:
        self.let_out()
        self._event("r", f"{cols}x{rows}")

    def _at(self) -> float:
        return round(self._clock.now() - self._start, 4)

    def _event(self, kind: str, text: str) -> None:
        self._line([self._at(), kind, text])

    def _line(self, value: object) -> None:
        self._stream.write(json.dumps(value, ensure_ascii=False) + "\n")
        self._stream.flush()


def record(command: Sequence[str], path: Path, clock: Clock | None = None, verbatim: bool = False) -> int:
    """Run `command` as if started by hand and record it to `path`, readable by this user only; return its exit status.

    `verbatim` keeps the output unchanged. Input without echo is never kept.
    """
    steady = clock or SystemClock()
    rows, cols = _own_size()
    try:
        child = spawn_process(command, size=(rows, cols))
    except SpawnFailed as error:
        raise AtlasBridgeError(error.what(), error.what_to_do()) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_private(path) as stream:
        cast = Cast(stream, rows, cols, command, steady, verbatim)
        restore = _raw_mode()
        before = signal.signal(signal.SIGWINCH, _follow_size(child.master_fd, cast))
        try:
            _relay(child.master_fd, cast)
        finally:
            signal.signal(signal.SIGWINCH, before)
            restore()
            cast.let_out()
    os.close(child.master_fd)
    _, status = os.waitpid(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _open_private(path: Path) -> IO[str]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)  # also for an existing file
    return open(fd, "w", encoding="utf-8")


def _own_size() -> tuple[int, int]:
    """Rows and columns of the person's terminal; 24 x 80 without one."""
    try:
        rows, cols = window_size(1)
    except OSError:
        rows = cols = 0
    return rows or 24, cols or 80


def _raw_mode() -> Callable[[], None]:
    if not sys.stdin.isatty():
        return lambda: None
    old = termios.tcgetattr(0)
    tty.setraw(0)
    return lambda: termios.tcsetattr(0, termios.TCSADRAIN, old)


def _follow_size(master: int, cast: Cast) -> Callable[[int, FrameType | None], None]:
    def follow(_number: int, _frame: FrameType | None) -> None:
        rows, cols = _own_size()
        set_window_size(master, rows, cols)
        cast.resize(rows, cols)

    return follow


def _echoes(master: int) -> bool:
    """Whether the terminal echoes. Programs that draw the input themselves write it as output."""
    return bool(termios.tcgetattr(master)[3] & termios.ECHO)


def _relay(master: int, cast: Cast) -> None:
    sources = [master, 0]
    while True:
        ready, _, _ = select.select(sources, [], [], QUIET_S if cast.holds else None)
        if not ready:
            cast.let_out()
        if 0 in ready:
            typed = os.read(0, CHUNK)
            if not typed:
                sources.remove(0)
            else:
                cast.typed(typed, _echoes(master))
                os.write(master, typed)
        if master in ready:
            try:
                data = os.read(master, CHUNK)
            except OSError:
                return
            if not data:
                return
            cast.wrote(data)
            os.write(1, data)
