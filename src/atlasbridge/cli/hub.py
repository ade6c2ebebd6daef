"""`atlasbridge hub`: starts, stops and inspects the background process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from itertools import chain
from typing import Any

import click

from atlasbridge.bootstrap import find_adapter_faults
from atlasbridge.cli.columns import terminal_cols
from atlasbridge.cli.overview import print_line, render_overview
from atlasbridge.cli.printing import ago, echo, home, hub_client, json_option, print_json, print_table, span
from atlasbridge.cli.run import needs_unix, print_error, warn_of_older_hub
from atlasbridge.core.daemon.request import HINT, compare_version, ensure_hub, lock_holder, stop_hub
from atlasbridge.core.peer import own_uid
from atlasbridge.core.process import own_environ, own_python
from atlasbridge.core.system_setup import SystemSetup, read_setup

_PATIENCE_S = 60.0  # a person who only starts the hub can wait longer, for slow machines


def _system_setup() -> SystemSetup | None:
    """Return the system setup if this command applies to it: the caller is root or one of its people."""
    named = os.environ.get("ATLASBRIDGE_HOME") or os.environ.get("ATLASBRIDGE_HUB_SOCKET")
    setup = None if named else read_setup()
    return setup if setup is not None and (own_uid() == 0 or setup.concerns(own_uid())) else None


def _print_each(steps: Iterable[str]) -> None:
    """Each step once it is done."""
    for step in steps:
        click.echo(step)


@click.group("hub")
def command() -> None:
    """Start, stop, restart or show the hub."""


@command.command()
@click.option("--foreground", is_flag=True, help="Stay in this terminal and log to it.")
def start(foreground: bool) -> int:
    """Start the hub, unless it runs already."""
    if (setup := _system_setup()) is not None:
        from atlasbridge.cli.system_hub import start_system

        _print_each(start_system(setup))
        return 0
    if foreground:
        words = own_python("atlasbridge.core.daemon", "--foreground")
        if not hasattr(os, "fork"):  # on Windows, exec would return to the shell at once
            return subprocess.call(words, env=own_environ(os.environ))
        os.execve(words[0], words, own_environ(os.environ))
    started = ensure_hub(home(), _PATIENCE_S)
    click.echo(f"the hub {'started' if started else 'was already running'} (process {lock_holder(home().lock)})")
    if not started:
        warn_of_older_hub()
    return 0


@command.command()
def stop() -> None:
    """Stop the hub.  Sessions continue; their prompts wait for the next hub."""
    if (setup := _system_setup()) is not None:
        from atlasbridge.cli.system_hub import stop_system

        _print_each(stop_system(setup))
        return
    click.echo("the hub has stopped" if stop_hub(home()) else "the hub was not running")


@command.command()
def restart() -> None:
    """Stop the hub and start it again, with the version of this command.  Sessions and their open prompts are kept."""
    if (setup := _system_setup()) is not None:
        from atlasbridge.cli.system_hub import start_system, stop_system

        _print_each(chain(stop_system(setup), start_system(setup)))
        return
    stop_hub(home())
    ensure_hub(home(), _PATIENCE_S)
    click.echo(f"the hub restarted (process {lock_holder(home().lock)})")


@command.command()
def reload() -> None:
    """Reload the configuration; an invalid one is refused, and the old one stays."""
    with hub_client() as hub:
        hub.ask("reload")
    click.echo("the hub reloaded its configuration")


@command.command()
@click.option("--now/--later", default=True, show_default=True, help="Start it at once, if the system can.")
@click.option("--system", is_flag=True, help="Run the hub as a separate user, for the whole machine. Needs root.")
@click.option(
    "--for",
    "people",
    multiple=True,
    help="With --system: the user whose sessions use it.  [default: the user who called sudo]",
)
@click.option(
    "--sudo-only",
    is_flag=True,
    help="With --system: terminals decide only with sudo; the page and chats work as before.",
)
def install(now: bool, system: bool, people: tuple[str, ...], sudo_only: bool) -> None:
    """Start the hub at login: a systemd user unit, or a launchd agent on macOS.

    With --system: run the hub as a separate user, whose files and socket your tools cannot read or replace.
    """
    needs_unix("hub install", "the hub starts on demand")
    if system:
        from atlasbridge.cli.system_hub import install_system

        caller = os.environ.get("SUDO_USER", "")
        _print_each(install_system(people or ((caller,) if caller not in ("", "root") else ()), sudo_only))
        return
    from atlasbridge.cli.install import install_service

    _print_each(install_service(home(), now))


@command.command()
@click.option(
    "--system", is_flag=True, help="Remove the user, folder and service that install --system made. Needs root."
)
@click.option("--keep-data", is_flag=True, help="With --system: keep the hub's folder, for root.")
def uninstall(system: bool, keep_data: bool) -> None:
    """Stop starting the hub at login.  It still starts on demand."""
    if system:
        from atlasbridge.cli.system_hub import uninstall_system

        _print_each(uninstall_system(keep_data))
        return
    from atlasbridge.cli.install import uninstall_service

    _print_each(uninstall_service())


@command.command()
@json_option
def status(as_json: bool) -> None:
    """Show the hub's process, channels, sessions and open prompts."""
    with hub_client() as hub:
        answer = hub.ask("status")
    answer.pop("ok")
    if as_json:
        print_json(answer)
    else:
        print_status(answer)
    print_error(compare_version(answer), HINT, 0)


