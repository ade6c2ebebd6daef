"""Shows a session's screen on a terminal without input: `attach --watch`, or while another terminal has the keyboard.

The screen comes from the hub with secrets redacted, as for every viewer. The session's own terminal is not affected.
"""

from __future__ import annotations

import os
import select
from typing import Any

from atlasbridge.cli.full_screen import FullScreen
from atlasbridge.cli.printing import cells, clip, hub_client
from atlasbridge.cli.terminal_keys import KeyReader
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.screen.style import render_colours

LOOK_S = 0.2
LEAVE = ("q", "\x03", "\x1d")
TAKE = ("\r", "\n")
WATCHING = "watching: keys do nothing here, q leaves{cut}"
SHARING = "another terminal has the keyboard: Enter takes it, q leaves{cut}"


def look_on(session_id: str) -> str:
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
        return show_screen(session_id, SHARING, TAKE, connection)
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
            if typed == b"" or any(key in LEAVE for key in said):
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
