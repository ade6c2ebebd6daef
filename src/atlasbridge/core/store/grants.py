"""The table `grants`: what a person allowed for a while.  A use is taken in the transaction that claims the prompt."""

from __future__ import annotations

import json
import sqlite3

from atlasbridge.core.policy.grant import Grant, GrantShape
from atlasbridge.core.policy.pattern import Shape

_COLUMNS = "id, shape, tool, session_id, folder, deadline, uses_left, by, created_at"


def insert(connection: sqlite3.Connection, grant: Grant, boot_id: str, prompt_id: str) -> None:
    shape = {
        "commands": [list(item.words) for item in grant.shape.commands],
        "path": grant.shape.path,
        "host": grant.shape.host,
    }
    connection.execute(
        f"INSERT INTO grants ({_COLUMNS}, boot_id, prompt_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            grant.grant_id,
            json.dumps(shape),
            grant.tool,
            grant.session_id,
            grant.folder,
            grant.deadline,
            grant.uses_left,
            grant.by,
            grant.created_at,
            boot_id,
            prompt_id,
        ),
    )


def live(connection: sqlite3.Connection, boot_id: str, now: float) -> list[Grant]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM grants WHERE revoked_at IS NULL AND boot_id = ?"
        " AND (deadline IS NULL OR deadline > ?) AND (uses_left IS NULL OR uses_left > 0) ORDER BY rowid",
        (boot_id, now),
    )
    return [_grant(row) for row in rows]


def has(connection: sqlite3.Connection, short_id: str, boot_id: str, now: float) -> bool:
    """Whether there is a use left, and it has not ended meanwhile."""
    return any(grant.grant_id.startswith(short_id) for grant in live(connection, boot_id, now))


def use(connection: sqlite3.Connection, short_id: str) -> None:
    connection.execute("UPDATE grants SET uses_left = uses_left - 1 WHERE substr(id, 1, 8) = ?", (short_id,))


def revoke(connection: sqlite3.Connection, beginning: str, at: str) -> list[str]:
    """The ids that ended; `beginning` "" means all."""
    rows = connection.execute(
        "UPDATE grants SET revoked_at = ? WHERE revoked_at IS NULL AND substr(id, 1, ?) = ? RETURNING id",
        (at, len(beginning), beginning),
    )
    return [str(row[0]) for row in rows]


def _grant(row: tuple[object, ...]) -> Grant:
    data = json.loads(str(row[1]))
    shape = GrantShape(tuple(Shape(tuple(words)) for words in data["commands"]), data["path"], data["host"])
    return Grant(str(row[0]), shape, *row[2:])  # type: ignore[arg-type]