_WAYS = {"keys": "typed", "hook": "taken by their tool's own hook", "first_key": "taken by their first key"}


def print_status(answer: dict[str, Any], counts: bool = True) -> None:
    head = answer["audit_head"]
    echo(f"hub       process {answer['pid']}, up {span(answer['uptime_s'])}")
    idle = answer.get("at_prompt", 0)
    waiting = f"{answer['open_prompts'] - idle} waiting for you" + (f", {idle} at their prompt" if idle else "")
    if counts:
        echo(f"sessions  {answer['sessions']}, {waiting}")
    if counts and answer.get("still_waiting"):
        echo(f"not asked {answer['still_waiting']} left alone or late; ask again: atlasbridge reply ID --again")
    if answer.get("away"):
        echo("away      yes; end it: atlasbridge here")
    if ways := answer.get("answered_ways"):
        echo("answers   " + ", ".join(f"{count} {_WAYS.get(way, way)}" for way, count in ways.items()))
    entries = "1 entry" if head["count"] == 1 else f"{head['count']} entries"
    echo(f"audit     {entries}, head {head['hash'][:23]}")
    if answer.get("alarm"):
        echo(f"alarm     {answer['alarm']}")
    for entry in answer.get("unasked", ()):
        echo(f"ALARM     {describe_unasked(entry)}")
    rows = [(item["name"], item["state"], item.get("url", ""), _notes(item)) for item in answer["channels"]]
    print_table(("channel", "state", "where", "notes"), rows, "no channels")


def describe_unasked(entry: dict[str, Any]) -> str:
    what = "an answer" if entry.get("kind") == "answer" else "keys"
    session = str(entry.get("session_id", ""))[:8]
    return f"session {session} was sent {what} by process {entry.get('pid')}, and no decision of this hub explains it"


def _notes(channel: dict[str, Any]) -> str:
    if unreached := channel.get("unreached"):
        return f"{unreached} not shown yet: {channel.get('why', '')}"
    waiting = f"{channel['waiting']} not sent yet" if channel.get("waiting") else ""
    said = (channel.get("fault", ""), channel.get("notice", ""), waiting)
    return ". ".join(text.rstrip(".") for text in said if text)


# `atlasbridge status`: the overview of the bare command, and the hub with its channels below it.


@click.command("status")
@click.option("-a", "--all", "include_ended", is_flag=True, help="Also sessions that have ended.")
@click.option("--line", is_flag=True, help="One short line for a status bar or a shell prompt; starts no hub.")
@json_option
def status_command(include_ended: bool, line: bool, as_json: bool) -> None:
    """Show open prompts and running sessions, then the hub, its channels and any problems."""
    if line:
        print_line()
        return
    with hub_client(start=True) as hub:
        status = hub.ask("status")
        sessions = hub.ask("sessions", all=include_ended)["sessions"]
        found = hub.ask("prompts")
        health = hub.request("health").get("sessions", {})  # empty for a hub of an older version
    prompts = found["prompts"]
    status.pop("ok")
    sessions = [{**item, "health": health.get(item["session_id"], "")} for item in sessions]
    adapters = find_adapter_faults(home())
    if as_json:
        still = found["still_waiting"]
        about = {"hub": status, "sessions": sessions, "prompts": prompts, "still_waiting": still, "adapters": adapters}
        print_json(about)
        return
    running = [item for item in sessions if item["state"] == "active"]
    *lines, _, _ = render_overview(prompts, running, found["still_waiting"], terminal_cols())
    echo("\n".join(lines))
    print_status(status, counts=False)
    ended = [item for item in sessions if item not in running]
    if include_ended:
        rows = [
            (
                item["session_id"][:8],
                item["label"] or item["tool"],
                item["state"],
                "" if item["exit_code"] is None else item["exit_code"],
                ago(item["started_at"]),
                item["cwd"],
            )
            for item in ended
        ]
        print_table(("ended", "name", "state", "exit", "started", "folder"), rows, "no session has ended")
    if unwell := [(item["session_id"][:8], item["health"]) for item in running if item["health"] not in ("", "ok")]:
        print_table(("session", "health"), unwell, "")
    if adapters:
        print_table(("adapter", "fault"), list(adapters.items()), "")
    told = [_adapter_row(item) for item in sessions if item.get("adapter")]
    if told:
        print_table(("session", "adapter of", "says"), told, "")


def _adapter_row(session: dict[str, Any]) -> tuple[str, str, str]:
    """The adapter's fault first, then the output of `snapshot_context`."""
    adapter = session["adapter"]
    context = [f"{name}={value}" for name, value in adapter.get("context", {}).items() if name != "session_id"]
    fault = [f"failed: {adapter['fault']}"] if adapter.get("fault") else []
    return session["session_id"][:8], session["tool"], ", ".join([*fault, *context])
