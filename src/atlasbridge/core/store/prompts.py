"""The table `prompts`: every state change is one guarded UPDATE whose guard comes from the state machine."""

from __future__ import annotations

import json
import sqlite3
from functools import lru_cache
from typing import Any, Final

from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import decode_prompt, encode_prompt, kept
from atlasbridge.core.prompt.machine import OPEN, TRANSITIONS, PromptMoved, sources
from atlasbridge.core.prompt.model import Answer, AnswerKind, Prompt, PromptRecord, PromptState
from atlasbridge.core.values import frozen

# The table `replies`: the one accepted answer of a prompt. The value of a secret is never stored.

# answers without a text of their own
SPOKEN: Final = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "enter"}


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


def insert_reply(
    connection: sqlite3.Connection, record: PromptRecord, answer: Answer, source: str, identity: str, at: str
) -> None:
    connection.execute(
        "INSERT INTO replies (id, prompt_id, session_id, kind, value, source, identity, received_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (new_id(), record.prompt_id, record.session_id, answer.kind.value, shown(record, answer), source, identity, at),
    )


def shown(record: PromptRecord, answer: Answer) -> str | None:
    """The value to store; an answer without a text of its own gets its short form."""
    return None if record.prompt.secret else answer.value or SPOKEN.get(answer.kind, "")


def mark_injected(connection: sqlite3.Connection, prompt_id: str, at: str) -> None:
    connection.execute("UPDATE replies SET injected_at = ? WHERE prompt_id = ?", (at, prompt_id))


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


_COLUMNS: Final = (
    "id, session_id, body, status, nonce, created_at, expires_at, deadline, boot_id, nonce_used,"
    " decided_by, decided_at, decided_value, decided_from"
)


_SETTABLE: Final = {"reason", "nonce_used", "decided_by", "decided_at", "decided_value", "decided_from"}


def _quoted(states: tuple[PromptState, ...]) -> str:
    return "(" + ", ".join(f"'{state.value}'" for state in states) + ")"


def guard(event: PromptMoved) -> str:
    """The SQL condition under which `event` is legal."""
    return f"status IN {_quoted(sources(event))}"


def target(event: PromptMoved) -> PromptState:
    """The new state after `event`. It is the same from every state, so that a transition is one UPDATE."""
    (state,) = {end for (_, moved), end in TRANSITIONS.items() if moved is event}
    return state


IS_OPEN: Final = f"status IN {_quoted(tuple(sorted(OPEN)))}"


def insert(connection: sqlite3.Connection, record: PromptRecord, keep_raw: bool) -> None:
    prompt = record.prompt
    body = encode_prompt(kept(prompt))
    connection.execute(
        "INSERT INTO prompts (id, session_id, type, confidence, excerpt, body, raw, status, nonce, boot_id, deadline,"
        " created_at, expires_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.prompt_id,
            record.session_id,
            prompt.type.value,
            prompt.confidence.value,
            prompt.excerpt,
            json.dumps(body, separators=(",", ":")),
            prompt.raw if keep_raw else None,
            record.state.value,
            record.nonce,
            record.boot_id,
            record.deadline,
            record.created_at,
            record.expires_at,
            record.created_at,
        ),
    )


def move(
    connection: sqlite3.Connection, prompt_id: str, event: PromptMoved, at: str, condition: str = "1", **values: Any
) -> PromptRecord | None:
    """Applies `event` if its guard and `condition` are true. Otherwise changes nothing and returns None.

    `values` are additional columns to set; other names are parameters of `condition`.
    """
    columns = _SETTABLE & values.keys()
    extra = "".join(f", {name} = :{name}" for name in sorted(columns))
    row = connection.execute(
        f"UPDATE prompts SET status = :target, updated_at = :at{extra}"
        f" WHERE id = :prompt_id AND {guard(event)} AND ({condition}) RETURNING {_COLUMNS}",
        {**values, "target": target(event).value, "at": at, "prompt_id": prompt_id},
    ).fetchone()
    return _record(row) if row else None


def select(
    connection: sqlite3.Connection, where: str, parameters: tuple[Any, ...] | dict[str, Any] = (), tail: str = ""
) -> list[PromptRecord]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM prompts WHERE {where} {tail or 'ORDER BY rowid'}", parameters)
    return [_record(row) for row in rows]


def get(connection: sqlite3.Connection, prompt_id: str) -> PromptRecord | None:
    found = select(connection, "id = ?", (prompt_id,))
    return found[0] if found else None


def prolong(connection: sqlite3.Connection, prompt_id: str, deadline: float, expires_at: str) -> PromptRecord | None:
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
    return PromptRecord(
        prompt_id=row[0],
        session_id=row[1],
        prompt=_decoded(row[2]),
        state=PromptState(row[3]),
        nonce=row[4],
        created_at=row[5],
        expires_at=row[6],
        deadline=row[7],
        boot_id=row[8],
        nonce_used=bool(row[9]),
        decided_by=row[10] or "",
        decided_at=row[11] or "",
        decided_value=row[12],
        decided_from=row[13],
    )
