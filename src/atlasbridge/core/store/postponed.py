"""The ledger's part for later: an answer with its own moment, and a wish to be asked again.

Each is one transaction with its audit entry and with the time that its prompt needs to be open until then.
"""

from __future__ import annotations

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.policy.later import ANSWER, Later
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.store import later, moves, prompts
from atlasbridge.core.store.archive import Archive
from atlasbridge.core.store.journal import Work
from atlasbridge.core.values import replace

WAITING = "ended_at IS NULL"


class Postponed(Archive):
    def postpone(self, wanted: Later, until_s: float) -> tuple[Later, PromptRecord] | None:
        """Written, with the prompt open for so many seconds from now at least; an answer replaces an earlier one.

        None: the prompt is not open any more.
        """
        with self.journal.write() as work:
            record = _keep_open(work, wanted.prompt_id, until_s)
            if record is None:
                return None
            if wanted.kind == ANSWER:
                for older in later.select(
                    work.connection, f"{WAITING} AND kind = ? AND prompt_id = ?", (ANSWER, record.prompt_id)
                ):
                    _end(work, older, "replaced", wanted.identity)
            made = replace(wanted, prompt_id=record.prompt_id, created_at=work.at)
            later.insert(work.connection, made)
            event = AuditEvent.REPLY_POSTPONED if made.kind == ANSWER else AuditEvent.PROMPT_SNOOZED
            said = {"value": made.value} if made.kind == ANSWER else {}
            fields = {"later": made.later_id, "due_at": made.due_at, "decided_by": made.identity}
            moves.audit_prompt(work, event, record, **fields, decided_from=made.place, **said)
            return made, record

    def end_later(self, later_id: str, outcome: str, by: str = "", ttl_s: float | None = None) -> Later | None:
        """It has had its moment, or came to nothing.  `ttl_s`: so long its prompt may wait from now on, at least."""
        with self.journal.write() as work:
            found = later.select(work.connection, "id = ?", (later_id,))
            ended = _end(work, found[0], outcome, by) if found else None
            if ended is not None and ttl_s is not None:
                _keep_open(work, ended.prompt_id, ttl_s, may_shorten=True)
            return ended

    def waiting_later(self, prompt_id: str = "") -> list[Later]:
        """Those whose moment is still to come, the next first."""
        with self.journal.reading() as connection:
            return later.select(connection, f"{WAITING} AND (? = '' OR prompt_id = ?)", (prompt_id, prompt_id))

    def wakes(self, prompt_id: str) -> list[Later]:
        """All of a prompt's that were not taken back: people are told again at these moments."""
        with self.journal.reading() as connection:
            return later.select(connection, "prompt_id = ? AND outcome NOT IN ('revoked', 'replaced')", (prompt_id,))


def _end(work: Work, found: Later, outcome: str, by: str) -> Later | None:
    ended = later.end(work.connection, found.later_id, work.at, outcome)
    record = prompts.get(work.connection, found.prompt_id) if ended else None
    if ended is not None and record is not None and found.kind == ANSWER and outcome != "answered":
        fields = {"later": found.later_id, "outcome": outcome, "decided_by": by}
        moves.audit_prompt(work, AuditEvent.REPLY_REVOKED, record, **fields)
    return ended


def _keep_open(work: Work, prompt_id: str, until_s: float, may_shorten: bool = False) -> PromptRecord | None:
    record = prompts.get(work.connection, prompt_id)
    if record is None or record.deadline <= work.now:
        return None
    deadline = work.now + until_s
    if not may_shorten and deadline <= record.deadline:
        deadline = record.deadline
    moved_s = deadline - record.deadline
    return prompts.prolong(work.connection, prompt_id, deadline, iso(parse_iso(record.expires_at) + moved_s))
