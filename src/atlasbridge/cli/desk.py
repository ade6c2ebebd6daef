"""`atlasbridge desk`: serve a desk for many machines, and look after its machines, people, rules and log."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from atlasbridge.bootstrap import plan_desk_chats
from atlasbridge.cli.desk_chats import config_option, show_chats
from atlasbridge.cli.desk_options import database_option, operator, url_option, work
from atlasbridge.cli.fleet_words import needs
from atlasbridge.cli.printing import json_option, print_json, print_table
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.fleet_wire import encode_invitation


@click.group("desk")
def command() -> None:
    """One desk for many machines, on PostgreSQL."""


@command.command()
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8460, show_default=True, help="0: any free one.")
@click.option("--url", envvar="ATLASBRIDGE_DESK_URL", default="", help="How it is reached, behind a proxy.")
@click.option("--cert", default="", help="A certificate (PEM), for TLS.")
@click.option("--key", default="", help="And its key.")
@click.option("--connections", default=10, show_default=True, help="To PostgreSQL, at most.")
@click.option("--metrics-token-file", type=click.Path(exists=True, path_type=Path), help="Who may read /metrics.")
@config_option
def serve(
    database_url: str,
    host: str,
    port: int,
    url: str,
    cert: str,
    key: str,
    connections: int,
    metrics_token_file: Path | None,
    config_path: Path | None,
) -> None:
    """Serve the desk.  Run as many as you like against one database."""
    with needs("desk"):
        from atlasbridge.desk.serving import Address, run
        from atlasbridge.desk.serving import serve as serve_desk
    from atlasbridge.core.daemon.logfile import open_log

    # as a hub's in the foreground: what others' libraries say of addresses, and what machines say, is kept out or clean
    open_log(Path(os.devnull), os.environ.get("ATLASBRIDGE_LOG_LEVEL", "INFO"), 0, 0, to_terminal=True)
    token = metrics_token_file.read_text().strip() if metrics_token_file else ""
    place = Address(host, port, url, cert, key, token, connections)
    read_plan = partial(plan_desk_chats, config_path, os.environ) if config_path else None
    run(serve_desk(database_url, place, lambda known_as: click.echo(f"the desk is at {known_as}"), read_plan))


@command.command()
@database_option
@click.option("--saved", is_flag=True, help="There is a backup: tables of an older version may be changed.")
@click.option("--role", default="", help="A user of the database who is to serve, with the least rights for it.")
def migrate(database_url: str, saved: bool, role: str) -> None:
    """Make the tables, or bring them to this version, as the owner of the database."""
    with needs("desk"):
        from atlasbridge.desk.schema import grant_role
        from atlasbridge.desk.schema import migrate as migrate_desk

    version = work(database_url, lambda database: migrate_desk(database, saved))
    if role:
        work(database_url, lambda database: grant_role(database, role))
    click.echo(f"the desk's tables have version {version}" + (f"; {role} may serve" if role else ""))


@command.command()
@database_option
@url_option
@click.option("--name", default="", help="Good for a machine of this name alone.")
@click.option("--ephemeral", is_flag=True, help="For containers and jobs: gone once silent.")
@click.option("--minutes", default=60.0, show_default=True, help="How long it is good.")
@click.option("--uses", default=1, show_default=True, help="How many machines may use it.")
@json_option
def invite(database_url: str, url: str, name: str, ephemeral: bool, minutes: float, uses: int, as_json: bool) -> None:
    """Print the address with which a machine may join, once."""
    with needs("desk"):
        from atlasbridge.desk import machines
        from atlasbridge.desk.signature import identity_of

    async def make(database: Any) -> str:
        token = await machines.invite(
            database, operator(), name=name, ephemeral=ephemeral, ttl_s=minutes * 60, uses=uses
        )
        async with database.transaction() as connection:
            identity = await identity_of(connection)
        return encode_invitation(url, token, identity.public_key)

    address = work(database_url, make)
    if as_json:
        print_json({"address": address})
    else:
        click.echo(f"atlasbridge join '{address}'")


@command.command("machines")
@database_option
@click.option("--all", "include_gone", is_flag=True, help="Also those that are gone.")
@json_option
def list_machines(database_url: str, include_gone: bool, as_json: bool) -> None:
    """List the machines: heard of when, how many questions are open, whether their logs are whole."""
    with needs("desk"):
        from atlasbridge.desk import machines

    found = work(database_url, lambda database: machines.listing(database, include_gone))
    told = [{**_plain(one), "state": _state(one)} for one in found]
    if as_json:
        print_json(told)
        return
    rows = [
        (
            one["name"],
            one["state"],
            one["open_prompts"],
            one["sessions"],
            one["version"],
            one["log_fault"] or "as anchored",
        )
        for one in told
    ]
    print_table(("machine", "state", "open", "sessions", "version", "audit log"), rows, "no machine has joined yet")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    hidden = ("public_key", "generation", "epoch")
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in row.items()
        if name not in hidden
    }


def _state(row: dict[str, Any]) -> str:
    if row["gone_at"]:
        return str(row["gone_why"])
    if row["connected_to"]:
        return "connected"
    return f"not heard of since {row['seen_at']:%Y-%m-%d %H:%M:%S} UTC" if row["seen_at"] else "has never called"


@command.command()
@database_option
@click.argument("machine")
def revoke(database_url: str, machine: str) -> None:
    """Send MACHINE away: its key is worth nothing from now on, and its open questions are closed here."""
    with needs("desk"):
        from atlasbridge.desk import machines

    gone = work(database_url, lambda database: machines.remove(database, machine, operator(), "revoked"))
    if gone is None:
        raise AtlasBridgeError(f"there is no machine {machine!r}", "list them: atlasbridge desk machines")
    click.echo(f"{machine} was sent away")


@command.command()
@database_option
@click.argument("machine")
@click.argument("allowed", type=click.Choice(["on", "off"]))
def screens(database_url: str, machine: str, allowed: str) -> None:
    """Whether people at the desk may look at MACHINE's screens."""
    with needs("desk"):
        from atlasbridge.desk import machines

    if not work(database_url, lambda database: machines.allow_screens(database, machine, allowed == "on")):
        raise AtlasBridgeError(f"there is no machine {machine!r}", "list them: atlasbridge desk machines")
    click.echo(f"screens of {machine}: {allowed}")


