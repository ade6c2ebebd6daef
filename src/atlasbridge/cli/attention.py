"""`atlasbridge away`: nobody is at the keyboard; what waits is asked elsewhere at once."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from atlasbridge.cli.printing import DURATION, hub_client, json_option, print_json, print_table


@click.command("away")
@click.option("--for", "for_s", type=DURATION, default=None, help="How long, such as 2h; otherwise until `here`.")
def away_command(for_s: float | None) -> None:
    """Say that nobody is at the keyboard: chats and phones are asked at once, whoever typed last."""
    with hub_client(start=True) as hub:
        hub.ask("away", for_s=for_s)
    click.echo("Away: everything is asked elsewhere at once. Back: atlasbridge here")


# `atlasbridge here`: somebody is at the keyboard again.


@click.command("here")
def here_command() -> None:
    """Say that somebody is at the keyboard: who types in a session is given a moment before others are asked."""
    with hub_client(start=True) as hub:
        hub.ask("here")
    click.echo("Here: who types in a session is given a moment before chats and phones are asked.")


# `atlasbridge people`: who there is, under one name each, and what to write to give the others one.


@click.command("people")
@click.option("--toml", "as_toml", is_flag=True, help="Print [[people]] for config.toml, for who has no name yet.")
@json_option
def people_command(as_toml: bool, as_json: bool) -> None:
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


# `atlasbridge notify`: tell people something that asks nothing.


@click.command("notify")
@click.argument("message")
@click.option("--label", default="", help="Who tells; otherwise the CI job or the script.")
def notify_command(message: str, label: str) -> None:
    """Tell everybody something without asking; "-" reads it from standard input."""
    from atlasbridge.integrations.caller_label import origin_of

    text = sys.stdin.read() if message == "-" else message
    who = origin_of("notify", label, (), os.environ).label
    with hub_client(start=True) as hub:
        hub.ask("notify", message=text, label=who)
    click.echo("Told.")
