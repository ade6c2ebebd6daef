"""The table `notes`: small durable facts, such as a poll offset or a chat's default session."""

from __future__ import annotations

import sqlite3


def put(connection: sqlite3.Connection, key: str, value: str, at: str) -> None:
    connection.execute(
        "INSERT INTO notes (key, value, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (key, value, at),
    )


def get(connection: sqlite3.Connection, key: str, default: str) -> str:
    row = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default
