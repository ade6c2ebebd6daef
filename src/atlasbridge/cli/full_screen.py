"""Uses this terminal in full screen with single keys, and restores it on exit, suspend or a signal."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from atlasbridge.cli.columns import cells, clip
from atlasbridge.cli.printing import hub_client
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.screen.style import render_colours
from atlasbridge.core.values import frozen

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


# Parses the bytes of a terminal into keys, for every full-screen view. Pure; time is an argument.
#
# A terminal also sends bytes that are not key presses: replies to queries (any program that can write to it can send
# those), mouse reports and pasted text. Strings (OSC, DCS, APC, PM, SOS) and reports are dropped, in 7-bit and 8-bit
# form, over any number of reads. A key is `alone` if nothing else came shortly before or after it: only such a key
# decides.


QUIET_BEFORE_S: Final = 0.03
QUIET_AFTER_S: Final = 0.1
ESCAPE_S: Final = 0.1  # a later byte does not belong to the same sequence
SILENCE_S: Final = 1.0  # a string with a longer pause is not a string: the person pressed Alt and a letter
LONGEST_PASTE: Final = 1 << 20

_SHIFT_OR_LOCK: Final = 1 | 64 | 128
_CONTROL: Final = 4
_RELEASED: Final = "3"
_PASTE_ENDS: Final = b"\x1b[201~"

# Each introducer in 7-bit form, and in 8-bit form with or without the byte that UTF-8 puts before it.
_CSI, _SS3, _OSC = rb"(?:\x1b\[|\xc2?\x9b)", rb"(?:\x1bO|\xc2?\x8f)", rb"(?:\x1b\]|\xc2?\x9d)"
_STRING = rb"(?:\x1b[PX^_]|\xc2?[\x90\x98\x9e\x9f])"  # DCS, SOS, PM and APC
_BROKEN_CHARACTER = rb"[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}"
_AFTER = (
    rb"(?:[\x80-\xbf]*[^\x80-\xbf])"  # a character behind a report: its first byte, after the rest of the one before
)
_PIECES: Final = {  # the first that fits counts
    "paste": _CSI + rb"200~",
    # an old mouse position; a function key of the Linux console
    "report": _CSI + rb"(?:M%b{3}|t%b{2}|T%b{6}|\[%b)" % ((_AFTER,) * 4),
    "unfinished": (
        rb"(?:"
        + _CSI
        + rb"(?:M%b{0,2}|t%b?|T%b{0,5}|\[)[\x80-\xbf]*" % ((_AFTER,) * 3)
        + rb"|"
        + _CSI
        + rb"[ -?]*|"
        + _SS3
        + rb"[0-?]*|\x1b(?:[ -/][\x00-/]*)?|"
        + _BROKEN_CHARACTER
        + rb")\Z"
    ),
    "csi": _CSI + rb"(?P<body>[ -?]*[@-~])",
    "ss3": _SS3 + rb"(?P<name>[0-?]*[@-~])",
    "osc": _OSC + rb"[^\x07\x1b\x9c]*",
    "string": _STRING + rb"[^\x1b\x9c]*",
    "escape": rb"\x1b[ -/][\x00-/]*[0-\xff]",
    "key": (
        rb"[\x00-\x1a\x1c-\x7f]|\x1b(?=\x1b)|\x1b[^\x1b -/OPX\[\]^_\x80-\xff]"
        rb"|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    ),
    "broken": _CSI + rb"[ -?]*[^\x1b]?|" + _SS3 + rb"[0-?]*.|\xc2[\x80-\x9f]|" + _BROKEN_CHARACTER + rb"|.",
}
_PIECE = re.compile(b"|".join(b"(?P<%b>%b)" % (name.encode(), piece) for name, piece in _PIECES.items()), re.DOTALL)
_PASTED = re.compile(_PIECES["paste"] + b"(.*)", re.DOTALL)


@frozen
class Key:
    """One key or a pasted text."""

    text: str
    pasted: bool = False
    alone: bool = False


class KeyReader:
    """Call `feed` with the bytes, and `due` again after `wait_s`: a key that could be alone is delayed for a moment."""

    def __init__(self) -> None:
        self._rest = b""  # the beginning of a piece whose end has not come yet
        self._swallowed = False  # this read contained something that was not a key
        self._broken = False  # a sequence was abandoned, so the next bytes could be the rest of it
        self._came_at = -SILENCE_S
        self._held: tuple[Key, float] | None = None

    def feed(self, data: bytes, now: float) -> list[Key]:
        keys = self._release(alone=False) + self.due(now)
        begins_quietly = not (self._rest or self._broken) and now - self._came_at >= QUIET_BEFORE_S
        self._swallowed = self._broken = False
        self._came_at = now
        read = self._split(self._rest + data)
        if begins_quietly and len(read) == 1 and not (self._rest or self._swallowed or keys):
            self._held = (read[0], now)
            return []
        return keys + read

    def due(self, now: float) -> list[Key]:
        """Return the keys that are certain because nothing followed."""
        keys: list[Key] = []
        if self._held is not None and now - self._held[1] >= QUIET_AFTER_S:
            keys += self._release(alone=True)
        if self._rest and now - self._came_at >= self._patience_s:
            if self._rest == b"\x1b":
                keys.append(Key("\x1b"))
            elif paste := _PASTED.match(self._rest):
                keys.append(self._pasted(paste[1]))
            else:
                self._swallowed = self._broken = True
            self._rest = b""
        return keys

    def wait_s(self, now: float) -> float | None:
        """Call `due` after this time; None if nothing is pending."""
        if self._held is not None:
            return max(0.0, self._held[1] + QUIET_AFTER_S - now)
        return max(0.0, self._came_at + self._patience_s - now) if self._rest else None

    @property
    def _patience_s(self) -> float:
        return ESCAPE_S if self._rest == b"\x1b" else SILENCE_S

    def _release(self, alone: bool) -> list[Key]:
        held, self._held = self._held, None
        return [] if held is None else [Key(held[0].text, alone=alone)]

    def _pasted(self, body: bytes) -> Key:
        self._swallowed = True
        return Key(body[:LONGEST_PASTE].decode("utf-8", "replace"), pasted=True)

    def _split(self, data: bytes) -> list[Key]:
        keys: list[Key] = []
        at, self._rest = 0, b""
        while found := _PIECE.match(data, at):
            begin, at = at, found.end()
            match found.lastgroup:
                case "key":
                    text = found[0].decode("utf-8", "replace")
                    keys.append(Key(text if text[0] == "\x1b" else text[0]))
                case "ss3":
                    keys.append(Key("\x1bO" + found["name"].decode("latin-1")))
                case "csi" if pressed := read_key(found["body"].decode("latin-1")):
                    keys.append(Key(pressed))
                case "paste" if (end := data.find(_PASTE_ENDS, at)) >= 0:
                    keys.append(self._pasted(data[at:end]))
                    at = end + len(_PASTE_ENDS)
                case "paste" | "unfinished":
                    self._rest = data[begin:]
                    break
                case "osc" | "string" if data[at:] in (b"", b"\x1b"):  # its content is not needed
                    self._rest = (b"\x1b]" if found.lastgroup == "osc" else b"\x1bP") + data[at:]
                    break
                case "osc" | "string":
                    self._swallowed = True
                    if data[at : at + 1] != b"\x1b":
                        at += 1
                    elif data[at + 1 : at + 2] == b"\\":
                        at += 2
                    else:
                        self._broken = True  # another sequence begins within it
                case kind:
                    self._swallowed = True
                    self._broken |= kind == "broken"
        return keys


def read_key(body: str) -> str:
    """Return the key of a CSI sequence; "" for a report, a reply or a key release."""
    final, fields = body[-1], body[:-1].split(";")
    if final == "u" and fields[0].partition(":")[0].isdigit():
        return _kitty(fields)
    if final == "~" and len(fields) == 3 and fields[0] == "27" and all(field.isdigit() for field in fields):
        return _kitty([fields[2], fields[1]])  # xterm's modifyOtherKeys
    if not all(part.isdigit() or not part for field in fields for part in field.split(":")):
        return ""
    if final == "~":
        return "\x1b[" + body if len(fields) == 1 else ""
    if final not in "ABCDEFHPQSZ" or fields[0] not in ("", "1"):
        return ""
    if len(fields) > 1 and fields[1].partition(":")[2] == _RELEASED:
        return ""
    return f"\x1b[{final}" if len(fields) == 1 and not fields[0] else ""


def _kitty(fields: list[str]) -> str:
    """Parse a key of the kitty protocol: code, modifiers and event, text."""
    code = int(fields[0].partition(":")[0])
    modifiers, _, event = (fields[1] if len(fields) > 1 else "").partition(":")
    held = (int(modifiers) - 1 if modifiers.isdigit() else 0) & ~_SHIFT_OR_LOCK
    if event == _RELEASED or not 0 < code < 0xE000:
        return ""
    if held == _CONTROL and 0x40 <= ord(chr(code).upper()[0]) < 0x60:
        return chr(ord(chr(code).upper()[0]) & 0x1F)
    if held:
        return f"\x1b{chr(code)}"
    shifted = fields[0].split(":")
    return chr(int(shifted[1])) if modifiers == "2" and len(shifted) > 1 and shifted[1].isdigit() else chr(code)


# Shows a session's screen on a terminal without input: `attach --watch`, or while another terminal has the keyboard.
#
# The screen comes from the hub with secrets redacted, as for every viewer. The session's own terminal is not affected.


LOOK_S = 0.2
LEAVE_KEYS = ("q", "\x03", "\x1d")
TAKE_KEYS = ("\r", "\n")
WATCHING = "watching: keys do nothing here, q leaves{cut}"
SHARING = "another terminal has the keyboard: Enter takes it, q leaves{cut}"


def watch_session(session_id: str) -> str:
    """Show the screen until a key or the end of the session; return the final message."""
    if not (os.isatty(0) and os.isatty(1)):
        raise AtlasBridgeError("--watch needs a terminal", "read what it printed with: atlasbridge logs NAME")
    try:
        outcome = show_screen(session_id, WATCHING)
    except HubUnavailable as error:
        return str(error)
    return "stopped watching; the session continues" if outcome == "leave" else "the session has ended"


def share(session_id: str, connection: int) -> str:
    """Show the screen while another terminal has the keyboard. Returns "take" or "leave" for a key, "heard" for data on
    this connection to the host, or "away" if the screen is not available."""
    try:
        return show_screen(session_id, SHARING, TAKE_KEYS, connection)
    except AtlasBridgeError:
        return "away"


def show_screen(session_id: str, foot: str, take: tuple[str, ...] = (), connection: int = -1) -> str:
    wakeup = Wakeup()
    sources = [0, wakeup.fileno(), *([connection] if connection >= 0 else [])]
    with hub_client() as hub, FullScreen(wakeup.write_fd) as terminal:
        shown, keys, clock = "", KeyReader(), SystemClock()
        while True:
            answer = hub.request("screen", session_id=session_id, styled=True)
            if not answer.get("ok") or answer["screen"].get("ended"):
                return "away"
            picture = render_picture(answer["screen"], *terminal.size, foot)
            if picture != shown:
                terminal.write(picture)
                shown = picture
            ready, _, _ = select.select(sources, [], [], LOOK_S)
            if connection in ready:
                return "heard"
            wakeup.clear()
            typed = os.read(0, 4096) if 0 in ready else None
            pressed = keys.due(clock.now()) if typed is None else keys.feed(typed, clock.now())
            said = [key.text for key in pressed if not key.pasted]
            if typed == b"" or any(key in LEAVE_KEYS for key in said):
                return "leave"
            if any(key in take for key in said):
                return "take"


def render_picture(screen: dict[str, Any], cols: int, rows: int, foot: str = WATCHING) -> str:
    """The last rows of the screen that fit, and a status line below them."""
    last = max((number for number, row in enumerate(screen["styled"], 1) if row), default=0)
    first = max(0, max(last, screen["cursor"][0] + 1) - (rows - 1))
    lines = [_row(row, cols) for row in screen["styled"][first : first + rows - 1]]
    lines += [""] * (rows - 1 - len(lines))
    cut = " (larger than this window)" if first or screen["cols"] > cols else ""
    words = clip(f" {foot.format(cut=cut)} ", cols)
    body = "".join(f"\x1b[K{line}\r\n" for line in lines)
    return f"\x1b[?2026h\x1b[H{body}\x1b[K\x1b[7m{words}\x1b[0m\x1b[?2026l"


def _row(runs: list[list[Any]], cols: int) -> str:
    out, used = [], 0
    for text, foreground, background, flags in runs:
        part = clip(escape_controls(str(text)), cols - used, "")
        used += cells(part)
        out.append(f"\x1b[{render_colours(foreground, background, flags)}m{part}\x1b[0m" if part else "")
    return "".join(out)
