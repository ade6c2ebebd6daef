"""`atlasbridge desk people`: who may see and answer for which machine and folder, and their links to the page."""

from __future__ import annotations

import click

from atlasbridge.cli.desk_options import database_option, operator, url_option, work
from atlasbridge.cli.fleet_words import needs
from atlasbridge.cli.printing import json_option, print_json, print_table
from atlasbridge.core.errors import AtlasBridgeError

machine_option = click.option("--machine", default="*", show_default=True, help="By name; * is any text.")
folder_option = click.option("--folder", default="*", show_default=True, help="That folder and what is below it.")


@click.command("add")
@database_option
@url_option
@click.argument("name")
@click.option("--admin", is_flag=True, help="May see and answer everything.")
def add_person(database_url: str, url: str, name: str, admin: bool) -> None:
    """Add NAME, and print a link to the page for them."""
    with needs("desk"):
        from atlasbridge.desk import people

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
    from atlasbridge.desk import people

    known = {one["name"] for one in work(database_url, people.listing)}
    if name not in known:
        raise AtlasBridgeError(f"there is nobody called {name!r}", "add them: atlasbridge desk people add NAME")
    token = work(database_url, lambda database: people.login_link(database, name))
    click.echo(f"{url.rstrip('/')}/#login={token}")


@click.command("remove")
@database_option
@click.argument("name")
def remove_person(database_url: str, name: str) -> None:
    """NAME may nothing any more, and is logged out everywhere."""
    with needs("desk"):
        from atlasbridge.desk import people

    if not work(database_url, lambda database: people.remove(database, name, operator())):
        raise AtlasBridgeError(f"there is nobody called {name!r}", "list them: atlasbridge desk people list")
    click.echo(f"{name} was removed")


@click.command("allow")
@database_option
@click.argument("holder")
@machine_option
@folder_option
@click.option("--see", is_flag=True, help="To see, not to answer.")
def allow_person(database_url: str, holder: str, machine: str, folder: str, see: bool) -> None:
    """HOLDER, a person or @team, may answer for these machines and folders."""
    with needs("desk"):
        from atlasbridge.desk import people

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
    with needs("desk"):
        from atlasbridge.desk import people

    if not work(database_url, lambda database: people.deny(database, holder, machine, folder, operator())):
        raise AtlasBridgeError(f"{holder} has no such right", "list them: atlasbridge desk people list")
    click.echo(f"taken from {holder}: machine {machine}, folder {folder}")


@click.command("team")
@database_option
@click.argument("team")
@click.argument("name")
@click.option("--out", is_flag=True, help="Not any more.")
def set_team(database_url: str, team: str, name: str, out: bool) -> None:
    """NAME belongs to TEAM, and may what @TEAM may."""
    with needs("desk"):
        from atlasbridge.desk import people

    work(database_url, lambda database: people.set_team(database, team.lstrip("@"), name, not out, operator()))
    click.echo(f"{name} {'left' if out else 'belongs to'} @{team.lstrip('@')}")


@click.command("identity")
@database_option
@click.argument("name")
@click.argument("identity")
@click.option("--remove", is_flag=True, help="Not any more.")
def set_identity(database_url: str, name: str, identity: str, remove: bool) -> None:
    """NAME takes part in a chat of the desk as IDENTITY, such as telegram:1001 or slack:T1/U2."""
    with needs("desk"):
        from atlasbridge.desk import people

    work(database_url, lambda database: people.set_identity(database, name, identity, not remove, operator()))
    click.echo(f"{name} is {'no longer ' if remove else ''}{identity}")


@click.command("quiet")
@database_option
@click.argument("name")
@click.argument("spans", nargs=-1)
@click.option("--zone", default="", help='Where they live, such as "Europe/Berlin"; empty: as the desk.')
def set_quiet(database_url: str, name: str, spans: tuple[str, ...], zone: str) -> None:
    """NAME wants no sound in these SPANS of the day, such as 22:00-07:00; none: never."""
    with needs("desk"):
        from atlasbridge.desk import people

    work(database_url, lambda database: people.set_quiet(database, name, spans, zone, operator()))
    click.echo(f"{name} wants quiet: {', '.join(spans) or 'never'}")


@click.command("list")
@database_option
@json_option
def list_people(database_url: str, as_json: bool) -> None:
    """List people, their teams and what they may."""
    with needs("desk"):
        from atlasbridge.desk import people

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
    print_table(("name", "teams", "chats", "may"), rows, "nobody yet: atlasbridge desk people add NAME")


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
