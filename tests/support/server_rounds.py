"""Faults of a fleet, several at a time, while two people answer at two servers.

Every machine has troubles of its own (its line, its hub, its disk), one after the other; beside them servers and
PostgreSQL are killed.  Anyone who was hit must go on: the next fault there waits for a decision that came to its end.
"""

from __future__ import annotations

import asyncio
import random
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.support.fleet import until
from tests.support.server_rig import Rig, rig

from atlasbridge.fleet.server.database import Database

TELL_EVERY_S = 30.0
_GOES_ON_S = 300.0  # on a machine with much else to do
_FULL_S = 0.3
STAGE = 250  # faults, after which everything is looked at
_FOR_EACH_OF_ALL = 30  # faults of single machines: while servers and database start again, nothing else can be seen


class Faults:
    """How many are left, and what was tried."""

    def __init__(self, wanted: int, fleet: Rig) -> None:
        self.left = wanted
        self.fleet = fleet
        self.tried: Counter[str] = Counter()

    async def trouble(self, name: str, machine_id: str) -> None:
        while self.left > 0:
            await self._once(OF_A_MACHINE, name, machine_id)

    async def _once(self, kinds: dict[str, tuple[Trouble, int]], name: str, machine_id: str | None) -> None:
        """What was hit goes on before it is hit again, but not always."""
        self.left -= 1
        kind = random.choices(list(kinds), [weight for _, weight in kinds.values()])[0]
        self.tried[kind] += 1
        before = self._ended(machine_id)
        await kinds[kind][0](self.fleet, name)
        if random.random() < 0.7:  # the rest hits while the one before is still felt
            await self._goes_on(
                machine_id, before + 1, lambda: f"{name} to go on after {kind}: {self.fleet.last_words(name)}"
            )

    async def trouble_for_all(self) -> None:
        while self.left > 0:
            begun = self.tried.total()
            await self._once(OF_ALL, "somebody", None)
            while self.left > 0 and self.tried.total() < begun + _FOR_EACH_OF_ALL:
                await asyncio.sleep(0.05)

    async def _goes_on(self, machine_id: str | None, ended: int, what: Callable[[], str]) -> None:
        began = time.monotonic()
        while self._ended(machine_id) < ended:
            self.fleet.revive()
            assert time.monotonic() - began < _GOES_ON_S, f"waited {_GOES_ON_S:g} s for {what()}"
            await asyncio.sleep(0.02)

    def _ended(self, machine_id: str | None) -> int:
        """Decisions that came to their end: of this machine, or of any."""
        return self.fleet.settled[machine_id] if machine_id else self.fleet.settled.total()


async def fault_rounds(faults: int, machines: int, sessions: int, seed: int) -> dict[str, int]:
    random.seed(seed)
    tried: Counter[str] = Counter()
    figures: dict[str, int] = {}
    async with rig(fleet_servers=2, dead_s=3.0) as fleet:
        for number in range(machines):
            await fleet.add_member(f"m{number}", sessions, 0.05)
        while (left := faults - tried.total()) > 0:
            tried += await _stage(fleet, min(left, STAGE))
            figures = await _check(fleet)
            print(f"fleet_faults: {tried.total()} faults, and all is well: {figures}", flush=True)
    return {**figures, **{f"fault:{name}": count for name, count in tried.items()}}


async def _stage(fleet: Rig, faults: int) -> Counter[str]:
    """People answer, and so many faults come."""
    over = asyncio.Event()
    ports = list(fleet.fleet_servers)
    for port in ports:
        await fleet.listens(port)
    people = [
        asyncio.create_task(fleet.decide_on(await fleet.visitor(name, port), over, 0.005))
        for name, port in (("alice", ports[0]), ("bert", ports[1]))
    ]
    before = sum(fleet.decisions.values())
    await until(lambda: sum(fleet.decisions.values()) > before + 5, deadline_s=120)
    tried = await _hit(Faults(faults, fleet))
    fleet.revive()
    over.set()
    await asyncio.gather(*people)
    return tried


async def _check(fleet: Rig) -> dict[str, int]:
    """Nobody answers and nothing is hit any more: everything has come to its end, and is what it should be."""
    await fleet.settle()
    await until(lambda: _quiet(fleet), deadline_s=120)
    await fleet.database.close()  # connections of before the last kill
    fleet.database = Database(fleet.url)
    await fleet.database.open()
    return await fleet.check()


async def _hit(faults: Faults) -> Counter[str]:
    teller = asyncio.create_task(_tell(faults))
    try:
        async with asyncio.TaskGroup() as group:
            for name, machine_id in faults.fleet.machine_ids.items():
                group.create_task(faults.trouble(name, machine_id))
            group.create_task(faults.trouble_for_all())
    except* AssertionError as errors:
        raise errors.exceptions[0] from None
    finally:
        teller.cancel()
    return faults.tried


async def _tell(faults: Faults) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        told = dict(faults.tried)
        print(f"fleet_faults: {sum(told.values())} faults {told}, {faults.fleet.settled.total()} decisions", flush=True)


async def _quiet(fleet: Rig) -> bool:
    """What machines ask and what the server shows is the same."""
    _, _, opened = fleet.typed()
    shown = await fleet.database.rows("SELECT prompt_id FROM prompts WHERE is_open")
    return {one["prompt_id"] for one in shown} == set(opened)


async def cut(fleet: Rig, name: str) -> None:
    fleet.lines[name].cut()


async def half_open(fleet: Rig, name: str) -> None:
    """Nothing passes for a while; sometimes everybody gives the connection up before all of it comes."""
    await fleet.lines[name].hold(random.choices([0.1, 0.5, 4.0], [6, 3, 1])[0])


async def reordered(fleet: Rig, name: str) -> None:
    await fleet.lines[name].reorder(random.choice([0.3, 1.0]))


async def kill_hub(fleet: Rig, name: str) -> None:
    fleet.kill_member(name)
    fleet.start_member(name)


async def full_disk(fleet: Rig, name: str) -> None:
    """For a moment no file of this hub's can be written; one that was just starting gives up, and is started again."""
    process = fleet.members[name]
    if process.poll() is None:
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, most))
        await asyncio.sleep(_FULL_S)
        if process.poll() is None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
    fleet.revive()


async def kill_fleet_server(fleet: Rig, _name: str) -> None:
    port = random.choice(list(fleet.fleet_servers))
    fleet.kill_fleet_server(port)
    fleet.start_fleet_server(port)


async def kill_postgres(fleet: Rig, _name: str) -> None:
    await asyncio.to_thread(fleet.server.kill_9)
    await asyncio.to_thread(fleet.server.start)


Trouble = Callable[[Rig, str], Awaitable[None]]
OF_A_MACHINE: dict[str, tuple[Trouble, int]] = {
    "cut": (cut, 60),
    "half_open": (half_open, 15),
    "reordered": (reordered, 12),
    "kill_hub": (kill_hub, 6),
    "full_disk": (full_disk, 7),
}
OF_ALL: dict[str, tuple[Trouble, int]] = {"kill_server": (kill_fleet_server, 3), "kill_postgres": (kill_postgres, 1)}
