"""`atlasbridge join`: this machine's questions are shown at a fleet server from now on."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import click

from atlasbridge.cli.fleet import needs, refuse_tools, tell_hub
from atlasbridge.cli.printing import home
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.fleet_wire import parse_invitation


@click.command("join")
@click.argument("url")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of the address.")
@click.option("--name", default="", help="How this machine is called at the server; its host name by default.")
@click.option("--ca", type=click.Path(exists=True, path_type=Path), help="A certificate (PEM) to trust besides.")
@click.option("--no-screens", is_flag=True, help="Nobody at the server may look at a session's screen.")
@click.option(
    "--rules",
    type=click.Choice(["tighten", "allow", "none"]),
    default="tighten",
    show_default=True,
    help="What the server's rules may do here.",
)
@click.option("--ephemeral", is_flag=True, help="A container or a job: gone from the server once it is silent.")
def command(
    url: str, token_stdin: bool, name: str, ca: Path | None, no_screens: bool, rules: str, ephemeral: bool
) -> None:
    """Join the server at URL, with the address that `atlasbridge fleet invite` printed there."""
    with needs("fleet"):
        from atlasbridge.fleet.member.membership import join, read_membership, write_membership
    invitation = parse_invitation(url, sys.stdin.readline() if token_stdin else "")
    here = home()
    here.prepare()
    known = read_membership(here.root)
    if known is not None:
        raise ConfigError(f"this machine belongs to the server at {known.url} already", "leave it: atlasbridge leave")
    refuse_tools(here)
    trusted = ca.read_text(encoding="ascii") if ca else ""
    called = name or socket.gethostname()
    membership = asyncio.run(
        join(invitation, called, ca=trusted, screens=not no_screens, rules=rules, ephemeral=ephemeral)
    )
    write_membership(here.root, membership)
    tell_hub(here)
    click.echo(f"this machine is {membership.name!r} at {membership.url}; its questions are shown there from now on")
