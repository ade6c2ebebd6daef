"""`atlasbridge setup --channel ntfy`: two new topics, a phone that subscribes to one, and a tap that arrives."""

from __future__ import annotations

import click

from atlasbridge.bootstrap import introduce
from atlasbridge.cli.printing import home
from atlasbridge.cli.setup_file import read_table, write_table
from atlasbridge.core.errors import ChannelError


async def connect_ntfy(people: tuple[str, ...], access_token: str, written: str, url: str, patience_s: float) -> None:
    """`written` is what the file says of the access token; a `patience_s` of 0 leaves the test out."""
    talk = introduce("ntfy", {"bot_token": access_token}, url)
    try:
        address = await talk.check()
        found = {**talk.settings(list(people) or ["phone"]), **({"access_token": written} if written else {})}
        write_table(home(), "ntfy", {**read_table(home(), "ntfy"), **found, "enabled": True})
        click.echo(f"Written to {home().config} (mode 0600).")
        click.echo(f"In the ntfy app, subscribe to this topic, and show it to nobody:\n\n    {address}\n")
        if patience_s:
            click.echo("A test prompt is on its way: tap its button.")
            if not await talk.prove("phone", patience_s):
                raise ChannelError("the tap did not arrive in time", "the settings are written; try: atlasbridge demo")
            click.echo("It works: your tap arrived.")
    finally:
        await talk.close()
    click.echo("Now: atlasbridge hub reload")
