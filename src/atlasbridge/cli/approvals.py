"""`atlasbridge approvals`: the open prompts as a list, or live in full screen."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from atlasbridge.cli.overview import asking_line, is_idle, why_left
from atlasbridge.cli.printing import ago, hub_client, json_option, print_json, print_table
from atlasbridge.cli.reply import print_queue


@click.command("approvals")
@click.option("--once", is_flag=True, help="Print the list and exit.")
@click.option("--bell", is_flag=True, help="Ring the terminal's bell for each new prompt.")
@json_option
def command(once: bool, bell: bool, as_json: bool) -> None:
    """Watch open prompts and answer them with a keystroke.

    Arrow keys select a prompt.  y, n, digits and Enter answer it; if it asks for words or a secret, type them and press
    Enter.  Space marks several, to answer them at once; g allows similar requests for a while; z asks again in 15
    minutes; x leaves a question alone; r asks again what was left alone or not answered in time; t types words; /
    searches; a attaches; v shows the screen; i shows the queue; q quits.  If a prompt asks for words, commands use
    Ctrl: the last line of the screen shows them.  You can answer a question only after it was on the screen.
    """
    with hub_client(start=True) as hub:
        if as_json:
            print_json(hub.ask("prompts")["prompts"])
            return
        if once or not (sys.stdin.isatty() and sys.stdout.isatty() and hasattr(os, "openpty")):
            found = hub.ask("prompts")
            print_list(found["prompts"])
            print_left(found["still_waiting"])
            print_queue(hub.request("queue").get("queue", ()), "queued")
            return
    from atlasbridge.cli.approvals_screen import Watch

    Watch(bell).run()


def print_list(prompts: list[dict[str, Any]]) -> None:
    """Print the open prompts, and separately the idle tools, which ask nothing."""
    columns = ("prompt", "name", "type", "sure", "age", "question")
    print_table(columns, [_row(item) for item in prompts if not is_idle(item)], "nothing is waiting for you")
    idle = [_row(item) for item in prompts if is_idle(item)]
    if idle:
        print_table(("at its prompt", *columns[1:]), idle, "")


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    name, age = item["label"] or item["tool"], ago(item["created_at"])
    return item["prompt_id"][:8], name, item["type"], item["confidence"], age, asking_line(item)


def print_left(prompts: list[dict[str, Any]]) -> None:
    """Print the prompts that were skipped or expired and that the tool still shows."""
    if prompts:
        rows = [(*_row(item)[:2], why_left(item), *_row(item)[4:]) for item in prompts]
        print_table(("not asked now", "name", "why", "age", "question"), rows, "")
        click.echo("ask again: atlasbridge reply ID --again")
