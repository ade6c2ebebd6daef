"""`atlasbridge later`: answers that were given for a later moment, and who wants to be asked again: list, revoke."""

from __future__ import annotations

import click

from atlasbridge.cli.options import Renaming
from atlasbridge.cli.printing import hub_client, json_option, print_json, print_table
from atlasbridge.cli.reply import report


@click.group("later", cls=Renaming, renamed={"revoke": "remove"})
def command() -> None:
    """Answers that were given for later: list, remove.  To give one: atlasbridge reply ID VALUE --at 06:00"""


@command.command("list")
@json_option
def list_later(as_json: bool) -> None:
    """List answers and reminders for later, with their time and person."""
    with hub_client() as hub:
        found = hub.ask("later")["later"]
    if as_json:
        print_json(found)
        return
    rows = [
        (item["later_id"][:8], item["when"], item["what"], item["name"], item["by_name"], item["excerpt"])
        for item in found
    ]
    print_table(("later", "when", "what", "name", "by", "question"), rows, "nothing is kept for later")


@command.command("remove")
@click.argument("later_id")
@json_option
def revoke(later_id: str, as_json: bool) -> int:
    """Remove one before its time, by the beginning of its id; the prompt keeps waiting."""
    if len(later_id) < 4:
        raise click.UsageError("give at least four characters of the id")
    with hub_client() as hub:
        return report(hub.request("later.revoke", later_id=later_id), as_json)
