"""`atlasbridge ps`: lists sessions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of, warn_of_same_name
from atlasbridge.cli.help import complete_sessions
from atlasbridge.cli.overview import is_idle
from atlasbridge.cli.printing import DURATION, ago, echo, hub_client, json_option, print_json, print_table, span
from atlasbridge.cli.run import print_error
from atlasbridge.core.clock import parse_iso
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.ids import short_id


@click.command("ps")
@click.option("-a", "--all", "include_ended", is_flag=True, help="Also sessions that have ended.")
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@json_option
def ps_command(include_ended: bool, quiet: bool, as_json: bool) -> None:
    """List sessions."""
    with hub_client(start=True) as hub:
        sessions = hub.ask("sessions", all=include_ended)["sessions"]
        prompts = {item["prompt_id"]: item for item in hub.ask("prompts")["prompts"]}
    if as_json:
        print_json(sessions)
        return
    if quiet:
        click.echo("".join(f"{item['session_id'][:8]}\n" for item in sessions), nl=False)
        return
    rows = [
        (
            item["session_id"][:8],
            item["label"] or item["tool"],
            item["pid"] if item["state"] == "active" else "",
            _state(item),
            _waits(item, prompts),
            ago(item["started_at"]),
            *((_exit(item), ran(item)) if include_ended else ()),
            item["cwd"],
        )
        for item in sessions
    ]
    ended = ("exit", "ran") if include_ended else ()
    print_table(("session", "name", "pid", "state", "prompt", "started", *ended, "folder"), rows, "no sessions")


def _exit(session: dict[str, Any]) -> str:
    if session["state"] == "active":
        return ""
    return "unknown" if session["exit_code"] is None else str(session["exit_code"])


def ran(session: dict[str, Any]) -> str:
    """How long a session ran; "" while it runs."""
    return span(parse_iso(session["ended_at"]) - parse_iso(session["started_at"])) if session.get("ended_at") else ""


def _state(session: dict[str, Any]) -> str:
    if session["state"] != "active":
        return str(session["state"])
    return "stopped" if session.get("stopped") else "attached" if session["attached"] else "detached"


def _waits(session: dict[str, Any], prompts: dict[str, dict[str, Any]]) -> str:
    """Its open question, that it is idle, or a question that is not asked now; and its queued instructions."""
    left, queued, asked = session.get("still_waiting"), session.get("queued"), session["open_prompt"] or ""
    idle = asked in prompts and is_idle(prompts[asked])
    waits = "at its prompt" if idle else asked[:8] or (f"{left[:8]} not asked now" if left else "")
    return ", ".join(filter(None, [waits, f"{queued} queued" if queued else ""]))


# `atlasbridge kill`: ends a session's tool with its whole process group.


@click.command("kill")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
@click.option("--force", is_flag=True, help="Send SIGKILL at once, without SIGTERM first.")
def kill_command(sessions: tuple[str, ...], force: bool) -> int:
    """End sessions with SIGTERM, then SIGKILL if needed.  SESSION is a name, an id, or the beginning of one."""
    return act_on_each(sessions, lambda hub, session_id: _kill(hub, session_id, force))


def _kill(hub: HubClient, session_id: str, force: bool) -> None:
    answer = hub.ask("kill", session_id=session_id, force=force)
    click.echo(f"ending session {short_id(session_id)} (process {answer['pid']})")


def act_on_each(names: tuple[str, ...], act: Callable[[HubClient, str], None]) -> int:
    """Do the same for several sessions. One that is not found does not stop the others."""
    faults = 0
    with hub_client() as hub:
        for name in names:
            try:
                act(hub, find_session_id(name, sessions_of(hub, include_ended=True)))
            except AtlasBridgeError as error:
                if len(names) == 1:
                    raise
                faults += 1
                print_error(str(error), error.hint, 1)
    return 1 if faults else 0


# `atlasbridge rename`: changes the name of a session.


@click.command("rename")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("name")
def rename_command(session: str, name: str) -> None:
    """Rename a session; an empty name removes its name."""
    with hub_client() as hub:
        known = sessions_of(hub)
        session_id = find_session_id(session, known)
        answer = hub.ask("rename", session_id=session_id, name=name)
    named = f"is now called {answer['label']}" if answer["label"] else "no longer has a name"
    click.echo(f"session {short_id(session_id)} {named}")
    print_error(warn_of_same_name(answer["label"], [item for item in known if item.id != session_id]), "", 0)


# `atlasbridge resume`: continues a stopped session without a shell, as `fg` would.


@click.command("resume")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
def resume_command(sessions: tuple[str, ...]) -> int:
    """Resume sessions that were stopped (Ctrl-Z).  SESSION is a name, an id, or the beginning of one.

    Attaching to a session resumes it, too. A session that is not stopped stays as it is.
    """
    return act_on_each(sessions, _resume)


def _resume(hub: HubClient, session_id: str) -> None:
    session = hub.ask("sessions", session_id=session_id, all=True)["sessions"][0]
    hub.ask("resume", session_id=session_id)
    click.echo(f"session {short_id(session_id)} {'was resumed' if session.get('stopped') else 'was not stopped'}")


# `atlasbridge away`: the person leaves the keyboard, so prompts go to the other channels at once.


@click.command("away")
@click.option(
    "--for", "for_s", type=DURATION, default=None, help="How long, such as 2h; by default until `atlasbridge here`."
)
def away_command(for_s: float | None) -> None:
    """Set yourself away: notify chats and phones at once, even right after you typed."""
    with hub_client(start=True) as hub:
        hub.ask("away", for_s=for_s)
    click.echo("You are away: chats and phones are notified at once. To end it: atlasbridge here")


# `atlasbridge here`: the person is back at the keyboard.


@click.command("here")
def here_command() -> None:
    """End away: after you type in a session, AtlasBridge waits a moment before it notifies chats and phones."""
    with hub_client(start=True) as hub:
        hub.ask("here")
    echo("You are here: after you type in a session, AtlasBridge waits a moment before it notifies chats and phones.")


# `atlasbridge people`: lists the known people, and the settings that give names to the others.


@click.command("people")
@click.option(
    "--toml",
    "as_toml",
    is_flag=True,
    help="Print [[people]] entries for config.toml, for the identities without a name.",
)
@json_option
def people_command(as_toml: bool, as_json: bool) -> None:
    """List the people who are allowed to answer, with their identities in every channel."""
    with hub_client(start=True) as hub:
        people = hub.ask("people")["people"]
    if as_json:
        print_json(people)
    elif as_toml:
        click.echo("\n".join(render_toml(people)) or "# every identity has a name")
    else:
        rows = [(one["name"], ", ".join(one["identities"]), "quiet now" if one["quiet_now"] else "") for one in people]
        print_table(("name", "identities", ""), rows, "only you, at this machine")


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
    """Send a message to everyone; it asks nothing. "-" reads it from standard input."""
    from atlasbridge.integrations.caller_label import origin_of

    text = sys.stdin.read() if message == "-" else message
    who = origin_of("notify", label, (), os.environ).label
    with hub_client(start=True) as hub:
        hub.ask("notify", message=text, label=who)
    click.echo("Sent.")
