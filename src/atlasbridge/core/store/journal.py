"""The database and the audit log as one: what is committed is audited, what is audited is committed.

An audit entry is a row in the transaction of its decision; only after the commit it is copied to audit.log.
The table is the truth.  A copy that fails blocks nothing (the decision is already recorded): it raises `alarm`, and the
same lines are written again with the next commit or by `flush`.  Decisions that come together may share a commit
(`together`): nothing that follows from any of them happens before it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.anchor import NAME as ANCHOR_NAME
from atlasbridge.core.audit.anchor import Anchor, read_anchor
from atlasbridge.core.audit.chain import START, Fault, Head, check_chain, matches, parse_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import AuditFile, Line, lines_back, read_lines
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database, store_error
from atlasbridge.core.values import frozen

# Several writes, one commit: each of them whole or not at all, and what is to follow only when all are on disk.
#
# It knows nothing of prompts; `journal.py` decides what belongs together.


class Group:
    """One transaction, begun with the first write.  `refused`: why a write of it failed; "": none did."""

    def __init__(self, database: Database, exported: int) -> None:
        self.exported = exported  # entries that are certainly in audit.log
        self.begun = False
        self.refused = ""
        self.consequences: list[Callable[[], object]] = []
        self.head: Head | None = None  # of the audit log, with what this group has added to it; None: nothing yet
        self._database = database
        self._lost: sqlite3.Error | None = None  # SQLite gave the whole transaction up: nothing of it may be committed

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Any fault, also one of the body, takes back this write and none of those before it."""
        connection = self._database.connection
        try:
            self._begin(connection)
            connection.execute("SAVEPOINT one_write")
            head = self.head
            try:
                yield connection
            except BaseException:
                self.head = head
                self._take_back(connection)
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

    def _take_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO one_write")
            connection.execute("RELEASE one_write")

    def _note(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        self.refused = str(store_error(error))
        if self.begun and not connection.in_transaction:
            self._lost = self._lost or error

    def audit(self, ts: str, event: str, fields: Mapping[str, Any]) -> None:
        """One more entry of the log; where that stands now is written once, with the commit."""
        connection = self._database.connection
        self.head = audit_events.append(connection, self.head or audit_events.head(connection), ts, event, fields)

    def commit(self) -> None:
        """Everything is on disk when this returns; StoreError: nothing of it is."""
        connection = self._database.connection
        try:
            if self._lost is not None:
                raise self._lost
            if self.head is not None:
                audit_events.put_head(connection, self.head, self.exported)
            if self.begun:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.refused = str(store_error(error))
            raise store_error(error) from error
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Leave everything as it was before the first write; after a commit nothing is left to give up."""
        try:
            if self._database.connection.in_transaction:
                self._database.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error) from error


# How far audit.log can be trusted after a crash: finds the end from which the table's entries are to be written again.
#
# Entries that were known to be on disk are not judged here: if one of them differs, somebody changed it, and `verify`
# must be able to name it.  Only what was written last may be torn, in part or in the wrong order, by a loss of power.


@frozen
class SoundEnd:
    size: int  # of the file up to here
    seq: int  # of the last entry before here
    cut_bytes: int  # behind here
    foreign: bool  # whole entries stand behind here that the store does not know


def find_sound_end(connection: sqlite3.Connection, path: Path) -> SoundEnd:
    certain = audit_events.exported(connection)
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
    for line, wanted in zip(doubtful, audit_events.lines_after(connection, seq), strict=False):
        if not line.whole or line.text != wanted:
            break
        size, seq = line.end, seq + 1
    foreign = any(_foreign(connection, line) for line in doubtful if line.end > size)
    return SoundEnd(size, seq, end - size, foreign)


def _intact_number(line: Line) -> int | None:
    """The number of a line that is an entry at all, even a changed one."""
    entry = parse_entry(line.text) if line.whole else None
    return entry["seq"] if entry and type(entry["seq"]) is int and entry["seq"] > 0 else None


def _foreign(connection: sqlite3.Connection, line: Line) -> bool:
    """A torn entry does not match its own hash; one that does, and is not ours, was written by somebody else."""
    number = _intact_number(line)
    if number is None:
        return False
    entry = parse_entry(line.text) or {}
    return matches(entry) and audit_events.line_of(connection, number) != line.text


def read_adoptable(path: Path) -> list[str]:
    """The entries of a log whose store was lost; empty when there are none or their chain is broken."""
    lines = [line for line in read_lines(path) if parse_entry(line)]
    return [] if isinstance(check_chain(lines), Fault) else lines


log = logging.getLogger(__name__)

MOST_UNSYNCED = 8  # commits in a row whose copies in audit.log are left to the next one


@frozen
class Work:
    """One transaction under way: its connection, and one reading of each clock for everything in it."""

    connection: sqlite3.Connection
    now: float
    wall: float
    at: str  # the wall time as it is written down
    group: Group
    name_of: Callable[[str], str] = lambda identity: ""

    def audit(self, event: str, **fields: Any) -> None:
        """Who decided is written as the identity, and with the one name where the person has one."""
        person = self.name_of(str(fields.get("decided_by") or ""))
        fields |= {"person": person} if person else {}
        self.group.audit(self.at, event, redact_data(fields))


def _follow(consequence: Callable[[], object]) -> None:
    """What one decision leads to must not keep the others of its group from being carried out: they are on disk."""
    try:
        consequence()
    except Exception:  # the boundary between the decisions of a group
        log.exception("what follows from something that was recorded failed")


class Journal:
    def __init__(self, database: Database, audit_path: Path, clock: Clock) -> None:
        self.database = database
        self.alarm = ""  # why audit.log is behind the table; "" when it is not
        self.fault = ""  # why the database refused the last transaction; "" when it did not
        self.on_alarm: Callable[[str], None] = lambda alarm: None  # told when something is wrong ("": well again)
        self.name_of: Callable[[str], str] = lambda identity: ""  # "": nobody gave them a name
        self._told = ""
        self._file = AuditFile(audit_path)
        self._anchor = Anchor(audit_path.with_name(ANCHOR_NAME))
        self._clock = clock
        self._exported: int | None = None  # entries in audit.log; None before it was looked at
        self._certain = 0  # of them on disk
        self._unsynced = 0  # how many times in a row it was left to the next
        self._group: Group | None = None  # the writes that are to be committed together, while there are such

    def write(self) -> AbstractContextManager[Work]:
        """On disk when this ends, or with the commit of the group that it is part of."""
        return self._write_alone() if self._group is None else self._write_in(self._group)

    @contextmanager
    def _write_alone(self) -> Iterator[Work]:
        with self.together() as group, group.write() as connection:
            yield self._work(connection, group)

    @contextmanager
    def _write_in(self, group: Group) -> Iterator[Work]:
        with group.write() as connection:
            yield self._work(connection, group)

    @contextmanager
    def together(self, hurry: bool = False) -> Iterator[Group]:
        """All that is written inside becomes durable by one commit at the end; StoreError: nothing of it did.

        A write that fails inside takes back itself alone.  Nobody may wait inside: no other work comes between.
        `hurry`: more comes at once, so that the copy in audit.log need not be on disk before that.
        """
        if self._group is not None:
            yield self._group  # the one outside commits
            return
        group = self._group = Group(self.database, self._certain)
        try:
            yield group
            group.commit()
        finally:
            self._group = None
            group.give_up()
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
        """While audit.log is brought in line nothing is copied to it."""
        group = Group(self.database, self._certain)
        try:
            with group.write() as connection:
                yield self._work(connection, group)
            group.commit()
        finally:
            group.give_up()

    def audit_head(self) -> Head:
        """With what is not committed yet, where something is under way."""
        if self._group is not None and self._group.head is not None:
            return self._group.head
        with self.database.reading() as connection:
            return audit_events.head(connection)

    def when_durable(self, consequence: Callable[[], object]) -> None:
        """Do this when all that was written up to now is on disk: at once, or after the commit that is to come.  If
        that fails it is not done at all."""
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
        """What is wrong may change its words; that it is wrong, or no longer so, is told once."""
        now = self.fault or self.alarm
        before, self._told = self._told, now
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
            return audit_events.head(connection).entries - (self._exported or 0)

    def flush(self, sync: bool = True) -> bool:
        """Copy what is missing to audit.log.  False, with `alarm` set: it did not work, try again later."""
        try:
            if not self._file.untouched():
                self.reconcile()
            self._export(sync)
            self.alarm = ""
        except OSError as error:
            self.alarm = f"audit.log cannot be written ({error.strerror or error})"
        except StoreError as error:  # the caller's transaction is committed: only the copy is late
            self.alarm = f"audit.log is behind: {error}"
        self._announce()
        return not self.alarm

    def _export(self, sync: bool) -> None:
        with self.database.reading() as connection:
            done = self._exported or 0
            lines = list(audit_events.lines_after(connection, done))
            head = audit_events.head(connection)
        if lines or (sync and self._unsynced):
            try:
                self._file.append(lines, sync)
            except OSError:
                self._exported = self._certain  # the file was cut back to that, too
                raise
            self._exported = done + len(lines)
            self._certain = self._exported if sync else self._certain
            self._unsynced = 0 if sync else self._unsynced + 1
            self._anchor.write(head)

    def reconcile(self) -> None:
        """Bring audit.log in line with the table after a crash, a loss, or a change behind our back.

        What was torn or lost is written again, with a record that says so.  A file with entries that the store does not
        know is kept under another name and written anew.
        """
        first = self._exported is None
        with self.database.reading() as connection:
            head = audit_events.head(connection)
            if head == START and self._adopt():
                return
            if first:
                self._note_a_cut()
            end = find_sound_end(connection, self._file.path)
        known = head.entries if self._exported is None else self._exported
        if end.foreign:
            self._repair(0, 0, set_aside=self._set_aside(), restored=known)
        elif end.cut_bytes or end.seq < known:
            self._repair(end.size, end.seq, cut_bytes=end.cut_bytes, restored=max(0, known - end.seq))
        else:
            self._resume(end.size, end.seq)

    def _repair(self, size: int, exported: int, **what: Any) -> None:
        """The file first: while it cannot be written, trying again must not pile up records."""
        self._resume(size, exported)
        with self._write_unflushed() as work:
            work.audit(AuditEvent.AUDIT_REPAIRED, **what)

    def _resume(self, size: int, exported: int) -> None:
        self._file.start(size)
        self._exported = self._certain = exported
        self._unsynced = 0

    def _adopt(self) -> bool:
        """A new store beside an old log (the database was lost): go on with its chain, if the chain is whole."""
        lines = read_adoptable(self._file.path)
        if not lines:
            return False
        anchored = read_anchor(self._anchor.path) is not None
        with self._write_unflushed() as work:
            audit_events.adopt(work.connection, lines)
            self._compare_with_anchor(work)
            work.audit(AuditEvent.AUDIT_ADOPTED, entries=len(lines), anchored=anchored)
            end = find_sound_end(work.connection, self._file.path)
        self._resume(end.size, end.seq)
        return True

    def _note_a_cut(self) -> None:
        with self._write_unflushed() as work:
            self._compare_with_anchor(work)

    def _compare_with_anchor(self, work: Work) -> None:
        """At the start: a store without the very entry that was written down once was shortened or exchanged."""
        anchor = read_anchor(self._anchor.path)
        if anchor is not None and not audit_events.holds(work.connection, anchor):
            found = audit_events.head(work.connection).entries
            work.audit(AuditEvent.AUDIT_CUT, expected=anchor.entries, expected_hash=anchor.hash, found=found)

    def check_head(self) -> None:
        """Raises where the head that the store keeps is not that of its own entries: nothing can be added to those."""
        with self.database.reading() as connection:
            head, last = audit_events.head(connection), audit_events.last(connection)
        if head != last:
            raise StoreError(
                f"the audit log's head was changed: it says {head.entries} entries ending in {head.hash[:19]}…, the "
                f"store has {last.entries} ending in {last.hash[:19]}…",
                "Something else than the hub wrote to atlasbridge.db. Keep a copy of the home folder and see "
                "`atlasbridge audit verify`. To go on, move atlasbridge.db away: a new store continues audit.log and "
                "records that.",
            )

    def _set_aside(self) -> str:
        """Keep a log that the store cannot continue, under a name of its own."""
        path = self._file.path
        number = 1
        while (aside := path.with_name(f"{path.name}.{number}")).exists():
            number += 1
        path.rename(aside)
        return aside.name

    def close(self) -> None:
        """Note how far audit.log has come, so that a later change of its last entry is not taken for a crash."""
        try:
            with self.database.transaction() as connection:
                audit_events.mark_exported(connection, self._certain)
        except StoreError:
            pass  # only the note is lost: the next start looks at the last entry again
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files and write nothing more."""
        self._file.close()
        self._anchor.close()
        self.database.close()
