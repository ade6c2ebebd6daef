"""The open prompts and running sessions in a few lines or one: for the bare command, shell prompts and status bars.

It is fast and never starts a hub, because a status bar must not do that.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from atlasbridge.cli.columns import clip, fit, pad, terminal_cols
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home

ANSWER_S = 2.0
NAMED_IN_LINE = 3
NAME_COLS = 20
LISTED = 12
# the first screen after installation: a list of all commands would push it out of view
FIRST = """\
AtlasBridge notices when a terminal program waits for you, asks you where you are, and types your answer. The hub is not
running, so nothing is asked now.

  see how it works        atlasbridge demo
  run a tool              atlasbridge run claude (or any other program)
  open the page           atlasbridge web
  connect a phone or chat atlasbridge setup
  list all commands       atlasbridge --help"""


Found = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def look(home: Home) -> Found | None:
    """The open prompts, the running sessions, and the prompts that are not asked now; None without a hub."""
    try:
        with HubClient(home, timeout_s=ANSWER_S) as hub:
            prompts = hub.ask("prompts")
            return prompts["prompts"], hub.ask("sessions")["sessions"], prompts.get("still_waiting", [])
    except AtlasBridgeError:
        return None


def print_overview() -> None:
    found = look(Home.find(os.environ))
    cols = terminal_cols()
    lines = [FIRST] if found is None else render_overview(*found, cols)
    sys.stdout.write(fit("\n".join(lines), cols) + "\n")


def print_line() -> None:
    found = look(Home.find(os.environ))
    line = "" if found is None else render_line(*found)
    if line:
        sys.stdout.write(line + "\n")


def is_idle(prompt: dict[str, Any]) -> bool:
    """Whether the tool is idle: it accepts a command and asks nothing."""
    return bool(prompt["constraints"].get("idle"))


def why_left(prompt: dict[str, Any]) -> str:
    return "left alone" if prompt.get("state") == "canceled" else "not answered in time"


def render_overview(
    prompts: list[dict[str, Any]], sessions: list[dict[str, Any]], left: list[dict[str, Any]], cols: int
) -> list[str]:
    """Lines are cut at `cols`; 0 means not at all, for a pipe."""
    asking = [item for item in prompts if not is_idle(item)]
    idle = [item for item in prompts if is_idle(item)]
    lines = [f"{len(asking)} waiting for you" if asking else "nothing is waiting for you"]
    lines += _rows([(item["prompt_id"], _name(item), asking_line(item)) for item in asking], cols)
    if left:
        lines += ["", f"{len(left)} not asked now (ask again: atlasbridge reply ID --again)"]
        lines += _rows(
            [(item["prompt_id"], _name(item), f"{why_left(item)}: {asking_line(item)}") for item in left], cols
        )
    if idle:
        lines += ["", f"{len(idle)} at {'its' if len(idle) == 1 else 'their'} prompt"]
        lines += _rows([(item["prompt_id"], _name(item), asking_line(item)) for item in idle], cols)
    named = {item["session_id"] for item in (*prompts, *left)}
    others = [item for item in sessions if item["session_id"] not in named]
    lines += ["", f"{len(others)} running" if others else "nothing else is running" if named else "nothing is running"]
    lines += _rows([(item["session_id"], _name(item), f"{_where(item)}, {item['cwd']}") for item in others], cols)
    answer = "answer: atlasbridge approvals · " if asking else "start: atlasbridge run TOOL · "
    return [*lines, "", f"{answer}go there: atlasbridge attach NAME", "all commands: atlasbridge --help"]


def _where(session: dict[str, Any]) -> str:
    if session.get("stopped"):
        return f"stopped (resume: atlasbridge resume {session['session_id'][:8]})"
    return "attached to a terminal" if session["attached"] else "detached"


def _rows(rows: list[tuple[str, str, str]], cols: int) -> list[str]:
    more = [f"  and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return [*(_row(full_id, name, text, cols) for full_id, name, text in rows[:LISTED]), *more]


def asking_line(prompt: dict[str, Any]) -> str:
    """The question on one line: the command, or else the line of the question without the output above it."""
    subject = prompt.get("subject") or {}
    if subject.get("kind") == "command" and subject.get("text"):
        return escape_controls(str(subject["text"]), keep_lines=False)
    above = prompt.get("context_rows", 0)
    rows = (prompt.get("question") or prompt["excerpt"]).split("\n")[above:] if above else prompt["excerpt"].split("\n")
    if prompt["type"] == "unknown" and is_idle(prompt):
        rows = [row for row in rows if row.strip()][-1:]  # on a full screen, the last row is the most useful
    return escape_controls(" ".join(row.strip() for row in rows if row.strip()), keep_lines=False)


def _row(full_id: str, name: str, text: str, cols: int) -> str:
    room = min(NAME_COLS, cols // 4) if cols else NAME_COLS
    row = f"  {full_id[:8]}  {pad(clip(name, room), room)}  {escape_controls(text, keep_lines=False)}"
    return clip(row, cols) if cols else row


def render_line(prompts: list[dict[str, Any]], sessions: list[dict[str, Any]], left: list[dict[str, Any]]) -> str:
    """A text short enough for a status bar; "" if there is nothing to report."""
    prompts = [item for item in prompts if not is_idle(item)] + left
    if not prompts:
        return f"{len(sessions)} running" if sessions else ""
    names = list(dict.fromkeys(_name(item) for item in prompts))
    more = "…" if len(names) > NAMED_IN_LINE else ""
    return f"{len(prompts)} waiting: {', '.join(names[:NAMED_IN_LINE])}{more}"


def _name(item: dict[str, Any]) -> str:
    return clip(escape_controls(item["label"] or item["tool"], keep_lines=False), NAME_COLS)
