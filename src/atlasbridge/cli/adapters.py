"""`atlasbridge adapters`: the tools whose dialogs AtlasBridge knows, and how well."""

from __future__ import annotations

import click

from atlasbridge.bootstrap import describe_adapters, revert_dialects, update_dialects
from atlasbridge.cli.printing import home, json_option, print_json, print_table
from atlasbridge.core.errors import AtlasBridgeError


@click.group("adapters")
def command() -> None:
    """List the tools AtlasBridge knows well; any other interactive program works with the generic rules."""


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List every tool with its own adapter or rules, and where they come from."""
    found = describe_adapters(home())
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["name"],
            " ".join(item["commands"]),
            ", ".join(item["versions"]),
            item["from"],
            item["installed"] or "not installed",
            item["health"],
        )
        for item in found
    ]
    print_table(("tool", "commands", "versions seen", "from", "installed", "health"), rows, "none")


@command.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show one tool: its rules and menus, and whether its installed version was tested."""
    found = {item["name"]: item for item in describe_adapters(home())}
    if name not in found:
        raise AtlasBridgeError(f"there is no adapter for {name!r}", f"known: {', '.join(found)}")
    known = found[name]
    if known["installed"]:
        known["state"] = _how_far_known(known["version"], known["versions"])
    if as_json:
        print_json(known)
        return
    for title, value in known.items():
        click.echo(f"{title:10} {', '.join(map(str, value)) if isinstance(value, list) else value}")


@command.command("update")
@click.option(
    "--from", "source", default="", metavar="FILE_OR_URL", help="Where the signed rules are; default: as last time."
)
@click.option("--trust", default="", metavar="KEY", help="Trust rules signed with this key from now on.")
@json_option
def update_command(source: str, trust: str, as_json: bool) -> None:
    """Fetch signed rules for tools' dialogs, try them on their own examples, and use them in new sessions."""
    done = update_dialects(home(), source, trust)
    if as_json:
        print_json(done)
        return
    for name in done["updated"]:
        click.echo(f"{name}: rules of serial {done['serial']}, tried on {done['dialects'][name]['examples']} examples")
    for name in done["revoked"]:
        click.echo(f"{name}: taken back by its author; the packaged rules are used")


@command.command("revert")
@click.argument("names", nargs=-1)
def revert(names: tuple[str, ...]) -> None:
    """Use the packaged rules again, for these tools or for all that were updated."""
    gone = revert_dialects(home(), names)
    click.echo(f"The packaged rules are used again: {', '.join(gone)}" if gone else "No rules were updated.")


def _how_far_known(version: str, verified: list[str]) -> str:
    if not version:
        return "the installed version is not known"
    if version in verified:
        return "every dialog was verified with this version"
    return "other versions were verified; unknown dialogs go by the generic rules"
