"""Prompts and their replies in the store. Every state change is one guarded UPDATE with its audit entry.

The guards come from the table of transitions in `prompt/model.py`. `ledger.py` opens the transactions; nothing here
commits.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from atlasbridge.core.audit.events import EVENT_OF_MOVE, AuditEvent
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.answer import TIMER, label_answer
from atlasbridge.core.prompt.codec import decode_prompt, encode_prompt, for_storage
from atlasbridge.core.prompt.model import (
    OPEN,
    SPOKEN,
    TRANSITIONS,
    Answer,
    AnswerKind,
    Prompt,
    PromptMoved,
    PromptRecord,
    PromptState,
    Refusal,
    Reject,
    sources,
)
from atlasbridge.core.prompt.timer import timer_can_answer
from atlasbridge.core.store.journal import Work
from atlasbridge.core.values import field, frozen

# The table `prompts`.

_COLUMNS: Final = (
    "id, session_id, body, status, nonce, created_at, expires_at, deadline, boot_id, nonce_used,"
    " decided_by, decided_at, decided_value, decided_from"
)
_SETTABLE: Final = {"reason", "nonce_used", "decided_by", "decided_at", "decided_value", "decided_from"}


def _is_in(*states: PromptState) -> str:
    return "status IN (" + ", ".join(f"'{state.value}'" for state in states) + ")"


IS_OPEN: Final = _is_in(*sorted(OPEN))
_WITHOUT_TOOL: Final = {  # how a prompt ends when its tool is gone
    **dict.fromkeys((*OPEN, PromptState.EXPIRED), PromptMoved.WITHDRAW),
    PromptState.REPLY_RECEIVED: PromptMoved.FAIL,
    PromptState.INJECTED: PromptMoved.RESOLVE,
}


def guard(event: PromptMoved) -> str:
    """The SQL condition under which `event` is legal."""
    return _is_in(*sources(event))


def target(event: PromptMoved) -> PromptState:
    """The new state after `event`. It is the same from every state, so that a transition is one UPDATE."""
    (state,) = {end for (_, moved), end in TRANSITIONS.items() if moved is event}
    return state


def insert(connection: sqlite3.Connection, record: PromptRecord, keep_raw: bool) -> None:
    prompt = record.prompt
    body = encode_prompt(for_storage(prompt))
    connection.execute(
        "INSERT INTO prompts (id, session_id, type, confidence, excerpt, body, raw, status, nonce, boot_id, deadline,"
        " created_at, expires_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(record.prompt_id, record.session_id, prompt.type.value, prompt.confidence.value, prompt.excerpt),
            *(json.dumps(body, separators=(",", ":")), prompt.raw if keep_raw else None, record.state.value),
            *(record.nonce, record.boot_id, record.deadline, record.created_at, record.expires_at, record.created_at),
        ),
    )


def select(
    connection: sqlite3.Connection, where: str, parameters: tuple[Any, ...] | dict[str, Any] = (), tail: str = ""
) -> list[PromptRecord]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM prompts WHERE {where} {tail or 'ORDER BY rowid'}", parameters)
    return [_record(row) for row in rows]


def get(connection: sqlite3.Connection, prompt_id: str) -> PromptRecord | None:
    found = select(connection, "id = ?", (prompt_id,))
    return found[0] if found else None


def set_deadline(
    connection: sqlite3.Connection, prompt_id: str, deadline: float, expires_at: str
) -> PromptRecord | None:
    """Sets a new deadline while the prompt is open."""
    row = connection.execute(
        f"UPDATE prompts SET deadline = ?, expires_at = ? WHERE id = ? AND {IS_OPEN} RETURNING {_COLUMNS}",
        (deadline, expires_at, prompt_id),
    ).fetchone()
    return _record(row) if row else None


def delete_ended_before(connection: sqlite3.Connection, moment: str) -> int:
    """Deletes prompts that ended before `moment`, with their replies, deliveries, requests and votes."""
    doomed = (
        "SELECT id FROM prompts WHERE updated_at < ?"
        " AND status IN ('resolved', 'expired', 'canceled', 'failed', 'withdrawn')"
    )
    for table in ("replies", "deliveries", "requests", "votes", "notices", "later"):
        connection.execute(f"DELETE FROM {table} WHERE prompt_id IN ({doomed})", (moment,))
    return connection.execute(f"DELETE FROM prompts WHERE id IN ({doomed})", (moment,)).rowcount


@lru_cache(maxsize=256)  # a prompt is read a dozen times and never changes
def _decoded(body: str) -> Prompt:
    return decode_prompt(json.loads(body))


def _record(row: tuple[Any, ...]) -> PromptRecord:
    prompt_id, session_id, body, state, nonce, created_at, expires_at, deadline, boot_id, used, by, at, *rest = row
    return PromptRecord(
        *(prompt_id, session_id, _decoded(body), PromptState(state), nonce, created_at, expires_at, deadline),
        *(boot_id, bool(used), by or "", at or "", *rest),
    )


# The table `replies`: the one accepted answer of a prompt. The value of a secret is never stored.


@frozen
class ReplyRecord:
    prompt_id: str
    session_id: str
    kind: AnswerKind
    value: str | None  # None: a secret
    source: str
    identity: str
    received_at: str
    injected_at: str

    @property
    def answer(self) -> Answer | None:
        """The answer to type; None for a secret, which is not stored."""
        if self.value is None:
            return None
        return Answer(self.kind, "" if self.kind in SPOKEN else self.value)


def stored_value(record: PromptRecord, answer: Answer) -> str | None:
    """The value to store."""
    return None if record.prompt.secret else answer.spoken


def get_reply(connection: sqlite3.Connection, prompt_id: str) -> ReplyRecord | None:
    row = connection.execute(
        "SELECT prompt_id, session_id, kind, value, source, identity, received_at, coalesce(injected_at, '')"
        " FROM replies WHERE prompt_id = ?",
        (prompt_id,),
    ).fetchone()
    if row is None:
        return None
    kind, value = AnswerKind(row[2]), row[3]
    value = SPOKEN.get(kind, "") if value == "" else value  # earlier versions stored an empty value
    return ReplyRecord(row[0], row[1], kind, value, *row[4:])


# The table `requests`: the outcome of a request with a key, so that repeating it changes nothing.


@frozen
class RequestRecord:
    """`refusal` is None if the request decided its prompt; the prompt itself then has the outcome."""

    prompt_id: str
    refusal: Reject | None


def insert_request(work: Work, key: str, prompt_id: str, refusal: Reject | None = None) -> None:
    """The first outcome of a key is kept."""
    reason, sentence = (refusal.reason.value, refusal.sentence) if refusal else (None, "")
    work.connection.execute(
        "INSERT INTO requests (key, prompt_id, reason, sentence, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (key, prompt_id, reason, sentence, work.at),
    )


def get_request(connection: sqlite3.Connection, key: str) -> RequestRecord | None:
    row = connection.execute("SELECT prompt_id, reason, sentence FROM requests WHERE key = ?", (key,)).fetchone()
    return RequestRecord(row[0], Reject(Refusal(row[1]), row[2]) if row[1] else None) if row else None


# State changes inside one transaction: the guarded update, its reply row and its audit entry together.


@frozen
class Decider:
    """Who decides: an identity, its location, its name in the records, and the key of its request."""

    identity: str
    place: str = ""
    source: str = "operator"
    request: str = ""
    grants: tuple[str, ...] = ()  # the first eight characters of each grant that allows it
    noted: Mapping[str, Any] = field(default_factory=dict)  # for the audit log: the rule, or a passkey's signature


def change_state(
    connection: sqlite3.Connection, prompt_id: str, event: PromptMoved, at: str, condition: str = "1", **values: Any
) -> PromptRecord | None:
    """Applies `event` if its guard and `condition` are true. Otherwise changes nothing and returns None.

    `values` are additional columns to set; other names are parameters of `condition`.
    """
    extra = "".join(f", {name} = :{name}" for name in sorted(_SETTABLE & values.keys()))
    row = connection.execute(
        f"UPDATE prompts SET status = :target, updated_at = :at{extra}"
        f" WHERE id = :prompt_id AND {guard(event)} AND ({condition}) RETURNING {_COLUMNS}",
        {**values, "target": target(event).value, "at": at, "prompt_id": prompt_id},
    ).fetchone()
    return _record(row) if row else None


def audit_prompt(work: Work, event: AuditEvent, record: PromptRecord, **fields: Any) -> None:
    work.audit(event, session_id=record.session_id, prompt_id=record.prompt_id, **fields)


def move(work: Work, prompt_id: str, event: PromptMoved, **fields: Any) -> PromptRecord | None:
    """A plain state change. `fields` go to the audit entry, `reason` also to the row."""
    values = {"reason": fields["reason"]} if fields.get("reason") else {}
    record = change_state(work.connection, prompt_id, event, work.at, **values)
    if record is not None:
        audit_prompt(work, EVENT_OF_MOVE[event], record, **fields)
    return record


def accept(
    work: Work, prompt_id: str, session_id: str, nonce: str, answer: Answer, decider: Decider, boot_id: str
) -> PromptRecord | None:
    """The specification's decide_prompt: checks session, nonce, first use, deadline and state in one UPDATE."""
    known = get(work.connection, prompt_id)
    record = change_state(
        work.connection,
        prompt_id,
        PromptMoved.ACCEPT,
        work.at,
        "session_id = :session_id AND nonce_used = 0 AND boot_id = :boot_id AND deadline > :now"
        " AND (:nonce = '' OR (length(:nonce) >= 16 AND substr(nonce, 1, length(:nonce)) = :nonce))",
        session_id=session_id,
        boot_id=boot_id,
        nonce=nonce,
        now=work.now,
        nonce_used=1,
        decided_by=decider.identity,
        decided_at=work.at,
        decided_value=label_answer(known.prompt, answer) if known else "",
        decided_from=decider.place,
    )
    if record is not None:
        _keep(work, record, answer, decider, AuditEvent.REPLY_RECEIVED)
        if decider.request:
            insert_request(work, decider.request, record.prompt_id)
    return record


