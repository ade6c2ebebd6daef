"""Faults of a fleet, one after the other, while two people answer at two desks."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

from tests.support.desk_rig import Rig, rig
from tests.support.fleet import until

from atlasbridge.desk.database import Database


async def fault_rounds(faults: int, machines: int, sessions: int, seed: int) -> dict[str, int]:
    random.seed(seed)
    tried: Counter[str] = Counter()
    async with rig(desks=2, dead_s=3.0) as fleet:
        for number in range(machines):
            await fleet.add_member(f"m{number}", sessions, 0.05)
        over = asyncio.Event()
        ports = list(fleet.desks)
        people = [
            asyncio.create_task(fleet.decide_on(await fleet.visitor(name, port), over, 0.002))
            for name, port in (("alice", ports[0]), ("bert", ports[1]))
        ]
        await until(lambda: sum(fleet.decisions.values()) > 5, deadline_s=60)
        for _ in range(faults):
            kind = random.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
            tried[kind] += 1
            before = sum(fleet.decisions.values())
            await KINDS[kind][0](fleet)
            if random.random() < 0.7:  # the rest hits while the one before is still felt
                await _goes_on(fleet, before + 3)
        over.set()
        await asyncio.gather(*people)
        await fleet.settle()
        await until(lambda: _quiet(fleet), deadline_s=60)
        await fleet.database.close()  # connections of before the last kill
        fleet.database = Database(fleet.url)
        await fleet.database.open()
        figures = await fleet.check()
    return {**figures, **{f"fault:{name}": count for name, count in tried.items()}}


async def _goes_on(fleet: Rig, decisions: int) -> None:
    with contextlib.suppress(TimeoutError):
        await until(lambda: sum(fleet.decisions.values()) >= decisions, deadline_s=15)


async def _quiet(fleet: Rig) -> bool:
    """What machines ask and what the desk shows is the same."""
    _, _, opened = fleet.typed()
    shown = await fleet.database.rows("SELECT prompt_id FROM prompts WHERE is_open")
    return {one["prompt_id"] for one in shown} == set(opened)


async def cut(fleet: Rig) -> None:
    fleet.wire.cut()


async def half_open(fleet: Rig) -> None:
    """Nothing passes for a while; sometimes everybody gives the connection up before all of it comes."""
    await fleet.wire.hold(random.choice([0.2, 0.5, 4.0]))


async def kill_hub(fleet: Rig) -> None:
    name = random.choice(list(fleet.members))
    fleet.kill_member(name)
    fleet.start_member(name)


async def kill_desk(fleet: Rig) -> None:
    port = random.choice(list(fleet.desks))
    fleet.kill_desk(port)
    fleet.start_desk(port)


async def kill_postgres(fleet: Rig) -> None:
    await asyncio.to_thread(fleet.server.kill_9)
    await asyncio.to_thread(fleet.server.start)


KINDS = {
    "cut": (cut, 8),
    "half_open": (half_open, 4),
    "kill_hub": (kill_hub, 2),
    "kill_desk": (kill_desk, 2),
    "kill_postgres": (kill_postgres, 1),
}
