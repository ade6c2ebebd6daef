"""The server's own audit log, in the format of a hub's log. An event is written in the transaction that it belongs
to.

One server process at a time seals pending entries into the hash chain, in batches, so that concurrent decisions do
not wait for each other. The restricted database role can add entries but cannot change them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg.types.json import Json, Jsonb

from atlasbridge.core.audit.chain import Fault, Head, check_entry, seal_entry
from atlasbridge.core.clock import iso
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.fleet.server.database import Connection, Database, row, rows

LOCK = 0x61746C62
BATCH = 1000
_NOTE = "INSERT INTO audit_pending (at, event, fields) VALUES (%s, %s, %s)"

EVENTS = {
    "INVITED": "a token was made with which machines may join",
    "JOINED": "a machine traded its token for a place",
    "JOIN_REFUSED": "a token was unknown, used, too old, or meant for another name",
    "ENTER_REFUSED": "a machine could not prove who it is, or was sent away before",
    "LEFT": "a machine left, or went silent where it was only there for a while",
    "REVOKED": "a machine was sent away",
    "STORE_WENT_BACK": "this database was put back to an earlier state, as a machine's memory shows",
    "MACHINE_RESTORED": "a machine came with an older state than it had: it waits for a person's word",
    "MACHINE_CLONED": "two machines use one key: both wait for a person's word",
    "RESTORE_ACCEPTED": "a person said that a machine was put back on purpose",
    "RESTORE_USED": "and it entered with its older state",
    "SPLIT": "a person said which of two machines goes on",
    "FORGED": "a machine spoke of what is not its own",
    "DECIDED": "a person proposed an answer; the machine has not said anything yet",
    "DECISION_REFUSED": "a person proposed an answer that is not theirs to give, or came too late",
    "SETTLED": "the machine said what became of a decision",
    "LOG_FAULT": "a machine's audit log is shorter than it was, or another one",
    "LOG_PROVED": "a machine's audit log was followed entry by entry",
    "LOGGED_IN": "a person logged in, with a link or through the identity provider",
    "LOGGED_OUT": "a login was ended",
    "LOGIN_REFUSED": "a link or a token was unknown, used or too old, or the identity provider's word was not accepted",
    "TOKEN_CREATED": "a token for a program",
    "TOKEN_REVOKED": "it is worth nothing any more",
    "PERSON_ADDED": "a person, or what they may",
    "PERSON_REMOVED": "a person, or what they might",
    "KEY_ROTATED": "the server has a new key, which the old one signed",
    "RULES_SET": "other rules for all machines",
    "SCREEN_WATCHED": "a person looked at a session's screen",
    "CHANNEL_STRANGER": "somebody wrote to a chat of the server who does not take part there",
    "CHANNEL_CONFLICT": "another program uses the token of a chat of the server",
    "CHANNEL_RATE_LIMITED": "too many replies came for one session",
}


async def note(connection: Connection, at: datetime, event: str, **fields: Any) -> None:
    await connection.execute(_NOTE, _noted(at, event, fields))


async def note_alone(database: Database, event: str, **fields: Any) -> None:
    """Write an entry in a transaction of its own."""
    await database.rows(_NOTE, *_noted(database.now(), event, fields))


def _noted(at: datetime, event: str, fields: dict[str, Any]) -> tuple[datetime, str, Jsonb]:
    assert event in EVENTS, event
    return at, event, Jsonb(redact_data(fields))


async def note_stranger(database: Database, event: str, **fields: Any) -> None:
    """Record an event that any stranger can cause. Of a flood only the first ones get an entry of their own."""
    if database.strangers.is_single(event):
        await note_alone(database, event, **fields)


async def note_counted(database: Database) -> None:
    """Write one entry for the events that were only counted. Called from time to time."""
    for event, more in database.strangers.end_window():
        await note_alone(database, event, more=more)


async def seal(database: Database) -> int:
    """Move pending entries into the chain and return how many. Returns 0 while another process is sealing."""
    if not await database.rows("SELECT 1 FROM audit_pending LIMIT 1"):
        return 0
    async with database.transaction() as connection:
        mine = await row(connection, "SELECT pg_try_advisory_xact_lock(%s) AS mine", LOCK)
        if not mine or not mine["mine"]:
            return 0
        query = """DELETE FROM audit_pending WHERE id IN (SELECT id FROM audit_pending ORDER BY id LIMIT %s)
            RETURNING id, at, event, fields"""
        noted = await rows(connection, query, BATCH)
        if noted:
            await _append(connection, sorted(noted, key=lambda one: int(one["id"])))
        return len(noted)


async def _append(connection: Connection, noted: list[dict[str, Any]]) -> None:
    head = await head_of(connection)
    before, lines = head.entries, []
    for one in noted:
        line, head = seal_entry(head, iso(one["at"].timestamp()), one["event"], one["fields"])
        lines.append(line)
    query = """WITH added AS (INSERT INTO audit_entries (seq, entry) SELECT %s + number, line
        FROM json_array_elements_text(%s) WITH ORDINALITY AS sealed (line, number))
        UPDATE audit_head SET count = %s, hash = %s"""
    await connection.execute(query, (before, Json(lines), head.entries, head.hash))


async def head_of(connection: Connection) -> Head:
    found = await row(connection, "SELECT count, hash FROM audit_head")
    return Head(int(found["count"]), str(found["hash"])) if found else Head(0, "")


async def verify(database: Database) -> Fault | Head:
    """Verify the whole chain. It must end at the stored head."""
    while await seal(database):
        pass
    async with database.transaction() as connection:
        head, found = await head_of(connection), Head(0, "genesis")
        async with connection.cursor("entries") as cursor:
            await cursor.execute("SELECT entry FROM audit_entries ORDER BY seq")
            async for (line,) in cursor:
                step = check_entry(found, line)
                if isinstance(step, Fault):
                    return step
                found = step
    return head if found == head else Fault(found.entries + 1, f"is missing: there were {head.entries} entries")


async def entries(database: Database, limit: int = 100) -> list[str]:
    found = await database.rows("SELECT entry FROM audit_entries ORDER BY seq DESC LIMIT %s", limit)
    return [str(one["entry"]) for one in found][::-1]


async def page(database: Database, limit: int, before: int = 0) -> list[dict[str, Any]]:
    """Entries, newest first, including pending ones. `before` is the sequence number of the last entry of the previous
    page.
    """
    await seal(database)
    query = "SELECT entry::jsonb AS entry FROM audit_entries WHERE %s = 0 OR seq < %s ORDER BY seq DESC LIMIT %s"
    found = await database.rows(query, before, before, limit)
    return [one["entry"] for one in found]
