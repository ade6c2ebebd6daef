"""A page of history in a fleet with many old decisions: `python -m tests.benchmarks.fleet_history [--decisions N]`.

One server and one PostgreSQL (with fsync), machines that are not there, and folders at each of them.  An admin, a
member of several teams, a member who can see one machine, and one whose permissions match nothing load the newest page,
the next, one from the middle and the last, of everybody and of one person.  For each it prints the time by the clock
and the processor time of server and PostgreSQL together, which other work on the machine changes less.  It fails if
PostgreSQL reads all decisions, or if a page takes longer than `--limit-ms` of processor time (p99).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import timedelta

from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.lists import PAGE
from tests.support.fleet import Visitor
from tests.support.old_decisions import add_decisions, history_plans
from tests.support.server_rig import Rig, rig
from tests.torture.fleet_storm import DURABLE, postgres_pids

TEAMS = {"red": "m1*", "green": "m2*", "blue": "m3"}  # and the machines that each may see
PEOPLE = {"alice": "an admin", "carol": "sees many machines", "erin": "sees one machine", "dora": "sees nothing"}
RARE, NEVER = "frank", "bert"  # what one decided is the oldest of each folder
OLDEST = 4  # of each folder


@dataclass
class Kind:
    """A kind of page, and what it took to load it."""

    who: str
    name: str
    query: dict[str, str]
    wanted: int
    waits_ms: list[float] = field(default_factory=list)
    work_ms: list[float] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_history")
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--machines", type=int, default=50)
    parser.add_argument("--folders", type=int, default=5, help="at each of them")
    parser.add_argument("--pages", type=int, default=100, help="of each kind, for each person")
    parser.add_argument(
        "--real-time", action="store_true", help="run before all other work, so that times by the clock count"
    )
    parser.add_argument("--limit-ms", type=float, default=50.0, help="of processor time for a page (p99)")
    given = parser.parse_args(arguments)
    try:
        asyncio.run(history(**vars(given)))
    except AssertionError as error:
        print(f"fleet_history: FAILED: {error}")
        return 1
    return 0


async def history(decisions: int, machines: int, folders: int, pages: int, real_time: bool, limit_ms: float) -> None:
    async with rig(fleet_servers=1, options=DURABLE) as fleet:
        (port,) = fleet.fleet_servers
        await _fill(fleet, port, machines, folders, decisions // (machines * folders))
        if real_time:
            for pid in (os.getpid(), *_pids(fleet)):
                os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
        found = [one for name in PEOPLE for one in await _load_all(fleet, port, name, pages)]
    there = f"{decisions} decisions, {machines * folders} folders"
    print(f"{there}, {pages} pages of each kind; load {os.getloadavg()[0]:.0f}")
    print("| who | page | by the clock p50, p99, ms | processor time p50, p99, ms |\n|---|---|---|---|")
    for one in found:
        wall, work = (f"{_at(series, 0.5):.0f}, {_at(series, 0.99):.0f}" for series in (one.waits_ms, one.work_ms))
        print(f"| {PEOPLE[one.who]} | {one.name} | {wall} | {work} |")
    slow = [f"{one.who}, {one.name}" for one in found if _at(one.work_ms, 0.99) > limit_ms]
    assert not slow, f"over {limit_ms:g} ms of processor time (p99): {slow}"


def _at(series: list[float], share: float) -> float:
    return sorted(series)[min(len(series) - 1, int(len(series) * share))]


async def _fill(fleet: Rig, port: int, machines: int, folders: int, each: int) -> None:
    for number in range(machines):
        await fleet.join(f"m{number}", port)
    until = fleet.database.now()
    for number in range(machines):
        for folder in range(folders):
            await add_decisions(fleet.database, fleet.machine_ids[f"m{number}"], each, f"/old{number}/{folder}", until)
            until -= timedelta(milliseconds=1)  # decisions of all folders alternate
    oldest = "id IN (SELECT folder || n FROM places, generate_series(%s::int, %s::int) n)"
    await fleet.database.rows(f"UPDATE decisions SET person = %s WHERE {oldest}", RARE, each - OLDEST + 1, each)
    await fleet.database.rows("VACUUM ANALYZE")
    for name in PEOPLE:
        await people.add(fleet.database, name, "admin" if name == "alice" else "member", "test")
    for team, machine in TEAMS.items():
        await people.set_team(fleet.database, team, "carol", True, "test")
        await people.allow(fleet.database, f"@{team}", machine, "*", "answer", "test")
    await people.allow(fleet.database, "erin", "m0", "*", "answer", "test")
    for machine in ("m*", "other*"):
        await people.allow(fleet.database, "dora", machine, "/nothing/here", "answer", "test")


async def _load_all(fleet: Rig, port: int, name: str, pages: int) -> list[Kind]:
    visitor = await fleet.visitor(name, port)
    first = (await visitor.get("/api/v1/decisions", limit=PAGE))["decisions"]
    (ends,) = await fleet.database.rows(
        "SELECT min(made_at) AS first, min(made_at) + (max(made_at) - min(made_at)) / 2 AS middle FROM decisions"
    )
    after = (
        {"before": first[-1]["made_at"], "before_id": first[-1]["decision_id"]}
        if first
        else {"before": str(ends["middle"])}
    )
    full, few = (PAGE, 1) if name != "dora" else (0, 0)
    kinds = [
        Kind(name, "newest", {}, full),
        Kind(name, "next", after, full),
        Kind(name, "from the middle", {"before": ends["middle"].isoformat()}, full),
        Kind(name, "last", {"before": (ends["first"] + timedelta(seconds=1)).isoformat()}, few),
        Kind(name, "newest of one person", {"person": "alice"}, full),
        Kind(name, "next of one person", {"person": "alice", **after}, full),
        Kind(name, "of one who decided few, long ago", {"person": RARE}, few),
        Kind(name, "of one who never decided", {"person": NEVER}, 0),
    ]
    await _check_plans(fleet, name)
    for kind in kinds:
        await _load(fleet, visitor, kind, pages)
    await visitor.client.aclose()
    return kinds


async def _check_plans(fleet: Rig, name: str) -> None:
    for by in ("", "alice"):
        for plan in await history_plans(fleet.url, name, by):
            assert "Seq Scan on decisions" not in plan, plan


async def _load(fleet: Rig, visitor: Visitor, kind: Kind, pages: int) -> None:
    loop = asyncio.get_running_loop()
    await visitor.get("/api/v1/decisions", limit=PAGE, **kind.query)
    for _ in range(pages):
        began, worked = loop.time(), _work_s(fleet)
        found = (await visitor.get("/api/v1/decisions", limit=PAGE, **kind.query))["decisions"]
        took, after = loop.time() - began, _work_s(fleet)
        assert len(found) >= kind.wanted and bool(found) == bool(kind.wanted), f"{kind}: {len(found)} decisions"
        kind.waits_ms.append(1000 * took)
        kind.work_ms.append(1000 * sum(spent - worked.get(pid, 0) for pid, spent in after.items()))


def _pids(fleet: Rig) -> list[int]:
    return [*(one.pid for one in fleet.fleet_servers.values()), *postgres_pids(fleet)]


def _work_s(fleet: Rig) -> dict[int, float]:
    """Processor time so far, by the kernel's own clock for each process."""
    spent = {}
    for pid in _pids(fleet):
        with contextlib.suppress(OSError):  # it has just ended
            spent[pid] = time.clock_gettime((~pid << 3) | 2)
    return spent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
