"""`atlasbridge version`."""

from __future__ import annotations

import click

from atlasbridge import __version__
from atlasbridge.cli.printing import json_option, print_json
from atlasbridge.core.distribution import others


@click.command("version")
@json_option
def command(as_json: bool) -> None:
    """Show the version of AtlasBridge and of what it runs on."""
    if not as_json:
        click.echo(f"atlasbridge {__version__}")
        for other in others():
            click.echo(f"Warning: {other}. To remove it, see docs/install.md.", err=True)
        return
    from atlasbridge.cli.records import versions

    print_json(versions())
