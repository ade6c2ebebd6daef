"""Verifies the audit log: compares the two copies of the chain (file and table) and the head that anchors them.

`AuditVerdict` documents what it can detect. It changes nothing, so a command can also use it while the hub is down.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.chain import START, Fault, Head, check_entry, parse_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import HEAD_NAME, read_anchor, read_lines
from atlasbridge.core.audit.passkeys import LogWalk
from atlasbridge.core.clock import local_time
from atlasbridge.core.operations import AuditVerdict, SeenHead
from atlasbridge.core.store.database import Database
from atlasbridge.core.store.journal import audit_rows, holds, line_of, read_head, row_of, signed_lines
from atlasbridge.core.values import frozen, replace

LOOKS = 10  # a log that is wrong stays wrong
PAUSE_S = 0.1


def verify(
    connection: sqlite3.Connection,
    audit_path: Path,
    size: int | None = None,
    anchor: Head | None = None,
    seen: Iterable[SeenHead] = (),
) -> AuditVerdict:
    """Reads both copies side by side, so that a line that is the same in both is checked once.

    `size` is the size of the file to check. `anchor` is the content of audit.head before the table was read, because
    audit.head lags behind the table.
    """
    head = read_head(connection)
    table, file = _Walk("table", head), _Walk("audit.log", head)
    lines = (_line(row) for row in audit_rows(connection))
    for recorded, written in zip_longest(lines, read_lines(audit_path, size)):
        same = recorded == written and table.reached == file.reached
        step = table.take(recorded)
        file.take(written, step if same else None)
        if table.fault and file.fault:
            break
    faults = [walk for walk in (table.end(), file.end()) if walk.fault]
    told = _incidents(connection)
    whole = AuditVerdict(True, *head, repairs=_count_repairs(connection), incidents=tuple(one.sentence for one in told))
    if faults:
        first = min(faults, key=lambda walk: walk.fault.seq if walk.fault else 0)
        assert first.fault is not None
        return _spoilt(whole, first.fault, first.where)
    walk = LogWalk()
    signed = next(filter(None, map(walk.take, map(_entry, signed_lines(connection)))), None)
    if walk.unchecked:
        unchecked = f"{walk.unchecked} signatures of passkeys were not checked: webauthn is not installed here"
        whole = replace(whole, incidents=(*whole.incidents, unchecked))
    if signed:
        return _spoilt(whole, signed, "audit.log")
    lost = (
        _below_anchor(connection, anchor)
        or _not_as_seen(connection, seen)
        or next((one.lost for one in told if one.lost), None)
    )
    return _spoilt(whole, lost, "audit.log") if lost else whole


def _entry(line: str) -> dict[str, Any]:
    return parse_entry(line) or {}


def _spoilt(verdict: AuditVerdict, fault: Fault, where: str) -> AuditVerdict:
    return replace(verdict, ok=False, bad_entry=fault.seq, where=where, problem=fault.problem)


def _not_as_seen(connection: sqlite3.Connection, seen: Iterable[SeenHead]) -> Fault | None:
    """Detects an older log that was put back: somebody else has kept a later head."""
    first = _entry(line_of(connection, 1) or "").get("hash")
    same = (Head(one.entries, one.hash) for one in seen if one.log in ("", first))
    missing = sorted(head for head in same if not holds(connection, head))
    if not missing:
        return None
    return Fault(missing[0].entries, "is missing or another one: its head was seen elsewhere (journal, chat or server)")


def _below_anchor(connection: sqlite3.Connection, anchor: Head | None) -> Fault | None:
    if anchor is None or holds(connection, anchor):
        return None
    found = read_head(connection).entries
    if anchor.entries > found:
        return Fault(found + 1, f"is missing: audit.head has seen {anchor.entries} entries")
    return Fault(anchor.entries, "is not the one that audit.head has seen")


def verify_home(home: Path, seen: Iterable[SeenHead] = ()) -> AuditVerdict:
    """Verifies without a ledger: read-only, repairs nothing. A hub may write meanwhile: a fault counts only if nothing
    has changed since."""
    for _ in range(LOOKS):
        before = _progress(home)
        verdict = _verify_once(home, seen)
        if verdict.ok:
            break
        time.sleep(PAUSE_S)  # an entry reaches the table first, then the file, then audit.head
        if _progress(home) == before:
            break
    return verdict


def _verify_once(home: Path, seen: Iterable[SeenHead]) -> AuditVerdict:
    anchor = read_anchor(home / HEAD_NAME)
    database = Database.open_read_only(home / "atlasbridge.db")
    try:
        with database.reading() as connection:
            return verify(connection, home / "audit.log", anchor=anchor, seen=seen)
    finally:
        database.close()


def _progress(home: Path) -> tuple[Head, int]:
    """Changes with each entry that is written."""
    path = home / "audit.log"
    database = Database.open_read_only(home / "atlasbridge.db")
    try:
        with database.reading() as connection:
            return read_head(connection), path.stat().st_size if path.exists() else 0
    finally:
        database.close()


def prepare(path: Path, audit_path: Path, seen: Iterable[SeenHead] = ()) -> Callable[[], AuditVerdict]:
    """Fixes the current state of the table and of the file; later changes are not examined."""
    anchor = read_anchor(audit_path.with_name(HEAD_NAME))
    database = Database.open_read_only(path, any_thread=True)
    database.connection.execute("BEGIN")
    read_head(database.connection)  # the first read of a transaction fixes its snapshot
    size = audit_path.stat().st_size if audit_path.exists() else 0

    def check() -> AuditVerdict:
        try:
            with database.reading() as connection:
                return verify(connection, audit_path, size, anchor, seen)
        finally:
            database.close()

    return check


def _line(row: tuple[Any, ...]) -> str:
    """The row's line; empty if the columns of the row do not match its line."""
    line = str(row[-1])
    return line if row_of(line) == row else ""


