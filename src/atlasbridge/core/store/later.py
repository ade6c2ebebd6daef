"""The table `later`: answers with a moment of their own, and wishes to be asked again."""

from __future__ import annotations

import sqlite3

from atlasbridge.core.policy.later import Later

_COLUMNS = "id, prompt_id, kind, due_at, channel, identity, value, as_text, place, created_at, ended_at, outcome"


def insert(connection: sqlite3.Connection, later: Later) -> None:
    connection.execute(
        f"INSERT INTO later ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '')",
        (
            later.later_id,
            later.prompt_id,
            later.kind,
            later.due_at,
            later.channel,
            later.identity,
            later.value,
            int(later.as_text),
            later.place,
            later.created_at,
        ),
    )


def select(connection: sqlite3.Connection, where: str, parameters: tuple[str, ...] = ()) -> list[Later]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM later WHERE {where} ORDER BY due_at, rowid", parameters)
    return [_later(row) for row in rows]


def end(connection: sqlite3.Connection, later_id: str, at: str, outcome: str) -> Later | None:
    """None: it has ended already."""
    row = connection.execute(
        f"UPDATE later SET ended_at = ?, outcome = ? WHERE id = ? AND ended_at IS NULL RETURNING {_COLUMNS}",
        (at, outcome, later_id),
    ).fetchone()
    return _later(row) if row else None


def _later(row: tuple[object, ...]) -> Later:
    names = ("later_id", "prompt_id", "kind", "due_at", "channel", "identity", "value", "as_text", "place")
    values = dict(zip((*names, "created_at", "ended_at", "outcome"), (value or "" for value in row), strict=True))
    return Later(**{**values, "as_text": bool(values["as_text"])})  # type: ignore[arg-type]
