"""Keys as a person writes them: `q`, `space`, `ctrl-c`, `\\x1b`, `up`; and the bytes of the arrow keys."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy

ENTER = b"\r"
ESC = b"\x1b"
NAMED = {
    "enter": ENTER,
    "return": ENTER,
    "space": b" ",
    "tab": b"\t",
    "esc": b"\x1b",
    "escape": b"\x1b",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "pageup": b"\x1b[5~",
    "pagedown": b"\x1b[6~",
    "backtab": b"\x1b[Z",
}
_ESCAPE = lazy(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([rnteabfv0\\'\"]))")
_LETTERS = {
    "r": b"\r",
    "n": b"\n",
    "t": b"\t",
    "e": b"\x1b",
    "a": b"\a",
    "b": b"\b",
    "f": b"\f",
    "v": b"\v",
    "0": b"\0",
}
KEYS_LIMIT = 256


def parse_keys(text: str) -> bytes:
    """The bytes of `text`; raises ValueError where it cannot be meant."""
    low = text.strip().lower()
    if low in NAMED:
        return NAMED[low]
    control = re.fullmatch(r"(?:ctrl|control|c|\^)[-+]?([a-z@\[\\\]^_])", low)
    if control and len(low) > 1 and not re.fullmatch(r"c[a-z]", low):
        return bytes([ord(control[1].upper()) & 0x1F])
    data = _ESCAPE.sub(_unescape, text.encode())
    if len(data) > KEYS_LIMIT:
        raise ValueError(f"more than {KEYS_LIMIT} bytes")
    return data


def arrow(direction: str, application: bool) -> bytes:
    """`up`, `down`, `left` or `right`, as the tool's cursor key mode wants it."""
    return (b"\x1bO" if application else b"\x1b[") + NAMED[direction][-1:]


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    if match[2]:
        return chr(int(match[2], 16)).encode("utf-8", "replace")
    letter = match[3].decode()
    return _LETTERS.get(letter, letter.encode())
