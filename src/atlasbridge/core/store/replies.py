"""The table `replies`: the one accepted answer of a prompt.  The value of a secret is never written."""

from __future__ import annotations

import sqlite3
from typing import Final

from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, AnswerKind, PromptRecord
from atlasbridge.core.values import frozen

SPOKEN: Final = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "enter"}  # answers without own words


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
        """What is to be typed; None when only the person still knows it."""
        if self.value is None:
            return None
        return Answer(self.kind, "" if self.kind in SPOKEN else self.value)


def insert(
    connection: sqlite3.Connection, record: PromptRecord, answer: Answer, source: str, identity: str, at: str
) -> None:
    connection.execute(
        "INSERT INTO replies (id, prompt_id, session_id, kind, value, source, identity, received_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (new_id(), record.prompt_id, record.session_id, answer.kind.value, shown(record, answer), source, identity, at),
    )


def shown(record: PromptRecord, answer: Answer) -> str | None:
    """The value as it may be written down, for an answer without words of its own as it is spoken."""
    return None if record.prompt.secret else answer.value or SPOKEN.get(answer.kind, "")


def mark_injected(connection: sqlite3.Connection, prompt_id: str, at: str) -> None:
    connection.execute("UPDATE replies SET injected_at = ? WHERE prompt_id = ?", (at, prompt_id))


def get(connection: sqlite3.Connection, prompt_id: str) -> ReplyRecord | None:
    row = connection.execute(
        "SELECT prompt_id, session_id, kind, value, source, identity, received_at, coalesce(injected_at, '')"
        " FROM replies WHERE prompt_id = ?",
        (prompt_id,),
    ).fetchone()
    if row is None:
        return None
    kind, value = AnswerKind(row[2]), row[3]
    value = SPOKEN.get(kind, "") if value == "" else value  # as earlier versions wrote it
    return ReplyRecord(row[0], row[1], kind, value, *row[4:])
