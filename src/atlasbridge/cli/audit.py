"""`atlasbridge audit`: verifies the audit log, shows it, or exports a copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from atlasbridge.cli.by_name import NotFound, find_session_id, sessions_of
from atlasbridge.cli.completion import complete_sessions
from atlasbridge.cli.printing import dump, home, hub_client, json_option, print_json, print_table
from atlasbridge.cli.records import read_audit_file
from atlasbridge.core.audit.chain import Head
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import local_time
from atlasbridge.core.daemon.audit_heads import parse_head, read_journal
from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.peer import own_uid
from atlasbridge.core.session.model import Named, choose, listed, meant, nearest
from atlasbridge.core.store.verify import Seen, verify_home
from atlasbridge.core.system_setup import read_setup

_FIXED = ("seq", "ts", "event", "session_id", "prompt_id", "prev_hash", "hash")


@click.group("audit")
def command() -> None:
    """Verify, show or export the audit log."""


@command.command()
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
    seen = [*(Seen(*head) for head in (*given, *kept) if head), *read_journal(place, uid)]
    verdict = _verdict(seen)
    if fault:
        verdict["incidents"] = [*verdict["incidents"], f"the fleet server was not asked for its heads: {fault}"]
    if as_json:
        print_json(verdict)
    elif verdict["ok"]:
        click.echo(f"the audit log is whole: {verdict['count']} entries, head {verdict['head']}")
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


def _verdict(seen: list[Seen]) -> dict[str, Any]:
    """The hub verifies its own store. Without a hub, the files are verified directly."""
    if home().system or lock_holder(home().lock) is not None:
        with hub_client() as hub:
            return dict(hub.ask("audit.verify", seen=[head._asdict() for head in seen])["verdict"])
    return verify_home(home().root, seen).to_json()


@command.command()
@click.option("-n", "--lines", "--limit", "limit", default=20, show_default=True, help="How many, from the end.")
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
            f"there is no event {event}; {meant(nearest(event, AuditEvent.__members__))}".rstrip("; ")
        )
    entries = [
        entry
        for entry in entries
        if session_id in ("", entry.get("session_id"))
        and prompt_id in ("", entry.get("prompt_id"))
        and event.upper() in ("", entry["event"])
    ][-limit:]
    if as_json:
        print_json(entries)
        return
    print_table(("seq", "time", "event", "session", "prompt", "what"), [entry_row(entry) for entry in entries], "empty")


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
        raise NotFound(f"{said!r} means several prompts", f"say which: {listed(choice.found)}")
    if not choice.one:
        raise NotFound(f"the log knows no prompt {said!r}", meant(choice.near))
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


@command.command()
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
