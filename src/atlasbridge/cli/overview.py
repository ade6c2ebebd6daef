"""What waits and what runs, in a few lines or in one: for the bare command, prompts and status bars.  Light and fast.

It never starts a hub: a status bar must not, and without a hub nothing is known.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home

ANSWER_S = 2.0
NAMED_IN_LINE = 3
NAME_COLS = 20
LISTED = 12
FIRST = (  # what somebody sees who has just installed it: all commands would push it off the screen
    "AtlasBridge notices when a terminal program waits for you, asks you where you",
    "are, and types your answer. No hub runs: you are asked nothing now.",
    "",
    "see how it works: atlasbridge demo",
    "start something:  atlasbridge run claude    (or any other program)",
    "connect a phone:  atlasbridge web, or atlasbridge setup",
    "all commands:     atlasbridge --help",
)


def look(home: Home) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """The open prompts and the running sessions; None without a hub."""
    try:
        with HubClient(home, timeout_s=ANSWER_S) as hub:
            return hub.ask("prompts")["prompts"], hub.ask("sessions")["sessions"]
    except AtlasBridgeError:
        return None


def print_overview() -> None:
    found = look(Home.find(os.environ))
    cols = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    lines = list(FIRST) if found is None else render_overview(*found, cols)
    sys.stdout.write("\n".join(lines) + "\n")


def print_line() -> None:
    found = look(Home.find(os.environ))
    line = "" if found is None else render_line(*found)
    if line:
        sys.stdout.write(line + "\n")


def render_overview(prompts: list[dict[str, Any]], sessions: list[dict[str, Any]], cols: int) -> list[str]:
    """`cols`: cut there; 0 means whole, for a pipe."""
    lines = [f"{len(prompts)} waiting for you" if prompts else "nothing is waiting for you"]
    for item in prompts[:LISTED]:
        lines.append(_row(item["prompt_id"], _name(item), item["excerpt"], cols))
    lines += [f"  and {len(prompts) - LISTED} more"] if len(prompts) > LISTED else []
    asking = {item["session_id"] for item in prompts}
    others = [item for item in sessions if item["session_id"] not in asking]
    lines += [
        "",
        f"{len(others)} running" if others else "nothing else is running" if prompts else "nothing is running",
    ]
    for item in others[:LISTED]:
        where = "here or elsewhere on a terminal" if item["attached"] else "in the background"
        where = f"stopped (go on: atlasbridge resume {item['session_id'][:8]})" if item.get("stopped") else where
        lines.append(_row(item["session_id"], _name(item), f"{where}, {item['cwd']}", cols))
    lines += [f"  and {len(others) - LISTED} more"] if len(others) > LISTED else []
    answer = "answer: atlasbridge approvals · " if prompts else "start: atlasbridge run TOOL · "
    return [*lines, "", f"{answer}go there: atlasbridge attach NAME", "all commands: atlasbridge --help"]


def _row(full_id: str, name: str, text: str, cols: int) -> str:
    row = f"  {full_id[:8]}  {name:{NAME_COLS}}  {escape_controls(text, keep_lines=False)}"
    return row if not cols or len(row) <= cols else row[: cols - 1] + "…"


def render_line(prompts: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> str:
    """Short enough for a status bar; empty when there is nothing to say."""
    if not prompts:
        return f"{len(sessions)} running" if sessions else ""
    names = list(dict.fromkeys(_name(item) for item in prompts))
    more = "…" if len(names) > NAMED_IN_LINE else ""
    return f"{len(prompts)} waiting: {', '.join(names[:NAMED_IN_LINE])}{more}"


def _name(item: dict[str, Any]) -> str:
    name = escape_controls(item["label"] or item["tool"], keep_lines=False)
    return name if len(name) <= NAME_COLS else name[: NAME_COLS - 1] + "…"
