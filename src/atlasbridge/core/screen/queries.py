"""The answers of an xterm to a program's queries about the terminal. Pure: state in, bytes out.

Used only while no terminal is attached; an attached terminal answers itself.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.style import render_sgr

PRIMARY = b"\x1b[?62;22c"  # a VT220 with colour: claims only what the screen supports
SECONDARY = b"\x1b[>41;390;0c"
TERTIARY = b"\x1bP!|00000000\x1b\\"
VERSION = b"\x1bP>|XTerm(390)\x1b\\"
STATUS_OK = b"\x1b[0n"
NO_PRINTER = b"\x1b[?13n"
CELL_HEIGHT, CELL_WIDTH = 16, 8

_FOREGROUND, _BACKGROUND = "#e5e5e5", "#000000"
_SIXTEEN = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)
_CAPABILITIES = {"TN": "xterm-256color", "name": "xterm-256color", "Co": "256", "colors": "256", "RGB": "8"}


def palette(index: int) -> str:
    """xterm's colour number `index` as "#rrggbb"."""
    if index < 16:
        return _SIXTEEN[index]
    if index < 232:
        steps = divmod(index - 16, 36)[0], (index - 16) // 6 % 6, (index - 16) % 6
        return "#" + "".join(f"{step * 40 + 55 if step else 0:02x}" for step in steps)
    return "#" + f"{(index - 232) * 10 + 8:02x}" * 3


def _rgb(colour: str) -> str:
    return "rgb:" + "/".join(colour[at : at + 2] * 2 for at in (1, 3, 5))


def cursor_position(row: int, col: int, private: bool) -> bytes:
    return f"\x1b[{'?' if private else ''}{row + 1};{col + 1}R".encode()


def mode_report(mode: int, state: int, private: bool) -> bytes:
    """`state`: 0 unknown, 1 set, 2 reset."""
    return f"\x1b[{'?' if private else ''}{mode};{state}$y".encode()


def window_report(what: int, rows: int, cols: int) -> bytes | None:
    reports = {
        11: "1",
        13: "3;0;0",
        14: f"4;{rows * CELL_HEIGHT};{cols * CELL_WIDTH}",
        15: f"5;{rows * CELL_HEIGHT};{cols * CELL_WIDTH}",
        16: f"6;{CELL_HEIGHT};{CELL_WIDTH}",
        18: f"8;{rows};{cols}",
        19: f"9;{rows};{cols}",
    }
    return f"\x1b[{reports[what]}t".encode() if what in reports else None


def colour_reports(number: int, body: str, end: str) -> list[bytes]:
    """Answers OSC 4, 10, 11 and 12, which can contain several queries."""
    parts = body.split(";")[:32]
    if number == 4:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        known = [int(index) for index, ask in pairs if ask == "?" and index.isdecimal() and len(index) < 4]
        return [f"\x1b]4;{index};{_rgb(palette(index))}{end}".encode() for index in known if index < 256]
    colours = {10: _FOREGROUND, 11: _BACKGROUND, 12: _FOREGROUND}
    asked = [number + at for at, ask in enumerate(parts) if ask == "?"]
    return [f"\x1b]{which};{_rgb(colours[which])}{end}".encode() for which in asked if which in colours]


def capability_report(body: str) -> list[bytes]:
    """XTGETTCAP: names in hexadecimal, separated by semicolons."""
    return [_capability(name) for name in body.split(";")[:32]]


def _capability(name: str) -> bytes:
    try:
        value = _CAPABILITIES.get(bytes.fromhex(name).decode("ascii", "replace"))
    except ValueError:
        value = None
    if value is None:
        return b"\x1bP0+r\x1b\\"
    return f"\x1bP1+r{name}={value.encode().hex().upper()}\x1b\\".encode()


def setting_report(what: str, style: int, top: int, bottom: int) -> bytes:
    """DECRQSS: the style, the margins or the cursor's shape."""
    settings = {"m": f"{render_sgr(style)}m", "r": f"{top + 1};{bottom + 1}r", " q": "1 q"}
    if what not in settings:
        return b"\x1bP0$r\x1b\\"
    return f"\x1bP1$r{settings[what]}\x1b\\".encode()


# Input from a terminal that is not typed: its answers to the tool's queries (cursor position, capabilities), and mouse
# and focus events.

FOCUS_GAINED, FOCUS_LOST = b"\x1b[I", b"\x1b[O"
# No key has a private mark (`?`, `>`, `=`) before its numbers: such a sequence is an answer, and a tool can cause any
# number of them.
_ANSWERS = lazy(
    rb"\x1b\[[?>=][\d;:]*[ -/]*[@-~]|\x1b\[[\d;]*(?:\$y|[cRntx])|\x1b[\]P_X^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b/Z"
)
_GESTURES = lazy(rb"\x1b\[<[\d;]*[mM]|\x1b\[M...|\x1b\[[\d;]*&w|\x1b\[[IO]", re.DOTALL)


def part_answers(data: bytes) -> tuple[bytes, bytes]:
    """Separates the person's input from the terminal's answers in it."""
    if b"\x1b" not in data:
        return data, b""
    return _ANSWERS.sub(b"", data), b"".join(_ANSWERS.findall(data))


def keys_of(data: bytes) -> bytes:
    """Only the bytes that were typed on the keyboard."""
    return _GESTURES.sub(b"", part_answers(data)[0])
