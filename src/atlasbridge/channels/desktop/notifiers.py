"""How a desktop's own program is told to show a notification, to replace it, or to take it back.  Pure.

Text travels as an argument of its own: nothing that a tool printed is read as an option, markup or script.
"""

from __future__ import annotations

from collections.abc import Callable

Words = list[str]
APP = "AtlasBridge"
LINUX, MACOS = "notify-send", "osascript"
SCRIPT = (
    "on run argv",
    'if item 3 of argv is not "" then',
    "display notification (item 2 of argv) with title (item 1 of argv) sound name (item 3 of argv)",
    "else",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end if",
    "end run",
)


def choose_program(platform: str, find: Callable[[str], str | None], wanted: str = "") -> str:
    """ "" when there is none."""
    if wanted:
        return find(wanted) or ""
    return find(MACOS if platform == "darwin" else LINUX) or ""


def show_words(program: str, title: str, text: str, *, urgent: bool, sound: bool, replaces: str = "") -> Words:
    if program.endswith(MACOS):
        lines = [word for line in SCRIPT for word in ("-e", line)]
        return [program, *lines, "--", title, text, "Ping" if sound else ""]
    words = [program, "--app-name", APP, "--print-id", "--urgency", "critical" if urgent else "normal"]
    words += ["--replace-id", replaces] if replaces else []
    words += ["--hint", "string:sound-name:message-new-instant"] if sound else ["--hint", "boolean:suppress-sound:true"]
    return [*words, "--", title, escape(text)]


def close_words(program: str, shown: str, title: str) -> Words:
    """Another in its place that goes at once; macOS takes back nothing."""
    if program.endswith(MACOS) or not shown:
        return []
    gone = ["--expire-time", "1", "--hint", "boolean:transient:true", "--hint", "boolean:suppress-sound:true"]
    return [program, "--app-name", APP, *gone, "--replace-id", shown, "--", title, "Settled."]


def escape(text: str) -> str:
    """Desktops may read markup in the text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
