"""`atlasbridge logs`: decisions from the audit log, output of a session, or the hub's own log."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from atlasbridge.cli.by_name import NotFound, find_session_id, sessions_of
from atlasbridge.cli.help import complete_sessions
from atlasbridge.cli.overview import asking_line
from atlasbridge.cli.printing import (
    dump,
    echo,
    home,
    hub_client,
    json_option,
    last_option,
    print_found,
    print_json,
    print_line,
)
from atlasbridge.cli.sessions import ran
from atlasbridge.core.audit.chain import Head
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import read_lines as read_log_lines
from atlasbridge.core.clock import SystemClock, iso, local_time
from atlasbridge.core.daemon.audit_heads import parse_head, read_journal
from atlasbridge.core.daemon.request import HubClient, lock_holder
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home
from atlasbridge.core.operations import SeenHead
from atlasbridge.core.peer import own_uid
from atlasbridge.core.prompt.answer import call_person
from atlasbridge.core.schema import write
from atlasbridge.core.session.model import Named, choose, did_you_mean, join_names, nearest
from atlasbridge.core.store.verify import verify_home
from atlasbridge.core.system_setup import read_setup
from atlasbridge.core.values import as_dict

POLL_S = 0.2


@click.command("logs")
@click.argument("session", default="", shell_complete=complete_sessions)
@click.option("-f", "--follow", "--tail", is_flag=True, help="Print new entries as they come.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    help="How many lines to print first (default: 20 of the audit log, all of a session).",
)
@click.option("--session", "about", default="", shell_complete=complete_sessions, help="Audit entries of this session.")
@click.option("--hub", "of_hub", is_flag=True, help="The hub's own log instead of the audit log.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines unchanged.")
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
    echo(escape_controls(describe_session(session)), err=True)
    click.echo("".join(f"{escape_controls(line)}\n" for line in output), nl=False)
    if not shown.get("ok"):
        click.echo("no output was kept", err=True)
    for item in answers[::-1]:
        said = f"{local_time(item['decided_at'])}  {asking_line(item)}  →  {describe_answer(item)}"
        echo(escape_controls(said, keep_lines=False), err=True)


def plain_rows(screen: dict[str, Any]) -> list[str]:
    """Scrollback and screen as text, without the empty rows at the end."""
    rows = ["".join(str(run[0]) for run in row).rstrip() for row in (*screen.get("past", ()), *screen["styled"])]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def describe_session(session: dict[str, Any]) -> str:
    name = f"{session['label'] or session['tool']} ({session['session_id'][:8]})"
    if session["state"] == "active":
        return f"{name} has been running since {local_time(session['started_at'])}, in {session['cwd']}"
    how = "without an exit status" if session["exit_code"] is None else f"with exit status {session['exit_code']}"
    return f"{name} ended {how} at {local_time(session['ended_at'])}, after {ran(session)}, in {session['cwd']}"


def describe_answer(prompt: dict[str, Any]) -> str:
    who = call_person(prompt["decided_by"], prompt.get("decided_from", ""), prompt.get("decided_name") or "")
    quote = "" if prompt["constraints"].get("secret") else '"'
    said = (
        "left alone"
        if prompt["state"] == "canceled" or prompt["decided_value"] == "cancel"
        else f"{quote}{prompt['decided_value']}{quote}"
    )
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


# `atlasbridge audit`: verifies the audit log, shows it, or exports a copy.


_FIXED = ("seq", "ts", "event", "session_id", "prompt_id", "prev_hash", "hash")


@click.group("audit")
def audit_command() -> None:
    """Verify, show or export the audit log."""


@audit_command.command()
@click.option(
    "--head", "heads", multiple=True, help="A head that you have from a chat or a receipt: COUNT:sha256:HASH."
)
@json_option
def verify(heads: tuple[str, ...], as_json: bool) -> int:
    """Verify the whole chain, and name the first bad entry.  Exit status 1 if something is wrong.

    This also looks for the heads that the system's journal and the fleet server have recorded, and checks the
    signatures of passkeys.
    """
    given = [parse_head(text) for text in heads]
    if None in given:
        raise click.UsageError("a head is COUNT:sha256:HASH, as receipts and status show it")
    setup = read_setup() if home().system else None
    place, uid = (Path(setup.home), setup.uid) if setup else (home().root, own_uid())
    kept, fault = _ask_fleet(place)
    seen = [*(SeenHead(*head) for head in (*given, *kept) if head), *read_journal(place, uid)]
    verdict = _verdict(seen)
    if fault:
        verdict["incidents"] = [*verdict["incidents"], f"the fleet server was not asked for its heads: {fault}"]
    if as_json:
        print_json(verdict)
    elif verdict["ok"]:
        echo(f"the audit log is whole: {verdict['count']} entries, head {verdict['head']}")
    else:
        click.echo(f"entry {verdict['bad_entry']} of {verdict['where']} {verdict['problem']}", err=True)
    if not as_json:
        for sentence in verdict["incidents"]:
            click.echo(escape_controls(f"  {sentence}", keep_lines=False), err=not verdict["ok"])
    return 0 if verdict["ok"] else 1


def _ask_fleet(place: Path) -> tuple[list[Head | None], str]:
    """The heads that the fleet server has kept, and why it could not be asked; nothing for a machine without one."""
    from atlasbridge.fleet.member.membership import read_membership

    try:
        membership = read_membership(place)
        if membership is None:
            return [], ""
        import asyncio

        from atlasbridge.fleet.member.joining import ask_heads

        return [parse_head(one) for one in asyncio.run(ask_heads(membership))], ""
    except (AtlasBridgeError, ImportError) as error:
        return [], str(error)


def read_audit_file(home: Home) -> Iterator[dict[str, Any]]:
    """Yield the entries of audit.log without verifying them."""
    for line in read_log_lines(home.audit):
        try:
            yield dict(json.loads(line))
        except ValueError:
            continue  # an incomplete last line; the next hub repairs it


def _verdict(seen: list[SeenHead]) -> dict[str, Any]:
    """The hub verifies its own store. Without a hub, the files are verified directly."""
    if home().system or lock_holder(home().lock) is not None:
        with hub_client() as hub:
            return dict(hub.ask("audit.verify", seen=[as_dict(head) for head in seen])["verdict"])
    return dict(write(verify_home(home().root, seen)))


@audit_command.command()
@last_option(20)
@click.option("--session", default="", shell_complete=complete_sessions, help="Only this session: its name or id.")
@click.option("--prompt", default="", help="Only this prompt: its id, or the beginning of one.")
@click.option("--event", default="", help="Only this event, such as REPLY_INJECTED.")
@json_option
def show(limit: int, session: str, prompt: str, event: str, as_json: bool) -> None:
    """Show the last entries."""
    entries = list(_entries())
    session_id = find_session_id(session, sessions_in(entries)) if session else ""
    prompt_id = find_in_log(prompt, entries) if prompt else ""
    if event and event.upper() not in AuditEvent.__members__:
        raise click.UsageError(
            f"there is no event {event}; {did_you_mean(nearest(event, AuditEvent.__members__))}".rstrip("; ")
        )
    entries = [
        entry
        for entry in entries
        if session_id in ("", entry.get("session_id"))
        and prompt_id in ("", entry.get("prompt_id"))
        and event.upper() in ("", entry["event"])
    ][-limit:]
    print_found(entries, as_json, ("seq", "time", "event", "session", "prompt", "what"), entry_row, "empty")


def _entries() -> Iterator[dict[str, Any]]:
    """Read the entries from the file, or from the system's hub. A log in a member's own folder is not that hub's."""
    setup = read_setup() if home().system else None
    if setup is None or setup.uid == own_uid():
        yield from read_audit_file(home())
        return
    after = 0
    with hub_client() as hub:
        while found := hub.ask("audit", after=after, limit=1000)["entries"]:
            yield from found
            after = int(found[-1]["seq"])


