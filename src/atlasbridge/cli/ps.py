"""`atlasbridge ps`: which sessions there are."""

from __future__ import annotations

from typing import Any

import click

from atlasbridge.cli.printing import ago, hub_client, json_option, print_json, print_table


@click.command("ps")
@click.option("--all", "include_ended", is_flag=True, help="Also sessions that have ended.")
@json_option
def command(include_ended: bool, as_json: bool) -> None:
    """List sessions."""
    with hub_client(start=True) as hub:
        sessions = hub.ask("sessions", all=include_ended)["sessions"]
    if as_json:
        print_json(sessions)
        return
    rows = [
        (
            item["session_id"][:8],
            item["label"] or item["tool"],
            item["pid"],
            _state(item),
            _waits(item),
            ago(item["started_at"]),
            item["cwd"],
        )
        for item in sessions
    ]
    print_table(("session", "name", "pid", "state", "prompt", "age", "folder"), rows, "no sessions")


def _state(session: dict[str, Any]) -> str:
    if session["state"] != "active":
        return str(session["state"])
    return "stopped" if session.get("stopped") else "attached" if session["attached"] else "detached"


def _waits(session: dict[str, Any]) -> str:
    """Its open question, or one whose time is over and that still stands on the screen; and what is queued for it."""
    left, queued = session.get("still_waiting"), session.get("queued")
    waits = [(session["open_prompt"] or "")[:8] or (f"{left[:8]} still waiting" if left else "")]
    return ", ".join(filter(None, [*waits, f"{queued} queued" if queued else ""]))
