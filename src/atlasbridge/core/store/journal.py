"""The database and the audit log as one: what is committed is audited, what is audited is committed.

An audit entry is a row in the transaction of its decision; only after the commit it is copied to audit.log.
The table is the truth.  A copy that fails blocks nothing (the decision is already recorded): it raises `alarm`, and the
same lines are written again with the next commit or by `flush`.  Decisions that come together may share a commit
(`together`): nothing that follows from any of them happens before it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.anchor import NAME as ANCHOR_NAME
from atlasbridge.core.audit.anchor import Anchor, read_anchor
from atlasbridge.core.audit.chain import START, Head
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.log import AuditFile
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.discreet import discreet_data
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database
from atlasbridge.core.store.group import Group
from atlasbridge.core.store.reconcile import find_sound_end, read_adoptable
from atlasbridge.core.values import frozen

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
        self.group.audit(self.at, event, discreet_data(fields))


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
