"""Uses this terminal in full screen with single keys, and restores it on exit, suspend or a signal."""

from __future__ import annotations

import os
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

_ESC, _BEL, _CSI, _SS3, _ST = 0x1B, 0x07, 0x9B, 0x8F, 0x9C
_STRINGS: Final = {0x90, 0x98, 0x9D, 0x9E, 0x9F}  # DCS, SOS, OSC, PM, APC
_OSC: Final = 0x9D
_PASTE_BEGINS, _PASTE_ENDS = b"200~", b"\x1b[201~"
_FOLLOWED_BY: Final = {b"M": 3, b"t": 2, b"T": 6, b"[": 1}  # an old mouse position; a function key of the Linux console
_SHIFT_OR_LOCK: Final = 1 | 64 | 128
_CONTROL: Final = 4
_RELEASED: Final = "3"


@frozen
class Key:
    """One key or a pasted text."""

    text: str
    pasted: bool = False
    alone: bool = False


class KeyReader:
    """Call `feed` with the bytes, and `due` again after `wait_s`: a key that could be alone is delayed for a moment."""

    def __init__(self) -> None:
        self._state = "ground"  # ground, escape, csi, ss3, string, string-escape, follow, nothing-yet, character, paste
        self._kind = 0  # of the current string
        self._body = b""  # of the current sequence, character or paste
        self._left = 0  # characters that follow a report
        self._swallowed = False  # this read contained something that was not a key
        self._broken = False  # a sequence was abandoned, so the next bytes could be the rest of it
        self._came_at = -SILENCE_S
        self._held: tuple[Key, float] | None = None

    def feed(self, data: bytes, now: float) -> list[Key]:
        keys = self._release(alone=False) + self.due(now)
        begins_quietly = self._state == "ground" and now - self._came_at >= QUIET_BEFORE_S and not self._broken
        self._swallowed = self._broken = False
        self._came_at = now
        read: list[Key] = []
        for byte in data:
            self._take(byte, read)
        whole = self._state == "ground" and not self._swallowed
        if begins_quietly and whole and len(read) == 1 and not read[0].pasted and not keys:
            self._held = (read[0], now)
            return []
        return keys + read

    def due(self, now: float) -> list[Key]:
        """Return the keys that are certain because nothing followed."""
        keys: list[Key] = []
        if self._held is not None and now - self._held[1] >= QUIET_AFTER_S:
            keys += self._release(alone=True)
        waited = now - self._came_at
        if self._state == "escape" and waited >= ESCAPE_S:
            keys.append(Key("\x1b"))
            self._reset()
        elif self._state == "paste" and waited >= SILENCE_S:
            keys.append(self._pasted(self._body))
        elif self._state != "ground" and waited >= SILENCE_S:
            self._give_up()
        return keys

    def wait_s(self, now: float) -> float | None:
        """Call `due` after this time; None if nothing is pending."""
        if self._held is not None:
            return max(0.0, self._held[1] + QUIET_AFTER_S - now)
        if self._state == "ground":
            return None
        return max(0.0, self._came_at + (ESCAPE_S if self._state == "escape" else SILENCE_S) - now)

    def _release(self, alone: bool) -> list[Key]:
        held, self._held = self._held, None
        return [] if held is None else [Key(held[0].text, alone=alone)]

    def _reset(self) -> None:
        self._state, self._body = "ground", b""

    def _swallow(self) -> None:
        self._swallowed = True
        self._reset()

    def _give_up(self) -> None:
        self._broken = True
        self._swallow()

    def _take(self, byte: int, keys: list[Key]) -> None:
        match self._state:
            case "ground":
                self._begin(byte, keys)
            case "escape":
                self._after_escape(byte, keys)
            case "csi":
                self._in_sequence(byte, keys)
            case "ss3":
                self._body += bytes((byte,))
                if 0x40 <= byte <= 0x7E:
                    self._press(keys, "\x1bO" + self._body.decode("latin-1"))
                elif not 0x30 <= byte <= 0x3F:
                    self._give_up()
            case "string" | "string-escape":
                self._in_string(byte, keys)
            case "intermediate":
                if byte >= 0x30:
                    self._swallow()
            case "follow":
                self._left -= 0 if 0x80 <= byte < 0xC0 else 1  # count characters, not bytes
                if self._left <= 0:
                    self._swallow()
            case "character":
                self._in_character(byte, keys)
            case "paste":
                self._body += bytes((byte,))
                if self._body.endswith(_PASTE_ENDS):
                    keys.append(self._pasted(self._body[: -len(_PASTE_ENDS)]))

    def _begin(self, byte: int, keys: list[Key]) -> None:
        if byte == _ESC:
            self._state = "escape"
        elif byte < 0x80:
            self._press(keys, chr(byte))
        elif byte >= 0xC2 and byte < 0xF5:
            self._state, self._body = "character", bytes((byte,))
        else:
            self._control(byte)

    def _control(self, byte: int) -> None:
        """Handle an 8-bit control; any other value aborts the sequence."""
        if byte in _STRINGS:
            self._state, self._kind = "string", byte
        elif byte in (_CSI, _SS3):
            self._state, self._body = "csi" if byte == _CSI else "ss3", b""
        else:
            self._give_up()

    def _after_escape(self, byte: int, keys: list[Key]) -> None:
        if byte == _ESC:
            self._press(keys, "\x1b")
            self._state = "escape"
        elif byte + 0x40 in _STRINGS | {_CSI, _SS3}:
            self._control(byte + 0x40)
        elif 0x20 <= byte < 0x30:
            self._state = "intermediate"
        elif byte >= 0x80:
            self._give_up()
            self._begin(byte, keys)
        else:
            self._press(keys, "\x1b" + chr(byte))

    def _in_sequence(self, byte: int, keys: list[Key]) -> None:
        if byte == _ESC:
            self._give_up()
            self._state = "escape"
            return
        if 0x20 <= byte < 0x40:
            self._body += bytes((byte,))
            return
        if not 0x40 <= byte <= 0x7E:
            self._give_up()
            return
        self._body += bytes((byte,))
        if self._body == _PASTE_BEGINS:
            self._state, self._body = "paste", b""
        elif self._body in _FOLLOWED_BY:
            self._state, self._left = "follow", _FOLLOWED_BY[self._body]
        else:
            self._finish_sequence(self._body.decode("latin-1"), keys)

    def _finish_sequence(self, body: str, keys: list[Key]) -> None:
        pressed = read_key(body)
        if pressed:
            self._press(keys, pressed)
        else:
            self._swallow()

    def _in_string(self, byte: int, keys: list[Key]) -> None:
        if self._state == "string-escape":
            self._swallow()
            if byte != 0x5C:  # not the end of the string: a new sequence starts
                self._give_up()
                self._state = "escape"
                self._after_escape(byte, keys)
        elif byte == _ESC:
            self._state = "string-escape"
        elif byte == _ST or (byte == _BEL and self._kind == _OSC):
            self._swallow()

    def _in_character(self, byte: int, keys: list[Key]) -> None:
        if not 0x80 <= byte < 0xC0:
            self._give_up()
            self._begin(byte, keys)
            return
        self._body += bytes((byte,))
        size = 2 if self._body[0] < 0xE0 else 3 if self._body[0] < 0xF0 else 4
        if len(self._body) < size:
            return
        text = self._body.decode("utf-8", "replace")
        self._reset()
        if 0x80 <= ord(text[0]) < 0xA0:
            self._control(ord(text[0]))
        else:
            self._press(keys, text[0])

    def _press(self, keys: list[Key], text: str) -> None:
        self._reset()
        keys.append(Key(text))

    def _pasted(self, body: bytes) -> Key:
        self._swallow()
        return Key(body[:LONGEST_PASTE].decode("utf-8", "replace"), pasted=True)


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
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    sources = [0, bell, *([connection] if connection >= 0 else [])]
    with hub_client() as hub, FullScreen(ring) as terminal:
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
            if bell in ready:
                os.read(bell, 4096)
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
