"""`attach --watch`: a session on this terminal for somebody who only looks.  No key of theirs goes anywhere.

The screen comes from the hub, secrets masked as for every other onlooker; the session's own terminal notices nothing.
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


def look_on(session_id: str) -> str:
    """Until a key says so, or the session ends; returns what to tell then."""
    if not (os.isatty(0) and os.isatty(1)):
        raise AtlasBridgeError("--watch needs a terminal", "look once with: atlasbridge ps")
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    with FullScreen(ring) as terminal, hub_client() as hub:
        shown, keys, clock = "", KeyReader(), SystemClock()
        while True:
            try:
                answer = hub.request("screen", session_id=session_id, styled=True)
            except HubUnavailable as error:
                return str(error)
            if not answer.get("ok"):
                return "the session has ended, or its host is away"
            picture = render_picture(answer["screen"], *terminal.size)
            if picture != shown:
                terminal.write(picture)
                shown = picture
            ready, _, _ = select.select([0, bell], [], [], LOOK_S)
            if bell in ready:
                os.read(bell, 4096)
            typed = os.read(0, 4096) if 0 in ready else None
            pressed = keys.due(clock.now()) if typed is None else keys.feed(typed, clock.now())
            if typed == b"" or any(key.text in LEAVE and not key.pasted for key in pressed):
                return "no longer looking on; the session goes on"


def render_picture(screen: dict[str, Any], cols: int, rows: int) -> str:
    """The screen's last rows that fit, and a line of ours below them."""
    last = max((number for number, row in enumerate(screen["styled"], 1) if row), default=0)
    first = max(0, max(last, screen["cursor"][0] + 1) - (rows - 1))
    lines = [_row(row, cols) for row in screen["styled"][first : first + rows - 1]]
    lines += [""] * (rows - 1 - len(lines))
    cut = " (larger than this window)" if screen["cols"] > cols or screen["rows"] > rows - 1 else ""
    foot = clip(f" looking on{cut}: keys do nothing here; q leaves ", cols)
    body = "".join(f"\x1b[K{line}\r\n" for line in lines)
    return f"\x1b[?2026h\x1b[H{body}\x1b[K\x1b[7m{foot}\x1b[0m\x1b[?2026l"


def _row(runs: list[list[Any]], cols: int) -> str:
    out, used = [], 0
    for text, foreground, background, flags in runs:
        part = clip(escape_controls(str(text)), cols - used, "")
        used += cells(part)
        out.append(f"\x1b[{render_colours(foreground, background, flags)}m{part}\x1b[0m" if part else "")
    return "".join(out)
