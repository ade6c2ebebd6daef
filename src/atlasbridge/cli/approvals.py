"""`atlasbridge approvals`: the open prompts as a list, or live on the whole screen."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from atlasbridge.cli.printing import ago, hub_client, json_option, print_json, print_table
from atlasbridge.cli.queue import print_queue


@click.command("approvals")
@click.option("--once", is_flag=True, help="Print the list and end.")
@click.option("--bell", is_flag=True, help="Ring the terminal's bell when something new waits.")
@json_option
def command(once: bool, bell: bool, as_json: bool) -> None:
    """Watch open prompts and answer them with a keystroke.

    Arrow keys choose; y, n, digits and Enter answer; t types words; Space marks several to be answered at once;
    g allows what is asked for a while; z asks again in 15 minutes; r asks again what nobody answered in time;
    / searches; a attaches; v shows the screen; i shows what is queued; q quits.  Only what is shown whole is answered.
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
    rows = [
        (
            item["prompt_id"][:8],
            item["label"] or item["tool"],
            item["type"],
            item["confidence"],
            ago(item["created_at"]),
            item["excerpt"],
        )
        for item in prompts
    ]
    print_table(("prompt", "name", "type", "sure", "age", "question"), rows, "nothing is waiting for you")


def print_left(prompts: list[dict[str, Any]]) -> None:
    """What nobody answered in time and the tool still asks."""
    if prompts:
        rows = [
            (item["prompt_id"][:8], item["label"] or item["tool"], ago(item["created_at"]), item["excerpt"])
            for item in prompts
        ]
        print_table(("still waiting", "name", "age", "question"), rows, "")
        click.echo("their time is over; ask again: atlasbridge reply ID --again")
