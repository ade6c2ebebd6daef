"""The database and the audit log as one: what is committed is audited, what is audited is committed.

An audit entry is a row in the transaction of its decision; only after the commit it is copied to audit.log.
The table is the truth.  A copy that fails blocks nothing (the decision is already recorded): it raises `alarm`, and the
same lines are written again with the next commit or by `flush`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.chain import START, Fault, check_chain, parse_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import AuditFile, Tail, read_lines, read_tail
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database


@dataclass(frozen=True, slots=True)
class Work:
    """One transaction under way: its connection, and one reading of each clock for everything in it."""

    connection: sqlite3.Connection
    now: float
    wall: float

    @property
    def at(self) -> str:
        return iso(self.wall)

    def audit(self, event: str, **fields: Any) -> None:
        audit_events.append(self.connection, self.at, event, fields)


class Journal:
    def __init__(self, database: Database, audit_path: Path, clock: Clock) -> None:
        self.database = database
        self.alarm = ""  # why audit.log is behind the table; "" when it is not
        self._file = AuditFile(audit_path)
        self._clock = clock
        self._exported = 0

    @contextmanager
    def write(self) -> Iterator[Work]:
        with self.database.transaction() as connection:
            yield Work(connection, self._clock.now(), self._clock.wall())
        self.flush()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.database.reading()

    @property
    def audit_path(self) -> Path:
        return self._file.path

    @property
    def backlog(self) -> int:
        """How many entries audit.log does not have yet."""
        with self.database.reading() as connection:
            return audit_events.head(connection).entries - self._exported

    def flush(self) -> bool:
        """Copy what is missing to audit.log.  False, with `alarm` set: it did not work, try again later."""
        try:
            if not self.alarm and not self._file.untouched():
                self.reconcile()
            self._export()
        except OSError as error:
            self.alarm = f"audit.log cannot be written ({error.strerror or error})"
            return False
        self.alarm = ""
        return True

    def _export(self) -> None:
        with self.database.reading() as connection:
            lines = list(audit_events.lines_after(connection, self._exported))
        if lines:
            self._file.append(lines)
            self._exported += len(lines)

    def reconcile(self) -> None:
        """Bring audit.log in line with the table after a crash, a loss, or a change behind our back.

        A torn end is cut and a missing end is written again, with a record that says so.  An entry that was changed
        is left as it is: `verify` must be able to name it.
        """
        with self.database.reading() as connection:
            head = audit_events.head(connection)
        if head == START and self._adopt():
            return
        tail, cut = self._last_entry()
        seq = _seq(tail)
        if seq > head.entries:
            aside = self._set_aside()
            tail, seq = Tail(None, 0, 0), 0
            self._repair(tail.good_size, seq, set_aside=aside, restored=head.entries)
        elif cut or seq < head.entries:
            self._repair(tail.good_size, seq, cut_bytes=cut, restored=head.entries - seq)
        else:
            self._resume(tail.good_size, seq)

    def _repair(self, size: int, exported: int, **what: Any) -> None:
        """The record first: if the file cannot be written now, the next start still finds it in the table."""
        with self.database.transaction() as connection:
            work = Work(connection, self._clock.now(), self._clock.wall())
            work.audit(AuditEvent.AUDIT_REPAIRED, **what)
        self._resume(size, exported)

    def _resume(self, size: int, exported: int) -> None:
        self._exported = exported
        self._file.start(size)

    def _last_entry(self) -> tuple[Tail, int]:
        """The last line that is an entry at all, and how many bytes of rubbish hang behind it."""
        tail = read_tail(self._file.path)
        cut = tail.torn_bytes
        while tail.line is not None and parse_entry(tail.line) is None:
            cut += len(tail.line) + 1
            tail = read_tail(self._file.path, tail.good_size - 1)
        return tail, cut

    def _adopt(self) -> bool:
        """A new store beside an old log (the database was lost): go on with its chain, if the chain is whole."""
        tail, _ = self._last_entry()
        if tail.line is None:
            return False
        lines = [line for line in read_lines(self._file.path) if parse_entry(line)]
        end = check_chain(lines)
        if isinstance(end, Fault):
            return False
        with self.database.transaction() as connection:
            audit_events.adopt(connection, lines, end)
            work = Work(connection, self._clock.now(), self._clock.wall())
            work.audit(AuditEvent.AUDIT_ADOPTED, entries=end.entries)
        self._resume(tail.good_size, end.entries)
        return True

    def _set_aside(self) -> str:
        """Keep a log that the store cannot continue, under a name of its own."""
        path = self._file.path
        number = 1
        while (aside := path.with_name(f"{path.name}.{number}")).exists():
            number += 1
        path.rename(aside)
        return aside.name

    def close(self) -> None:
        self._file.close()
        self.database.close()


def _seq(tail: Tail) -> int:
    entry = parse_entry(tail.line) if tail.line is not None else None
    seq = entry["seq"] if entry else 0
    return seq if isinstance(seq, int) and seq >= 0 else 0
