"""Where a dialect's rules and marks look: parts of the screen, and the window's title."""

from __future__ import annotations

from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, compiled
from atlasbridge.core.screen.view import View


def region_text(view: View, region: str) -> tuple[str, int]:
    """The text of a region, and the row it begins on."""
    if region == "title":
        return view.title, 0
    if region == "screen":
        return "\n".join(view.lines), 0
    bottom = view.bottom() + 1
    rows = numbers.TAIL_ROWS if region == "tail" else numbers.FOOTER_ROWS
    top = max(0, bottom - rows)
    return "\n".join(view.lines[top:bottom]), top


def stated(view: View, dialect: Dialect) -> str:
    """What the tool says about itself on the screen or in its title: "busy", "idle", "blocked", or ""."""
    for mark in dialect.marks:
        text, _ = region_text(view, mark.region)
        if compiled(mark.pattern).search(text):
            return mark.state
    return ""
