"""`atlasbridge fleet`: serve a fleet server, and look after its machines, people, rules and log."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from atlasbridge.bootstrap import plan_server_chats
from atlasbridge.cli.printing import json_option, print_json, print_table
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.fleet_wire import encode_invitation
from atlasbridge.core.home import Home

# What the commands about a fleet server have in common: its parts may be missing, the hub may be away.


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around imports of what only this extra brings."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ConfigError(f"this needs {missing.name}", install_line(extra)) from None


def refuse_tools(home: Home) -> None:
    """Who may change the hub may make it listen to a server; a program inside a session may not."""
    from atlasbridge.core.daemon.starter import ensure_hub

    ensure_hub(home)
    with HubClient(home) as hub:
        hub.ask("reload")


def tell_hub(home: Home) -> None:
    """A hub that runs takes it over at once; the next one finds it."""
    try:
        with HubClient(home) as hub:
            hub.ask("reload")
    except HubUnavailable:
        pass


# What the commands of a server share: its database, its address, and who runs the command.

T = TypeVar("T")

database_option = click.option(
    "--database",
    "database_url",
    envvar="ATLASBRIDGE_FLEET_DATABASE",
    required=True,
    help="postgresql://user@host/name; also from ATLASBRIDGE_FLEET_DATABASE.",
)
url_option = click.option(
    "--url",
    envvar="ATLASBRIDGE_FLEET_URL",
    default="http://127.0.0.1:8460",
    show_default=True,
    help="How machines and people reach the server; also from ATLASBRIDGE_FLEET_URL.",
)


def work(database_url: str, call: Callable[[Any], Awaitable[T]]) -> T:
    """Do something with the server's database."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server.database import Database

    async def run() -> T:
        database = Database(database_url, most=2)
        await database.open()
        try:
            return await call(database)
        finally:
            await database.close()

    return asyncio.run(run())


def operator() -> str:
    """Who runs a command of the server, for its log."""
    return f"cli:{getpass.getuser()}"


# `atlasbridge fleet audit`: is the server's own log whole, and is every machine's log the one that was anchored?


@click.command("show")
@database_option
@click.option("--limit", default=100, show_default=True, help="The last so many entries.")
def show(database_url: str, limit: int) -> None:
    """Print entries of the server's log, one JSON object per line."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import audit

    for line in work(database_url, lambda database: audit.entries(database, limit)):
        click.echo(line)


@click.command("verify")
@database_option
@click.option("--wait", default=30.0, show_default=True, help="Seconds to wait for the machines' words.")
@json_option
@click.pass_context
def verify(ctx: click.Context, database_url: str, wait: float, as_json: bool) -> None:
    """Follow the server's chain, and have every connected machine prove its own, entry by entry."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server.verify import verify_all

    found: dict[str, Any] = work(database_url, lambda database: verify_all(database, wait))
    if as_json:
        print_json(found)
    else:
        click.echo(f"the server: {found['server']}")
        rows = [(one["machine"], one["verdict"], one["entries"]) for one in found["machines"]]
        print_table(("machine", "audit log", "entries"), rows, "no machine has joined yet")
    if not found["ok"]:
        ctx.exit(1)


# `atlasbridge fleet chats`: what a file of channels means for the people of this server, before it is served.

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    envvar="ATLASBRIDGE_FLEET_CONFIG",
    help="Channels and escalation for all machines (TOML); tokens in it as env:NAME or file:PATH.",
)


@click.command("chats")
@database_option
@config_option
@json_option
def show_chats(database_url: str, config_path: Path | None, as_json: bool) -> None:
    """Check the file of `serve --config`, and list its channels with who takes part."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server.chats.directory import load_directory
        from atlasbridge.fleet.server.chats.leader_lock import carried

    if config_path is None:
        raise click.UsageError("which file? Say --config FILE, or set ATLASBRIDGE_FLEET_CONFIG")
    directory = work(database_url, load_directory)
    plan = plan_server_chats(config_path, os.environ, directory.by_channel())
    found: list[dict[str, Any]] = [
        {
            "channel": chat_route.name,
            "people": sorted(directory.in_channel(chat_route.name)),
            "shared": not chat_route.personal,
        }
        for chat_route in plan.chat_routes
    ] + [{"channel": name, "people": [], "shared": False} for name in plan.idle]
    if as_json:
        carries = work(database_url, carried)
        print_json(
            {
                "carried": carries,
                "channels": found,
                "escalation": [escalation_policy.name for escalation_policy in plan.escalation],
            }
        )
        return
    rows = [(one["channel"], ", ".join(one["people"]) or "nobody", _how(one)) for one in found]
    print_table(("channel", "people", "how"), rows, "the file has no channel: [channels.telegram], say")


def _how(found: dict[str, Any]) -> str:
    if not found["people"]:
        return f"not used: atlasbridge fleet people identity NAME {found['channel']}:…"
    return "one room: told what all of them may see" if found["shared"] else "each is told what they may see"


# `atlasbridge fleet people`: who may see and answer for which machine and folder, and their links to the page.

machine_option = click.option("--machine", default="*", show_default=True, help="By name; * is any text.")
folder_option = click.option("--folder", default="*", show_default=True, help="That folder and what is below it.")


@click.command("add")
@database_option
@url_option
@click.argument("name")
@click.option("--admin", is_flag=True, help="May see and answer everything.")
def add_person(database_url: str, url: str, name: str, admin: bool) -> None:
    """Add NAME, and print a link to the page for them."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    work(database_url, lambda database: people.add(database, name, "admin" if admin else "member", operator()))
    _print_link(database_url, url, name)


