"""Anchors the heads of the machines' audit logs and verifies a machine's log entry by entry on request.

A head that is stored here cannot be forged later: after a machine's log was cut or rewritten, its entries no longer
lead to the anchored head.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from atlasbridge.core.audit.chain import Fault, Head, check_entry
from atlasbridge.core.ids import new_id
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server import audit, machines
from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.database import CHANNEL, Connection, Database, row, rows
from atlasbridge.fleet.server.machines import Entered

MOST_HEADS = 1000  # how many heads a machine gets when it verifies its own log
SPARSE = 64  # a head is anchored every 64 entries and on every connection


@frozen
class Progress:
    """How far a machine's chain was verified, and whether more entries follow."""

    head: Head
    more: bool
    fault: str = ""


async def look_at_head(
    connection: Connection, entered: Entered, head: Head | None, at: datetime, always: bool = False
) -> None:
    """Anchor a newer head. A head that goes back marks the machine's log as faulty for good."""
    query = "SELECT head_count, head_hash, proved_count, proved_hash, log_fault FROM machines WHERE id = %s"
    known = await row(connection, query, entered.machine_id)
    if head is None or known is None:
        return
    newest = _newest(known)
    if always:  # the last head from before the disconnect: the log must still lead to it
        await _anchor(connection, entered.machine_id, newest, at)
    if head.entries < newest.entries or (head.entries == newest.entries and head.hash != newest.hash):
        fault = f"it was cut or rewritten: it had {newest.entries} entries, now it says {head.entries}"
        await _blame(connection, entered.machine_id, fault, at, bool(known["log_fault"]))
        return
    query = "UPDATE machines SET head_count = %s, head_hash = %s WHERE id = %s"
    await connection.execute(query, (*head, entered.machine_id))
    if always or head.entries // SPARSE != newest.entries // SPARSE:
        await _anchor(connection, entered.machine_id, head, at)


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


async def take_proof(database: Database, entered: Entered, message: Mapping[str, Any]) -> Progress:
    """Verify the entries that follow the last verified one. Every anchored head must be among them."""
    now = database.now()
    async with database.transaction() as connection:
        known = await row(
            connection,
            "SELECT proved_count, proved_hash, head_count, head_hash, log_fault FROM machines WHERE id = %s FOR UPDATE",
            entered.machine_id,
        )
        assert known is not None
        start = Head(int(known["proved_count"]), str(known["proved_hash"]))
        anchored = await _anchored(connection, entered.machine_id, start.entries)
        anchored[int(known["head_count"])] = str(known["head_hash"])  # the last reported head, anchored or not
        followed = _follow(start, [str(line) for line in message["lines"]], anchored)
        if isinstance(followed, Fault):
            fault = f"entry {followed.seq} {followed.problem}"
            await _blame(connection, entered.machine_id, fault, now, bool(known["log_fault"]))
            await _done(connection, message, entered, now)
            return Progress(start, False, fault)
        more = bool(message["lines"]) and followed.entries < int(known["head_count"])
        fault = str(known["log_fault"])
        if not more and followed.entries < int(known["head_count"]):
            fault = f"it was cut: it had {known['head_count']} entries, it shows {followed.entries}"
            await _blame(connection, entered.machine_id, fault, now, bool(known["log_fault"]))
        query = "UPDATE machines SET proved_count = %s, proved_hash = %s, proved_at = %s WHERE id = %s"
        await connection.execute(query, (*followed, now, entered.machine_id))
        if not more:
            await _done(connection, message, entered, now)
            await note(connection, now, "LOG_PROVED", machine=entered.machine_id, entries=followed.entries, fault=fault)
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


def _follow(head: Head, lines: list[str], anchored: Mapping[int, str]) -> Head | Fault:
    for line in lines:
        step = check_entry(head, line)
        if isinstance(step, Fault):
            return step
        if anchored.get(step.entries, step.hash) != step.hash:
            return Fault(step.entries, "was rewritten: another one was anchored at the server")
        head = step
    return head


async def _done(connection: Connection, message: Mapping[str, Any], entered: Entered, at: datetime) -> None:
    query = "UPDATE proofs SET done_at = %s WHERE id = %s AND machine_id = %s"
    await connection.execute(query, (at, str(message["request"]), entered.machine_id))


# `fleet audit verify`: verifies the server's own chain and the chain of each machine that can be reached now.

LOOK_S = 0.2


async def verify_all(database: Database, wait_s: float) -> dict[str, Any]:
    own = await audit.verify(database)
    words = f"entry {own.seq} {own.problem}" if isinstance(own, Fault) else f"whole, {own.entries} entries"
    found = await machines.listing(database)
    asked = {one["id"]: await ask_proof(database, one["id"]) for one in found if one["connected_to"]}
    await database.tell(CHANNEL, [f"job:{machine_id}" for machine_id in asked])
    answered = await _wait(database, set(asked.values()), wait_s)
    after = {one["id"]: one for one in await machines.listing(database)}
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
