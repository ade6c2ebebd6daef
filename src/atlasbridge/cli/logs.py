"""`atlasbridge logs`: decisions from the audit log, output of a session, or the hub's own log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from atlasbridge.cli.audit import entry_row, sessions_in
from atlasbridge.cli.by_name import find_session_id, sessions_of
from atlasbridge.cli.completion import complete_sessions
from atlasbridge.cli.overview import asking_line
from atlasbridge.cli.printing import home, hub_client, print_json
from atlasbridge.cli.records import read_audit_file
from atlasbridge.cli.sessions import ran
from atlasbridge.core.clock import local_time
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.answer import call_person

POLL_S = 0.2


@click.command("logs")
@click.argument("session", default="", shell_complete=complete_sessions)
@click.option("-f", "--follow", "--tail", is_flag=True, help="Print new entries as they come.")
@click.option("-n", "--lines", type=int, help="How many to begin with (of the audit log 20, of a session all).")
@click.option("--session", "about", default="", shell_complete=complete_sessions, help="Audit entries of this session.")
@click.option("--hub", "of_hub", is_flag=True, help="The hub's own log instead of the audit log.")
@click.option("--json", "as_json", is_flag=True, help="The lines as they are.")
def command(session: str, follow: bool, lines: int | None, about: str, of_hub: bool, as_json: bool) -> None:
    """Show what a session printed and who answered it, also after it has ended; without SESSION the audit log.

    A session's last screen and the 2,000 lines above it are kept as long as its record is, with secrets removed.
    """
    if session:
        if about or of_hub or follow:
            raise click.UsageError("logs SESSION takes --lines and --json; to follow a session: attach --watch SESSION")
        with hub_client(start=True) as hub:
            session_id = find_session_id(session, sessions_of(hub, include_ended=True))
            print_session(hub, session_id, lines, as_json)
        return
    if about and of_hub:
        raise click.UsageError("--session is for the audit log, not for the hub's own")
    path = home().log if of_hub else home().audit
    session_id = find_session_id(about, sessions_in(list(read_audit_file(home())))) if about else ""
    for line in read_lines(path, 20 if lines is None else lines, follow, session_id):
        click.echo(line if as_json else (hub_line(line) if of_hub else audit_line(line)))


def print_session(hub: HubClient, session_id: str, lines: int | None = None, as_json: bool = False) -> None:
    """Print the session's output to standard output; its summary, end and answers go to standard error."""
    session = hub.ask("sessions", all=True, session_id=session_id)["sessions"][0]
    shown = hub.request("screen", session_id=session_id, past=True)
    answers = [item for item in hub.ask("history", session=session_id, limit=100)["prompts"] if item.get("decided_by")]
    output = plain_rows(shown["screen"]) if shown.get("ok") else []
    output = output[-lines:] if lines else output
    if as_json:
        print_json({"session": session, "output": output, "kept": bool(shown.get("ok")), "answers": answers[::-1]})
        return
    click.echo(escape_controls(describe_session(session)), err=True)
    click.echo("".join(f"{escape_controls(line)}\n" for line in output), nl=False)
    if not shown.get("ok"):
        click.echo("its output was not kept", err=True)
    for item in answers[::-1]:
        said = f"{local_time(item['decided_at'])}  {asking_line(item)}  →  {describe_answer(item)}"
        click.echo(escape_controls(said, keep_lines=False), err=True)


def plain_rows(screen: dict[str, Any]) -> list[str]:
    """Scrollback and screen as text, without the empty rows at the end."""
    rows = ["".join(str(run[0]) for run in row).rstrip() for row in (*screen.get("past", ()), *screen["styled"])]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def describe_session(session: dict[str, Any]) -> str:
    name = f"{session['label'] or session['tool']} ({session['session_id'][:8]})"
    if session["state"] == "active":
        return f"{name} runs since {local_time(session['started_at'])}, in {session['cwd']}"
    how = "without an exit status" if session["exit_code"] is None else f"with exit status {session['exit_code']}"
    return f"{name} ended {how} at {local_time(session['ended_at'])}, after {ran(session)}, in {session['cwd']}"


def describe_answer(prompt: dict[str, Any]) -> str:
    who = call_person(prompt["decided_by"], prompt.get("decided_from", ""), prompt.get("decided_name") or "")
    said = "left alone" if prompt["state"] == "canceled" else f'"{prompt["decided_value"]}"'
    return f"{said} by {who}"


def read_lines(path: Path, last: int, follow: bool, about: str = "") -> Iterator[str]:
    """Yield the last complete lines that contain `about`, then new ones. Rotation of the file is followed."""
    position, inode = 0, -1
    first = True
    while True:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != inode or status.st_size < position:
                    position, inode = 0, status.st_ino
                file.seek(position)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            whole, newline = b"", b""
        position += len(whole) + len(newline)
        found = whole.decode(errors="replace").split("\n") if newline else []
        found = [line for line in found if about in line]
        yield from (found[-last:] if first and last else [] if first else found)
        first = False
        if not follow:
            return
        time.sleep(POLL_S)


def audit_line(line: str) -> str:
    entry = _parse(line)
    if entry is None or "event" not in entry:
        return escape_controls(line, keep_lines=False)
    seq, at, event, session, prompt, rest = entry_row(entry)
    return f"{at}  {seq:>5}  {event:18}  {session:8}  {prompt:8}  {rest}".rstrip()


def hub_line(line: str) -> str:
    entry = _parse(line)
    if entry is None:
        return escape_controls(line, keep_lines=False)
    text = f"{local_time(entry.get('ts', ''))}  {entry.get('level', ''):7}  {entry.get('message', '')}"
    return escape_controls(text + ("\n" + entry["traceback"] if "traceback" in entry else ""))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
