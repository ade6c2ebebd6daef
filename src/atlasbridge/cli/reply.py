"""`atlasbridge reply`: answers a prompt from this machine. It returns when the keys are typed, or after a timeout."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from atlasbridge.cli.by_name import find_prompt_id, find_session_id, id_beginning, sessions_of
from atlasbridge.cli.help import complete_prompts, complete_sessions
from atlasbridge.cli.overview import asking_line, is_idle, why_left
from atlasbridge.cli.printing import (
    DURATION,
    Renaming,
    ago,
    echo,
    hub_client,
    json_option,
    print_found,
    print_json,
    print_table,
)
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.gate import LEAVES
from atlasbridge.core.session.model import choose

REFUSED = 3
_SIGNED = re.compile(r"-[\d\s].*", re.DOTALL)  # no option begins so


class _WithNumbers(click.Command):
    """Treats a negative number, and words that begin with one, as an answer, not as an option: `reply tuna -1`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        taking = {name for param in self.params for name in param.opts if not getattr(param, "is_flag", True)}
        signed = [
            at for at, arg in enumerate(args) if _SIGNED.fullmatch(arg) and (at == 0 or args[at - 1] not in taking)
        ]
        if signed and "--" not in args:
            args = [*(arg for at, arg in enumerate(args) if at not in signed), "--", *(args[at] for at in signed)]
        return super().parse_args(ctx, args)


@click.command("reply", cls=_WithNumbers)
@click.argument("prompt", shell_complete=complete_prompts)
@click.argument("value", required=False)
@click.option("--text", "as_text", is_flag=True, help="Type the value as text; never read it as a choice.")
@click.option("--keys", help='Type these keys as they are, such as "q" or "\\x1b".')
@click.option("--also", multiple=True, metavar="PROMPT", help="Answer this prompt the same way, too; can be repeated.")
@click.option("--at", metavar="TIME", help="Answer later: 06:00, 'tomorrow 9am', 'in 2h'; it is checked then.")
@click.option("--when", type=click.Choice(["limit-resets"]), help="Answer when the usage limit on its screen resets.")
@click.option("--snooze", type=DURATION, help="Do not answer; ask again after this time, such as 15m.")
@click.option("--again", is_flag=True, help="Ask again a prompt that was left alone, or not answered in time.")
@json_option
def command(
    prompt: str,
    value: str | None,
    as_text: bool,
    keys: str | None,
    also: tuple[str, ...],
    at: str | None,
    when: str | None,
    snooze: float | None,
    again: bool,
    as_json: bool,
) -> int:
    """Answer a prompt: y, n, enter, a choice's number or label, default, leave, or text.

    PROMPT is a prompt's id, or the id or name of the session that asks; a unique beginning is enough.
    "leave" types nothing and leaves the tool as it is; the prompt stays listed, and --again asks it again.
    "-" reads the value from standard input, for secrets.  Exit status: 0 typed (or accepted and still
    being typed, as the message says), 3 refused, 1 the hub is not running.
    """
    if again or snooze is not None:
        if value is not None or keys is not None or also or at or when:
            raise click.UsageError(f"{'--again' if again else '--snooze'} takes no answer")
    elif value is None and keys is None:
        raise click.UsageError(
            f"no answer was given for {prompt!r}: write the prompt, then the answer (reply PROMPT VALUE)"
        )
    elif keys is not None and (value is not None or as_text):
        raise click.UsageError("give either a VALUE or --keys KEYS, not both")
    elif (at or when) and (keys is not None or also or (at and when)):
        raise click.UsageError("--at and --when take one prompt, one VALUE and one time")
    elif also and keys is not None:
        raise click.UsageError("--also takes no --keys")
    typed = value != "-"
    if value == "-":
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    with hub_client() as hub:
        asked = hub.ask("prompts")["still_waiting" if again else "prompts"]
        named = [find_prompt_id(said, asked) for said in (prompt, *also)]
        ids = [prompt_id for prompt_id, _ in named]
        if unclear := "; ".join(why for _, why in named if why):
            return report({"ok": False, "reason": "ambiguous", "message": unclear}, as_json)
        if again:
            answer = hub.request("ask_again", prompt_id=ids[0])
        elif snooze is not None:
            return report(hub.request("snooze", prompt_id=ids[0], for_s=snooze), as_json)
        elif at or when:
            later = hub.request("reply_later", prompt_id=ids[0], value=value, as_text=as_text, when=at or when)
            return report(later, as_json)
        elif typed and value not in LEAVES and any(_is_secret(prompt_id, asked) for prompt_id in ids):
            return report(_on_the_command_line(ids[0]), as_json)
        elif also:
            return report_many(hub.request("reply_many", prompt_ids=ids, value=value, as_text=as_text), as_json)
        else:
            given = value if keys is None else keys
            answer = hub.request("reply", prompt_id=ids[0], value=given, as_text=as_text, as_keys=keys is not None)
        answer = _name_idle_session(hub, prompt, answer)
    status = report(answer, as_json)
    if answer.get("stage") == "canceled" and not as_json:
        click.echo(f"to ask again: atlasbridge reply {ids[0][:8]} --again")
    return status


