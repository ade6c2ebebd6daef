"""`atlasbridge away`: the person leaves the keyboard, so prompts go to the other channels at once."""

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
    """Set yourself away: notify chats and phones at once, even right after you typed."""
    with hub_client(start=True) as hub:
        hub.ask("away", for_s=for_s)
    click.echo("Away: everything is asked elsewhere at once. Back: atlasbridge here")


# `atlasbridge here`: the person is back at the keyboard.


@click.command("here")
def here_command() -> None:
    """End away: after you type in a session, AtlasBridge waits a moment before it notifies chats and phones."""
    with hub_client(start=True) as hub:
        hub.ask("here")
    click.echo(
        "You are here: after you type in a session, AtlasBridge waits a moment before it notifies chats and phones."
    )


# `atlasbridge people`: lists the known people, and the settings that give names to the others.


@click.command("people")
@click.option(
    "--toml", "as_toml", is_flag=True, help="Print [[people]] entries for config.toml, for identities without a name."
)
@json_option
def people_command(as_toml: bool, as_json: bool) -> None:
    """List the people who are allowed to answer, with their identities in every channel."""
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
    """Render people as TOML. A JSON string is also a valid TOML string."""
    return [
        f"[[people]]\nname = {json.dumps(one['name'], ensure_ascii=False)}\n"
        f"identities = {json.dumps(one['identities'], ensure_ascii=False)}\n"
        for one in people
    ]


# `atlasbridge notify`: sends people a message that needs no answer.


@click.command("notify")
@click.argument("message")
@click.option("--label", default="", help="The name of the sender; by default the CI job or the script.")
def notify_command(message: str, label: str) -> None:
    """Send a message to everybody without asking; "-" reads it from standard input."""
    from atlasbridge.integrations.caller_label import origin_of

    text = sys.stdin.read() if message == "-" else message
    who = origin_of("notify", label, (), os.environ).label
    with hub_client(start=True) as hub:
        hub.ask("notify", message=text, label=who)
    click.echo("Sent.")
