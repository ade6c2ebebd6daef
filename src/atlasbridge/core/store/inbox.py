"""The table `inbox`: what a channel received, kept before the service is told that it may forget it."""

from __future__ import annotations

import sqlite3


def insert(connection: sqlite3.Connection, channel: str, update_id: str, payload: str, at: str) -> bool:
    """False: this update was seen before."""
    cursor = connection.execute(
        "INSERT INTO inbox (channel, update_id, payload, received_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (channel, update_id, payload, at),
    )
    return cursor.rowcount == 1


def settle(connection: sqlite3.Connection, channel: str, update_id: str) -> None:
    """It had its effect: its number is kept, so that a copy is known, and what it said is not."""
    connection.execute("UPDATE inbox SET payload = '' WHERE channel = ? AND update_id = ?", (channel, update_id))


def pending(connection: sqlite3.Connection, channel: str) -> list[tuple[str, str]]:
    """Update ids and payloads that were received and never settled, oldest first."""
    rows = connection.execute(
        "SELECT update_id, payload FROM inbox WHERE channel = ? AND payload != '' ORDER BY received_at, rowid",
        (channel,),
    )
    return [(str(row[0]), str(row[1])) for row in rows]


def delete_before(connection: sqlite3.Connection, moment: str) -> int:
    return connection.execute("DELETE FROM inbox WHERE received_at < ?", (moment,)).rowcount