class _Walk:
    """Follows one copy of the chain to the anchored head and checks that it is neither shorter, longer nor
    different."""

    def __init__(self, where: str, anchor: Head) -> None:
        self.where = where
        self.reached = START
        self.fault: Fault | None = None
        self._anchor = anchor

    def take(self, line: str | None, known: Fault | Head | None = None) -> Fault | Head | None:
        """Checks the next line. `known` is the result of the other walk for the same line at the same position."""
        if line is None or self.fault:
            return None
        if self.reached.entries == self._anchor.entries:
            step: Fault | Head = Fault(self.reached.entries + 1, "is not known to the store's head")
        else:
            step = known or check_entry(self.reached, line)
        if isinstance(step, Fault):
            self.fault = step
        else:
            self.reached = step
        return step

    def end(self) -> _Walk:
        if not self.fault and self.reached.entries < self._anchor.entries:
            self.fault = Fault(self.reached.entries + 1, "is missing")
        elif not self.fault and self.reached.hash != self._anchor.hash:
            self.fault = Fault(self.reached.entries, "is not the one that the store's head names")
        return self


def _count_repairs(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM audit_events WHERE event = ?", (AuditEvent.AUDIT_REPAIRED.value,)
    ).fetchone()
    return int(row[0])


@frozen
class _Incident:
    """Something that happened to the log: a sentence from its entry, and what was permanently lost."""

    sentence: str
    lost: Fault | None = None


def _incidents(connection: sqlite3.Connection) -> list[_Incident]:
    events = (AuditEvent.AUDIT_REPAIRED.value, AuditEvent.AUDIT_ADOPTED.value, AuditEvent.AUDIT_CUT.value)
    rows = connection.execute("SELECT entry FROM audit_events WHERE event IN (?, ?, ?) ORDER BY seq", events)
    return [_incident(parse_entry(line) or {}) for (line,) in rows]


def _incident(entry: Mapping[str, Any]) -> _Incident:
    at = f"entry {entry.get('seq')}, {local_time(str(entry.get('ts') or ''))}"
    if entry.get("event") == AuditEvent.AUDIT_CUT:
        found, expected = int(entry["found"]), int(entry["expected"])
        said = f"the log was shortened or exchanged: audit.head had seen {expected} entries, {found} were left ({at})"
        if expected > found:
            return _Incident(said, Fault(found + 1, f"was cut off: {expected} entries had been written ({at})"))
        return _Incident(said, Fault(expected, f"is not the one that had been written ({at})"))
    if entry.get("event") == AuditEvent.AUDIT_ADOPTED:
        entries = int(entry["entries"])
        said = f"the database was lost, and {entries} entries were taken over from audit.log ({at})"
        if entry.get("anchored", True):
            return _Incident(said)
        return _Incident(said, Fault(entries + 1, f"may have been cut off: database and audit.head were lost ({at})"))
    if entry.get("set_aside"):
        return _Incident(f"audit.log had entries that the database did not know; it is {entry['set_aside']} now ({at})")
    return _Incident(f"audit.log was torn, cut or lost, and {entry.get('restored', 0)} entries were restored ({at})")