@command.command()
@database_option
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@json_option
def rules(database_url: str, file: Path | None, as_json: bool) -> None:
    """Give FILE (as policy.toml) to all machines; without it, show what they use."""
    with needs("desk"):
        from atlasbridge.desk import machines, rulebook

    if file is not None:
        from atlasbridge.config.rules import read_rules

        read_rules(file)  # what is wrong with it is said here, with the line
        text = file.read_text(encoding="utf-8")
        digest = work(database_url, lambda database: rulebook.set_rules(database, text, operator()))
        click.echo(f"the rules {digest[:19]} go to all machines")
        return
    newest = work(database_url, rulebook.newest)
    found = work(database_url, machines.listing)
    using = [{"machine": one["name"], "digest": one["policy"], "fault": one["policy_fault"]} for one in found]
    if as_json:
        print_json({"digest": newest.digest if newest else "", "machines": using})
        return
    rows = [
        (one["machine"], "newest" if newest and one["digest"] == newest.digest else "other", one["fault"])
        for one in using
    ]
    print_table(("machine", "rules", "fault"), rows, "no machine has joined yet")


@command.group()
def people() -> None:
    """Who may see and answer what."""


@command.group()
def audit() -> None:
    """The desk's own log, and those of its machines."""


def _attach() -> None:
    from atlasbridge.cli.desk_audit import show, verify
    from atlasbridge.cli.desk_people import SUBCOMMANDS

    for one in SUBCOMMANDS:
        people.add_command(one)
    command.add_command(show_chats)
    audit.add_command(show)
    audit.add_command(verify)


_attach()
