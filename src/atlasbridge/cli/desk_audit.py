"""`atlasbridge desk audit`: is the desk's own log whole, and is every machine's log the one that was anchored?"""

from __future__ import annotations

from typing import Any

import click

from atlasbridge.cli.desk_options import database_option, work
from atlasbridge.cli.fleet_words import needs
from atlasbridge.cli.printing import json_option, print_json, print_table


@click.command("show")
@database_option
@click.option("--limit", default=100, show_default=True, help="The last so many entries.")
def show(database_url: str, limit: int) -> None:
    """Print entries of the desk's log, one JSON object per line."""
    with needs("desk"):
        from atlasbridge.desk import chronicle

    for line in work(database_url, lambda database: chronicle.entries(database, limit)):
        click.echo(line)


@click.command("verify")
@database_option
@click.option("--wait", default=30.0, show_default=True, help="Seconds to wait for the machines' words.")
@json_option
@click.pass_context
def verify(ctx: click.Context, database_url: str, wait: float, as_json: bool) -> None:
    """Follow the desk's chain, and have every connected machine prove its own, entry by entry."""
    with needs("desk"):
        from atlasbridge.desk.proving import verify_all

    found: dict[str, Any] = work(database_url, lambda database: verify_all(database, wait))
    if as_json:
        print_json(found)
    else:
        click.echo(f"the desk: {found['desk']}")
        rows = [(one["machine"], one["verdict"], one["entries"]) for one in found["machines"]]
        print_table(("machine", "audit log", "entries"), rows, "no machine has joined yet")
    if not found["ok"]:
        ctx.exit(1)
