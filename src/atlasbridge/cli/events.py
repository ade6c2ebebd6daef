"""`atlasbridge events`: what happens, for other programs."""

from __future__ import annotations

import click

from atlasbridge.cli.printing import hub_client, print_line
from atlasbridge.core.visible import visible


@click.command("events")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("--follow", is_flag=True, help="Print what is open, then go on.")
@click.option("--session", default="", help="Only this session (full or short id).")
def command(as_json: bool, follow: bool, session: str) -> None:
    """Print events, each at once."""
    with hub_client(start=True) as hub:
        for event in hub.stream("events", follow=follow, session=session):
            if as_json:
                print_line(event)
            else:
                print_short(event)


def print_short(event: dict[str, object]) -> None:
    words = [str(event["at"])[11:19], str(event["event"]), str(event.get("session_id", ""))[:8]]
    words += [str(event[name])[:60] for name in ("prompt_id", "excerpt", "reason", "by", "exit_code") if name in event]
    click.echo(visible("  ".join(words), keep_lines=False))
