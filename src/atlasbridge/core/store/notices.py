"""The table `notices`: which step of a prompt's ladder was taken in which channel, and for whom it made a sound."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable


def insert(
    connection: sqlite3.Connection, prompt_id: str, channel: str, steps: Iterable[int], heard: Iterable[str], at: str
) -> bool:
    """False: all of these steps were taken already.  Who hears it is written once, with the first of them."""
    names, fresh = json.dumps(sorted(heard), ensure_ascii=False), False
    for step in sorted(steps):
        cursor = connection.execute(
            "INSERT INTO notices (prompt_id, channel, step, heard, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (prompt_id, channel, step, names, at),
        )
        if cursor.rowcount == 1:
            fresh, names = True, "[]"
    return fresh


def taken(connection: sqlite3.Connection, prompt_id: str) -> frozenset[tuple[int, str]]:
    rows = connection.execute("SELECT step, channel FROM notices WHERE prompt_id = ?", (prompt_id,))
    return frozenset((int(step), str(channel)) for step, channel in rows)


def forget(connection: sqlite3.Connection, prompt_id: str, channel: str) -> None:
    """It was never shown there: its steps are to be taken again."""
    connection.execute("DELETE FROM notices WHERE prompt_id = ? AND channel = ?", (prompt_id, channel))


def heard_since(connection: sqlite3.Connection, at: str) -> list[tuple[str, str]]:
    """(person, when), the oldest first."""
    rows = connection.execute("SELECT heard, at FROM notices WHERE at >= ? AND heard <> '[]' ORDER BY at", (at,))
    return [(str(name), str(moment)) for heard, moment in rows for name in json.loads(heard)]