@click.command("link")
@database_option
@url_option
@click.argument("name")
def new_link(database_url: str, url: str, name: str) -> None:
    """Print a new link to the page for NAME: good once, for a quarter of an hour."""
    _print_link(database_url, url, name)


def _print_link(database_url: str, url: str, name: str) -> None:
    from atlasbridge.fleet.server import people

    known = {one["name"] for one in work(database_url, people.listing)}
    if name not in known:
        raise AtlasBridgeError(f"there is nobody called {name!r}", "add them: atlasbridge fleet people add NAME")
    token = work(database_url, lambda database: people.login_link(database, name))
    click.echo(f"{url.rstrip('/')}/#login={token}")


@click.command("remove")
@database_option
@click.argument("name")
def remove_person(database_url: str, name: str) -> None:
    """NAME may nothing any more, and is logged out everywhere."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    if not work(database_url, lambda database: people.remove(database, name, operator())):
        raise AtlasBridgeError(f"there is nobody called {name!r}", "list them: atlasbridge fleet people list")
    click.echo(f"{name} was removed")


@click.command("allow")
@database_option
@click.argument("holder")
@machine_option
@folder_option
@click.option("--see", is_flag=True, help="To see, not to answer.")
def allow_person(database_url: str, holder: str, machine: str, folder: str, see: bool) -> None:
    """HOLDER, a person or @team, may answer for these machines and folders."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    may = "see" if see else "answer"
    work(database_url, lambda database: people.allow(database, holder, machine, folder, may, operator()))
    click.echo(f"{holder} may {may}: machine {machine}, folder {folder}")


@click.command("deny")
@database_option
@click.argument("holder")
@machine_option
@folder_option
def deny_person(database_url: str, holder: str, machine: str, folder: str) -> None:
    """Take back what `allow` gave, with the same words."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    if not work(database_url, lambda database: people.deny(database, holder, machine, folder, operator())):
        raise AtlasBridgeError(f"{holder} has no such right", "list them: atlasbridge fleet people list")
    click.echo(f"taken from {holder}: machine {machine}, folder {folder}")


@click.command("team")
@database_option
@click.argument("team")
@click.argument("name")
@click.option("--out", is_flag=True, help="Not any more.")
def set_team(database_url: str, team: str, name: str, out: bool) -> None:
    """NAME belongs to TEAM, and may what @TEAM may."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    work(database_url, lambda database: people.set_team(database, team.lstrip("@"), name, not out, operator()))
    click.echo(f"{name} {'left' if out else 'belongs to'} @{team.lstrip('@')}")


@click.command("identity")
@database_option
@click.argument("name")
@click.argument("identity")
@click.option("--remove", is_flag=True, help="Not any more.")
def set_identity(database_url: str, name: str, identity: str, remove: bool) -> None:
    """NAME takes part in a chat of the server as IDENTITY, such as telegram:1001 or slack:T1/U2."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    work(database_url, lambda database: people.set_identity(database, name, identity, not remove, operator()))
    click.echo(f"{name} is {'no longer ' if remove else ''}{identity}")


@click.command("quiet")
@database_option
@click.argument("name")
@click.argument("spans", nargs=-1)
@click.option("--zone", default="", help='Where they live, such as "Europe/Berlin"; empty: as the server.')
def set_quiet(database_url: str, name: str, spans: tuple[str, ...], zone: str) -> None:
    """NAME wants no sound in these SPANS of the day, such as 22:00-07:00; none: never."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    work(database_url, lambda database: people.set_quiet(database, name, spans, zone, operator()))
    click.echo(f"{name} wants quiet: {', '.join(spans) or 'never'}")


