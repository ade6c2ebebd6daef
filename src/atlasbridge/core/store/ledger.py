"""The hub's interface to the store. Every method that changes something is one transaction together with its audit
entry.

It does not decide whether a reply is valid (`prompt/gate.py`) or when a prompt expires (`scheduler/`). It ensures that
only one of several concurrent replies wins, and that everything it returned is on disk. `prompts` and
`journal` have the SQL of the larger tables; that of the others is here.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from atlasbridge.core.audit.chain import Head, parse_entry
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.passkeys import REFUSALS
from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import new_nonce
from atlasbridge.core.operations import AuditVerdict, SeenHead
from atlasbridge.core.policy.approval import PROOF, refusing_forms
from atlasbridge.core.policy.escalation import ANSWER, ScheduledItem
from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.rule import Grant, GrantShape
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.gate import refuse_claim
from atlasbridge.core.prompt.model import Answer, Prompt, PromptMoved, PromptRecord, PromptState, Refusal, Reject
from atlasbridge.core.session.model import INTEGRATIONS, SessionRecord, SessionState
from atlasbridge.core.store import prompts
from atlasbridge.core.store.database import Database, migrate
from atlasbridge.core.store.journal import Journal, Work, lines_after
from atlasbridge.core.store.prompts import Decider, ReplyRecord, RequestRecord
from atlasbridge.core.store.verify import prepare
from atlasbridge.core.values import as_dict, replace

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


# Rows that several methods read or write.

EPOCH: Final = "desk.epoch"  # the note that names this membership; if it is empty or missing, nothing is collected
ACKNOWLEDGED: Final = "hub.acknowledged"  # the note with the last number that the server has in this epoch
MEETING_TOKEN: Final = "hub.token"  # the note with the token of the last connection: a restored store has an older one
_WAITING: Final = "ended_at IS NULL"
_GRANT: Final = "id, shape, tool, session_id, folder, deadline, uses_left, by, created_at"
_LATER: Final = "id, prompt_id, kind, due_at, channel, identity, value, as_text, place, created_at, ended_at, outcome"


def _get_note(connection: sqlite3.Connection, key: str, default: str = "") -> str:
    row = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


def _put_note(work: Work, key: str, value: str) -> None:
    work.connection.execute(
        "INSERT INTO notes (key, value, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (key, value, work.at),
    )


def _live_grants(connection: sqlite3.Connection, boot_id: str, now: float) -> list[Grant]:
    rows = connection.execute(
        f"SELECT {_GRANT} FROM grants WHERE revoked_at IS NULL AND boot_id = ?"
        " AND (deadline IS NULL OR deadline > ?) AND (uses_left IS NULL OR uses_left > 0) ORDER BY rowid",
        (boot_id, now),
    )
    return [Grant(grant_id, _shape(json.loads(shape)), *more) for grant_id, shape, *more in rows]


def _shape(data: Mapping[str, Any]) -> GrantShape:
    return GrantShape(tuple(Shape(tuple(words)) for words in data["commands"]), data["path"], data["host"])


def _delivered(connection: sqlite3.Connection, prompt_id: str, channel: str) -> list[str]:
    rows = connection.execute(
        "SELECT message_id FROM deliveries WHERE prompt_id = ? AND channel = ? ORDER BY rowid", (prompt_id, channel)
    )
    return [message_id for (message_id,) in rows]


def _sent_notices(connection: sqlite3.Connection, prompt_id: str) -> frozenset[tuple[int, str]]:
    return frozenset(connection.execute("SELECT step, channel FROM notices WHERE prompt_id = ?", (prompt_id,)))


def _scheduled(connection: sqlite3.Connection, where: str, *parameters: str) -> list[ScheduledItem]:
    rows = connection.execute(f"SELECT {_LATER} FROM later WHERE {where} ORDER BY due_at, rowid", parameters)
    return [_scheduled_item(row) for row in rows]


def _scheduled_item(row: tuple[Any, ...]) -> ScheduledItem:
    values: dict[str, Any] = dict(zip(ScheduledItem.__match_args__, (value or "" for value in row), strict=True))
    return ScheduledItem(**{**values, "as_text": bool(values["as_text"])})


def _end_scheduled(work: Work, found: ScheduledItem, outcome: str, by: str) -> ScheduledItem | None:
    """Returns None if it has already ended."""
    row = work.connection.execute(
        f"UPDATE later SET ended_at = ?, outcome = ? WHERE id = ? AND {_WAITING} RETURNING {_LATER}",
        (work.at, outcome, found.later_id),
    ).fetchone()
    record = prompts.get(work.connection, found.prompt_id) if row else None
    if record is not None and found.kind == ANSWER and outcome != "answered":
        fields = {"later": found.later_id, "outcome": outcome, "decided_by": by}
        prompts.audit_prompt(work, AuditEvent.REPLY_REVOKED, record, **fields)
    return _scheduled_item(row) if row else None


def _keep_open(work: Work, prompt_id: str, until_s: float, may_shorten: bool = False) -> PromptRecord | None:
    record = prompts.get(work.connection, prompt_id)
    if record is None or record.deadline <= work.now:
        return None
    deadline = work.now + until_s
    if not may_shorten and deadline <= record.deadline:
        deadline = record.deadline
    moved_s = deadline - record.deadline
    return prompts.set_deadline(work.connection, prompt_id, deadline, iso(parse_iso(record.expires_at) + moved_s))


# The table `sessions`. `insert_session` and `select_sessions` map its columns to the fields of a record.

_STORED: Final = (
    *("session_id", "tool", "command", "cwd", "pid", "host_pid", "started_at", "attached", "rows", "cols", "label"),
    "channels",
)
_CHANGEABLE: Final = frozenset(_STORED) - {"session_id", "command", "started_at"}
_SESSION: Final = ", ".join(("id", *_STORED[1:]))
_OPEN_PROMPT: Final = f"(SELECT p.id FROM prompts p WHERE p.session_id = sessions.id AND p.{prompts.IS_OPEN})"
MOST_OUTPUT: Final = 64 * 1024 * 1024  # bytes on disk for all sessions together; the oldest are deleted first


def insert_session(connection: sqlite3.Connection, record: SessionRecord, boot_id: str) -> None:
    values = (*(_column(getattr(record, name)) for name in _STORED), boot_id)
    connection.execute(f"INSERT INTO sessions ({_SESSION}, boot_id) VALUES ({', '.join('?' * len(values))})", values)


def _column(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, tuple) else value


def _change_session(connection: sqlite3.Connection, session_id: str, fields: Mapping[str, Any]) -> bool:
    """Raises ValueError for a column that cannot be changed."""
    unknown = fields.keys() - _CHANGEABLE
    if unknown:
        raise ValueError(f"a session has no {', '.join(sorted(unknown))} to change")
    assignments = ", ".join(f"{name} = :{name}" for name in fields)
    values = {name: _column(value) for name, value in fields.items()}
    change = f"UPDATE sessions SET {assignments} WHERE id = :id"
    return connection.execute(change, {**values, "id": session_id}).rowcount == 1


def select_sessions(
    connection: sqlite3.Connection, where: str = "1", parameters: tuple[Any, ...] = ()
) -> list[SessionRecord]:
    columns = f"{_SESSION}, status, exit_code, ended_at, {_OPEN_PROMPT}"
    rows = connection.execute(f"SELECT {columns} FROM sessions WHERE {where} ORDER BY started_at, rowid", parameters)
    return [_session(row) for row in rows]


def _session(row: tuple[Any, ...]) -> SessionRecord:
    found = dict(zip((*_STORED, "state", "exit_code", "ended_at", "open_prompt"), row, strict=True))
    found["command"] = tuple(json.loads(found["command"]))
    found["channels"] = found["channels"] and tuple(json.loads(found["channels"]))
    found |= {"attached": bool(found["attached"]), "state": SessionState(found["state"])}
    return SessionRecord(**{**found, "ended_at": found["ended_at"] or "", "open_prompt": found["open_prompt"] or ""})


def keep_output(connection: sqlite3.Connection, session_id: str, at: str, output: Mapping[str, Any]) -> None:
    body = zlib.compress(json.dumps(output).encode("utf-8", "surrogatepass"))
    connection.execute("INSERT OR REPLACE INTO last_output VALUES (?, ?, ?)", (session_id, at, body))
    connection.execute(
        "DELETE FROM last_output WHERE session_id IN (SELECT session_id FROM"
        " (SELECT session_id, sum(length(body)) OVER (ORDER BY at DESC, rowid DESC) AS kept FROM last_output)"
        " WHERE kept > ?)",
        (MOST_OUTPUT,),
    )


class Membership:
    """The ledger's part for a machine that belongs to a fleet server: its outbox, and the audit lines that prove that
    its log is intact.

    The table `outbox` contains the changes that the server has not acknowledged yet. Triggers fill it in the
    transaction of the change, and only while this machine is a member. The content is read when it is sent.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows = journal.database.rows

    def _note(self, key: str) -> str:
        with self._journal.reading() as connection:
            return _get_note(connection, key)

    def begin(self, machine_id: str) -> str:
        """Starts to collect changes for the server. Returns the name of this membership, which stays the same if it has
        already begun."""
        known = self._note(EPOCH)
        if known.startswith(f"{machine_id}/"):
            return known
        epoch = f"{machine_id}/{new_nonce()}"
        with self._journal.write() as work:
            for key, value in ((EPOCH, epoch), (MEETING_TOKEN, ""), (ACKNOWLEDGED, "0")):
                _put_note(work, key, value)
            work.connection.execute("DELETE FROM outbox")
            self._fill(work, ())
            work.audit(AuditEvent.FLEET_JOINED, machine=machine_id)
        return epoch

    def _fill(self, work: Work, known: Iterable[str]) -> None:
        """Adds all active sessions and undecided prompts, and the prompts that are `known` at the server. Pending items
        stay."""
        put = "INSERT OR IGNORE INTO outbox (kind, id)"
        work.connection.execute(f"{put} SELECT 'session', id FROM sessions WHERE status = 'active'")
        work.connection.execute(
            f"{put} SELECT 'prompt', id FROM prompts"
            " WHERE status IN ('created', 'routed', 'awaiting_reply', 'reply_received', 'injected')"
        )
        work.connection.executemany(f"{put} SELECT 'prompt', id FROM prompts WHERE id = ?", [(one,) for one in known])

    def token(self) -> str:
        """The token of the last connection to the server."""
        return self._note(MEETING_TOKEN)

    def meet(self, token: str) -> None:
        with self._journal.write() as work:
            _put_note(work, MEETING_TOKEN, token)

    def tell_again(self, epoch: str, notice: str, known: Iterable[str]) -> int:
        """The two stores differ: everything that is open is sent again under new numbers. Returns the last number
        that is sent; SQLite also counts the items that were pending already, which it ignored."""
        with self._journal.write() as work:
            _put_note(work, EPOCH, epoch)
            _put_note(work, ACKNOWLEDGED, "0")
            self._fill(work, known)
            if notice:
                work.audit(AuditEvent.FLEET_TOLD_AGAIN, machine=epoch.partition("/")[0], reason=notice)
            return int(work.connection.execute("SELECT coalesce(max(seq), 0) FROM outbox").fetchone()[0])

    def _newest(self, connection: sqlite3.Connection) -> int:
        found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
        return int(found[0]) if found else 0

    def reach(self) -> tuple[int, int]:
        """(the last number that the server has acknowledged in this epoch, the highest number ever assigned)"""
        with self._journal.reading() as connection:
            return int(_get_note(connection, ACKNOWLEDGED) or 0), self._newest(connection)

    def end(self) -> None:
        """The machine left or was removed: changes are no longer collected."""
        known = self._note(EPOCH)
        if known:
            with self._journal.write() as work:
                _put_note(work, EPOCH, "")
                work.connection.execute("DELETE FROM outbox")
                work.audit(AuditEvent.FLEET_LEFT, machine=known.partition("/")[0])

    def pending(self, after: int, limit: int) -> list[tuple[Any, ...]]:
        """Returns (number, kind, id), oldest first."""
        return self._rows("SELECT seq, kind, id FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))

    def backlog(self) -> int:
        return int(self._rows("SELECT count(*) FROM outbox")[0][0])

    def acknowledge(self, seq: int) -> None:
        with self._journal.write() as work:
            work.connection.execute("DELETE FROM outbox WHERE seq <= ?", (seq,))
            _put_note(work, ACKNOWLEDGED, str(seq))

    def audit_lines(self, after: int, limit: int) -> list[str]:
        """The lines of the audit log after entry `after`, for a verification elsewhere."""
        with self._journal.reading() as connection:
            return list(islice(lines_after(connection, after), limit))


DATABASE_NAME = "atlasbridge.db"
AUDIT_NAME = "audit.log"
SHORTEST_ID = 8
_HEX = frozenset("0123456789abcdef-")


class Ledger:
    def __init__(self, journal: Journal, clock: Clock, boot_id: str, keep_raw: bool) -> None:
        self.journal = journal
        self._rows = journal.database.rows
        self._clock = clock
        self._boot_id = boot_id
        self._keep_raw = keep_raw
        self.membership = Membership(journal)  # of a fleet server, if this machine has joined one

    @classmethod
    def open(cls, home: Path, clock: Clock, boot_id: str, *, keep_raw: bool = False) -> Ledger:
        """Opens and migrates the database, repairs audit.log, and closes everything that an earlier boot of the machine
        left open."""
        journal = Journal(Database.open(home / DATABASE_NAME), home / AUDIT_NAME, clock)
        try:
            migrate(journal.database, iso(clock.wall()))
            journal.check_head()
            journal.flush()
            ledger = cls(journal, clock, boot_id, keep_raw)
            ledger._close_earlier_boots()
        except BaseException:
            journal.abandon()
            raise
        return ledger

    def close(self) -> None:
        self.journal.close()

    def abandon(self) -> None:
        """Closes the files and writes nothing more, like a killed process."""
        self.journal.abandon()

    @property
    def alarm(self) -> str:
        """Why nothing can be recorded, or why audit.log is behind the store; "" if there is no problem."""
        return self.journal.fault or self.journal.alarm

    def watch_alarm(self, told: Callable[[str], None]) -> None:
        """Sets the callback for the start (with the reason) and the end ("") of an alarm. It must not write to the
        store."""
        self.journal.on_alarm = told

    def use_names(self, name_of: Callable[[str], str]) -> None:
        """From now on, records and receipts contain the person's name besides the identity."""
        self.journal.name_of = name_of

    def name_of(self, identity: str) -> str:
        return self.journal.name_of(identity)

    def batch(self, hurry: bool = False) -> AbstractContextManager[object]:
        """All changes inside share one commit; on StoreError, none of them happened. `hurry`: more changes follow at
        once."""
        return self.journal.batch(hurry)

    def when_durable(self, consequence: Callable[[], object]) -> None:
        """Runs `consequence` once all changes so far are on disk: at once if no transaction is running."""
        self.journal.when_durable(consequence)

    def flush(self) -> bool:
        """Tries again to write, and to update audit.log; called by a timer and by requests while `alarm` is set."""
        if self.journal.fault:
            try:
                self.remember("store.tried_at", iso(self._clock.wall()))
            except StoreError:
                return False
        return self.journal.flush()

    def _close_earlier_boots(self) -> None:
        """A prompt never outlives a boot: the monotonic clock has restarted, and every tool is gone."""
        for session in self._sessions("status = 'active' AND boot_id <> ?", (self._boot_id,)):
            self.end_session(session.session_id, None, SessionState.CRASHED, reason="reboot")

    # reading

    def _prompts(
        self, where: str, parameters: tuple[Any, ...] | dict[str, Any] = (), tail: str = ""
    ) -> list[PromptRecord]:
        with self.journal.reading() as connection:
            return prompts.select(connection, where, parameters, tail)

    def _sessions(self, where: str, parameters: tuple[Any, ...] = ()) -> list[SessionRecord]:
        with self.journal.reading() as connection:
            return select_sessions(connection, where, parameters)

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        """By its full or short id. Returns None if there is none, or more than one id begins like that."""
        where, parameters = _by_id(prompt_id)
        found = self._prompts(where, parameters, "LIMIT 2")
        return found[0] if len(found) == 1 else None

    def open_prompts(self, session_id: str | None = None) -> list[PromptRecord]:
        where = prompts.IS_OPEN + ("" if session_id is None else " AND session_id = ?")
        return self._prompts(where, () if session_id is None else (session_id,))

    def last_prompt(self, session_id: str) -> PromptRecord | None:
        """The newest prompt of this session, in any state."""
        found = self._prompts("session_id = ?", (session_id,), "ORDER BY rowid DESC LIMIT 1")
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
            return prompts.get_request(connection, key)

    def session(self, full_or_short_id: str) -> SessionRecord | None:
        where, parameters = _by_id(full_or_short_id)
        found = self._sessions(where, parameters)
        return found[0] if len(found) == 1 else None

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        return self._sessions("1" if include_ended else "status = 'active'")

    def processes(self, pids: Iterable[int] | None = None, ids: Iterable[str] = ()) -> list[tuple[str, int, int]]:
        """Returns (id, host pid, tool pid) of each running session; `pids` and `ids` restrict the result. It runs for
        every reply, and there can be many sessions."""
        query, parameters = "SELECT id, host_pid, pid FROM sessions WHERE +status = 'active'", {}
        if pids is not None:  # the plus signs make SQLite use the pid indexes instead of scanning all running sessions
            query += (
                " AND (host_pid IN (SELECT value FROM json_each(:pids)) OR pid IN (SELECT value FROM json_each(:pids))"
            )
            query += " OR id IN (SELECT value FROM json_each(:ids)))"
            parameters = {"pids": json.dumps(list(pids)), "ids": json.dumps(list(ids))}
        return self._rows(f"{query} ORDER BY +started_at, rowid", parameters)

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        """Returns prompts, newest first. `before` is the id of the last prompt on the previous page."""
        where = (
            "(:search = '' OR instr(lower(excerpt || ' ' || coalesce(decided_by, '')), :search) OR session_id IN"
            " (SELECT id FROM sessions WHERE instr(lower(tool || ' ' || label || ' ' || cwd), :search)))"
            " AND (:before = '' OR rowid < (SELECT rowid FROM prompts WHERE id = :before))"
            " AND (:session = '' OR session_id = :session) AND (:state = '' OR status = :state)"
        )
        parameters = {"search": search.lower(), "before": before, "session": session_id, "state": state, "limit": limit}
        return self._prompts(where, parameters, "ORDER BY rowid DESC LIMIT :limit")

    def statistics(self) -> dict[str, Any]:
        rows = self._rows
        return {
            "sessions": dict(rows("SELECT status, count(*) FROM sessions GROUP BY status")),
            "prompts": dict(rows("SELECT status, count(*) FROM prompts GROUP BY status")),
            "types": dict(rows("SELECT type, count(*) FROM prompts GROUP BY type")),
            "replies": dict(rows("SELECT source, count(*) FROM replies GROUP BY source")),
            "audit_entries": self.audit_head().entries,
        }

    def figures(self) -> dict[str, Any]:
        return {**read_figures(self._rows), "answered_ways": self.ways()}

    def ways(self) -> dict[str, int]:
        """Counts how recent answers reached their tools: typed, or taken by a hook or plugin."""
        return dict(
            self._rows(
                "SELECT coalesce(json_extract(entry, '$.way'), 'keys') AS way, count(*) FROM audit_events"
                f" WHERE event = 'REPLY_INJECTED' AND seq > (SELECT coalesce(max(seq), 0) - {NEWEST} FROM audit_events)"
                " GROUP BY way ORDER BY count(*) DESC"
            )
        )

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        """The messages in a channel under which a prompt was shown."""
        with self.journal.reading() as connection:
            return _delivered(connection, prompt_id, channel)

    def notified_steps(self, prompt_id: str) -> frozenset[tuple[int, str]]:
        """Returns (escalation step, channel) of all notifications sent for this prompt."""
        with self.journal.reading() as connection:
            return _sent_notices(connection, prompt_id)

    def sounds_since(self, at: str) -> list[tuple[str, str]]:
        """Returns (person, time) of the notifications with a sound, oldest first."""
        rows = self._rows("SELECT heard, at FROM notices WHERE at >= ? AND heard <> '[]' ORDER BY at", (at,))
        return [(name, moment) for heard, moment in rows for name in json.loads(heard)]

    def last_output(self, session_id: str) -> dict[str, Any] | None:
        """The last screen of a session that has ended, and the lines above it; None if nothing was stored."""
        rows = self._rows("SELECT body FROM last_output WHERE session_id = ?", (session_id,))
        return dict(json.loads(zlib.decompress(rows[0][0]))) if rows else None

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
        return self._prompts(where, (session_id, session_id))

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        """Returns ids and payloads of updates that were never settled, oldest first."""
        rows = self._rows(
            "SELECT update_id, payload FROM inbox WHERE channel = ? AND payload != '' ORDER BY received_at, rowid",
            (channel,),
        )
        return [(update_id, payload) for update_id, payload in rows]

    def recall(self, key: str, default: str = "") -> str:
        with self.journal.reading() as connection:
            return _get_note(connection, key, default)

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
        events = (event,) if event else events
        named = {f"event{place}": name for place, name in enumerate(events)}
        wanted = {"session_id": session_id, "prompt_id": prompt_id}
        where = "".join(f" AND {name} = :{name}" for name, value in wanted.items() if value)
        where += f" AND event IN ({', '.join(f':{name}' for name in named)})" if named else ""
        where += " AND seq < :before" if before else ""
        rows = self._rows(
            f"SELECT entry FROM audit_events WHERE seq > :after{where}"
            f" ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT :limit",
            {**wanted, **named, "after": after, "before": before, "limit": limit},
        )
        entries = [parse_entry(line) or {} for (line,) in rows]
        return entries[::-1] if newest else entries

    def prepare_verify(self, seen: Iterable[SeenHead] = ()) -> Callable[[], AuditVerdict]:
        """Fixes the state of the log now; the check itself takes long for a long log and can run in another thread.

        Entries that could not be copied to audit.log earlier are copied first; nothing else is changed.
        """
        if self.journal.alarm:
            self.journal.flush()
        return prepare(self.journal.database.path, self.journal.audit_path, seen)

    def check(self) -> list[str]:
        """Returns structural errors of the database; empty if there are none."""
        return self.journal.database.check()

    # sessions

    def start_session(self, record: SessionRecord) -> None:
        """Can be called again when a host reconnects: changes are stored, and no second start is recorded."""
        with self.journal.write() as work:
            known = select_sessions(work.connection, "id = ?", (record.session_id,))
            if not known:
                insert_session(work.connection, record, self._boot_id)
                work.audit(
                    AuditEvent.SESSION_START,
                    session_id=record.session_id,
                    tool=record.tool,
                    command=record.command[0] if record.command else "",
                    cwd=record.cwd,
                    pid=record.pid,
                )
                return
            names = ("pid", "host_pid", "cwd", "label", "attached", "rows", "cols", "channels")
            _change_session(work.connection, record.session_id, {name: getattr(record, name) for name in names})
            resumed = work.connection.execute(
                "UPDATE sessions SET status = 'active', exit_code = NULL, ended_at = NULL"
                " WHERE id = ? AND status <> 'active'",
                (record.session_id,),
            )
            if resumed.rowcount:
                work.audit(AuditEvent.SESSION_RESUMED, session_id=record.session_id)

    def update_session(self, session_id: str, **fields: Any) -> bool:
        with self.journal.write() as work:
            return _change_session(work.connection, session_id, fields)

    def rename_session(self, session_id: str, label: str, by: str) -> bool:
        """Audited, because rules can depend on the name."""
        with self.journal.write() as work:
            if not _change_session(work.connection, session_id, {"label": label}):
                return False
            work.audit(AuditEvent.SESSION_RENAMED, session_id=session_id, label=label, by=by)
            return True

    def end_session(
        self,
        session_id: str,
        exit_code: int | None,
        state: SessionState,
        reason: str = "exited",
        output: Mapping[str, Any] | None = None,
    ) -> list[PromptRecord]:
        """Returns the prompts that ended with the session. A session that has already ended is not changed."""
        with self.journal.write() as work:
            ended = work.connection.execute(
                "UPDATE sessions SET status = ?, exit_code = ?, ended_at = ?, attached = 0"
                " WHERE id = ? AND status = 'active'",
                (state.value, exit_code, work.at, session_id),
            )
            if not ended.rowcount:
                return []
            closed = prompts.close_prompts(work, session_id, reason)
            if output:
                keep_output(work.connection, session_id, work.at, output)
            work.audit(
                AuditEvent.SESSION_END, session_id=session_id, exit_code=exit_code, state=state.value, reason=reason
            )
            return closed

    # the life cycle of a prompt

    def raise_prompt(self, session_id: str, prompt_id: str, prompt: Prompt, ttl_s: float) -> PromptRecord:
        """Idempotent by `prompt_id`. A session has one open prompt: an older one is withdrawn (`superseded`)."""
        with self.journal.write() as work:
            known = prompts.get(work.connection, prompt_id)
            if known is not None:
                return known
            if not select_sessions(work.connection, "id = ? AND status = 'active'", (session_id,)):
                raise StoreError(f"no active session {session_id}", "The host must report its session first.")
            for older in prompts.select(work.connection, f"session_id = ? AND {prompts.IS_OPEN}", (session_id,)):
                prompts.move(work, older.prompt_id, PromptMoved.WITHDRAW, reason="superseded")
            record = PromptRecord(
                prompt_id=prompt_id,
                session_id=session_id,
                prompt=prompt,
                state=PromptState.CREATED,
                nonce=new_nonce(),
                created_at=work.at,
                expires_at=iso(work.wall + ttl_s),
                deadline=work.now + ttl_s,
                boot_id=self._boot_id,
            )
            prompts.insert(work.connection, record, self._keep_raw)
            prompts.audit_prompt(
                work,
                AuditEvent.PROMPT_DETECTED,
                record,
                type=prompt.type.value,
                confidence=prompt.confidence.value,
                excerpt=prompt.excerpt,
                expires_at=record.expires_at,
                **({REFUSALS: refusing_forms(prompt)} if PROOF in prompt.constraints else {}),
            )
            return record

    def deliver_prompt(self, prompt_id: str, channel: str, message_id: str) -> PromptRecord | None:
        """A channel has shown the prompt. The first delivery changes its state; later ones are only stored.

        Returns None if there is no such prompt, or it is no longer open (the delivery is stored all the same).
        """
        with self.journal.write() as work:
            if prompts.get(work.connection, prompt_id) is None:
                return None
            shown = {"channel": channel, "message_id": message_id}
            fresh = work.connection.execute(
                "INSERT INTO deliveries (prompt_id, channel, message_id, sent_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (prompt_id, channel, message_id, work.at),
            ).rowcount
            moved = prompts.move(work, prompt_id, PromptMoved.DELIVER, **shown)
            if moved is not None:
                return moved
            (record,) = prompts.select(work.connection, "id = ?", (prompt_id,))
            if fresh:
                prompts.audit_prompt(work, AuditEvent.PROMPT_DELIVERED, record, **shown)
            return record if record.state is PromptState.AWAITING_REPLY else None

    def claim(
        self,
        prompt_id: str,
        session_id: str,
        nonce: str | None,
        answer: Answer,
        decider: Decider | str,
    ) -> PromptRecord | Reject:
        """Only one claim wins. If this returns a record, the decision is on disk; nothing can be typed before.

        A decision that depends on grants uses each of them once in the same transaction, or does not happen.
        """
        who = Decider(decider) if isinstance(decider, str) else decider
        with self.journal.write() as work:
            live = _live_grants(work.connection, self._boot_id, work.now) if who.grants else ()
            if not {*who.grants} <= {grant.grant_id[:8] for grant in live}:
                return Reject(Refusal.NOT_ALLOWED, "What allowed it has ended.")
            won = prompts.accept(work, prompt_id, session_id, nonce or "", answer, who, self._boot_id)
            if won is not None:
                used = "UPDATE grants SET uses_left = uses_left - 1 WHERE substr(id, 1, 8) = ?"
                work.connection.executemany(used, [(name,) for name in who.grants])
                return won
            record = prompts.get(work.connection, prompt_id)
            return refuse_claim(record, session_id=session_id, nonce=nonce or "", now=work.now)

    def decide_prompt(
        self, prompt_id: str, session_id: str, nonce: str, value: str, decided_by: str = "cli:local"
    ) -> int:
        """The name in the specification. Returns the number of rows that it changed, 1 or 0."""
        record = self.prompt(prompt_id)
        answer = decide_answer(record.prompt, value) if record is not None else None
        if record is None or not isinstance(answer, Answer):
            return 0
        return int(isinstance(self.claim(record.prompt_id, session_id, nonce, answer, decided_by), PromptRecord))

    # grants and votes

    def add_grant(self, grant: Grant, prompt_id: str, words: str) -> Grant:
        """`words` describes what it allows, for the audit log."""
        with self.journal.write() as work:
            made = replace(grant, created_at=work.at)
            allowed = {**as_dict(grant.shape), "commands": [shape.words for shape in grant.shape.commands]}
            work.connection.execute(
                f"INSERT INTO grants ({_GRANT}, boot_id, prompt_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*{**as_dict(made), "shape": json.dumps(allowed)}.values(), self._boot_id, prompt_id),
            )
            ids = {"session_id": grant.session_id, "prompt_id": prompt_id}
            work.audit(AuditEvent.GRANT_ADDED, **ids, grant=made.grant_id, allows=words, decided_by=grant.by)
            return made

    def revoke_grants(self, beginning: str, by: str) -> list[str]:
        """Returns the ids of the ended grants; `beginning=""` means all."""
        with self.journal.write() as work:
            rows = work.connection.execute(
                "UPDATE grants SET revoked_at = ? WHERE revoked_at IS NULL AND substr(id, 1, ?) = ? RETURNING id",
                (work.at, len(beginning), beginning),
            )
            ended = [grant_id for (grant_id,) in rows]
            for grant_id in ended:
                work.audit(AuditEvent.GRANT_REVOKED, grant=grant_id, decided_by=by)
            return ended

    def live_grants(self) -> list[Grant]:
        with self.journal.reading() as connection:
            return _live_grants(connection, self._boot_id, self._clock.now())

    def vote(
        self, record: PromptRecord, person: str, identity: str, answer: str, noted: Mapping[str, Any] | None = None
    ) -> list[tuple[str, str]]:
        """Returns (identity, answer) of every vote including this one, the latest last. A person's last vote counts.
        `noted` is added to the audit entry."""
        with self.journal.write() as work:
            changed = work.connection.execute(
                "INSERT INTO votes (prompt_id, person, identity, answer, at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (prompt_id, person) DO UPDATE SET answer = excluded.answer, identity = excluded.identity,"
                " at = excluded.at WHERE answer <> excluded.answer",
                (record.prompt_id, person, identity, answer, work.at),
            ).rowcount
            if changed:
                fields = {"person": person, "decided_by": identity, **(noted or {})}
                prompts.audit_prompt(work, AuditEvent.VOTE_CAST, record, **fields)
            cast = "SELECT identity, answer FROM votes WHERE prompt_id = ? ORDER BY at, rowid"
            return work.connection.execute(cast, (record.prompt_id,)).fetchall()

    def drop_votes(self, gone: Callable[[str], bool]) -> int:
        """Deletes votes of identities that have lost access, for prompts that are not decided yet."""
        with self.journal.write() as work:
            rows = work.connection.execute(
                "SELECT v.prompt_id, v.identity FROM votes v JOIN prompts p ON p.id = v.prompt_id"
                " WHERE p.nonce_used = 0"
            ).fetchall()
            found = [one for one in rows if gone(one[1])]
            for prompt_id, identity in found:
                work.connection.execute("DELETE FROM votes WHERE prompt_id = ? AND identity = ?", (prompt_id, identity))
                work.audit(AuditEvent.VOTE_DROPPED, prompt_id=prompt_id, decided_by=identity)
            return len(found)

    def voters(self, prompt_id: str) -> list[str]:
        """Returns everybody who voted, whatever they approved."""
        rows = self._rows("SELECT person FROM votes WHERE prompt_id = ? ORDER BY at, person", (prompt_id,))
        return [person for (person,) in rows]

    def expire(self, prompt_id: str, default: Answer | None) -> PromptRecord | None:
        """Returns None before the deadline. `default` is stored as the answer to type, never for an unknown or a secret
        prompt."""
        with self.journal.write() as work:
            return prompts.expire(work, prompt_id, default, self._boot_id)

    def inject(self, prompt_id: str, way: str = "keys") -> PromptRecord | None:
        with self.journal.write() as work:
            return prompts.inject(work, prompt_id, way)

    def resolve(self, prompt_id: str) -> PromptRecord | None:
        return self._move(prompt_id, PromptMoved.RESOLVE)

    def withdraw(self, prompt_id: str, reason: str) -> PromptRecord | None:
        return self._move(prompt_id, PromptMoved.WITHDRAW, reason=reason)

    def cancel(self, prompt_id: str, by: str, place: str = "", request: str = "") -> PromptRecord | None:
        with self.journal.write() as work:
            record = prompts.change_state(
                work.connection,
                prompt_id,
                PromptMoved.CANCEL,
                work.at,
                nonce_used=1,
                decided_by=by,
                decided_at=work.at,
                decided_value="cancel",
                decided_from=place,
            )
            if record is not None:
                prompts.audit_prompt(work, AuditEvent.PROMPT_CANCELED, record, decided_by=by)
                if request:
                    prompts.insert_request(work, request, record.prompt_id)
            return record

    def fail(self, prompt_id: str, reason: str) -> PromptRecord | None:
        return self._move(prompt_id, PromptMoved.FAIL, reason=reason)

    def _move(self, prompt_id: str, event: PromptMoved, **fields: Any) -> PromptRecord | None:
        with self.journal.write() as work:
            return prompts.move(work, prompt_id, event, **fields)

    # scheduled answers and snoozes

    def postpone(self, wanted: ScheduledItem, until_s: float) -> tuple[ScheduledItem, PromptRecord] | None:
        """Stores it and keeps the prompt open for at least `until_s` seconds. An answer replaces an earlier one.

        Returns None if the prompt is no longer open.
        """
        with self.journal.write() as work:
            record = _keep_open(work, wanted.prompt_id, until_s)
            if record is None:
                return None
            if wanted.kind == ANSWER:
                waiting = f"{_WAITING} AND kind = ? AND prompt_id = ?"
                for older in _scheduled(work.connection, waiting, ANSWER, record.prompt_id):
                    _end_scheduled(work, older, "replaced", wanted.identity)
            made = replace(wanted, prompt_id=record.prompt_id, created_at=work.at)
            values = (getattr(made, name) for name in ScheduledItem.__match_args__[:10])
            work.connection.execute(
                f"INSERT INTO later ({_LATER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '')", tuple(values)
            )
            event = AuditEvent.REPLY_POSTPONED if made.kind == ANSWER else AuditEvent.PROMPT_SNOOZED
            said = {"value": made.value} if made.kind == ANSWER else {}
            fields = {"later": made.later_id, "due_at": made.due_at, "decided_by": made.identity}
            prompts.audit_prompt(work, event, record, **fields, decided_from=made.place, **said)
            return made, record

    def end_scheduled(
        self, later_id: str, outcome: str, by: str = "", ttl_s: float | None = None
    ) -> ScheduledItem | None:
        """Ends an entry with its outcome. With `ttl_s`, its prompt stays open for that many seconds from now."""
        with self.journal.write() as work:
            found = _scheduled(work.connection, "id = ?", later_id)
            ended = _end_scheduled(work, found[0], outcome, by) if found else None
            if ended is not None and ttl_s is not None:
                _keep_open(work, ended.prompt_id, ttl_s, may_shorten=True)
            return ended

    def pending_scheduled(self, prompt_id: str = "") -> list[ScheduledItem]:
        """The pending entries, in the order in which they are due."""
        with self.journal.reading() as connection:
            return _scheduled(connection, f"{_WAITING} AND (? = '' OR prompt_id = ?)", prompt_id, prompt_id)

    def wakes(self, prompt_id: str) -> list[ScheduledItem]:
        """All entries of a prompt that were not revoked or replaced: people are notified again at these times."""
        with self.journal.reading() as connection:
            return _scheduled(connection, "prompt_id = ? AND outcome NOT IN ('revoked', 'replaced')", prompt_id)

    # channels, notes, maintenance

    def keep_refusal(self, request: str, prompt_id: str, refusal: Reject) -> None:
        """Stores the refusal of a request, so that a repeated request gets the same answer."""
        with self.journal.write() as work:
            prompts.insert_request(work, request, prompt_id, refusal)

    def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        """Stores an update that a channel received, before it is acknowledged to the service. Returns False if it was
        stored before."""
        with self.journal.write() as work:
            cursor = work.connection.execute(
                "INSERT INTO inbox (channel, update_id, payload, received_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (channel, update_id, payload, work.at),
            )
            return cursor.rowcount == 1

    def settle_update(self, channel: str, update_id: str) -> None:
        """The update has been processed: its number is kept, to recognise a duplicate, and its payload is deleted."""
        with self.journal.write() as work:
            work.connection.execute(
                "UPDATE inbox SET payload = '' WHERE channel = ? AND update_id = ?", (channel, update_id)
            )

    def remember(self, key: str, value: str) -> None:
        """Stores a small durable value, such as a poll offset or a chat's default session."""
        with self.journal.write() as work:
            _put_note(work, key, value)

    def tell(
        self, prompt_id: str, notifications: Iterable[tuple[str, tuple[int, ...], Iterable[str]]]
    ) -> PromptRecord | None:
        """Records escalation steps before anything is sent: (channel, steps, people who hear it). The people are stored
        once, with the first step that was not recorded before.

        The first of them changes the state to routed; then the record is returned.
        """
        with self.journal.write() as work:
            for channel, steps, heard in notifications:
                names = json.dumps(sorted(heard), ensure_ascii=False)
                for step in sorted(steps):
                    cursor = work.connection.execute(
                        "INSERT INTO notices (prompt_id, channel, step, heard, at) VALUES (?, ?, ?, ?, ?)"
                        " ON CONFLICT DO NOTHING",
                        (prompt_id, channel, step, names, work.at),
                    )
                    names = "[]" if cursor.rowcount == 1 else names
            return prompts.move(work, prompt_id, PromptMoved.ROUTE)

    def forget_unshown(self, prompt_id: str, shown: Iterable[str] = ()) -> frozenset[tuple[int, str]]:
        """After a restart: removes steps whose message was never shown, so that they are repeated. Returns the
        remaining steps.

        `shown`: channels whose delivery is being recorded right now.
        """
        with self.journal.write() as work:
            for channel in {name for _, name in _sent_notices(work.connection, prompt_id)}.difference(shown):
                if not _delivered(work.connection, prompt_id, channel):
                    work.connection.execute(
                        "DELETE FROM notices WHERE prompt_id = ? AND channel = ?", (prompt_id, channel)
                    )
            return _sent_notices(work.connection, prompt_id)

    def note(self, event: str, **fields: Any) -> None:
        """Writes a separate audit entry."""
        with self.journal.write() as work:
            work.audit(event, **fields)

    def cleanup(self, *, prompts_s: float, sessions_s: float, inbox_s: float) -> dict[str, int]:
        """Deletes records that ended longer ago than these times. The audit log is never shortened."""
        with self.journal.write() as work:
            received, before = (iso(work.wall - inbox_s),), (iso(work.wall - sessions_s),)
            old = "SELECT id FROM sessions WHERE ended_at < ?"
            work.connection.execute(f"DELETE FROM last_output WHERE session_id IN ({old})", before)
            counts = {
                "prompts": prompts.delete_ended_before(work.connection, iso(work.wall - prompts_s)),
                "sessions": work.connection.execute(
                    "DELETE FROM sessions WHERE status <> 'active' AND ended_at < ?"
                    " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id)",
                    before,
                ).rowcount,
                "inbox": work.connection.execute("DELETE FROM inbox WHERE received_at < ?", received).rowcount,
            }
            work.connection.execute("DELETE FROM requests WHERE at < ?", received)
            if any(counts.values()):
                work.audit(AuditEvent.STORE_CLEANED, **counts)
            return counts


def _by_id(given: str) -> tuple[str, tuple[str, ...]]:
    """Accepts a full id, or at least its first eight characters. Anything else finds nothing."""
    text = given.lower()
    if len(text) < SHORTEST_ID or not _HEX.issuperset(text):
        return "id = ?", (given,)
    return "id >= ? AND id < ?", (text, text + "g")
