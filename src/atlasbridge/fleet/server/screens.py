"""Live screens: which person watches which session, and the last screen of that session.

The tables are unlogged and not backed up. A screen is deleted when nobody watches it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import Entered
from atlasbridge.fleet.server.people import ALLOWED

LOOK_S = 20.0


async def look(database: Database, machine_id: str, session_id: str, person: str, first: bool) -> bool:
    """Record for a short time that a person watches a session. False: the session is unknown, or this person is not
    allowed to see it.
    """
    now = database.now()
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT 1 FROM machines m JOIN sessions s ON s.machine_id = m.id AND s.session_id = %(session)s,"
            " LATERAL (SELECT coalesce(s.body ->> 'cwd', '') AS folder) p"
            f" WHERE m.id = %(machine)s AND m.gone_at IS NULL AND m.screens AND m.screens_here AND {ALLOWED}",
            {"machine": machine_id, "session": session_id, "person": person, "may": "see"},
        )
        if await cursor.fetchone() is None:
            return False
        query = """INSERT INTO looks (machine_id, session_id, person, until) VALUES (%s, %s, %s, %s)
            ON CONFLICT (machine_id, session_id, person) DO UPDATE SET until = excluded.until"""
        await connection.execute(query, (machine_id, session_id, person, now + timedelta(seconds=LOOK_S)))
        if first:
            await note(connection, now, "SCREEN_WATCHED", machine=machine_id, session_id=session_id, person=person)
    return True


async def look_away(database: Database, machine_id: str, session_id: str, person: str) -> None:
    query = "DELETE FROM looks WHERE machine_id = %s AND session_id = %s AND person = %s"
    await database.rows(query, machine_id, session_id, person)


async def watched(database: Database, machine_id: str) -> set[str]:
    """The sessions of this machine that are being watched now. Deletes the screens of all others."""
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM looks WHERE machine_id = %s AND until < %s", (machine_id, database.now()))
        cursor = await connection.execute("SELECT DISTINCT session_id FROM looks WHERE machine_id = %s", (machine_id,))
        found = {str(one[0]) for one in await cursor.fetchall()}
        query = "DELETE FROM screens WHERE machine_id = %s AND NOT session_id = ANY(%s)"
        await connection.execute(query, (machine_id, list(found)))
    return found


async def take(database: Database, entered: Entered, message: Mapping[str, Any]) -> None:
    """Store a screen, but only while somebody watches the session."""
    mine = (entered.machine_id, str(message["session_id"]))
    query = """INSERT INTO screens (machine_id, session_id, body) SELECT %s, %s, %s
        WHERE EXISTS (SELECT 1 FROM looks WHERE machine_id = %s AND session_id = %s AND until > %s)
        ON CONFLICT (machine_id, session_id) DO UPDATE SET body = excluded.body"""
    await database.rows(query, *mine, Jsonb(message.get("screen")), *mine, database.now())


async def shown(database: Database, machine_id: str, session_id: str) -> Any:
    query = "SELECT body FROM screens WHERE machine_id = %s AND session_id = %s"
    found = await database.rows(query, machine_id, session_id)
    return found[0]["body"] if found else None
