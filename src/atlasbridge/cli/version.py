"""`atlasbridge version`."""

from __future__ import annotations

import click

from atlasbridge import __version__
from atlasbridge.cli.printing import json_option, print_json


@click.command("version")
@json_option
def command(as_json: bool) -> None:
    """Show the version of AtlasBridge and of what it runs on."""
    if not as_json:
        click.echo(f"atlasbridge {__version__}")
        return
    from atlasbridge.cli.records import versions

    print_json(versions())