def expire(work: Work, prompt_id: str, default: Answer | None, boot_id: str) -> PromptRecord | None:
    """The time is over, or the machine was rebooted. A default is used only where a timer is allowed to answer."""
    known = get(work.connection, prompt_id)
    if known is None or known.boot_id != boot_id or not timer_can_answer(known.prompt):
        default = None
    record = change_state(
        work.connection,
        prompt_id,
        PromptMoved.EXPIRE,
        work.at,
        "deadline <= :now OR boot_id <> :boot_id",
        now=work.now,
        boot_id=boot_id,
        nonce_used=1,
        decided_by=TIMER,
        decided_at=work.at,
        decided_value=label_answer(known.prompt, default) if known and default else "",
    )
    if record is None:
        return None
    if default is not None:
        _keep(work, record, default, Decider(TIMER, source="timeout_default"), AuditEvent.PROMPT_EXPIRED)
    else:
        audit_prompt(work, AuditEvent.PROMPT_EXPIRED, record, decided_by=TIMER)
    return record


def _keep(work: Work, record: PromptRecord, answer: Answer, decider: Decider, event: AuditEvent) -> None:
    """Stores the answer of a decision, and audits it."""
    value = stored_value(record, answer)
    work.connection.execute(
        "INSERT INTO replies (id, prompt_id, session_id, kind, value, source, identity, received_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(new_id(), record.prompt_id, record.session_id, answer.kind.value, value),
            *(decider.source, decider.identity, work.at),
        ),
    )
    fields = _answer_fields(record, answer.kind, value, decider.source, decider.identity)
    audit_prompt(work, event, record, **fields, **decider.noted)


