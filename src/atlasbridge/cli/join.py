"""`atlasbridge join`: this machine's questions are shown at a desk of many machines from now on."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import click

from atlasbridge.cli.fleet_words import needs, refuse_tools, tell_hub
from atlasbridge.cli.printing import home
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.fleet_wire import parse_invitation


@click.command("join")
@click.argument("url")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of the address.")
@click.option("--name", default="", help="How this machine is called at the desk; its host name by default.")
@click.option("--ca", type=click.Path(exists=True, path_type=Path), help="A certificate (PEM) to trust besides.")
@click.option("--no-screens", is_flag=True, help="Nobody at the desk may look at a session's screen.")
@click.option(
    "--rules",
    type=click.Choice(["tighten", "allow", "none"]),
    default="tighten",
    show_default=True,
    help="What the desk's rules may do here.",
)
@click.option("--ephemeral", is_flag=True, help="A container or a job: gone from the desk once it is silent.")
def command(
    url: str, token_stdin: bool, name: str, ca: Path | None, no_screens: bool, rules: str, ephemeral: bool
) -> None:
    """Join the desk at URL, with the address that `atlasbridge desk invite` printed there."""
    with needs("fleet"):
        from atlasbridge.fleet.belonging import read_belonging, write_belonging
        from atlasbridge.fleet.joining import join
    invitation = parse_invitation(url, sys.stdin.readline() if token_stdin else "")
    here = home()
    here.prepare()
    known = read_belonging(here.root)
    if known is not None:
        raise ConfigError(f"this machine belongs to the desk at {known.url} already", "leave it: atlasbridge leave")
    refuse_tools(here)
    trusted = ca.read_text(encoding="ascii") if ca else ""
    called = name or socket.gethostname()
    belonging = asyncio.run(
        join(invitation, called, ca=trusted, screens=not no_screens, rules=rules, ephemeral=ephemeral)
    )
    write_belonging(here.root, belonging)
    tell_hub(here)
    click.echo(f"this machine is {belonging.name!r} at {belonging.url}; its questions are shown there from now on")
