"""`atlasbridge leave`: this machine is alone again."""

from __future__ import annotations

import asyncio

import click

from atlasbridge.cli.fleet_words import needs, refuse_tools, tell_hub
from atlasbridge.cli.printing import home
from atlasbridge.core.errors import ChannelError, ConfigError


@click.command("leave")
@click.option("--force", is_flag=True, help="Also where the desk cannot be told.")
def command(force: bool) -> None:
    """Leave the desk: its questions are shown here alone, and its key is worth nothing any more."""
    with needs("fleet"):
        from atlasbridge.fleet.belonging import forget_belonging, read_belonging
        from atlasbridge.fleet.joining import RefusedByDesk, leave
    here = home()
    try:
        belonging = read_belonging(here.root)
    except ConfigError:
        if not force:
            raise
        forget_belonging(here.root)
        click.echo("what could not be read was removed; the desk still lists this machine until it is revoked there")
        return
    if belonging is None:
        raise ConfigError("this machine belongs to no desk", "join one: atlasbridge join URL")
    refuse_tools(here)
    try:
        asyncio.run(leave(belonging))
    except RefusedByDesk:
        pass  # it was sent away before
    except ChannelError as error:
        if not force:
            raise ChannelError(
                f"the desk was not told: {error}", "leave all the same: atlasbridge leave --force"
            ) from None
    forget_belonging(here.root)
    tell_hub(here)
    click.echo(f"this machine does not belong to {belonging.url} any more")
