"""The table `outbox`: what a desk of many machines has not acknowledged yet.  Triggers fill it in the transaction of
the change itself, and only while this machine belongs to a desk; what is sent is read at the moment of sending."""

from __future__ import annotations

import sqlite3
from typing import Final

EPOCH: Final = "desk.epoch"  # the note that names this membership; "" or none: nothing is collected


def pending(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, str, str]]:
    """(number, kind, id), oldest first."""
    rows = connection.execute(
        "SELECT seq, kind, id FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    ).fetchall()
    return [(int(seq), str(kind), str(name)) for seq, kind, name in rows]


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM outbox").fetchone()[0])


def acknowledge(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("DELETE FROM outbox WHERE seq <= ?", (seq,))


def fill(connection: sqlite3.Connection) -> None:
    """A membership begins: what lives now is told first."""
    connection.execute("DELETE FROM outbox")
    connection.execute("INSERT INTO outbox (kind, id) SELECT 'session', id FROM sessions WHERE status = 'active'")
    connection.execute(
        "INSERT INTO outbox (kind, id) SELECT 'prompt', id FROM prompts"
        " WHERE status IN ('created', 'routed', 'awaiting_reply', 'reply_received', 'injected')"
    )


def clear(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM outbox")
