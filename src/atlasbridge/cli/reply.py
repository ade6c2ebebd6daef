"""`atlasbridge reply`: answer a prompt from this machine.  Returns when the keys are typed, or take long to type."""

from __future__ import annotations

import sys
from typing import Any

import click

from atlasbridge.cli.by_name import find_prompt_id
from atlasbridge.cli.completing import complete_prompts
from atlasbridge.cli.printing import hub_client, json_option, print_json
from atlasbridge.core.visible import visible

REFUSED = 3


@click.command("reply")
@click.argument("prompt", shell_complete=complete_prompts)
@click.argument("value", required=False)
@click.option("--text", "as_text", is_flag=True, help="Type the value as text; never read it as a choice.")
@click.option("--keys", help='Type these keys as they are, such as "q" or "\\x1b".')
@click.option("--also", multiple=True, metavar="ID", help="Answer this prompt the same way, too; can be repeated.")
@click.option("--again", is_flag=True, help="Ask again what was not answered in time and still waits.")
@json_option
def command(
    prompt: str,
    value: str | None,
    as_text: bool,
    keys: str | None,
    also: tuple[str, ...],
    again: bool,
    as_json: bool,
) -> int:
    """Answer a prompt: y, n, enter, a choice's number or label, default, cancel, or text.

    PROMPT is a prompt's id, or the id or name of the session that asks; a beginning will do that no other has.
    "-" reads the value from standard input, for secrets.  Exit status: 0 typed (or accepted and still
    being typed, as the message says), 3 refused, 1 the hub is not there.
    """
    if again:
        if value is not None or keys is not None or also:
            raise click.UsageError("--again takes no answer")
        with hub_client() as hub:
            return report(hub.request("ask_again", prompt_id=prompt), as_json)
    if (value is None) == (keys is None) or (as_text and keys is not None):
        raise click.UsageError("give either a VALUE or --keys KEYS")
    if value == "-":
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if also:
        if keys is not None:
            raise click.UsageError("--also takes no --keys")
        with hub_client() as hub:
            ids = [prompt, *also]
            return report_many(hub.request("reply_many", prompt_ids=ids, value=value, as_text=as_text), as_json)
    with hub_client() as hub:
        prompt_id, unclear = find_prompt_id(prompt, hub.ask("prompts")["prompts"])
        if unclear:
            return report({"ok": False, "reason": "ambiguous", "message": unclear}, as_json)
        answer = hub.request(
            "reply",
            prompt_id=prompt_id,
            value=value if keys is None else keys,
            as_text=as_text,
            as_keys=keys is not None,
        )
    return report(answer, as_json)


def report(answer: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json({name: value for name, value in answer.items() if name != "hint"})
    elif answer.get("ok"):
        click.echo(answer["message"])
    else:
        click.echo(visible(f"refused ({answer['reason']}): {answer['message']}"), err=True)
    return 0 if answer.get("ok") else REFUSED


def report_many(answer: dict[str, Any], as_json: bool) -> int:
    """Each has its own line; refused if one of them was."""
    if not answer.get("ok"):
        return report(answer, as_json)
    if as_json:
        print_json(answer["results"])
        return 0 if answer["answered"] == len(answer["results"]) else REFUSED
    return max(report(one, False) for one in answer["results"])
