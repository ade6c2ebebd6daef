"""`fleet audit verify`: the server's own chain, and each machine's, as far as it can be reached now."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.core.audit.chain import Fault
from atlasbridge.fleet.server import anchors, audit, machines
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.wakeups import CHANNEL

LOOK_S = 0.2


async def verify_all(database: Database, wait_s: float) -> dict[str, Any]:
    own = await audit.verify(database)
    words = f"entry {own.seq} {own.problem}" if isinstance(own, Fault) else f"whole, {own.entries} entries"
    found = await machines.listing(database)
    asked = {one["id"]: await anchors.ask_proof(database, one["id"]) for one in found if one["connected_to"]}
    await database.tell(CHANNEL, [f"job:{machine_id}" for machine_id in asked])
    answered = await _wait(database, set(asked.values()), wait_s)
    after = {one["id"]: one for one in await machines.listing(database)}
    told = [_verdict(one, asked.get(machine_id, "") in answered) for machine_id, one in after.items()]
    ok = not isinstance(own, Fault) and not any(one["fault"] for one in told)
    return {"ok": ok, "server": words, "machines": told}


async def _wait(database: Database, asked: set[str], wait_s: float) -> set[str]:
    """Those of the requests that were answered in time."""
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
