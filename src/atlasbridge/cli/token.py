"""`atlasbridge token`: tokens for the HTTP API, each with one scope; only their digests are kept."""

from __future__ import annotations

import click

from atlasbridge.cli.page import PageClient
from atlasbridge.cli.printing import ago, home, json_option, print_json, print_table


@click.group("token")
def command() -> None:
    """Make, list and revoke tokens for the HTTP API."""


@command.command("create")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(["read", "ask", "answer", "admin"]),
    default="read",
    show_default=True,
    help="read looks, ask also asks, answer also answers, admin also types, ends and starts sessions and makes tokens.",
)
@json_option
def create(name: str, scope: str, as_json: bool) -> None:
    """Create a token.  Its secret is shown this once."""
    token = PageClient(home()).ask("token-create", name=name, scope=scope)
    if as_json:
        print_json({key: value for key, value in token.items() if key != "ok"})
        return
    click.echo(token["token"])
    click.echo("Keep it: it is not shown again. Send it as: Authorization: Bearer TOKEN", err=True)


@command.command("list")
@json_option
def list_tokens(as_json: bool) -> None:
    """List tokens, without their secrets."""
    tokens = PageClient(home()).ask("tokens")["tokens"]
    if as_json:
        print_json(tokens)
        return
    rows = [(item["token_id"], item["name"], item["scope"], ago(item["created_at"])) for item in tokens]
    print_table(("id", "name", "scope", "age"), rows, "no tokens")


@command.command("revoke")
@click.argument("token")
def revoke(token: str) -> None:
    """Revoke a token, by its id or its name.  It stops working at once."""
    PageClient(home()).ask("token-revoke", which=token)
    click.echo("Revoked.")
