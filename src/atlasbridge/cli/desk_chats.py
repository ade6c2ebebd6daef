"""`atlasbridge desk chats`: what a file of channels means for the people of this desk, before it is served."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from atlasbridge.bootstrap import plan_desk_chats
from atlasbridge.cli.desk_options import database_option, work
from atlasbridge.cli.fleet_words import needs
from atlasbridge.cli.printing import json_option, print_json, print_table

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    envvar="ATLASBRIDGE_DESK_CONFIG",
    help="Channels and ladders for all machines (TOML); tokens in it as env:NAME or file:PATH.",
)


@click.command("chats")
@database_option
@config_option
@json_option
def show_chats(database_url: str, config_path: Path | None, as_json: bool) -> None:
    """Check the file of `serve --config`, and list its channels with who takes part."""
    with needs("desk"):
        from atlasbridge.desk.chats.crowd import load_crowd
        from atlasbridge.desk.chats.turn import carried

    if config_path is None:
        raise click.UsageError("which file? Say --config FILE, or set ATLASBRIDGE_DESK_CONFIG")
    crowd = work(database_url, load_crowd)
    plan = plan_desk_chats(config_path, os.environ, crowd.by_channel())
    found: list[dict[str, Any]] = [
        {"channel": lane.name, "people": sorted(crowd.in_channel(lane.name)), "shared": not lane.personal}
        for lane in plan.lanes
    ] + [{"channel": name, "people": [], "shared": False} for name in plan.idle]
    if as_json:
        carries = work(database_url, carried)
        print_json({"carried": carries, "channels": found, "ladders": [ladder.name for ladder in plan.ladders]})
        return
    rows = [(one["channel"], ", ".join(one["people"]) or "nobody", _how(one)) for one in found]
    print_table(("channel", "people", "how"), rows, "the file has no channel: [channels.telegram], say")


def _how(found: dict[str, Any]) -> str:
    if not found["people"]:
        return f"not used: atlasbridge desk people identity NAME {found['channel']}:…"
    return "one room: told what all of them may see" if found["shared"] else "each is told what they may see"
