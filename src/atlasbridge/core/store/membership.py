"""The ledger's part for a machine that belongs to a desk: its outbox, and what proves that its audit log is whole."""

from __future__ import annotations

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.ids import new_nonce
from atlasbridge.core.store import audit_events, notes, outbox, votes
from atlasbridge.core.store.journal import Journal


class Membership:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def begin(self, machine_id: str) -> str:
        """From now on changes are collected for that desk; the name of this membership.  Begun already: as it was."""
        with self.journal.reading() as connection:
            known = notes.get(connection, outbox.EPOCH, "")
        if known.startswith(f"{machine_id}/"):
            return known
        epoch = f"{machine_id}/{new_nonce()}"
        with self.journal.write() as work:
            notes.put(work.connection, outbox.EPOCH, epoch, work.at)
            outbox.fill(work.connection)
            work.audit(AuditEvent.DESK_JOINED, machine=machine_id)
        return epoch

    def end(self) -> None:
        """It left, or was sent away: nothing is collected any more."""
        with self.journal.reading() as connection:
            known = notes.get(connection, outbox.EPOCH, "")
        if known:
            with self.journal.write() as work:
                notes.put(work.connection, outbox.EPOCH, "", work.at)
                outbox.clear(work.connection)
                work.audit(AuditEvent.DESK_LEFT, machine=known.partition("/")[0])

    def pending(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        with self.journal.reading() as connection:
            return outbox.pending(connection, after, limit)

    def backlog(self) -> int:
        with self.journal.reading() as connection:
            return outbox.count(connection)

    def acknowledge(self, seq: int) -> None:
        with self.journal.write() as work:
            outbox.acknowledge(work.connection, seq)

    def agreed(self, prompt_id: str) -> list[str]:
        """Who has agreed so far, where several must."""
        with self.journal.reading() as connection:
            return votes.everybody(connection, prompt_id)

    def audit_lines(self, after: int, limit: int) -> list[str]:
        """The lines of the audit log behind entry `after`, for who checks the chain elsewhere."""
        with self.journal.reading() as connection:
            found = []
            for line in audit_events.lines_after(connection, after):
                found.append(line)
                if len(found) == limit:
                    break
            return found
