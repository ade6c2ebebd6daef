"""The table `votes`: who agreed to a prompt that several people must agree to."""

from __future__ import annotations

import sqlite3


def insert(connection: sqlite3.Connection, prompt_id: str, person: str, identity: str, answer: str, at: str) -> bool:
    """A person's last word counts; False: they had said just that."""
    same = connection.execute(
        "SELECT 1 FROM votes WHERE prompt_id = ? AND person = ? AND answer = ?", (prompt_id, person, answer)
    ).fetchone()
    if same:
        return False
    connection.execute(
        "INSERT INTO votes (prompt_id, person, identity, answer, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (prompt_id, person) DO UPDATE SET answer = excluded.answer, identity = excluded.identity,"
        " at = excluded.at",
        (prompt_id, person, identity, answer, at),
    )
    return True


def everybody(connection: sqlite3.Connection, prompt_id: str) -> list[str]:
    """Whatever each of them agreed to."""
    rows = connection.execute("SELECT person FROM votes WHERE prompt_id = ? ORDER BY at, person", (prompt_id,))
    return [str(row[0]) for row in rows]


def people(connection: sqlite3.Connection, prompt_id: str, answer: str) -> list[str]:
    rows = connection.execute(
        "SELECT person FROM votes WHERE prompt_id = ? AND answer = ? ORDER BY at, person", (prompt_id, answer)
    )
    return [str(row[0]) for row in rows]
