"""The server's own audit log, in the format of a hub's log, and the heads of the machines' logs.

An event is written in the transaction that it belongs to. One server process at a time seals pending entries into the
hash chain, in batches, so that concurrent decisions do not wait for each other. The restricted database role can add
entries but cannot change them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg.types.json import Json, Jsonb

from atlasbridge.core.audit.chain import Fault, Head, check_chain, check_entry, seal_entry
from atlasbridge.core.clock import iso
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.database import CHANNEL, Connection, Database, row, rows

LOCK = 0x61746C62
BATCH = 1000
_NOTE = "INSERT INTO audit_pending (at, event, fields) VALUES (%s, %s, %s)"

EVENTS = {
    "INVITED": "an invitation for machines was made",
    "JOINED": "a machine joined with an invitation",
    "JOIN_REFUSED": "an invitation was unknown, used, too old, or for another name",
    "ENTER_REFUSED": "a machine could not prove its identity, or had been removed",
    "LEFT": "a machine left, or an ephemeral one became silent",
    "REVOKED": "a machine was removed",
    "STORE_WENT_BACK": "this database was restored to an earlier state, as a machine's records show",
    "MACHINE_RESTORED": "a machine connected with an older state than before: it waits for a person's decision",
    "MACHINE_CLONED": "two machines use one key: both wait for a person's decision",
    "RESTORE_ACCEPTED": "a person confirmed that a machine was restored on purpose",
    "RESTORE_USED": "a machine connected with its older state after that confirmation",
    "SPLIT": "a person decided which of two machines with one key continues",
    "FORGED": "a machine reported something that belongs to another machine",
    "DECIDED": "a person proposed an answer; the machine has not confirmed it yet",
    "DECISION_REFUSED": "a person proposed an answer without permission, or too late",
    "SETTLED": "the machine reported the outcome of a decision",
    "LOG_FAULT": "a machine's audit log was cut or rewritten",
    "LOG_PROVED": "a machine's audit log was verified entry by entry",
    "LOGGED_IN": "a person logged in, with a link or through the identity provider",
    "LOGGED_OUT": "a login was ended",
    "LOGIN_REFUSED": "a link, a token or the identity provider's answer was not accepted",
    "TOKEN_CREATED": "a token for a program was created",
    "TOKEN_REVOKED": "a token was revoked",
    "PASSKEY_ADDED": "a person enrolled a passkey on the page; each machine decides whether it counts there",
    "PASSKEY_REMOVED": "a person removed a passkey from the page",
    "PERSON_ADDED": "a person or a permission was added",
    "PERSON_REMOVED": "a person or a permission was removed",
    "KEY_ROTATED": "the server has a new key, which the old one signed",
    "RULES_SET": "the rules for all machines were changed",
    "SCREEN_WATCHED": "a person looked at a session's screen",
    "CHANNEL_STRANGER": "a stranger wrote to a chat of the server",
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
    await seal(database)
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


# The heads of the machines' audit logs. A machine's log is verified entry by entry on request.
#
# A head that is stored here cannot be forged later: after a machine's log was cut or rewritten, its entries no longer
# lead to the anchored head.

MOST_HEADS = 1000  # how many heads a machine gets when it verifies its own log
SPARSE = 64  # a head is anchored every 64 entries and on every connection


@frozen
class Progress:
    """How far a machine's chain was verified, and whether more entries follow."""

    head: Head
    more: bool
    fault: str = ""


async def look_at_head(
    connection: Connection, machine_id: str, head: Head | None, at: datetime, always: bool = False
) -> None:
    """Anchor a newer head. A head that goes back marks the machine's log as faulty for good."""
    query = "SELECT head_count, head_hash, proved_count, proved_hash, log_fault FROM machines WHERE id = %s"
    known = await row(connection, query, machine_id)
    if head is None or known is None:
        return
    newest = _newest(known)
    if always:  # the last head from before the disconnect: the log must still lead to it
        await _anchor(connection, machine_id, newest, at)
    if head.entries < newest.entries or (head.entries == newest.entries and head.hash != newest.hash):
        fault = f"it was cut: it had {newest.entries} entries, now it has {head.entries}"
        if head.entries == newest.entries:
            fault = f"it was rewritten: entry {head.entries} is another one than it was"
        await _blame(connection, machine_id, fault, at, bool(known["log_fault"]))
        return
    query = "UPDATE machines SET head_count = %s, head_hash = %s WHERE id = %s"
    await connection.execute(query, (*head, machine_id))
    if always or head.entries // SPARSE != newest.entries // SPARSE:
        await _anchor(connection, machine_id, head, at)


def _newest(known: Mapping[str, Any]) -> Head:
    """The last head that the machine reported or the last verified one, whichever is further. The log must not go back
    behind it.
    """
    told = Head(int(known["head_count"]), str(known["head_hash"]))
    proved = Head(int(known["proved_count"]), str(known["proved_hash"]))
    return proved if proved.entries > told.entries else told


async def _anchor(connection: Connection, machine_id: str, head: Head, at: datetime) -> None:
    query = "INSERT INTO heads (machine_id, count, hash, at) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
    await connection.execute(query, (machine_id, *head, at))


def read_head(given: Any) -> Head | None:
    match given:
        case [int(count), str(digest)] if 0 <= count < 2**62 and len(digest) < 100 and digest.isascii():
            return Head(count, digest)
    return None


