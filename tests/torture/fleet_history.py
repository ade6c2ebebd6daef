"""A page of history in a fleet with many old decisions: `python -m tests.torture fleet_history [--decisions N]`.

One server and one PostgreSQL, machines that are not there, and folders at each of them. An admin, a member of several
teams, and a member whose permissions match nothing load the newest page, an older page, what one person
decided, and what another never did.
It measures each by the clock and in processor time, and fails if PostgreSQL reads the table without its index.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from datetime import datetime, timedelta
from typing import Any

from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.lists import HISTORY, PAGE
from tests.fleet_server.test_fleet_years import add_decisions
from tests.support.fleet import Visitor
from tests.support.server_rig import Rig, rig
from tests.torture.fleet_storm import DURABLE, REST_S, _work_s

TEAMS = {"red": "m1*", "green": "m2*", "blue": "m3"}  # and the machines that each may see


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_history")
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--machines", type=int, default=10)
    parser.add_argument("--folders", type=int, default=5, help="at each of them")
    parser.add_argument("--pages", type=int, default=100, help="for each person, in each round")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args(arguments)
    try:
        asyncio.run(history(**vars(given)))
    except AssertionError as error:
        print(f"fleet_history: FAILED: {error}")
        return 1
    return 0


async def history(decisions: int, machines: int, folders: int, pages: int, rounds: int) -> None:
    async with rig(fleet_servers=1, options=DURABLE) as fleet:
        (port,) = fleet.fleet_servers
        each = decisions // (machines * folders)
        for number in range(machines):
            await fleet.join(f"m{number}", port)
            for folder in range(folders):
                await add_decisions(fleet.database, fleet.machine_ids[f"m{number}"], each, f"/old{number}/{folder}")
        await fleet.database.rows("ANALYZE")
        await _add_members(fleet)
        older = fleet.database.now() - timedelta(seconds=each // 2)
        queries: dict[str, dict[str, str]] = {
            "the newest page": {},
            "an older page": {"before": older.isoformat()},
            "what one person decided": {"person": "alice"},
            "what another never decided": {"person": "bert"},
        }
        for name in ("alice", "carol", "dora"):
            for query in queries.values():
                await _check_plan(fleet, name, query)
            visitor = await fleet.visitor(name, port)
            for kind, query in queries.items():
                wanted = 0 if name == "dora" or query.get("person") == "bert" else PAGE
                for number in range(rounds):
                    await _load(fleet, visitor, f"{name}, {kind}, round {number + 1}", query, pages, wanted)
            await visitor.client.aclose()


async def _add_members(fleet: Rig) -> None:
    for name in ("carol", "dora"):
        await people.add(fleet.database, name, "member", "test")
    for team, machine in TEAMS.items():
        await people.set_team(fleet.database, team, "carol", True, "test")
        await people.allow(fleet.database, f"@{team}", machine, "*", "answer", "test")
    for machine in ("m*", "other*"):
        await people.allow(fleet.database, "dora", machine, "/nothing/here", "answer", "test")


async def _check_plan(fleet: Rig, name: str, query: dict[str, str]) -> None:
    """PostgreSQL finds decisions by an index; it never reads all of them."""
    before: Any = datetime.fromisoformat(query["before"]) if "before" in query else "infinity"
    values = {"person": name, "may": "see", "by": query.get("person", ""), "limit": PAGE, "before": before}
    found = await fleet.database.rows(
        f"EXPLAIN (ANALYZE, BUFFERS) {HISTORY}", {**values, "places": None if query else PAGE}
    )
    plan = [str(one["QUERY PLAN"]) for one in found]
    uses = [line.strip() for line in plan if " on decisions" in line or " on places" in line]
    print(f"fleet_history: plan for {name} {query or ''}: {uses}; {plan[-1].strip()}")
    assert not any("Seq Scan on decisions" in line for line in plan), "\n".join(plan)


async def _load(fleet: Rig, visitor: Visitor, what: str, query: dict[str, str], pages: int, wanted: int) -> None:
    loop = asyncio.get_running_loop()
    worked = _work_s(fleet)
    await asyncio.sleep(REST_S / 5)
    at_rest = {name: (after - worked[name]) / (REST_S / 5) for name, after in _work_s(fleet).items()}
    waits, worked = [], _work_s(fleet)
    for _ in range(pages):
        began = loop.time()
        found = (await visitor.get("/api/v1/decisions", limit=PAGE, **query))["decisions"]
        waits.append(loop.time() - began)
        assert len(found) == wanted, f"{what}: {len(found)} decisions"
    after, took = _work_s(fleet), sum(waits)
    used = {name: 1000 * (after[name] - worked[name] - at_rest[name] * took) / pages for name in after}
    p50, p99 = 1000 * statistics.median(waits), 1000 * sorted(waits)[int(pages * 0.99)]
    each = f"processor time {used['servers']:.1f} ms at the server, {used['postgresql']:.1f} in PostgreSQL"
    load = os.getloadavg()[0]
    print(f"fleet_history: {what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms; {each}; load {load:.1f}", flush=True)