def inject(work: Work, prompt_id: str, way: str = "keys") -> PromptRecord | None:
    """The keys were typed, or (`way`) a hook of the tool took the answer. Without a recorded answer, nothing could have
    been typed."""
    reply = get_reply(work.connection, prompt_id)
    if reply is None:
        return None
    record = change_state(work.connection, prompt_id, PromptMoved.INJECT, work.at)
    if record is not None:
        work.connection.execute("UPDATE replies SET injected_at = ? WHERE prompt_id = ?", (work.at, prompt_id))
        fields = _answer_fields(record, reply.kind, reply.value, reply.source, reply.identity)
        audit_prompt(work, AuditEvent.REPLY_INJECTED, record, **fields, **({} if way == "keys" else {"way": way}))
    return record


def _answer_fields(record: PromptRecord, kind: str, value: str | None, source: str, identity: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": str(kind), "source": source, "decided_by": identity}
    fields |= {"label": record.decided_value} if record.decided_value and value is not None else {}
    fields |= {"decided_from": record.decided_from} if record.decided_from else {}
    return {**fields, "secret": True} if value is None else {**fields, "value": value}


def close_prompts(work: Work, session_id: str, reason: str) -> list[PromptRecord]:
    """Ends every prompt of a session whose tool is gone."""
    live = select(work.connection, f"session_id = ? AND {_is_in(*_WITHOUT_TOOL)}", (session_id,))
    moved = (move(work, record.prompt_id, _WITHOUT_TOOL[record.state], reason=reason) for record in live)
    return [record for record in moved if record is not None]
