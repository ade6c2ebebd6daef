"""Checks the audit log against the store: two copies of one chain, and the head that anchors them.

What it can find and what it cannot is said in `AuditVerdict`; it changes nothing, so it also serves a command that
looks while the hub is down.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.chain import START, Fault, Head, check_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import read_lines
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database
from atlasbridge.core.values import as_dict, frozen


@frozen
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
        return as_dict(self)


def verify(connection: sqlite3.Connection, audit_path: Path, size: int | None = None) -> AuditVerdict:
    """Both copies side by side, so that a line that is the same in both is checked once.  `size`: of the file."""
    head = audit_events.head(connection)
    table, file = _Walk("table", head), _Walk("audit.log", head)
    lines = (_line(row) for row in audit_events.rows(connection))
    for recorded, written in zip_longest(lines, read_lines(audit_path, size)):
        same = recorded == written and table.reached == file.reached
        step = table.take(recorded)
        file.take(written, step if same else None)
        if table.fault and file.fault:
            break
    faults = [walk for walk in (table.end(), file.end()) if walk.fault]
    repairs = _count_repairs(connection)
    if not faults:
        return AuditVerdict(True, *head, repairs=repairs)
    first = min(faults, key=lambda walk: walk.fault.seq if walk.fault else 0)
    assert first.fault is not None
    return AuditVerdict(False, *head, first.fault.seq, first.where, first.fault.problem, repairs)


def verify_home(home: Path) -> AuditVerdict:
    """The same without a ledger: read-only, repairs nothing."""
    database = Database.open_read_only(home / "atlasbridge.db")
    try:
        with database.reading() as connection:
            return verify(connection, home / "audit.log")
    finally:
        database.close()


def prepare(path: Path, audit_path: Path) -> Callable[[], AuditVerdict]:
    """Takes hold of the table and of the file as they are now; what is written meanwhile is not looked at."""
    database = Database.open_read_only(path, any_thread=True)
    database.connection.execute("BEGIN")
    audit_events.head(database.connection)  # the first read of a transaction decides what it sees
    size = audit_path.stat().st_size if audit_path.exists() else 0

    def check() -> AuditVerdict:
        try:
            with database.reading() as connection:
                return verify(connection, audit_path, size)
        finally:
            database.close()

    return check


def _line(row: tuple[Any, ...]) -> str:
    """The row's line; a row whose columns say something else than its line is no entry."""
    line = str(row[-1])
    return line if audit_events.row_of(line) == row else ""


class _Walk:
    """Follows one copy of the chain to the anchored head: neither shorter, nor longer, nor another."""

    def __init__(self, where: str, anchor: Head) -> None:
        self.where = where
        self.reached = START
        self.fault: Fault | None = None
        self._anchor = anchor

    def take(self, line: str | None, known: Fault | Head | None = None) -> Fault | Head | None:
        """The next line; `known` is what the other walk found out about the same line at the same place."""
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
