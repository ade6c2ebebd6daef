"""The table `deliveries`: under which message of which channel a prompt was shown."""

from __future__ import annotations

import sqlite3


def insert(
    connection: sqlite3.Connection, prompt_id: str, channel: str, message_id: str, recipient: str, at: str
) -> bool:
    """False: this delivery is known already."""
    cursor = connection.execute(
        "INSERT INTO deliveries (prompt_id, channel, message_id, recipient, sent_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (prompt_id, channel, message_id, recipient, at),
    )
    return cursor.rowcount == 1


def messages(connection: sqlite3.Connection, prompt_id: str, channel: str) -> list[str]:
    rows = connection.execute(
        "SELECT message_id FROM deliveries WHERE prompt_id = ? AND channel = ? ORDER BY rowid", (prompt_id, channel)
    )
    return [row[0] for row in rows]


def prompt_of(connection: sqlite3.Connection, channel: str, message_id: str) -> str | None:
    """The newest prompt shown under that message."""
    row = connection.execute(
        "SELECT prompt_id FROM deliveries WHERE channel = ? AND message_id = ? ORDER BY rowid DESC LIMIT 1",
        (channel, message_id),
    ).fetchone()
    return row[0] if row else None
