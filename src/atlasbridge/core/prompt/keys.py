"""Keys as a person writes them: `q`, `space`, `ctrl-c`, `esc`, `up`; and the bytes of the arrow keys."""

from __future__ import annotations

import re
from enum import Enum

from atlasbridge.core.patterns import lazy
from atlasbridge.core.values import frozen

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
    **{f"f{at}": b"\x1bO%c" % (79 + at) for at in range(1, 5)},
    **{f"f{at}": b"\x1b[%d~" % code for at, code in enumerate((15, 17, 18, 19, 20, 21, 23, 24), 5)},
}
_ESCAPE = lazy(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([rnteabfv0\\'\"]))")
_LETTERS = dict(zip("rnteabfv0", (bytes([code]) for code in b"\r\n\t\x1b\a\b\f\v\0"), strict=True))
KEYS_LIMIT = 256
_CONTROL = lazy(r"(?:ctrl|control|c(?=[-+])|\^)[-+]?([a-z@\[\\\]^_])", re.IGNORECASE)


def named_key(word: str) -> bytes:
    """The key that a question names: `esc`, `^C`, `C-r`; b"" for any other word."""
    control = _CONTROL.fullmatch(word)
    return bytes([ord(control[1].upper()) & 0x1F]) if control else NAMED.get(word.lower(), b"")


def parse_keys(text: str) -> bytes:
    """Returns the bytes of `text`. Raises ValueError if it is too long."""
    if named := named_key(text.strip()):
        return named
    data = _ESCAPE.sub(_unescape, text.encode())
    if len(data) > KEYS_LIMIT:
        raise ValueError(f"more than {KEYS_LIMIT} bytes")
    return data


def arrow(direction: str, application: bool) -> bytes:
    """The bytes of `up`, `down`, `left` or `right` in the tool's cursor key mode."""
    return (b"\x1bO" if application else b"\x1b[") + NAMED[direction][-1:]


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    if match[2]:
        return chr(int(match[2], 16)).encode("utf-8", "replace")
    letter = match[3].decode()
    return _LETTERS.get(letter, letter.encode())


# One step of an answer: keys, and a condition before the next step. The set of conditions is closed.
#
# Only `core/host/typist.py` interprets them. Their format for the wire and the store is defined here.


class When(Enum):
    """A condition without a text; its value is its written form."""

    AT_ONCE = ""
    DRAINED = "drained"  # the tool has read the keys
    SETTLED = "settled"  # the screen is stable
    RESTED = "rested"  # stable for longer
    CHANGED = "changed"  # the screen changed
    REDRAWN = "redrawn"  # the screen changed and is stable again
    # wait a moment for the tool to take the key by itself; if the prompt disappears, nothing more is typed
    MAY_LEAVE = "left?"


@frozen
class Stands:
    """The text is on the screen."""

    text: str


@frozen
class Shows:
    """The text is the highlighted choice."""

    text: str


@frozen
class Reach:
    """Repeat the same key until the text is the highlighted choice."""

    text: str


@frozen
class Only:
    """Once the screen is stable, the following steps are typed only if the text is on it."""

    text: str


Until = When | Stands | Shows | Reach | Only
_WORDED: dict[str, type[Stands | Shows | Reach | Only]]
_WORDED = {"stands": Stands, "shows": Shows, "reach": Reach, "only": Only}
_NAMES = {kind: name for name, kind in _WORDED.items()}


@frozen
class Step:
    keys: bytes
    until: Until = When.AT_ONCE


def encode_until(until: Until) -> str:
    """The format of version 0.1.0, so that a host and a hub of different versions understand each other."""
    return str(until.value) if isinstance(until, When) else f"{_NAMES[type(until)]}:{until.text}"


def decode_until(written: str) -> Until:
    """The inverse of `encode_until`. Raises ValueError for an unknown condition."""
    name, colon, text = written.partition(":")
    return _WORDED[name](text) if colon and name in _WORDED else When(written)
