"""`atlasbridge mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import click

from atlasbridge.cli.printing import home
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import AtlasBridgeError


@click.command("mcp")
@click.option("--label", default="", help="Who asks; otherwise what the client calls itself.")
def command(label: str) -> None:
    """Serve ask_human, notify_human and approve to an MCP client on standard input and output."""
    try:
        from atlasbridge.doors.mcp_server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise AtlasBridgeError("the MCP server needs an extra", f"install it with: {install_line('mcp')}")
    make_server(home(), label).run("stdio")
