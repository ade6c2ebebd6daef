"""Checks the audit log against the store: two copies of one chain, and the head that anchors them.

What it can find and what it cannot is said in `AuditVerdict`; it changes nothing, so it also serves a command that
looks while the hub is down.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.chain import START, Fault, Head, check_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import read_lines
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """`ok`, or the first bad entry and where it stands: "audit.log", "table" or "head".

    Any edit, deletion, insertion, reordering, truncation or rewriting of the file or of the table is found as long as
    the other copy or the head stands.  Who rewrites file, table and head together is found only by a person who wrote
    down an earlier head (`status` shows it).  `repairs` counts how often a torn, cut or lost log was restored.
    """

    ok: bool
    count: int
    head: str
    bad_entry: int | None = None
    where: str = ""
    problem: str = ""
    repairs: int = 0

    @property
    def sentence(self) -> str:
        if self.ok:
            return f"The audit log is whole: {self.count} entries, head {self.head}."
        return f"Entry {self.bad_entry} of the {self.where} {self.problem}."

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def verify(connection: sqlite3.Connection, audit_path: Path) -> AuditVerdict:
    head = audit_events.head(connection)
    table = _check("table", (_line(row) for row in audit_events.rows(connection)), head)
    file = _check("audit.log", read_lines(audit_path), head)
    faults = sorted((found for found in (table, file) if found), key=lambda found: found[1].seq)
    repairs = _count_repairs(connection)
    if faults:
        where, fault = faults[0]
        return AuditVerdict(False, head.entries, head.hash, fault.seq, where, fault.problem, repairs)
    return AuditVerdict(True, head.entries, head.hash, repairs=repairs)


def verify_home(home: Path) -> AuditVerdict:
    """The same without a ledger: read-only, repairs nothing."""
    database = Database.open_read_only(home / "atlasbridge.db")
    try:
        with database.reading() as connection:
            return verify(connection, home / "audit.log")
    finally:
        database.close()


def _line(row: tuple[Any, ...]) -> str:
    """The row's line; a row whose columns say something else than its line is no entry."""
    line = str(row[-1])
    return line if audit_events.row_of(line) == row else ""


def _check(where: str, lines: Iterable[str], anchor: Head) -> tuple[str, Fault] | None:
    """Follow the chain to the anchored head: neither shorter, nor longer, nor another."""
    reached = START
    for line in lines:
        if reached.entries == anchor.entries:
            return where, Fault(reached.entries + 1, "is not known to the store's head")
        step = check_entry(reached, line)
        if isinstance(step, Fault):
            return where, step
        reached = step
    if reached.entries < anchor.entries:
        return where, Fault(reached.entries + 1, "is missing")
    if reached.hash != anchor.hash:
        return where, Fault(reached.entries, "is not the one that the store's head names")
    return None


def _count_repairs(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM audit_events WHERE event = ?", (AuditEvent.AUDIT_REPAIRED.value,)
    ).fetchone()
    return int(row[0])
