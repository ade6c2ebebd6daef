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


def cast(connection: sqlite3.Connection, prompt_id: str) -> list[tuple[str, str]]:
    """(identity, answer), the last word last: whom an identity means may be another now than when it voted."""
    rows = connection.execute("SELECT identity, answer FROM votes WHERE prompt_id = ? ORDER BY at, rowid", (prompt_id,))
    return [(str(row[0]), str(row[1])) for row in rows]


def open_ones(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """(prompt, identity) of what is not decided yet."""
    rows = connection.execute(
        "SELECT v.prompt_id, v.identity FROM votes v JOIN prompts p ON p.id = v.prompt_id WHERE p.nonce_used = 0"
    )
    return [(str(row[0]), str(row[1])) for row in rows]


def delete(connection: sqlite3.Connection, prompt_id: str, identity: str) -> None:
    connection.execute("DELETE FROM votes WHERE prompt_id = ? AND identity = ?", (prompt_id, identity))
