"""`atlasbridge grants`: adds a grant from a prompt, lists grants and revokes them."""

from __future__ import annotations

from typing import Any

import click

from atlasbridge.cli.options import Renaming
from atlasbridge.cli.printing import DURATION, hub_client, json_option, print_json, print_table


@click.group("grants", cls=Renaming, renamed={"revoke": "remove"})
def command() -> None:
    """What you allowed for a while: add from a prompt, list, remove."""


@command.command("list")
@json_option
def list_grants(as_json: bool) -> None:
    """List what is allowed now, for how long, and by whom."""
    with hub_client() as hub:
        grants = hub.ask("grants")["grants"]
    if as_json:
        print_json(grants)
        return
    rows = [
        (item["grant_id"][:8], item["allows"], item["tool"], where(item), left(item), item["by"]) for item in grants
    ]
    print_table(("grant", "allows", "tool", "where", "left", "by"), rows, "nothing is granted")


@command.command("remove")
@click.argument("grant_id", required=False)
@click.option("-a", "--all", "everything", is_flag=True, help="All of them.")
@json_option
def revoke(grant_id: str | None, everything: bool, as_json: bool) -> int:
    """Remove a grant at once, by the beginning of its id."""
    if bool(grant_id) == everything:
        raise click.UsageError("give either a GRANT_ID or --all")
    if grant_id is not None and len(grant_id) < 4:
        raise click.UsageError("give at least four characters of the id")
    with hub_client() as hub:
        ended = hub.ask("grant.revoke", grant_id=grant_id or "")["ended"]
    if as_json:
        print_json({"ended": ended})
    else:
        click.echo(f"ended: {', '.join(item[:8] for item in ended)}" if ended else "there is no such grant")
    return 0 if ended or everything else 1


@command.command()
@click.argument("prompt_id")
@click.option("--for", "for_s", type=DURATION, help="For so long, such as 30m; at most 12h.")
@click.option("--times", type=click.IntRange(1, 1000), help="For so many questions.")
@click.option("--session", "in_session", is_flag=True, help="In this session only; the default.")
@click.option("--folder", "in_folder", is_flag=True, help="In every session of this tool in this folder.")
@click.option("--preview", is_flag=True, help="Only show what it would allow.")
@json_option
def add(
    prompt_id: str,
    for_s: float | None,
    times: int | None,
    in_session: bool,
    in_folder: bool,
    preview: bool,
    as_json: bool,
) -> int:
    """Allow what this prompt asks, and similar requests, for a while; this also answers the prompt."""
    if in_session and in_folder:
        raise click.UsageError("give either --session or --folder")
    with hub_client() as hub:
        answer = hub.request(
            "grant.add", prompt_id=prompt_id, for_s=for_s, times=times, folder=in_folder, preview=preview
        )
    if as_json:
        print_json({name: value for name, value in answer.items() if name != "hint"})
    elif not answer.get("ok"):
        click.echo(f"refused ({answer['reason']}): {answer['message']}", err=True)
    else:
        print_grant(answer)
    return 0 if answer.get("ok") else 3


def print_grant(answer: dict[str, Any]) -> None:
    click.echo(f"{'granted' if answer['grant_id'] else 'would grant'}: {answer['words']}")
    for text in answer["would"]:
        click.echo(f"  allows        {text}")
    for text, why in zip(answer["would_not"], answer["why_not"], strict=True):
        click.echo(f"  does not      {text}\n                {why}")
    if answer.get("grant_id"):
        click.echo(f"end it with: atlasbridge grants remove {answer['grant_id'][:8]}")


def where(item: dict[str, Any]) -> str:
    return f"session {item['session_id'][:8]}" if item["session_id"] else str(item["folder"])


def left(item: dict[str, Any]) -> str:
    parts = []
    if item["seconds_left"] is not None:
        parts.append(f"{max(0, item['seconds_left']) // 60} min")
    if item["uses_left"] is not None:
        parts.append(f"{item['uses_left']} times")
    return ", ".join(parts) or "until the machine restarts"