async def _blame(connection: Connection, machine_id: str, fault: str, at: datetime, known: bool) -> None:
    await connection.execute("UPDATE machines SET log_fault = %s WHERE id = %s", (fault, machine_id))
    if not known:
        await note(connection, at, "LOG_FAULT", machine=machine_id, fault=fault)


async def ask_proof(database: Database, machine_id: str) -> str:
    request = new_id()
    query = "INSERT INTO proofs (id, machine_id, asked_at) VALUES (%s, %s, %s)"
    await database.rows(query, request, machine_id, database.now())
    return request


async def take_proof(database: Database, machine_id: str, message: Mapping[str, Any]) -> Progress:
    """Verify the entries that follow the last verified one. Every anchored head must be among them."""
    now = database.now()
    async with database.transaction() as connection:
        known = await row(
            connection,
            "SELECT proved_count, proved_hash, head_count, head_hash, log_fault FROM machines WHERE id = %s FOR UPDATE",
            machine_id,
        )
        assert known is not None
        start = Head(int(known["proved_count"]), str(known["proved_hash"]))
        anchored = await _anchored(connection, machine_id, start.entries)
        anchored[int(known["head_count"])] = str(known["head_hash"])  # the last reported head, anchored or not
        followed = check_chain([str(line) for line in message["lines"]], start, anchored)
        if isinstance(followed, Fault):
            fault = f"entry {followed.seq} {followed.problem}"
            await _blame(connection, machine_id, fault, now, bool(known["log_fault"]))
            await _done(connection, message, machine_id, now)
            return Progress(start, False, fault)
        more = bool(message["lines"]) and followed.entries < int(known["head_count"])
        fault = str(known["log_fault"])
        if not more and followed.entries < int(known["head_count"]):
            fault = f"it was cut: it had {known['head_count']} entries, it shows {followed.entries}"
            await _blame(connection, machine_id, fault, now, bool(known["log_fault"]))
        query = "UPDATE machines SET proved_count = %s, proved_hash = %s, proved_at = %s WHERE id = %s"
        await connection.execute(query, (*followed, now, machine_id))
        if not more:
            await _done(connection, message, machine_id, now)
            await note(connection, now, "LOG_PROVED", machine=machine_id, entries=followed.entries, fault=fault)
        return Progress(followed, more, fault)


async def _anchored(connection: Connection, machine_id: str, after: int) -> dict[int, str]:
    query = "SELECT count, hash FROM heads WHERE machine_id = %s AND count > %s"
    found = await rows(connection, query, machine_id, after)
    return {int(one["count"]): str(one["hash"]) for one in found}


async def newest_heads(database: Database, machine_id: str) -> list[str]:
    """The machine's last reported head and its anchored heads, as `COUNT:HASH`."""
    query = """SELECT head_count AS count, head_hash AS hash FROM machines WHERE id = %s
        UNION SELECT count, hash FROM heads WHERE machine_id = %s ORDER BY count DESC LIMIT %s"""
    found = await database.rows(query, machine_id, machine_id, MOST_HEADS)
    return [f"{one['count']}:{one['hash']}" for one in found if one["count"]]


async def _done(connection: Connection, message: Mapping[str, Any], machine_id: str, at: datetime) -> None:
    query = "UPDATE proofs SET done_at = %s WHERE id = %s AND machine_id = %s"
    await connection.execute(query, (at, str(message["request"]), machine_id))


# `fleet audit verify`: verifies the server's own chain and the chain of each machine that can be reached now.

LOOK_S = 0.2
_MACHINES = "SELECT * FROM machines WHERE gone_at IS NULL ORDER BY name, joined_at"


async def verify_all(database: Database, wait_s: float) -> dict[str, Any]:
    own = await verify(database)
    words = f"entry {own.seq} {own.problem}" if isinstance(own, Fault) else f"whole, {own.entries} entries"
    found = await database.rows(_MACHINES)
    asked = {one["id"]: await ask_proof(database, one["id"]) for one in found if one["connected_to"]}
    await database.tell(CHANNEL, [f"job:{machine_id}" for machine_id in asked])
    answered = await _wait(database, set(asked.values()), wait_s)
    after = {one["id"]: one for one in await database.rows(_MACHINES)}
    told = [_verdict(one, asked.get(machine_id, "") in answered) for machine_id, one in after.items()]
    ok = not isinstance(own, Fault) and not any(one["fault"] for one in told)
    return {"ok": ok, "server": words, "machines": told}


async def _wait(database: Database, asked: set[str], wait_s: float) -> set[str]:
    """The requests that were answered in time."""
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        found = await database.rows("SELECT id FROM proofs WHERE id = ANY(%s) AND done_at IS NOT NULL", list(asked))
        answered = {str(one["id"]) for one in found}
        if answered == asked or asyncio.get_running_loop().time() > deadline:
            return answered
        await asyncio.sleep(LOOK_S)


def _verdict(machine: dict[str, Any], answered: bool) -> dict[str, Any]:
    fault, entries = str(machine["log_fault"]), int(machine["proved_count"])
    if fault:
        verdict = fault
    elif answered:
        verdict = "whole, followed entry by entry"
    elif machine["connected_to"]:
        verdict = "it did not answer in time; no fault is known"
    else:
        verdict = f"not reached; anchored at {machine['head_count']} entries, no fault is known"
    return {"machine": machine["name"], "verdict": verdict, "entries": entries, "proved": answered, "fault": fault}
