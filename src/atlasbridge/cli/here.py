"""`atlasbridge here`: somebody is at the desk again."""

from __future__ import annotations

import click

from atlasbridge.cli.printing import hub_client


@click.command("here")
def command() -> None:
    """Say that somebody is at the desk: who types in a session is given a moment before others are asked."""
    with hub_client(start=True) as hub:
        hub.ask("here")
    click.echo("Here: who types in a session is given a moment before chats and phones are asked.")
