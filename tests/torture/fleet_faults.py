"""Lines are cut, held and reordered, disks full, servers, hubs and PostgreSQL killed: `fleet_faults [--faults N]`.

`python -m tests.torture fleet_faults --faults 10000` is the whole attack, an hour on two cores.  Every decision that
was accepted is typed exactly once, every other is refused with its reason, and every row ends.

`fleet_faults --back N` puts stores back in time instead: the database from a dump, a machine's home from a copy, and a
copied home that runs beside its original.  After each, what is open is shown exactly once, nothing answered is open,
and an answer is typed once, at the machine that asked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
from collections import Counter
from pathlib import Path

from atlasbridge.fleet.member import link
from atlasbridge.fleet.server import machines, people
from tests.fleet_server.test_fleet_restores import confirmed, dump, held_as, put_back, restore, shows
from tests.support.fleet import HubApi, Machine, Sitter, let_in, new_machine, short_root, start_fleet_server, until
from tests.support.postgres import postgres
from tests.support.server_rounds import fault_rounds

TELL_EVERY = 25


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_faults")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--back", type=int, default=0, help="so many stores go back in time instead")
    given = parser.parse_args(arguments)
    if given.back:
        attack = back_in_time(given.back, min(given.machines, 3), min(given.sessions, 3), given.seed)
    else:
        attack = fault_rounds(given.faults, given.machines, given.sessions, given.seed)
    try:
        found = asyncio.run(attack)
    except AssertionError as error:
        print(f"fleet_faults: FAILED: {error}")
        return 1
    print(f"fleet_faults: {given.back or given.faults} faults: {found}")
    return 0


async def back_in_time(rounds: int, count: int, sessions: int, seed: int) -> dict[str, int]:
    random.seed(seed)
    link.HELD_S, link.FIRST_RETRY_S = 0.2, 0.1  # who is held, or lost the server, asks again soon
    tried: Counter[str] = Counter()
    with postgres() as server, short_root() as root:
        fleet = _Fleet(server.new_database(), root)
        await fleet.start()
        for number in range(count):
            await fleet.add(f"m{number}", sessions)
        for number in range(1, rounds + 1):
            kind = random.choice(list(_KINDS))
            await _KINDS[kind](fleet)
            await fleet.check()
            tried[kind] += 1
            if number % TELL_EVERY == 0:
                print(f"fleet_faults: {number} went back, and all is well: {dict(tried)}", flush=True)
        answered = sum(len(one.typed) for one in fleet.sitters())
        await fleet.stop()
    return {**tried, "answers, each typed once": answered}


class _Fleet:
    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root
        self.machines: list[Machine] = []
        self.server: HubApi = None  # type: ignore[assignment]  # see start
        self._port = 0

    async def start(self) -> None:
        self.server = await start_fleet_server(self.url, port=self._port)
        self._port = int(self.server.url.rpartition(":")[2])
        await people.add(self.server.database, "alice", "admin", "test")

    async def stop_server(self) -> None:
        await self.server.stop()
        await self.server.database.close()

    async def stop(self) -> None:
        for machine in self.machines:
            await machine.stop()
        await self.stop_server()

    async def add(self, name: str, sessions: int) -> None:
        machine = await new_machine(self.server, self.root, name)
        for number in range(sessions):
            machine.sit(label=f"{name}-{number}")
        self.machines.append(machine)

    def sitters(self) -> list[Sitter]:
        return [sitter for machine in self.machines for sitter in machine.sitters]

    def open(self) -> dict[str, Sitter]:
        return {str(one.open["prompt_id"]): one for one in self.sitters() if one.open is not None}

    async def work(self) -> None:
        """Some ask, and some of what is asked is answered."""
        self.alice = await self.server.visitor("alice")  # a connection that nobody used for a while may just be closed
        for sitter in self.sitters():
            if sitter.open is None and random.random() < 0.7:
                sitter.ask()
        await shows(self.alice, *self.open())
        for shown in await self.alice.prompts(limit=200):
            if random.random() < 0.4:
                await self.answer(shown)

    async def answer(self, shown: dict[str, object]) -> None:
        prompt_id = str(shown["prompt_id"])
        sitter = self.open()[prompt_id]
        value = random.choice(("y", "n"))
        told = await self.alice.decide(shown, value)
        assert told["accepted"], told
        assert sitter.typed[prompt_id]["kind"] == {"y": "yes", "n": "no"}[value]

    async def copy(self, machine: Machine) -> Path:
        """Its home as it is now; it goes on afterwards."""
        kept = self.root / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        await machine.told_all()
        await machine.stop()
        shutil.copytree(machine.home.root, kept)
        await machine.start()
        await machine.connected()
        await confirmed(self.server, machine.name)
        return kept

    async def check(self) -> None:
        """What is open is shown once; and one answer, right now, goes where it should and nowhere else."""
        self.alice = await self.server.visitor("alice")
        await shows(self.alice, *self.open())
        found = await self.alice.prompts(limit=200)
        assert len(found) == len(self.open()), "something is shown twice"
        before = Counter(one.session_id for one in self.sitters() for _ in one.orders)
        for shown in found[:1]:
            sitter = self.open()[str(shown["prompt_id"])]
            await self.answer(shown)
            after = Counter(one.session_id for one in self.sitters() for _ in one.orders)
            assert after - before == Counter({sitter.session_id: 1}), "typed elsewhere, or twice"
        for sitter in self.sitters():
            assert len(sitter.orders) == len(set(sitter.orders)), f"{sitter.orders} were typed twice"


async def _database(fleet: _Fleet) -> None:
    """Put back from a dump, while machines go on."""
    await fleet.work()
    dump(fleet.url, fleet.root / "dump")
    await fleet.work()
    await fleet.stop_server()
    for sitter in fleet.sitters():  # machines go on alone
        if sitter.open is None and random.random() < 0.5:
            sitter.ask()
    restore(fleet.url, fleet.root / "dump")
    await fleet.start()
    for machine in fleet.machines:
        await machine.connected()


async def _home(fleet: _Fleet) -> None:
    machine = random.choice(fleet.machines)
    await fleet.work()
    kept = await fleet.copy(machine)
    await fleet.work()
    await machine.told_all()
    await machine.stop()
    put_back(machine, kept)
    await machine.start()
    await held_as(fleet.server, machine.name, "restored")
    await let_in(fleet.server, machine)


async def _clone(fleet: _Fleet) -> None:
    machine = random.choice(fleet.machines)
    await fleet.work()
    kept = await fleet.copy(machine)
    await fleet.work()
    clone = Machine(type(machine.home)(kept), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet.server, machine.name, "cloned")
    await until(lambda: all("split" in one.health.get("fault", "") for one in (machine, clone)))
    assert await machines.split(fleet.server.database, machine.name, 0, "test")
    await machine.connected()
    await until(lambda: "join it again" in clone.health.get("fault", ""))
    await clone.stop()


_KINDS = {"database": _database, "home": _home, "clone": _clone}
