"""The table `audit_events` and its anchored head. It supports only append and read; triggers refuse everything else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from atlasbridge.core.audit.chain import START, Head, parse_entry, seal_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.signed_approval import FIELD, REFUSALS

_INSERT: Final = "INSERT INTO audit_events (seq, event, session_id, prompt_id, entry) VALUES (?, ?, ?, ?, ?)"


def head(connection: sqlite3.Connection) -> Head:
    row = connection.execute("SELECT count, hash FROM audit_head").fetchone()
    return Head(*row)


def last(connection: sqlite3.Connection) -> Head:
    """The head computed from the last entry."""
    row = connection.execute("SELECT seq, entry FROM audit_events ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(row[0], str((parse_entry(row[1]) or {}).get("hash", ""))) if row else START


def holds(connection: sqlite3.Connection, anchor: Head) -> bool:
    """Whether the entry that this head names exists and has the same hash."""
    line = line_of(connection, anchor.entries)
    return anchor == START or (parse_entry(line or "") or {}).get("hash") == anchor.hash


def append(connection: sqlite3.Connection, after: Head, ts: str, event: str, fields: Mapping[str, Any]) -> Head:
    """Appends an entry after the head `after`. Returns the new head, which must be stored in the same transaction."""
    line, new = seal_entry(after, ts, event, fields)
    connection.execute(_INSERT, (new.entries, str(event), fields.get("session_id"), fields.get("prompt_id"), line))
    return new


def put_head(connection: sqlite3.Connection, new: Head, exported: int) -> None:
    connection.execute("UPDATE audit_head SET count = ?, hash = ?, exported = ?", (*new, exported))


def exported(connection: sqlite3.Connection) -> int:
    """The number of entries that are certainly in audit.log; later ones can be lost in a power failure."""
    return int(connection.execute("SELECT exported FROM audit_head").fetchone()[0])


def mark_exported(connection: sqlite3.Connection, count: int) -> None:
    connection.execute("UPDATE audit_head SET exported = ?", (count,))


def adopt(connection: sqlite3.Connection, lines: Sequence[str]) -> None:
    """Imports a whole verified chain; only for a store without entries."""
    connection.executemany(_INSERT, (row_of(line) for line in lines))
    last = parse_entry(lines[-1]) or {}
    connection.execute("UPDATE audit_head SET count = ?, hash = ?", (last["seq"], last["hash"]))


def row_of(line: str) -> tuple[Any, ...]:
    """The row for a line. A line that is not a valid entry has no matching row."""
    entry = parse_entry(line) or {}
    return (*(entry.get(name) for name in ("seq", "event", "session_id", "prompt_id")), line)


def rows(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    yield from connection.execute("SELECT seq, event, session_id, prompt_id, entry FROM audit_events ORDER BY seq")


def lines_after(connection: sqlite3.Connection, seq: int) -> Iterator[str]:
    for (line,) in connection.execute("SELECT entry FROM audit_events WHERE seq > ? ORDER BY seq", (seq,)):
        yield line


def signed_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """Entries about passkeys: the keys, the prompts whose approval needs one, and their answers."""
    wanted = f'"{REFUSALS}":'
    found = connection.execute(
        "SELECT entry FROM audit_events WHERE event IN (?, ?) OR (event = ? AND instr(entry, ?) > 0)"
        " OR (event IN (?, ?) AND (instr(entry, ?) > 0 OR prompt_id IN"
        " (SELECT prompt_id FROM audit_events WHERE event = ? AND instr(entry, ?) > 0))) ORDER BY seq",
        (
            *(AuditEvent.PASSKEY_ADDED, AuditEvent.PASSKEY_REMOVED, AuditEvent.PROMPT_DETECTED, wanted),
            *(AuditEvent.REPLY_RECEIVED, AuditEvent.VOTE_CAST, f'"{FIELD}":', AuditEvent.PROMPT_DETECTED, wanted),
        ),
    )
    yield from (line for (line,) in found)


def line_of(connection: sqlite3.Connection, seq: int) -> str | None:
    row = connection.execute("SELECT entry FROM audit_events WHERE seq = ?", (seq,)).fetchone()
    return row[0] if row else None


def select(
    connection: sqlite3.Connection,
    *,
    after: int,
    limit: int,
    session_id: str,
    prompt_id: str,
    events: tuple[str, ...],
    newest: bool,
    before: int = 0,
) -> list[dict[str, Any]]:
    """Returns entries in the order of the chain; with `newest`, the last `limit` entries."""
    wanted = {"session_id": session_id, "prompt_id": prompt_id}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value}
    where = "".join(f" AND {name} = :{name}" for name in given)
    named = {f"event{place}": event for place, event in enumerate(events)}
    where += f" AND event IN ({', '.join(f':{name}' for name in named)})" if named else ""
    where += " AND seq < :before" if before else ""
    given |= {**named, "before": before}
    order = "DESC" if newest else "ASC"
    rows = connection.execute(
        f"SELECT entry FROM audit_events WHERE seq > :after{where} ORDER BY seq {order} LIMIT :limit",
        {**given, "after": after, "limit": limit},
    ).fetchall()
    entries = [parse_entry(row[0]) or {} for row in rows]
    return entries[::-1] if newest else entries
