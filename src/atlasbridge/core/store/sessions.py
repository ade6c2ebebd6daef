"""The table `sessions`, and the table `last_output` with the last output of ended sessions."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.store.prompts import IS_OPEN

_COLUMNS: Final = (
    "id, tool, command, cwd, pid, host_pid, started_at, status, attached, rows, cols, label, channels, exit_code,"
    f" ended_at, (SELECT p.id FROM prompts p WHERE p.session_id = sessions.id AND p.{IS_OPEN})"
)
_CHANGEABLE: Final = frozenset({"tool", "pid", "host_pid", "cwd", "label", "attached", "rows", "cols", "channels"})


def insert(connection: sqlite3.Connection, record: SessionRecord, boot_id: str) -> None:
    connection.execute(
        "INSERT INTO sessions (id, tool, command, cwd, pid, host_pid, started_at, attached, rows, cols, label,"
        " channels, boot_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.session_id,
            record.tool,
            json.dumps(record.command),
            record.cwd,
            record.pid,
            record.host_pid,
            record.started_at,
            record.attached,
            record.rows,
            record.cols,
            record.label,
            _channels(record.channels),
            boot_id,
        ),
    )


def update(connection: sqlite3.Connection, session_id: str, fields: Mapping[str, Any]) -> bool:
    """Changes some columns. Raises ValueError for an unknown name."""
    unknown = fields.keys() - _CHANGEABLE
    if unknown:
        raise ValueError(f"a session has no {', '.join(sorted(unknown))} to change")
    values = dict(fields)
    if "channels" in values:
        values["channels"] = _channels(values["channels"])
    assignments = ", ".join(f"{name} = :{name}" for name in values)
    cursor = connection.execute(f"UPDATE sessions SET {assignments} WHERE id = :id", {**values, "id": session_id})
    return cursor.rowcount == 1


def end(connection: sqlite3.Connection, session_id: str, state: SessionState, exit_code: int | None, at: str) -> bool:
    cursor = connection.execute(
        "UPDATE sessions SET status = ?, exit_code = ?, ended_at = ?, attached = 0 WHERE id = ? AND status = 'active'",
        (state.value, exit_code, at, session_id),
    )
    return cursor.rowcount == 1


def resume(connection: sqlite3.Connection, session_id: str) -> bool:
    cursor = connection.execute(
        "UPDATE sessions SET status = 'active', exit_code = NULL, ended_at = NULL WHERE id = ? AND status <> 'active'",
        (session_id,),
    )
    return cursor.rowcount == 1


def select(connection: sqlite3.Connection, where: str = "1", parameters: tuple[Any, ...] = ()) -> list[SessionRecord]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY started_at, rowid", parameters)
    return [_record(row) for row in rows]


def processes(
    connection: sqlite3.Connection, pids: Iterable[int] | None = None, ids: Iterable[str] = ()
) -> list[tuple[str, int, int]]:
    """Returns (id, host pid, tool pid) of each running session; `pids` and `ids` restrict the result. It runs for every
    reply, and there can be many sessions."""
    query, parameters = "SELECT id, host_pid, pid FROM sessions WHERE +status = 'active'", []
    if pids is not None:  # the plus signs make SQLite use the pid indexes instead of scanning all running sessions
        query += " AND (host_pid IN (SELECT value FROM json_each(?1)) OR pid IN (SELECT value FROM json_each(?1))"
        query += " OR id IN (SELECT value FROM json_each(?2)))"
        parameters = [json.dumps(list(pids)), json.dumps(list(ids))]
    return connection.execute(f"{query} ORDER BY +started_at, rowid", parameters).fetchall()


def delete_ended_before(connection: sqlite3.Connection, moment: str) -> int:
    """Deletes only sessions without prompts, and the last output of all sessions that ended before `moment`."""
    connection.execute(
        "DELETE FROM last_output WHERE session_id IN (SELECT id FROM sessions WHERE ended_at < ?)", (moment,)
    )
    return connection.execute(
        "DELETE FROM sessions WHERE status <> 'active' AND ended_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id)",
        (moment,),
    ).rowcount


MOST_OUTPUT: Final = 64 * 1024 * 1024  # bytes on disk for all sessions together; the oldest are deleted first


def keep_output(connection: sqlite3.Connection, session_id: str, at: str, output: Mapping[str, Any]) -> None:
    body = zlib.compress(json.dumps(output).encode("utf-8", "surrogatepass"))
    connection.execute("INSERT OR REPLACE INTO last_output VALUES (?, ?, ?)", (session_id, at, body))
    connection.execute(
        "DELETE FROM last_output WHERE session_id IN (SELECT session_id FROM"
        " (SELECT session_id, sum(length(body)) OVER (ORDER BY at DESC, rowid DESC) AS kept FROM last_output)"
        " WHERE kept > ?)",
        (MOST_OUTPUT,),
    )


def last_output(connection: sqlite3.Connection, session_id: str) -> dict[str, Any] | None:
    row = connection.execute("SELECT body FROM last_output WHERE session_id = ?", (session_id,)).fetchone()
    return None if row is None else dict(json.loads(zlib.decompress(row[0])))


def _channels(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else json.dumps(list(names))


def _record(row: tuple[Any, ...]) -> SessionRecord:
    return SessionRecord(
        session_id=row[0],
        tool=row[1],
        command=tuple(json.loads(row[2])),
        cwd=row[3],
        pid=row[4],
        host_pid=row[5],
        started_at=row[6],
        state=SessionState(row[7]),
        attached=bool(row[8]),
        rows=row[9],
        cols=row[10],
        label=row[11],
        channels=None if row[12] is None else tuple(json.loads(row[12])),
        exit_code=row[13],
        ended_at=row[14] or "",
        open_prompt=row[15] or "",
    )
