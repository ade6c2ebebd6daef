"""`atlasbridge away`: nobody is at the desk; what waits is asked elsewhere at once."""

from __future__ import annotations

import click

from atlasbridge.cli.duration import DURATION
from atlasbridge.cli.printing import hub_client


@click.command("away")
@click.option("--for", "for_s", type=DURATION, default=None, help="How long, such as 2h; otherwise until `here`.")
def command(for_s: float | None) -> None:
    """Say that nobody is at the desk: chats and phones are asked at once, whoever typed last."""
    with hub_client(start=True) as hub:
        hub.ask("away", for_s=for_s)
    click.echo("Away: everything is asked elsewhere at once. Back: atlasbridge here")