def sessions_in(entries: list[dict[str, Any]]) -> list[Named]:
    """Return the sessions in the log, with their names from the log or the hub. It needs no hub."""
    names = {str(item["session_id"]): "" for item in entries if item.get("session_id")}
    names |= {str(item["session_id"]): str(item["label"]) for item in entries if item.get("label") is not None}
    live: set[str] = set()
    if lock_holder(home().lock) is not None:
        with hub_client() as hub:
            known = sessions_of(hub, include_ended=True)
        names |= {item.id: item.name for item in known if item.id in names}
        live = {item.id for item in known if item.live}
    return [Named(session_id, name, session_id in live) for session_id, name in names.items()]


def find_in_log(said: str, entries: list[dict[str, Any]]) -> str:
    choice = choose(
        said, [Named(name) for name in {str(item["prompt_id"]) for item in entries if item.get("prompt_id")}]
    )
    if len(choice.found) > 1:
        raise NotFound(f"{said!r} means several prompts", f"say which: {join_names(choice.found)}")
    if not choice.one:
        raise NotFound(f"the log knows no prompt {said!r}", did_you_mean(choice.near))
    return choice.one


def entry_row(entry: dict[str, Any]) -> tuple[object, ...]:
    rest = "  ".join(f"{name}={value}" for name, value in entry.items() if name not in _FIXED)
    return (
        entry["seq"],
        local_time(entry["ts"]),
        entry["event"],
        entry.get("session_id", "")[:8],
        entry.get("prompt_id", "")[:8],
        escape_controls(rest, keep_lines=False),
    )


