"""The reading half of the ledger: prompts, sessions, history, statistics and the audit log. It changes nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.prompt.model import Answer, PromptRecord
from atlasbridge.core.session.model import INTEGRATIONS, SessionRecord
from atlasbridge.core.store import audit_events, prompts, sessions, tables
from atlasbridge.core.store.journal import Journal
from atlasbridge.core.store.prompts import ReplyRecord
from atlasbridge.core.store.tables import RequestRecord
from atlasbridge.core.store.verify import AuditVerdict, Seen, prepare, verify

# Statistics for the page: prompts per day, how long answers took, and who gave them.

DAYS = 30
SAMPLES = 5000
NEWEST = 20_000  # entries of the audit log to examine
BUCKETS_S = (5, 15, 60, 300, 900, 3600)

Rows = Callable[[str], list[tuple[Any, ...]]]


def read_figures(rows: Rows) -> dict[str, Any]:
    days = rows(
        "SELECT substr(created_at, 1, 10) AS day, count(*), count(decided_at) FROM prompts"
        f" GROUP BY day ORDER BY day DESC LIMIT {DAYS}"
    )
    waits = rows(
        "SELECT (julianday(decided_at) - julianday(created_at)) * 86400 FROM prompts"
        f" WHERE decided_at IS NOT NULL ORDER BY rowid DESC LIMIT {SAMPLES}"
    )
    people = rows(
        "SELECT decided_by, count(*) FROM prompts WHERE decided_by IS NOT NULL AND decided_by != ''"
        " GROUP BY decided_by ORDER BY count(*) DESC LIMIT 20"
    )
    return {
        "days": [{"day": day, "raised": raised, "answered": answered} for day, raised, answered in reversed(days)],
        "answer_s": summarise_waits([max(0.0, seconds) for (seconds,) in waits]),
        "answered_by": dict(people),
    }


def read_ways(rows: Rows) -> dict[str, int]:
    """Counts how recent answers reached their tools: typed, or taken by a hook or plugin."""
    return dict(
        rows(
            "SELECT coalesce(json_extract(entry, '$.way'), 'keys') AS way, count(*) FROM audit_events"
            f" WHERE event = 'REPLY_INJECTED' AND seq > (SELECT coalesce(max(seq), 0) - {NEWEST} FROM audit_events)"
            " GROUP BY way ORDER BY count(*) DESC"
        )
    )


def summarise_waits(waits: list[float]) -> dict[str, Any]:
    """Returns the median, the 90th percentile, and counts by duration; the last bucket has no upper bound."""
    waits = sorted(waits)
    counts = Counter(bisect_left(BUCKETS_S, wait) for wait in waits)
    buckets = [[upper, counts[at]] for at, upper in enumerate((*BUCKETS_S, None))]
    return {
        "count": len(waits),
        "median": round((waits[(len(waits) - 1) // 2] + waits[len(waits) // 2]) / 2, 1) if waits else None,
        "p90": round(waits[min(len(waits) - 1, len(waits) * 9 // 10)], 1) if waits else None,
        "buckets": buckets if waits else [],
    }


SHORTEST_ID = 8
_HEX = frozenset("0123456789abcdef-")


class Archive:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def prompt(self, full_or_short_id: str) -> PromptRecord | None:
        """Returns None if there is none, or more than one id begins like that."""
        where, parameters = _by_id(full_or_short_id)
        with self.journal.reading() as connection:
            found = prompts.select(connection, where, parameters, "LIMIT 2")
        return found[0] if len(found) == 1 else None

    def open_prompts(self, session_id: str | None = None) -> list[PromptRecord]:
        where = prompts.IS_OPEN + ("" if session_id is None else " AND session_id = ?")
        with self.journal.reading() as connection:
            return prompts.select(connection, where, () if session_id is None else (session_id,))

    def last_prompt(self, session_id: str) -> PromptRecord | None:
        """The newest prompt of this session, in any state."""
        with self.journal.reading() as connection:
            found = prompts.select(connection, "session_id = ?", (session_id,), "ORDER BY rowid DESC LIMIT 1")
        return found[0] if found else None

    def unsettled(self) -> list[tuple[PromptRecord, Answer | None]]:
        """Prompts that were answered but not known to be typed, or typed but not known to be taken.

        The answer is None for a secret (which is never stored), and if nothing is left to type.
        """
        where = (
            "status IN ('reply_received', 'injected')"
            " OR (status = 'expired' AND EXISTS (SELECT 1 FROM replies WHERE prompt_id = prompts.id))"
        )
        with self.journal.reading() as connection:
            found = prompts.select(connection, where)
            given = [prompts.get_reply(connection, record.prompt_id) for record in found]
        return [
            (record, reply.answer if reply and not reply.injected_at else None)
            for record, reply in zip(found, given, strict=True)
        ]

    def reply(self, prompt_id: str) -> ReplyRecord | None:
        with self.journal.reading() as connection:
            return prompts.get_reply(connection, prompt_id)

    def request(self, key: str) -> RequestRecord | None:
        """The outcome of a request with this key."""
        with self.journal.reading() as connection:
            return tables.get_request(connection, key)

    def session(self, full_or_short_id: str) -> SessionRecord | None:
        where, parameters = _by_id(full_or_short_id)
        with self.journal.reading() as connection:
            found = sessions.select(connection, where, parameters)
        return found[0] if len(found) == 1 else None

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        with self.journal.reading() as connection:
            return sessions.select(connection, "1" if include_ended else "status = 'active'")

    def processes(self, pids: Iterable[int] | None = None, ids: Iterable[str] = ()) -> list[tuple[str, int, int]]:
        """Returns (id, host pid, tool pid) of each running session; `pids` and `ids` restrict the result."""
        with self.journal.reading() as connection:
            return sessions.processes(connection, pids, ids)

    def history(
        self, search: str = "", limit: int = 50, before: str | None = None, session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        """Returns prompts, newest first. `before` is the id of the last prompt on the previous page."""
        where = (
            "(:search = '' OR instr(lower(excerpt || ' ' || coalesce(decided_by, '')), :search) OR session_id IN"
            " (SELECT id FROM sessions WHERE instr(lower(tool || ' ' || label || ' ' || cwd), :search)))"
            " AND (:before IS NULL OR rowid < (SELECT rowid FROM prompts WHERE id = :before))"
            " AND (:session = '' OR session_id = :session) AND (:state = '' OR status = :state)"
        )
        parameters = {"search": search.lower(), "before": before, "session": session_id, "state": state, "limit": limit}
        with self.journal.reading() as connection:
            return prompts.select(connection, where, parameters, "ORDER BY rowid DESC LIMIT :limit")

    def statistics(self) -> dict[str, Any]:
        rows = self.journal.database.rows
        return {
            "sessions": dict(rows("SELECT status, count(*) FROM sessions GROUP BY status")),
            "prompts": dict(rows("SELECT status, count(*) FROM prompts GROUP BY status")),
            "types": dict(rows("SELECT type, count(*) FROM prompts GROUP BY type")),
            "replies": dict(rows("SELECT source, count(*) FROM replies GROUP BY source")),
            "audit_entries": self.audit_head().entries,
        }

    def figures(self) -> dict[str, Any]:
        return {**read_figures(self.journal.database.rows), "answered_ways": self.ways()}

    def ways(self) -> dict[str, int]:
        return read_ways(self.journal.database.rows)

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        with self.journal.reading() as connection:
            return tables.delivered_messages(connection, prompt_id, channel)

    def taken_steps(self, prompt_id: str) -> frozenset[tuple[int, str]]:
        """Returns (escalation step, channel) of all notifications sent for this prompt."""
        with self.journal.reading() as connection:
            return tables.sent_notices(connection, prompt_id)

    def heard_since(self, at: str) -> list[tuple[str, str]]:
        with self.journal.reading() as connection:
            return tables.notified_since(connection, at)

    def last_output(self, session_id: str) -> dict[str, Any] | None:
        """The last screen of a session that has ended, and the lines above it; None if nothing was stored."""
        with self.journal.reading() as connection:
            return sessions.last_output(connection, session_id)

    def still_waiting(self, session_id: str = "") -> list[PromptRecord]:
        """Prompts that expired or were canceled, for which nothing was typed, and that the tool still shows; the host
        reports when one disappears. Callers without a terminal are excluded: they were told, and do not wait."""
        callers = ", ".join(f"'{name}'" for name in INTEGRATIONS)
        where = (
            "((status = 'expired' AND decided_value = '') OR (status = 'canceled' AND session_id NOT IN"
            f" (SELECT id FROM sessions WHERE tool IN ({callers})))) AND (? = '' OR session_id = ?)"
            " AND session_id IN (SELECT id FROM sessions WHERE status = 'active')"
            " AND id NOT IN (SELECT prompt_id FROM replies)"
        )
        with self.journal.reading() as connection:
            return prompts.select(connection, where, (session_id, session_id))

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        with self.journal.reading() as connection:
            return tables.pending_updates(connection, channel)

    def prompt_for_message(self, channel: str, message_id: str) -> PromptRecord | None:
        with self.journal.reading() as connection:
            prompt_id = tables.delivered_prompt(connection, channel, message_id)
            return prompts.get(connection, prompt_id) if prompt_id else None

    def recall(self, key: str, default: str = "") -> str:
        with self.journal.reading() as connection:
            return tables.get_note(connection, key, default)

    def audit_head(self) -> Head:
        return self.journal.audit_head()

    def audit_entries(
        self,
        after: int = 0,
        limit: int = 1000,
        *,
        session_id: str = "",
        prompt_id: str = "",
        event: str = "",
        newest: bool = False,
        events: tuple[str, ...] = (),
        before: int = 0,
    ) -> list[dict[str, Any]]:
        """Returns entries in the order of the chain; with `newest`, the last `limit` entries. `before=0` means no
        limit."""
        with self.journal.reading() as connection:
            return audit_events.select(
                connection,
                after=after,
                limit=limit,
                session_id=session_id,
                prompt_id=prompt_id,
                events=(event,) if event else events,
                newest=newest,
                before=before,
            )

    def verify_audit(self) -> AuditVerdict:
        """Verifies the log and reports the first bad entry. Entries that could not be copied to audit.log earlier are
        copied first; nothing else is changed."""
        if self.journal.alarm:
            self.journal.flush()
        with self.journal.reading() as connection:
            return verify(connection, self.journal.audit_path)

    def prepare_verify(self, seen: Iterable[Seen] = ()) -> Callable[[], AuditVerdict]:
        """Like `verify_audit`, for a long log: fixes the state to check now, so that the check can run in another
        thread."""
        if self.journal.alarm:
            self.journal.flush()
        return prepare(self.journal.database.path, self.journal.audit_path, seen)

    def check(self) -> list[str]:
        """Returns structural errors of the database; empty if there are none."""
        return self.journal.database.check()


def _by_id(given: str) -> tuple[str, tuple[str, ...]]:
    """Accepts a full id, or at least its first eight characters. Anything else finds nothing."""
    text = given.lower()
    if len(text) < SHORTEST_ID or not _HEX.issuperset(text):
        return "id = ?", (given,)
    return "id >= ? AND id < ?", (text, text + "g")