@click.command("list")
@database_option
@json_option
def list_people(database_url: str, as_json: bool) -> None:
    """List people, their teams and what they may."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import people

    found = work(database_url, people.listing)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["name"],
            ", ".join(one["teams"]),
            ", ".join(one["identities"]),
            "everything"
            if one["role"] == "admin"
            else "; ".join(_right(right) for right in one["rights"]) or "nothing",
        )
        for one in found
    ]
    print_table(("name", "teams", "chats", "may"), rows, "nobody yet: atlasbridge fleet people add NAME")


def _right(right: dict[str, str]) -> str:
    return f"{right['may']} {right['machine']}:{right['folder']}"


SUBCOMMANDS = (
    add_person,
    new_link,
    remove_person,
    allow_person,
    deny_person,
    set_team,
    set_identity,
    set_quiet,
    list_people,
)


@click.group("fleet")
def command() -> None:
    """One fleet server, on PostgreSQL."""


@command.command()
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8460, show_default=True, help="0: any free one.")
@click.option("--url", envvar="ATLASBRIDGE_FLEET_URL", default="", help="How it is reached, behind a proxy.")
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
    """Serve the server.  Run as many as you like against one database."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server.server import Address, run
        from atlasbridge.fleet.server.server import serve as serve_server
    from atlasbridge.core.daemon.log_file import open_log

    # as a hub's in the foreground: what others' libraries say of addresses, and what machines say, is kept out or clean
    open_log(Path(os.devnull), os.environ.get("ATLASBRIDGE_LOG_LEVEL", "INFO"), 0, 0, to_terminal=True)
    token = metrics_token_file.read_text().strip() if metrics_token_file else ""
    place = Address(host, port, url, cert, key, token, connections)
    read_plan = partial(plan_server_chats, config_path, os.environ) if config_path else None
    run(serve_server(database_url, place, lambda known_as: click.echo(f"the server is at {known_as}"), read_plan))


@command.command()
@database_option
@click.option("--saved", is_flag=True, help="There is a backup: tables of an older version may be changed.")
@click.option("--role", default="", help="A user of the database who is to serve, with the least rights for it.")
def migrate(database_url: str, saved: bool, role: str) -> None:
    """Make the tables, or bring them to this version, as the owner of the database."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server.migrations_loader import grant_role
        from atlasbridge.fleet.server.migrations_loader import migrate as migrate_server

    version = work(database_url, lambda database: migrate_server(database, saved))
    if role:
        work(database_url, lambda database: grant_role(database, role))
    click.echo(f"the server's tables have version {version}" + (f"; {role} may serve" if role else ""))


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
    with needs("fleet-server"):
        from atlasbridge.fleet.server import machines
        from atlasbridge.fleet.server.signature import identity_of

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
    with needs("fleet-server"):
        from atlasbridge.fleet.server import machines

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
    with needs("fleet-server"):
        from atlasbridge.fleet.server import machines

    gone = work(database_url, lambda database: machines.remove(database, machine, operator(), "revoked"))
    if gone is None:
        raise AtlasBridgeError(f"there is no machine {machine!r}", "list them: atlasbridge fleet machines")
    click.echo(f"{machine} was sent away")


@command.command()
@database_option
@click.argument("machine")
@click.argument("allowed", type=click.Choice(["on", "off"]))
def screens(database_url: str, machine: str, allowed: str) -> None:
    """Whether people at the server may look at MACHINE's screens."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import machines

    if not work(database_url, lambda database: machines.allow_screens(database, machine, allowed == "on")):
        raise AtlasBridgeError(f"there is no machine {machine!r}", "list them: atlasbridge fleet machines")
    click.echo(f"screens of {machine}: {allowed}")


@command.command()
@database_option
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@json_option
def rules(database_url: str, file: Path | None, as_json: bool) -> None:
    """Give FILE (as policy.toml) to all machines; without it, show what they use."""
    with needs("fleet-server"):
        from atlasbridge.fleet.server import machines, team_rules

    if file is not None:
        from atlasbridge.config.rules import read_rules

        read_rules(file)  # what is wrong with it is said here, with the line
        text = file.read_text(encoding="utf-8")
        digest = work(database_url, lambda database: team_rules.set_rules(database, text, operator()))
        click.echo(f"the rules {digest[:19]} go to all machines")
        return
    newest = work(database_url, team_rules.newest)
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
    """The server's own log, and those of its machines."""


def _attach() -> None:

    for one in SUBCOMMANDS:
        people.add_command(one)
    command.add_command(show_chats)
    audit.add_command(show)
    audit.add_command(verify)


_attach()
