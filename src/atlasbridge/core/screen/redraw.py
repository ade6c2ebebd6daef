"""The bytes for a terminal that attaches to or leaves a session: the current screen, and the reset to a plain terminal.

Pure. For a terminal that leaves, only the modes of the tool are reset; no text is cleared that a person could want to
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlasbridge.core.screen.style import render_sgr

if TYPE_CHECKING:
    from atlasbridge.core.screen.screen import Screen

_ALTERNATE = (1049, 1047, 47)
_MOUSE = (1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016)
_OTHERS = (1, 66, 1004, 2004, 2026, 2027, 2031, 2048, 5)
_STICKY = (*_MOUSE, *_OTHERS)

# For a terminal whose host died, so that its modes are unknown. Each sequence is harmless if its mode was off; the
# cursor stays.
SAFE_RESET = (
    b"\x1b[?2026l\x1b7\x1b[?1049l\x1b8\x1b[r\x1b8"
    + b"".join(b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1005, 1006, 1015, 1004, 2004, 2031, 2048, 1))
    + b"\x1b[<9u\x1b[>4m\x1b>\x1b[?25h\x1b[0 q\x1b[0m"
)


def render_screen(screen: Screen) -> bytes:
    """Everything that a fresh terminal needs to look and behave like the tool's screen."""
    out = ["\x1b[?1049h" if screen.alternate else "", "\x1b[?25l\x1b[?7h\x1b[m\x1b[H\x1b[2J"]
    last = _last_row(screen)
    for row in range(last + 1):
        goes_on = row > 0 and screen.wrapped(row - 1)  # the terminal wraps it by itself, and knows that it is one line
        place = "" if goes_on else f"\x1b[{row + 1};1H"
        out.append(f"{place}{_render_row(screen, row)}")
    out += _switches_on(screen)
    if screen.title:
        out.append(f"\x1b]2;{screen.title}\x1b\\")
    row, col = screen.cursor
    out.append(f"\x1b[m\x1b[{row + 1};{col + 1}H")
    if screen.cursor_visible:
        out.append("\x1b[?25h")
    return "".join(out).encode("utf-8", "replace")


def render_return(screen: Screen) -> bytes:
    """For a terminal that left when the tool was stopped and is back: as without us, its content is not redrawn. Only
    the modes are set again, and a full-screen program is shown again."""
    return render_screen(screen) if screen.alternate else "".join(_switches_on(screen)).encode()


def render_past(screen: Screen) -> bytes:
    """The lines that scrolled off the main screen, for the scrollback of a terminal that attaches; written before the
    screen.

    The terminal's previous content scrolls up with them. A full-screen program has no scrollback.
    """
    if screen.alternate or not screen.history:
        return b""
    lines = "\r\n".join([f"\x1b[m\x1b[{screen.rows};1H", *screen.history, *([""] * screen.rows)])
    return lines.encode("utf-8", "replace")


def _last_row(screen: Screen) -> int:
    for row in range(screen.rows - 1, -1, -1):
        if screen.text(row).strip() or any(style for _, _, style in screen.spans(row)):
            return row
    return -1


def _render_row(screen: Screen, row: int) -> str:
    parts = []
    for start, end, style in screen.spans(row):
        text = screen.text(row, start, end)
        if not style and end >= screen.cols and not screen.wrapped(row):
            text = text.rstrip(" ")
        parts.append(f"\x1b[{render_sgr(style)}m{text}" if text else "")
    return "".join(parts) + "\x1b[m"


def _switches_on(screen: Screen) -> list[str]:
    out = [f"\x1b[?{mode}h" for mode in _STICKY if mode in screen.modes and mode != 2026]
    if 7 not in screen.modes:
        out.append("\x1b[?7l")
    if screen.application_keypad:
        out.append("\x1b=")
    if screen.kitty_flags:
        out.append(f"\x1b[>{screen.kitty_flags}u")
    return out


def render_parting(screen: Screen) -> bytes:
    """Like `render_farewell`, and moves the cursor to a fresh line below the content, so that the next message is
    separate. Only relative: the terminal's first row is not the screen's if `run` was typed below other output."""
    last, (row, col) = _last_row(screen), screen.cursor
    fresh = screen.alternate or (col == 0 and row > last)
    below = b"" if fresh else b"\r" + b"\n" * (max(last, row) - row + 1)
    return render_farewell(screen) + below


def render_farewell(screen: Screen) -> bytes:
    """Resets the modes that the tool has set; empty if it has set none."""
    out = [f"\x1b[?{mode}l" for mode in _STICKY if mode in screen.modes]
    if 7 not in screen.modes:
        out.append("\x1b[?7h")
    if screen.application_keypad:
        out.append("\x1b>")
    if screen.kitty_flags:
        out.append("\x1b[<9u")
    if screen.alternate:
        mode = next((mode for mode in _ALTERNATE if mode in screen.modes), 1049)
        out.append(f"\x1b[?{mode}l")
    if not screen.cursor_visible:
        out.append("\x1b[?25h")
    if out:
        out.append("\x1b7\x1b[r\x1b8\x1b[m")  # a scrolling region would stay; resetting it moves the cursor
    return "".join(out).encode()