@audit_command.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file; standard output when left out.")
@click.option("--format", "form", type=click.Choice(["jsonl", "json", "csv"]), default="jsonl", show_default=True)
def export(output: Path | None, form: str) -> None:
    """Export the log, entry by entry; control and misleading characters are escaped."""
    entries = _entries()
    if output is None:
        _write(entries, form, sys.stdout)
    else:
        output.touch(mode=0o600)
        with output.open("w", encoding="utf-8", newline="") as file:
            _write(entries, form, file)
        click.echo(f"written to {output}", err=True)


def _write(entries: Iterator[dict[str, Any]], form: str, file: Any) -> None:
    if form == "jsonl":
        for entry in entries:
            file.write(dump(entry) + "\n")
    elif form == "json":
        file.write(dump(list(entries), indent=2) + "\n")
    else:
        import csv

        writer = csv.writer(file)
        writer.writerow((*_FIXED, "fields"))
        for entry in entries:
            rest = {name: value for name, value in entry.items() if name not in _FIXED}
            fixed = (escape_controls(str(entry.get(name, "")), keep_lines=False) for name in _FIXED)
            writer.writerow((*fixed, dump(rest)))


# `atlasbridge events`: prints events for other programs.


REMEMBERED = 10_000
RETRY_S = 0.2


@click.command("events")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("-f", "--follow", is_flag=True, help="Print open prompts, then events as they happen.")
@click.option("--session", default="", shell_complete=complete_sessions, help="Only this session: its name or id.")
def events_command(as_json: bool, follow: bool, session: str) -> None:
    """Print events as they happen.  With --follow it continues over a restart of the hub, which is an event, too."""
    printed = PrintedEvents()
    hub = hub_client(start=True)
    while True:
        with hub:
            if session:
                session = find_session_id(session, sessions_of(hub, include_ended=True))
            for event in hub.stream("events", follow=follow, session=session, recent=printed.interrupted):
                if printed.is_new(event):
                    (print_line if as_json else print_short)(event)
        if not follow:
            return
        hub = await_hub()
        printed.interrupted = True
        again: dict[str, object] = {"event": "hub.reconnected", "at": iso(SystemClock().wall())}
        (print_line if as_json else print_short)(again)


class PrintedEvents:
    """Remembers printed events, because the hub repeats recent ones after a reconnection."""

    def __init__(self) -> None:
        self.interrupted = False
        self._keys: dict[tuple[str, ...], None] = {}

    def is_new(self, event: dict[str, object]) -> bool:
        names = ("event", "prompt_id", "session_id") + (() if event["event"] == "prompt.raised" else ("at",))
        key = tuple(str(event.get(name, "")) for name in names)
        if self.interrupted and key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > REMEMBERED:
            del self._keys[next(iter(self._keys))]
        return True


def await_hub() -> HubClient:
    """Wait for the next hub without starting one, so that a hub that was stopped on purpose stays stopped."""
    while True:
        try:
            return hub_client()
        except HubUnavailable:
            time.sleep(RETRY_S)


def print_short(event: dict[str, object]) -> None:
    words = [local_time(str(event["at"]))[11:], str(event["event"]), str(event.get("session_id", ""))[:8]]
    words += [
        str(event[name])[:60]
        for name in ("prompt_id", "excerpt", "reason", "by", "exit_code")
        if event.get(name) is not None
    ]
    click.echo(escape_controls("  ".join(words), keep_lines=False))
