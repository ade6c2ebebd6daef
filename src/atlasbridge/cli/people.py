"""`atlasbridge people`: who there is, under one name each, and what to write to give the others one."""

from __future__ import annotations

import json
from typing import Any

import click

from atlasbridge.cli.printing import hub_client, json_option, print_json, print_table


@click.command("people")
@click.option("--toml", "as_toml", is_flag=True, help="Print [[people]] for config.toml, for who has no name yet.")
@json_option
def command(as_toml: bool, as_json: bool) -> None:
    """List the people who may answer, with their identities in every channel."""
    with hub_client(start=True) as hub:
        people = hub.ask("people")["people"]
    if as_json:
        print_json(people)
    elif as_toml:
        click.echo("\n".join(render_toml(people)))
    else:
        rows = [(one["name"], ", ".join(one["identities"]), "quiet now" if one["quiet_now"] else "") for one in people]
        print_table(("name", "identities", ""), rows, "nobody but you, at this machine")


def render_toml(people: list[dict[str, Any]]) -> list[str]:
    """A JSON string is a TOML string, too."""
    return [
        f"[[people]]\nname = {json.dumps(one['name'], ensure_ascii=False)}\n"
        f"identities = {json.dumps(one['identities'], ensure_ascii=False)}\n"
        for one in people
    ]
