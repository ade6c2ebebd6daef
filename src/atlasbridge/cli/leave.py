"""`atlasbridge leave`: this machine is alone again."""

from __future__ import annotations

import asyncio

import click

from atlasbridge.cli.fleet import needs, refuse_tools, tell_hub
from atlasbridge.cli.printing import home
from atlasbridge.core.errors import ChannelError, ConfigError


@click.command("leave")
@click.option("--force", is_flag=True, help="Also where the server cannot be told.")
def command(force: bool) -> None:
    """Leave the server: its questions are shown here alone, and its key is worth nothing any more."""
    with needs("fleet"):
        from atlasbridge.fleet.member.membership import RefusedByServer, forget_membership, leave, read_membership
    here = home()
    try:
        membership = read_membership(here.root)
    except ConfigError:
        if not force:
            raise
        forget_membership(here.root)
        click.echo("what could not be read was removed; the server still lists this machine until it is revoked there")
        return
    if membership is None:
        raise ConfigError("this machine belongs to no server", "join one: atlasbridge join URL")
    refuse_tools(here)
    try:
        asyncio.run(leave(membership))
    except RefusedByServer:
        pass  # it was sent away before
    except ChannelError as error:
        if not force:
            raise ChannelError(
                f"the server was not told: {error}", "leave all the same: atlasbridge leave --force"
            ) from None
    forget_membership(here.root)
    tell_hub(here)
    click.echo(f"this machine does not belong to {membership.url} any more")
