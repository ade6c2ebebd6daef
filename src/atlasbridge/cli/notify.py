"""`atlasbridge notify`: tell people something that asks nothing."""

from __future__ import annotations

import os
import sys

import click

from atlasbridge.cli.printing import hub_client


@click.command("notify")
@click.argument("message")
@click.option("--label", default="", help="Who tells; otherwise the CI job or the script.")
def command(message: str, label: str) -> None:
    """Tell everybody something without asking; "-" reads it from standard input."""
    from atlasbridge.doors.origin import origin_of

    text = sys.stdin.read() if message == "-" else message
    who = origin_of("notify", label, (), os.environ).label
    with hub_client(start=True) as hub:
        hub.ask("notify", message=text, label=who)
    click.echo("Told.")
