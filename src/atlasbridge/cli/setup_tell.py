"""`atlasbridge setup --channel tell`: an Apprise address that is tried, and where people are to answer."""

from __future__ import annotations

import click

from atlasbridge.bootstrap import try_telling
from atlasbridge.cli.printing import home
from atlasbridge.cli.setup_file import read_table, write_table


async def connect_tell(address: str, written: str, page_url: str, test: bool) -> None:
    """`written` is what the file says of the address: itself, or where it is kept."""
    if test:
        await try_telling(address)
        click.echo("The service took a test message.")
    old = read_table(home(), "tell")
    urls = list(dict.fromkeys([*old.get("urls", []), written]))
    page = {"page_url": page_url} if page_url else {}
    write_table(home(), "tell", {**old, **page, "urls": urls, "enabled": True})
    click.echo(f"Written to {home().config} (mode 0600).\nNow: atlasbridge hub reload")
