"""Many machines, many sessions, several servers: `python -m tests.torture fleet_storm [--machines N --sessions M]`.

The whole storm: `fleet_storm --machines 50 --sessions 100 --seconds 300 --rate 200` (it wants four cores, and 4 GB).
Real hubs with their stores, links and gates; their sessions are driven from within. `--light N` adds machines without
hubs, which to the servers are like the others: so a small computer shows what the servers take, not what its hubs do.
Two people answer at a given rate. The storm measures the time from the press of a button to the machine's word that it
was typed. It measures what everything costs in each second before anyone answers, and then what a press costs, with
that standing cost taken away: statements, and processor time of servers and PostgreSQL. A press that came too late
counts as one, too. The servers answer presses that come together in one batch, so a press costs less at a higher rate.
`--history N` begins with so many old decisions; at the end a member who can see one machine loads the page's lists.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atlasbridge.fleet.server import people
from tests.benchmarks.measure import pss_kb
from tests.support.fleet import until
from tests.support.old_decisions import add_decisions
from tests.support.server_rig import Rig, rig

DURABLE = "-c max_connections=200 -c listen_addresses='' -c log_min_messages=fatal"
COUNTED = f"{DURABLE} -c shared_preload_libraries=pg_stat_statements"
PAGES = 300
REST_S = 10.0  # what servers and PostgreSQL do without a person is measured first
LISTS = ("/api/v1/prompts", "/api/v1/decisions")
TICK = os.sysconf("SC_CLK_TCK")
AT_ONCE = 4
TELL_EVERY_S = 30.0


def main(
    machines: int = 5,
    light: int = 0,  # machines without hubs, besides
    sessions: int = 100,  # on each of them
    seconds: float = 30.0,
    rate: float = 50.0,  # decisions a second, at most
    servers: int = 2,
    history: int = 0,  # old decisions
) -> int:
    asyncio.run(storm(machines, light, sessions, seconds, rate, servers, history))
    return 0


async def storm(
    machines: int, light: int, sessions: int, seconds: float, rate: float, servers: int, history: int
) -> None:
    async with rig(fleet_servers=servers, options=COUNTED) as fleet:
        await gather(fleet, machines, light, sessions)
        await add_history(fleet, history)
        found = await blow(fleet, seconds, rate)
        there = (
            f"{machines} hubs, {light} machines without, {(machines + light) * sessions} sessions, {servers} servers"
        )
        tell = f"{found.accepted} decisions in {found.took_s:.0f} s ({found.accepted / found.took_s:.0f} a second)"
        print(f"fleet_storm: {there}: {tell}, {dict(fleet.decisions)}")
        waits = sorted(fleet.waits_s)
        late_s = waits[min(len(waits) - 1, int(len(waits) * 0.99))]
        print(
            f"fleet_storm: pressed to typed p50 {statistics.median(waits):.3f} s, p99 {late_s:.3f} s; 0 lost, 0 doubled"
        )
        print(f"fleet_storm: standing cost, each second: {_in_words(found.idle)}")
        print(f"fleet_storm: for each of {found.presses} presses, besides: {_in_words(found.of_a_press())}")
        everything = {name: cost / found.presses for name, cost in found.spent.items()}
        print(f"fleet_storm: all together, for each press: {_in_words(everything)}; {history} decisions of history")
        core = found.presses / max(0.001, found.spent["servers"] + found.spent["postgresql"])
        memory = {name: f"{share:.0f} MB" for name, share in _memory_mb(fleet).items()}
        print(f"fleet_storm: one core of server and PostgreSQL takes {core:.0f} presses a second; memory: {memory}")
        for path, page in (await load_pages(fleet)).items():
            both = f"{page.servers_ms:.1f} ms of processor time at the servers, {page.postgresql_ms:.1f} in PostgreSQL"
            print(f"fleet_storm: {path} of a member: p50 {page.p50_ms:.0f} ms, p99 {page.p99_ms:.0f} ms; {both}")


@dataclass(frozen=True, slots=True)
class Blown:
    """What presses cost: statements, and seconds of processor time."""

    presses: int
    accepted: int
    took_s: float
    idle: dict[str, float]  # in each second, while nobody answers
    spent: dict[str, float]  # while they were answered, with what is spent anyway

    def of_a_press(self) -> dict[str, float]:
        return {name: (cost - self.idle[name] * self.took_s) / self.presses for name, cost in self.spent.items()}


async def blow(fleet: Rig, seconds: float, rate: float) -> Blown:
    """People at every server answer what is open. Nothing is lost or doubled, or this fails."""
    idle = await _standing(fleet)
    for kept in (fleet.decisions, fleet.settled, fleet.waits_s):
        kept.clear()
    over = asyncio.Event()
    ports = list(fleet.fleet_servers)
    people = [
        asyncio.create_task(fleet.decide_on(await fleet.visitor(name, port), over, len(ports) / rate, 100))
        for name, port in zip(("alice", "bert") * len(ports), ports, strict=False)
    ]
    loop = asyncio.get_running_loop()
    began, before = loop.time(), await _costs(fleet)
    while (left_s := began + seconds - loop.time()) > 0:
        await asyncio.sleep(min(left_s, TELL_EVERY_S))
        _tell(f"{fleet.settled.total()} decisions in {loop.time() - began:.0f} s")
    over.set()
    await asyncio.gather(*people)
    took_s, after = loop.time() - began, await _costs(fleet)
    presses, accepted = fleet.settled.total(), fleet.decisions["accepted"]
    assert accepted, "no press was accepted"
    await fleet.settle(600)
    await fleet.check()
    return Blown(presses, accepted, took_s, idle, {name: cost - before[name] for name, cost in after.items()})


async def add_history(fleet: Rig, history: int) -> None:
    """Spread over all machines, in a folder of its own at each, and older than the fleet."""
    for number, machine_id in enumerate(fleet.machine_ids.values()):
        count = history // len(fleet.machine_ids)
        await add_decisions(fleet.database, machine_id, count, f"/old{number}/", fleet.began)
    await fleet.database.rows("ANALYZE")


@dataclass(frozen=True, slots=True)
class Page:
    p50_ms: float
    p99_ms: float
    servers_ms: float
    postgresql_ms: float


async def load_pages(fleet: Rig, pages: int = PAGES) -> dict[str, Page]:
    """A member who can see one machine loads the lists of the page, while nobody answers."""
    await people.add(fleet.database, "carol", "member", "test")
    await people.allow(fleet.database, "carol", next(iter(fleet.machine_ids)), "*", "answer", "test")
    carol = await fleet.visitor("carol", next(iter(fleet.fleet_servers)))
    loop = asyncio.get_running_loop()
    worked = _work_s(fleet)
    await asyncio.sleep(REST_S)
    at_rest = {name: (after - worked[name]) / REST_S for name, after in _work_s(fleet).items()}
    found = {}
    for path in LISTS:
        waits, worked = [], _work_s(fleet)
        for _ in range(pages):
            began = loop.time()
            assert await carol.get(path, limit=50)
            waits.append(1000 * (loop.time() - began))
        after, took_s = _work_s(fleet), sum(waits) / 1000
        used = {name: 1000 * (after[name] - worked[name] - at_rest[name] * took_s) / pages for name in after}
        late_ms = sorted(waits)[int(pages * 0.99)]
        found[path] = Page(statistics.median(waits), late_ms, used["servers"], used["postgresql"])
    await carol.client.aclose()
    return found


async def _standing(fleet: Rig) -> dict[str, float]:
    """What everything costs in a second while nobody answers."""
    began, before = asyncio.get_running_loop().time(), await _costs(fleet)
    await asyncio.sleep(REST_S)
    after = await _costs(fleet)
    took = asyncio.get_running_loop().time() - began
    return {name: (cost - before[name]) / took for name, cost in after.items()}


async def _costs(fleet: Rig) -> dict[str, float]:
    """Processor time and statements so far."""
    (found,) = await fleet.database.rows("SELECT sum(calls)::bigint AS calls FROM pg_stat_statements")
    return {"statements": float(found["calls"]), **_work_s(fleet)}


def _in_words(costs: dict[str, float]) -> str:
    each = ", ".join(f"{name} {1000 * spent:.1f} ms" for name, spent in costs.items() if name != "statements")
    return f"{costs['statements']:.1f} statements; {each}"


async def gather(fleet: Rig, machines: int, light: int, sessions: int) -> None:
    """Every hub runs and all that its sessions ask is shown; a few start at a time, so that none waits for ever."""
    await fleet.database.rows("CREATE EXTENSION pg_stat_statements")
    for first in range(0, machines, AT_ONCE):
        there = min(machines, first + AT_ONCE)
        for number in range(first, there):
            await fleet.add_member(f"m{number}", sessions, 0.5)
        await until(partial(_shown, fleet, there * sessions), deadline_s=600)
        _tell(f"{there} hubs, {there * sessions} prompts are shown")
    if light:
        await fleet.add_light([f"light{number}" for number in range(light)], sessions, 0.5)
        await until(partial(_shown, fleet, (machines + light) * sessions), deadline_s=600)
        _tell(f"{light} machines without hubs are there, too")


def _tell(line: str) -> None:
    print(f"fleet_storm: {line}", flush=True)


def _memory_mb(fleet: Rig) -> dict[str, float]:
    """Each, on average."""
    groups = {"server": fleet.fleet_servers.values(), "hub": fleet.members.values()}
    return {name: sum(pss_kb(one.pid) for one in group) / 1024 / max(1, len(group)) for name, group in groups.items()}


async def _shown(fleet: Rig, count: int) -> bool:
    found = await fleet.database.rows("SELECT count(*) AS open FROM prompts WHERE is_open")
    return int(found[0]["open"]) >= count


def _work_s(fleet: Rig) -> dict[str, float]:
    """Processor time so far."""
    return {
        "servers": sum(_spent_s(process.pid) for process in fleet.fleet_servers.values()),
        "hubs": sum(_spent_s(process.pid) for process in fleet.members.values()),
        "postgresql": sum(_spent_s(pid) for pid in postgres_pids(fleet)),
    }


def postgres_pids(fleet: Rig) -> list[int]:
    postmaster = int((fleet.server.data / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *map(int, children.split())]


def _spent_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK
