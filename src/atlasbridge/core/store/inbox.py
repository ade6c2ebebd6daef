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


def delete_before(connection: sqlite3.Connection, moment: str) -> int:
    return connection.execute("DELETE FROM inbox WHERE received_at < ?", (moment,)).rowcount
