"""The table `requests`: what was said to a request that carried a key, so that sending it again changes nothing."""

from __future__ import annotations

import sqlite3

from atlasbridge.core.prompt.model import Refusal, Reject
from atlasbridge.core.values import frozen


@frozen
class RequestRecord:
    """`refusal` is None where the request decided its prompt: what became of that, the prompt itself knows."""

    prompt_id: str
    refusal: Reject | None


def insert(connection: sqlite3.Connection, key: str, prompt_id: str, at: str, refusal: Reject | None = None) -> None:
    """The first outcome of a key stays."""
    reason, sentence = (refusal.reason.value, refusal.sentence) if refusal else (None, "")
    connection.execute(
        "INSERT INTO requests (key, prompt_id, reason, sentence, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (key, prompt_id, reason, sentence, at),
    )


def get(connection: sqlite3.Connection, key: str) -> RequestRecord | None:
    row = connection.execute("SELECT prompt_id, reason, sentence FROM requests WHERE key = ?", (key,)).fetchone()
    return RequestRecord(row[0], Reject(Refusal(row[1]), row[2]) if row[1] else None) if row else None


def delete_before(connection: sqlite3.Connection, moment: str) -> int:
    return connection.execute("DELETE FROM requests WHERE at < ?", (moment,)).rowcount
