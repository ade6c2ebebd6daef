"""`atlasbridge logs`: what was decided, from the audit log, or what the hub says of itself."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from atlasbridge.cli.audit import entry_row, sessions_in
from atlasbridge.cli.by_name import find_session_id
from atlasbridge.cli.completion import complete_sessions
from atlasbridge.cli.printing import home
from atlasbridge.cli.records import read_audit_file
from atlasbridge.core.escape import escape_controls

POLL_S = 0.2


@click.command("logs")
@click.option("--tail", "-f", "follow", is_flag=True, help="Go on printing as entries come.")
@click.option("-n", "--lines", default=20, show_default=True, help="How many to begin with.")
@click.option("--session", default="", shell_complete=complete_sessions, help="Only this session: its name or id.")
@click.option("--hub", "of_hub", is_flag=True, help="The hub's own log instead of the audit log.")
@click.option("--json", "as_json", is_flag=True, help="The lines as they are.")
def command(follow: bool, lines: int, session: str, of_hub: bool, as_json: bool) -> None:
    """Show the newest entries of the audit log."""
    if session and of_hub:
        raise click.UsageError("--session is for the audit log, not for the hub's own")
    path = home().log if of_hub else home().audit
    session_id = find_session_id(session, sessions_in(list(read_audit_file(home())))) if session else ""
    for line in read_lines(path, lines, follow, session_id):
        click.echo(line if as_json else (hub_line(line) if of_hub else audit_line(line)))


def read_lines(path: Path, last: int, follow: bool, about: str = "") -> Iterator[str]:
    """The last whole lines (that speak of `about`), then those that come; a rotated file is followed."""
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
    text = f"{entry.get('ts', '')[:19]}  {entry.get('level', ''):7}  {entry.get('message', '')}"
    return escape_controls(text + ("\n" + entry["traceback"] if "traceback" in entry else ""))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