def _name_idle_session(hub: HubClient, said: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Says what the name is: a session that asks nothing, one whose question is not asked now, or nothing known."""
    if answer.get("reason") != "unknown_prompt":
        return answer
    left = hub.ask("prompts")["still_waiting"]
    if any(item["prompt_id"] == find_prompt_id(said, left)[0] for item in left):
        return {**answer, "message": f"{said} is not asked now. Ask again first: atlasbridge reply {said} --again"}
    found = choose(said, sessions_of(hub))
    return {**answer, "message": f"{said} asks nothing now." if found.one else f"There is no open prompt {said!r}."}


def _is_secret(prompt_id: str, prompts: list[dict[str, Any]]) -> bool:
    return any(item["prompt_id"] == prompt_id and item["constraints"].get("secret") for item in prompts)


def _on_the_command_line(prompt: str) -> dict[str, Any]:
    """Refuse a secret on the command line: the shell history stores it, and other programs can list it."""
    way = f"atlasbridge reply {prompt[:8]} -"
    said = "This prompt asks for a secret. Your shell stores a command line in its history, and ps shows it"
    return {"ok": False, "reason": "not_allowed", "message": f"{said}. Give it on standard input: {way}"}


def report(
    answer: dict[str, Any], as_json: bool, known: str = "list open prompts with: atlasbridge approvals --once"
) -> int:
    """`known` says where to find what could have been meant."""
    if as_json:
        print_json({name: value for name, value in answer.items() if name != "hint"})
    elif answer.get("ok"):
        echo(answer["message"])
    else:
        echo(escape_controls(f"Refused: {answer['message']}"), err=True)
        if answer["reason"] == "unknown_prompt" and "--again" not in answer["message"]:
            click.echo(f"  {known}", err=True)
    return 0 if answer.get("ok") else REFUSED


def report_many(answer: dict[str, Any], as_json: bool) -> int:
    """Print one line per prompt; the status is a refusal if one was refused."""
    if not answer.get("ok"):
        return report(answer, as_json)
    if as_json:
        print_json(answer["results"])
        return 0 if answer["answered"] == len(answer["results"]) else REFUSED
    return max(report(result, False) for result in answer["results"])


# `atlasbridge later`: lists and revokes scheduled answers and snoozed prompts.


@click.group("later", cls=Renaming, renamed={"revoke": "remove"})
def later_command() -> None:
    """Scheduled answers: list, remove.  To schedule one: atlasbridge reply ID VALUE --at 06:00"""


@later_command.command("list")
@json_option
def list_later(as_json: bool) -> None:
    """List scheduled answers and reminders, with their time and person."""
    with hub_client() as hub:
        found = hub.ask("later")["later"]
    columns = ("later", "when", "what", "name", "by", "question")
    print_found(found, as_json, columns, _later, "no scheduled answers")


def _later(one: dict[str, Any]) -> tuple[str, ...]:
    return one["later_id"][:8], one["when"], one["what"], one["name"], one["by_name"], one["excerpt"]


@later_command.command("remove")
@click.argument("later_id", callback=id_beginning)
@json_option
def revoke(later_id: str, as_json: bool) -> int:
    """Remove a scheduled answer, by the beginning of its id; the prompt stays open."""
    with hub_client() as hub:
        return report(hub.request("later.revoke", later_id=later_id), as_json, "list them with: atlasbridge later list")


# `atlasbridge queue`: instructions that wait until a tool is idle, also those from chats.


@click.group("queue", cls=Renaming, renamed={"off": "remove"}, invoke_without_command=True)
@json_option
@click.pass_context
def queue_command(context: click.Context, as_json: bool) -> None:
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
    """Print in typing order; without entries, print only `empty`, if it is given."""
    rows = [
        (item["queue_id"][:8], item["name"], item["by_name"], ago(item["created_at"]), " ".join(item["text"].split()))
        for item in queue
    ]
    if rows or empty:
        print_table((title, "session", "by", "age", "instruction"), rows, empty)


@queue_command.command("list")
@json_option
@click.pass_context
def list_queue(context: click.Context, as_json: bool) -> None:
    """List the instructions, in the order in which they are typed."""
    context.invoke(queue_command, as_json=as_json)


@queue_command.command("add")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("text")
@json_option
def add(session: str, text: str, as_json: bool) -> int:
    """Type TEXT when SESSION is done; `-` reads it from standard input."""
    words = sys.stdin.read().rstrip("\n") if text == "-" else text
    with hub_client() as hub:
        session_id = find_session_id(session, sessions_of(hub))
        return report(hub.request("queue.add", session_id=session_id, text=words), as_json)


@queue_command.command("remove")
@click.argument("queue_id", callback=id_beginning)
@json_option
def off(queue_id: str, as_json: bool) -> int:
    """Remove an instruction, by the beginning of its id."""
    with hub_client() as hub:
        return report(hub.request("queue.remove", queue_id=queue_id), as_json, "list them with: atlasbridge queue")


# `atlasbridge approvals`: the open prompts as a list, or live in full screen.


@click.command("approvals")
@click.option("--once", is_flag=True, help="Print the list and exit.")
@click.option("--bell", is_flag=True, help="Ring the terminal's bell for each new prompt.")
@json_option
def approvals_command(once: bool, bell: bool, as_json: bool) -> None:
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
        click.echo("to ask again: atlasbridge reply ID --again")
