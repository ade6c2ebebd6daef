"""Combines the database and the audit log: everything committed is audited, and everything audited is committed.

An audit entry is a row in the transaction of its decision; after the commit it is copied to audit.log. The table is
authoritative. A failed copy blocks nothing, because the decision is already recorded: it raises `alarm`, and the same
lines are written again with the next commit or by `flush`. Decisions that arrive together can share a commit
(`batch`); their consequences happen only after it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from atlasbridge.core.audit.chain import START, Fault, Head, check_chain, matches, parse_entry, seal_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import HEAD_NAME, Anchor, AuditFile, Line, lines_back, read_anchor, read_lines
from atlasbridge.core.audit.passkeys import FIELD, REFUSALS
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.core.store.database import Database, store_error
from atlasbridge.core.values import frozen

# The table `audit_events` and its anchored head. It supports only append and read; triggers refuse everything else.
_INSERT: Final = "INSERT INTO audit_events (seq, event, session_id, prompt_id, entry) VALUES (?, ?, ?, ?, ?)"


def read_head(connection: sqlite3.Connection) -> Head:
    row = connection.execute("SELECT count, hash FROM audit_head").fetchone()
    return Head(*row)


def read_last(connection: sqlite3.Connection) -> Head:
    """The head computed from the last entry."""
    row = connection.execute("SELECT seq, entry FROM audit_events ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(row[0], str((parse_entry(row[1]) or {}).get("hash", ""))) if row else START


def holds(connection: sqlite3.Connection, anchor: Head) -> bool:
    """Whether the entry that this head names exists and has the same hash."""
    line = line_of(connection, anchor.entries)
    return anchor == START or (parse_entry(line or "") or {}).get("hash") == anchor.hash


def append_entry(connection: sqlite3.Connection, after: Head, ts: str, event: str, fields: Mapping[str, Any]) -> Head:
    """Appends an entry after the head `after`. Returns the new head, which must be stored in the same transaction."""
    line, new = seal_entry(after, ts, event, fields)
    connection.execute(_INSERT, (new.entries, str(event), fields.get("session_id"), fields.get("prompt_id"), line))
    return new


def put_head(connection: sqlite3.Connection, new: Head, exported: int) -> None:
    connection.execute("UPDATE audit_head SET count = ?, hash = ?, exported = ?", (*new, exported))


def read_exported(connection: sqlite3.Connection) -> int:
    """The number of entries that are certainly in audit.log; later ones can be lost in a power failure."""
    return int(connection.execute("SELECT exported FROM audit_head").fetchone()[0])


def mark_exported(connection: sqlite3.Connection, count: int) -> None:
    connection.execute("UPDATE audit_head SET exported = ?", (count,))


def adopt_lines(connection: sqlite3.Connection, lines: Sequence[str]) -> None:
    """Imports a whole verified chain; only for a store without entries."""
    connection.executemany(_INSERT, (row_of(line) for line in lines))
    last = parse_entry(lines[-1]) or {}
    connection.execute("UPDATE audit_head SET count = ?, hash = ?", (last["seq"], last["hash"]))


def row_of(line: str) -> tuple[Any, ...]:
    """The row for a line. A line that is not a valid entry has no matching row."""
    entry = parse_entry(line) or {}
    return (*(entry.get(name) for name in ("seq", "event", "session_id", "prompt_id")), line)


def audit_rows(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
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


# Several writes with one commit: each write succeeds or fails as a whole, and consequences follow only when all are on
# disk.
#
# It knows nothing about prompts; the journal decides which writes belong together.


class Group:
    """One transaction, started with the first write. `refused` is the reason why a write failed; "" if none did."""

    def __init__(self, database: Database, exported: int) -> None:
        self.exported = exported  # entries that are certainly in audit.log
        self.begun = False
        self.refused = ""
        self.consequences: list[Callable[[], object]] = []
        self.head: Head | None = None  # the head of the audit log including this group's entries; None before the first
        self._database = database
        # SQLite rolled back the whole transaction, so nothing of it must be committed
        self._lost: sqlite3.Error | None = None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Any error, including one in the body, rolls back this write but none of the earlier ones."""
        connection = self._database.connection
        try:
            self._begin(connection)
            connection.execute("SAVEPOINT one_write")
            head = self.head
            try:
                yield connection
            except BaseException:
                self.head = head
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO one_write")
                    connection.execute("RELEASE one_write")
                raise
            connection.execute("RELEASE one_write")
        except sqlite3.Error as error:
            self._note(connection, error)
            raise store_error(error) from error

    def _begin(self, connection: sqlite3.Connection) -> None:
        if self._lost is not None:
            raise self._lost
        if not self.begun:
            connection.execute("BEGIN IMMEDIATE")
            self.begun = True

    def _note(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        self.refused = str(store_error(error))
        if self.begun and not connection.in_transaction:
            self._lost = self._lost or error

    def audit(self, ts: str, event: str, fields: Mapping[str, Any]) -> None:
        """Adds an entry to the log. The new head is written once, with the commit."""
        connection = self._database.connection
        self.head = append_entry(connection, self.head or read_head(connection), ts, event, fields)

    def commit(self) -> None:
        """When this returns, everything is on disk. On StoreError, nothing is."""
        connection = self._database.connection
        try:
            if self._lost is not None:
                raise self._lost
            if self.head is not None:
                put_head(connection, self.head, self.exported)
            if self.begun:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.refused = str(store_error(error))
            raise store_error(error) from error
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Rolls back to the state before the first write. Does nothing after a commit."""
        try:
            if self._database.connection.in_transaction:
                self._database.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error) from error


# Finds how much of audit.log is intact after a crash, and from where the table's entries must be written again.
#
# Entries that were known to be on disk are not checked here: if one of them differs, somebody changed it, and `verify`
# must be able to report it. Only the last writes can be incomplete or out of order after a power failure.


@frozen
class SoundEnd:
    size: int  # of the file up to here
    seq: int  # the last entry before here
    cut_bytes: int  # bytes after here
    foreign: bool  # there are complete entries after here that the store does not know


def find_sound_end(connection: sqlite3.Connection, path: Path) -> SoundEnd:
    certain = read_exported(connection)
    doubtful: list[Line] = []
    size = seq = 0
    for line in lines_back(path):
        number = _intact_number(line)
        if number is not None and number <= certain:
            size, seq = line.end, number
            break
        doubtful.append(line)
    doubtful.reverse()
    end = doubtful[-1].end if doubtful else size
    for line, wanted in zip(doubtful, lines_after(connection, seq), strict=False):
        if not line.whole or line.text != wanted:
            break
        size, seq = line.end, seq + 1
    foreign = any(_foreign(connection, line) for line in doubtful if line.end > size)
    return SoundEnd(size, seq, end - size, foreign)


def _intact_number(line: Line) -> int | None:
    """The number of a line that is an entry, even a modified one."""
    entry = parse_entry(line.text) if line.whole else None
    return entry["seq"] if entry and type(entry["seq"]) is int and entry["seq"] > 0 else None


def _foreign(connection: sqlite3.Connection, line: Line) -> bool:
    """A torn entry does not match its own hash. An entry that does, and is not ours, was written by somebody else."""
    number = _intact_number(line)
    if number is None:
        return False
    entry = parse_entry(line.text) or {}
    return matches(entry) and line_of(connection, number) != line.text


def read_adoptable(path: Path) -> list[str]:
    """The entries of a log whose store was lost; empty if there are none or their chain is broken."""
    lines = [line for line in read_lines(path) if parse_entry(line)]
    return [] if isinstance(check_chain(lines), Fault) else lines


log = logging.getLogger(__name__)

MOST_UNSYNCED = 8  # consecutive commits whose copy in audit.log is synced only with a later one


@frozen
class Work:
    """A running transaction: its connection, and one reading of each clock for everything in it."""

    connection: sqlite3.Connection
    now: float
    wall: float
    at: str  # the wall time in its stored format
    group: Group
    name_of: Callable[[str], str] = lambda identity: ""

    def audit(self, event: str, **fields: Any) -> None:
        """Records the decider's identity, and the person's name if there is one."""
        person = self.name_of(str(fields.get("decided_by") or ""))
        fields |= {"person": person} if person else {}
        self.group.audit(self.at, event, redact_data(fields))


def _follow(consequence: Callable[[], object]) -> None:
    """Runs a consequence. An error must not prevent the consequences of other decisions in the group, which are on
    disk."""
    try:
        consequence()
    except Exception:  # the boundary between decisions that share a commit
        log.exception("what follows from something that was recorded failed")


class Journal:
    def __init__(self, database: Database, audit_path: Path, clock: Clock) -> None:
        self.database = database
        self.alarm = ""  # why audit.log is behind the table; "" if it is not
        self.fault = ""  # why the database refused the last transaction; "" if it did not
        # called when an alarm starts, and with "" when it ends
        self.on_alarm: Callable[[str], None] = lambda alarm: None
        self.name_of: Callable[[str], str] = lambda identity: ""  # "": the person has no name
        self._announced = ""
        self._file = AuditFile(audit_path)
        self._anchor = Anchor(audit_path.with_name(HEAD_NAME))
        self._clock = clock
        self._exported: int | None = None  # entries in audit.log; None before it was read
        self._certain = 0  # how many of them are synced to disk
        self._unsynced = 0  # consecutive commits without a sync
        self._group: Group | None = None  # the writes that will be committed together, if any

    @contextmanager
    def write(self) -> Iterator[Work]:
        """The write is on disk when the context ends, or with the commit of its group."""
        with self.batch() as group, group.write() as connection:
            yield self._work(connection, group)

    @contextmanager
    def batch(self, hurry: bool = False) -> Iterator[Group]:
        """All writes inside become durable with one commit at the end; on StoreError, none of them is.

        A failed write inside rolls back only itself. The body must not await, so that no other work interferes.
        `hurry`: more writes follow at once, so the copy in audit.log does not have to be synced now.
        """
        if self._group is not None:
            yield self._group  # the outer group commits
            return
        group = self._group = Group(self.database, self._certain)
        try:
            yield group
            group.commit()
        finally:
            self._group = None
            group.roll_back()
            if group.refused:
                self._note_fault(group.refused)
        if group.begun:
            self._note_fault(group.refused)
        if group.begun or (self._unsynced and not hurry):
            self.flush(sync=not hurry or self._unsynced >= MOST_UNSYNCED)
        for consequence in group.consequences:
            _follow(consequence)

    @contextmanager
    def _write_unflushed(self) -> Iterator[Work]:
        """Nothing is copied to audit.log while it is being repaired."""
        group = Group(self.database, self._certain)
        try:
            with group.write() as connection:
                yield self._work(connection, group)
            group.commit()
        finally:
            group.roll_back()

    def audit_head(self) -> Head:
        """The head, including uncommitted entries of a running group."""
        if self._group is not None and self._group.head is not None:
            return self._group.head
        with self.database.reading() as connection:
            return read_head(connection)

    def when_durable(self, consequence: Callable[[], object]) -> None:
        """Runs `consequence` when everything written so far is on disk: at once, or after the pending commit. If the
        commit fails, it does not run."""
        if self._group is None:
            consequence()
        else:
            self._group.consequences.append(consequence)

    def _note_fault(self, fault: str) -> None:
        if fault != self.fault:
            self.fault = fault
            if fault:
                log.error("the store cannot be written, so nothing is typed: %s", fault)
            else:
                log.warning("the store can be written again")
        self._announce()

    def _announce(self) -> None:
        """Reports only changes between alarm and no alarm, not changes of the reason."""
        now = self.fault or self.alarm
        before, self._announced = self._announced, now
        if bool(now) != bool(before):
            self.on_alarm(now)

    def _work(self, connection: sqlite3.Connection, group: Group) -> Work:
        wall = self._clock.wall()
        return Work(connection, self._clock.now(), wall, iso(wall), group, self.name_of)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.database.reading()

    @property
    def audit_path(self) -> Path:
        return self._file.path

    @property
    def backlog(self) -> int:
        """How many entries audit.log does not have yet."""
        with self.database.reading() as connection:
            return read_head(connection).entries - (self._exported or 0)

    def flush(self, sync: bool = True) -> bool:
        """Copies missing entries to audit.log. On failure it sets `alarm` and returns False; try again later."""
        try:
            if not self._file.untouched():
                self.reconcile()
            self._export(sync)
            self.alarm = ""
        except OSError as error:
            self.alarm = f"audit.log cannot be written ({error.strerror or error})"
        except StoreError as error:  # the caller's transaction is committed; only the copy is late
            self.alarm = f"audit.log is behind: {error}"
        self._announce()
        return not self.alarm

    def _export(self, sync: bool) -> None:
        with self.database.reading() as connection:
            done = self._exported or 0
            lines = list(lines_after(connection, done))
            head = read_head(connection)
        if lines or (sync and self._unsynced):
            try:
                self._file.append(lines, sync)
            except OSError:
                self._exported = self._certain  # the file was truncated to that, too
                raise
            self._exported = done + len(lines)
            self._certain = self._exported if sync else self._certain
            self._unsynced = 0 if sync else self._unsynced + 1
            self._anchor.write(head)

    def reconcile(self) -> None:
        """Repairs audit.log from the table after a crash, a loss, or an external change.

        Torn or lost entries are written again, with an entry about it. A file with entries that the store does not know
        is renamed, and a new one is written.
        """
        first = self._exported is None
        with self.database.reading() as connection:
            head = read_head(connection)
            if head == START and self._adopt():
                return
            if first:
                with self._write_unflushed() as work:
                    self._compare_with_anchor(work)
            end = find_sound_end(connection, self._file.path)
        known = head.entries if self._exported is None else self._exported
        if end.foreign:
            self._repair(0, 0, set_aside=self._set_aside(), restored=known)
        elif end.cut_bytes or end.seq < known:
            self._repair(end.size, end.seq, cut_bytes=end.cut_bytes, restored=max(0, known - end.seq))
        else:
            self._resume(end.size, end.seq)

    def _repair(self, size: int, exported: int, **what: Any) -> None:
        """Changes the file first: if that fails, retries must not add more and more entries."""
        self._resume(size, exported)
        with self._write_unflushed() as work:
            work.audit(AuditEvent.AUDIT_REPAIRED, **what)

    def _resume(self, size: int, exported: int) -> None:
        self._file.start(size)
        self._exported = self._certain = exported
        self._unsynced = 0

    def _adopt(self) -> bool:
        """Handles a new store beside an old log (the database was lost): continues the log's chain if it is intact."""
        lines = read_adoptable(self._file.path)
        if not lines:
            return False
        anchored = read_anchor(self._anchor.path) is not None
        with self._write_unflushed() as work:
            adopt_lines(work.connection, lines)
            self._compare_with_anchor(work)
            work.audit(AuditEvent.AUDIT_ADOPTED, entries=len(lines), anchored=anchored)
            end = find_sound_end(work.connection, self._file.path)
        self._resume(end.size, end.seq)
        return True

    def _compare_with_anchor(self, work: Work) -> None:
        """Called at the start: if the store lacks the entry that audit.head names, it was truncated or replaced."""
        anchor = read_anchor(self._anchor.path)
        if anchor is not None and not holds(work.connection, anchor):
            found = read_head(work.connection).entries
            work.audit(AuditEvent.AUDIT_CUT, expected=anchor.entries, expected_hash=anchor.hash, found=found)

    def check_head(self) -> None:
        """Raises StoreError if the stored head does not match the stored entries: nothing can be appended to them."""
        with self.database.reading() as connection:
            head, last = read_head(connection), read_last(connection)
        if head != last:
            raise StoreError(
                f"the audit log's head was changed: it says {head.entries} entries ending in {head.hash[:19]}…, the "
                f"store has {last.entries} ending in {last.hash[:19]}…",
                "Something else than the hub wrote to atlasbridge.db. Keep a copy of the home folder and see "
                "`atlasbridge audit verify`. To go on, move atlasbridge.db away: a new store continues audit.log and "
                "records that.",
            )

    def _set_aside(self) -> str:
        """Renames a log that the store cannot continue."""
        path = self._file.path
        number = 1
        while (aside := path.with_name(f"{path.name}.{number}")).exists():
            number += 1
        path.rename(aside)
        return aside.name

    def close(self) -> None:
        """Stores how much of audit.log is synced, so that a later change of its last entry is not mistaken for a
        crash."""
        try:
            with self.database.transaction() as connection:
                mark_exported(connection, self._certain)
        except StoreError:
            pass  # only this information is lost: the next start checks the last entry again
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes the files and writes nothing more."""
        self._file.close()
        self._anchor.close()
        self.database.close()
