"""Notices that machines send to people (`atlasbridge notify`), and the deletion of old rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from atlasbridge.core.escape import escape_controls
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import Entered
from atlasbridge.fleet.server.people import ALLOWED_SOMEWHERE

LONGEST = 2000
MOST_IN_A_MINUTE = 30  # for each machine, because any program there can send them
BATCH = 1000

# Each statement deletes one batch, oldest first. The order makes sure that no row refers to a deleted one.
_OLD = """DELETE FROM {table} c USING (
        SELECT machine_id, prompt_id FROM prompts WHERE NOT is_open AND ended_at < %(before)s
        ORDER BY ended_at LIMIT %(batch)s
    ) p WHERE (c.machine_id, c.prompt_id) = (p.machine_id, p.prompt_id) {and_more}"""
_DECIDED = "AND c.settled_at IS NOT NULL"
_PROMPTS = """
DELETE FROM prompts p USING (
    SELECT machine_id, prompt_id FROM prompts WHERE NOT is_open AND ended_at < %(before)s
        ORDER BY ended_at LIMIT %(batch)s
) o WHERE (p.machine_id, p.prompt_id) = (o.machine_id, o.prompt_id)
  AND NOT EXISTS (SELECT 1 FROM decisions d WHERE (d.machine_id, d.prompt_id) = (p.machine_id, p.prompt_id))
RETURNING 1 AS gone
"""
_SESSIONS = """
DELETE FROM sessions s USING (
    SELECT machine_id, session_id FROM sessions WHERE state <> 'active' AND told_at < %(before)s
        ORDER BY told_at LIMIT %(batch)s
) o WHERE (s.machine_id, s.session_id) = (o.machine_id, o.session_id)
  AND NOT EXISTS (SELECT 1 FROM prompts p WHERE (p.machine_id, p.session_id) = (s.machine_id, s.session_id))
RETURNING 1 AS gone
"""
_PLACES = """
DELETE FROM places l WHERE decided_at < %(before)s
  AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.place_id = l.id)
"""
_NOTICES = "DELETE FROM notices WHERE at < %(before)s"
_PROOFS = "DELETE FROM proofs WHERE done_at < %(before)s"


async def take(database: Database, entered: Entered, message: str) -> None:
    """Store a notice for the page and the chats. The number per minute is limited."""
    now = database.now()
    since = now - timedelta(minutes=1)
    text = escape_controls(message[:LONGEST]).strip()
    query = """INSERT INTO notices (machine_id, at, message) SELECT %s, %s, %s WHERE %s <> ''
        AND (SELECT count(*) FROM notices WHERE machine_id = %s AND at > %s) < %s"""
    await database.rows(query, entered.machine_id, now, text, text, entered.machine_id, since, MOST_IN_A_MINUTE)


async def newest(database: Database, person: str, limit: int = 20) -> list[dict[str, Any]]:
    query = f"""SELECT n.id AS notice_id, m.name AS machine, n.at, n.message
        FROM notices n JOIN machines m ON m.id = n.machine_id
        WHERE {ALLOWED_SOMEWHERE} ORDER BY n.id DESC LIMIT %(limit)s"""
    return await database.rows(query, {"person": person, "may": "see", "limit": limit})


async def uncarried(database: Database) -> list[dict[str, Any]]:
    """The notices that the chats have not sent yet, each with the people in chats who can see something of its machine.
    They are marked as sent.
    """
    allowed = ALLOWED_SOMEWHERE.replace("%(person)s", "x.name").replace("%(may)s", "'see'")
    query = f"""UPDATE notices n SET carried = true FROM machines m
        WHERE m.id = n.machine_id AND n.id IN (SELECT id FROM notices WHERE NOT carried ORDER BY id LIMIT 100)
        RETURNING n.id, n.machine_id, m.name AS machine, n.message, ARRAY(
        SELECT x.name FROM people x WHERE x.gone_at IS NULL AND cardinality(x.identities) > 0 AND {allowed}
        ) AS readers"""
    return await database.rows(query)


async def clean(database: Database, keep_s: float) -> int:
    """Delete one batch of old rows and return how many prompts and sessions it removed. Audit entries are never
    deleted.
    """
    given = {"before": database.now() - timedelta(seconds=keep_s), "batch": BATCH}
    gone = 0
    async with database.transaction() as connection:
        for table, more in (
            ("chat_deliveries", ""),
            ("chat_steps", ""),
            ("chat_wakes", ""),
            ("decisions", _DECIDED),
        ):
            await connection.execute(_OLD.format(table=table, and_more=more), given)
        for query in (_PROMPTS, _SESSIONS):
            cursor = await connection.execute(query, given)
            gone += cursor.rowcount
        for query in (_PLACES, _NOTICES, _PROOFS):
            await connection.execute(query, given)
    return gone
