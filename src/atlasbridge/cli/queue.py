"""`atlasbridge queue`: instructions that wait for a tool's next idle input box, also those given in a chat."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of
from atlasbridge.cli.completion import complete_sessions
from atlasbridge.cli.options import Renaming
from atlasbridge.cli.printing import ago, hub_client, json_option, print_json, print_table
from atlasbridge.cli.reply import report


@click.group("queue", cls=Renaming, renamed={"off": "remove"}, invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Instructions for when a tool is done: one is typed each time the tool is at its prompt, never into a question.

    Without a command: list the instructions, in the order in which they are typed.
    """
    if context.invoked_subcommand is not None:
        return
    with hub_client() as hub:
        found = hub.ask("queue")["queue"]
    if as_json:
        print_json(found)
        return
    print_queue(found, "id", "nothing is queued")


def print_queue(queue: Sequence[dict[str, Any]], title: str, empty: str = "") -> None:
    """In the order in which they are typed; no table where there is nothing and nothing is to be said of that."""
    rows = [
        (item["queue_id"][:8], item["name"], item["by_name"], ago(item["created_at"]), " ".join(item["text"].split()))
        for item in queue
    ]
    if rows or empty:
        print_table((title, "session", "by", "age", "instruction"), rows, empty)


@command.command("add")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("text")
@json_option
def add(session: str, text: str, as_json: bool) -> int:
    """Have TEXT typed when SESSION is done; `-` reads it from standard input."""
    words = sys.stdin.read().rstrip("\n") if text == "-" else text
    with hub_client() as hub:
        session_id = find_session_id(session, sessions_of(hub))
        return report(hub.request("queue.add", session_id=session_id, value=words), as_json)


@command.command("remove")
@click.argument("queue_id")
@json_option
def off(queue_id: str, as_json: bool) -> int:
    """Remove an instruction, by the beginning of its id."""
    if len(queue_id) < 4:
        raise click.UsageError("give at least four characters of the id")
    with hub_client() as hub:
        return report(hub.request("queue.remove", queue_id=queue_id), as_json)
