"""`atlasbridge status`: the overview of the bare command, and the hub with its channels below it."""

from __future__ import annotations

from typing import Any

import click

from atlasbridge.bootstrap import find_adapter_faults
from atlasbridge.cli.hub import print_status
from atlasbridge.cli.overview import print_line, render_overview, terminal_cols
from atlasbridge.cli.printing import ago, home, hub_client, json_option, print_json, print_table


@click.command("status")
@click.option("-a", "--all", "include_ended", is_flag=True, help="Also sessions that have ended.")
@click.option("--line", is_flag=True, help="One short line for a status bar or a shell prompt; starts no hub.")
@json_option
def command(include_ended: bool, line: bool, as_json: bool) -> None:
    """Show what waits for you and what runs, then the hub, its channels, and what is not well."""
    if line:
        print_line()
        return
    with hub_client(start=True) as hub:
        status = hub.ask("status")
        sessions = hub.ask("sessions", all=include_ended)["sessions"]
        found = hub.ask("prompts")
        health = hub.request("health").get("sessions", {})  # empty for a hub of an older version
    prompts = found["prompts"]
    status.pop("ok")
    sessions = [{**item, "health": health.get(item["session_id"], "")} for item in sessions]
    adapters = find_adapter_faults(home())
    if as_json:
        still = found["still_waiting"]
        about = {"hub": status, "sessions": sessions, "prompts": prompts, "still_waiting": still, "adapters": adapters}
        print_json(about)
        return
    running = [item for item in sessions if item["state"] == "active"]
    *lines, _, _ = render_overview(prompts, running, found["still_waiting"], terminal_cols())
    click.echo("\n".join(lines))
    print_status(status, counts=False)
    ended = [item for item in sessions if item not in running]
    if include_ended:
        rows = [
            (
                item["session_id"][:8],
                item["label"] or item["tool"],
                item["state"],
                "" if item["exit_code"] is None else item["exit_code"],
                ago(item["started_at"]),
                item["cwd"],
            )
            for item in ended
        ]
        print_table(("ended", "name", "state", "exit", "started", "folder"), rows, "no session has ended")
    if unwell := [(item["session_id"][:8], item["health"]) for item in running if item["health"] not in ("", "ok")]:
        print_table(("session", "health"), unwell, "")
    if adapters:
        print_table(("adapter", "fault"), list(adapters.items()), "")
    told = [_told_by_adapter(item) for item in sessions if item.get("adapter")]
    if told:
        print_table(("session", "adapter of", "says"), told, "")


def _told_by_adapter(session: dict[str, Any]) -> tuple[str, str, str]:
    """The adapter's fault first, then the output of `snapshot_context`."""
    adapter = session["adapter"]
    context = [f"{name}={value}" for name, value in adapter.get("context", {}).items() if name != "session_id"]
    fault = [f"failed: {adapter['fault']}"] if adapter.get("fault") else []
    return session["session_id"][:8], session["tool"], ", ".join([*fault, *context])
