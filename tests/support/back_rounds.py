"""Stores that go back in time, in many fleets at once: the database, a machine's home, a copied home that runs beside
its original, and clocks that jump.

After each of them, what is open is shown exactly once, nothing answered is open, and an answer is typed once, at the
machine that asked.  A round has to be cheap, because rare orders of events show only in many: the rows of a database
are kept in a second schema and put back from there, which gives the same tables as the recovery of that moment (one
time in two hundred it is a real dump, which costs a second); a home is copied while its hub runs, as by a snapshot of
the disk, or while it is stopped; and nothing waits for a disk, because nothing here is about a loss of power.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
from tests.fleet_server.test_fleet_restores import dump, held_as, put_back, restore
from tests.support import waiting
from tests.support.fleet import HubApi, Machine, Sitter, Visitor, let_in, new_machine, short_root, start_fleet_server
from tests.support.fleet import until as in_time
from tests.support.postgres import QUICK, Rows, postgres

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.ids import new_id
from atlasbridge.fleet.member import channel
from atlasbridge.fleet.server import lists, machines, people
from atlasbridge.fleet.server.operations import FleetOperations

TELL_EVERY_S = 60.0
ROUNDS_OF_A_FLEET = 150  # then a new one: its tables and its log do not grow without end
DEADLINE_S = 240.0  # for a machine with much else to do
# The pools of a fleet grow to 23 connections, and after a failover those that end are there beside their successors.
CROWDED = f"{QUICK} -c max_connections=1000"
EVERY_PROMPT = {one.name: one.default for one in FleetOperations.prompts.parameters.values()} | {"limit": 200}


class Back:
    """How many rounds are left, and what was tried."""

    def __init__(self, wanted: int) -> None:
        self.left = wanted
        self.done: Counter[str] = Counter()
        self.answered = 0

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


async def back_rounds(rounds: int, fleets: int, count: int, sessions: int, seed: int) -> dict[str, int]:
    random.seed(seed)
    channel.HELD_S, channel.FIRST_RETRY_S = 0.2, 0.1  # a machine that is held, or lost the server, asks again soon
    waiting.LOOK_EVERY_S = 0.03
    back = Back(rounds)
    with ExitStack() as stack:
        server, root = stack.enter_context(postgres(CROWDED)), stack.enter_context(short_root())
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(_tell(back))
            works = [
                group.create_task(_fleets(back, server.new_database, root / f"f{number}", count, sessions))
                for number in range(fleets)
            ]
            await asyncio.gather(*works)
            telling.cancel()
    return {**back.done, "answers, each typed once": back.answered}


async def _tell(back: Back) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        used, took = time.process_time(), time.monotonic() - began
        told = f"{back.done.total()} went back, and all is well: {dict(back.done)}, {back.answered} answers"
        print(f"fleet_faults: {told}; {took:.0f} s, {used:.0f} s of processor", flush=True)


async def _fleets(back: Back, new_database: Callable[[], str], root: Path, count: int, sessions: int) -> None:
    while back.left > 0:
        root.mkdir()  # noqa: ASYNC240
        fleet = Fleet(new_database(), root)
        await fleet.start()
        await people.add(fleet.server.database, "alice", "admin", "test")
        for number in range(count):
            await fleet.add(f"m{number}", sessions)
        await fleet.log_in()
        for _ in range(ROUNDS_OF_A_FLEET):
            if not back.take():
                break
            kind = random.choices(list(KINDS), [often for _, often in KINDS.values()])[0]
            try:
                await KINDS[kind][0](fleet)
                await fleet.check()
            except Exception as error:
                raise AssertionError(f"{kind}: {error!r}; {await fleet.state()}") from error
            back.done[kind] += 1
        back.answered += sum(len(one.typed) for one in fleet.sitters())
        await fleet.stop()
        shutil.rmtree(root)


async def until(condition: Any) -> None:
    await in_time(condition, DEADLINE_S)


class Fleet:
    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root
        self.rows = Rows(url)
        self.machines: list[Machine] = []
        self.server: HubApi = None  # type: ignore[assignment]  # see start
        self.alice: Visitor = None  # type: ignore[assignment]  # see log_in
        self._port = 0

    async def start(self) -> None:
        async def started() -> bool:  # a busy machine can let it wait for PostgreSQL for too long, as a service would
            self.server = await start_fleet_server(self.url, port=self._port)
            return True

        await until(started)
        self._port = int(self.server.url.rpartition(":")[2])

    async def log_in(self) -> None:
        """A browser that stays logged in over all restores, as long as its login was there before."""
        self.alice = Visitor(self.server.url)
        token = await people.login_link(self.server.database, "alice")
        assert (await self.alice.post("/api/v1/login", link=token)).status_code == 200

    async def stop_server(self) -> None:
        await self.server.stop()
        await self.server.database.close()

    async def stop(self) -> None:
        for machine in self.machines:
            await machine.stop()
        await self.alice.client.aclose()
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

    async def shown(self) -> list[dict[str, Any]]:
        """What the page shows, as soon as it is what is open."""

        async def same() -> bool:
            found = await lists.find_prompts(self.server.database, "alice", EVERY_PROMPT)
            return sorted(one["prompt_id"] for one in found["prompts"]) == sorted(self.open())

        try:
            await until(same)
        except AssertionError:
            found = await self.alice.prompts(limit=200)
            raise AssertionError(f"shown {found}, open {self.open()}") from None
        return await self.alice.prompts(limit=200)

    async def work(self) -> None:
        """Some ask, and some of what is asked is answered."""
        for sitter in self.sitters():
            if sitter.open is None and random.random() < 0.7:
                sitter.ask()
        for shown in await self.shown():
            if random.random() < 0.3:
                await self.answer(shown)

    async def answer(self, shown: dict[str, object]) -> None:
        prompt_id = str(shown["prompt_id"])
        sitter = self.open()[prompt_id]
        value = random.choice(("y", "n"))
        key = new_id()
        told: dict[str, Any] = {"status": 503}
        while told["status"] == 503 or told["stage"] == "received":
            try:
                told = await self.alice.decide(shown, value, key)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                pass  # the connection broke: the same key again is the same answer
            await asyncio.sleep(0.05 if told["status"] == 503 else 0)
        assert told["accepted"], told
        assert sitter.typed[prompt_id]["kind"] == {"y": "yes", "n": "no"}[value]

    async def copy(self, machine: Machine) -> Path:
        """Its home as it is now.  Half of the time its hub is stopped for that."""
        kept = self.root / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        stops = random.random() < 0.5
        if stops:
            await machine.told_all()
            await machine.stop()
        await self.confirmed(machine, not stops)
        shutil.copytree(machine.home.root, kept, ignore=shutil.ignore_patterns("*.sock"))
        if stops:
            await machine.start()
            await machine.connected()
            await self.confirmed(machine)
        return kept

    async def confirmed(self, machine: Machine, is_connected: bool = True) -> None:
        """The machine has stored its newest meeting, and the server knows."""

        async def both_know() -> bool:
            query = "SELECT 1 FROM machines WHERE name = %s AND token = token_offered AND (connected_to <> '') = %s"
            return bool(await self.server.database.rows(query, machine.name, is_connected))

        await until(both_know)

    async def state(self) -> str:
        """For the message about a round that failed."""
        query = (
            "SELECT name, held, token, token_offered, others, expelled, connected_to, generation, acked FROM machines"
        )
        async with await psycopg.AsyncConnection.connect(self.url) as connection:  # the server can be stopped
            rows = await (await connection.execute(query)).fetchall()
        return "\n".join(map(str, (*rows, *((one.health, one.hub.hub_api.meeting()) for one in self.machines))))

    async def check(self) -> None:
        """What is open is shown once; and one answer, right now, goes where it should and nowhere else."""
        found = await self.shown()
        before = Counter(one.session_id for one in self.sitters() for _ in one.orders)
        for shown in found[:1]:
            sitter = self.open()[str(shown["prompt_id"])]
            await self.answer(shown)
            after = Counter(one.session_id for one in self.sitters() for _ in one.orders)
            assert after - before == Counter({sitter.session_id: 1}), "typed elsewhere, or twice"
        for sitter in self.sitters():
            assert len(sitter.orders) == len(set(sitter.orders)), f"{sitter.orders} were typed twice"


async def _dump(fleet: Fleet) -> None:
    await _database(fleet, by_dump=True)


async def _database(fleet: Fleet, by_dump: bool = False) -> None:
    """Put back as it was at one moment, while machines go on."""
    await fleet.work()
    if by_dump:
        await asyncio.to_thread(dump, fleet.url, fleet.root / "dump")
    else:
        await fleet.rows.keep()
    await fleet.work()
    await fleet.stop_server()
    for sitter in fleet.sitters():  # machines go on alone
        if sitter.open is None and random.random() < 0.5:
            sitter.ask()
    if by_dump:
        await asyncio.to_thread(restore, fleet.url, fleet.root / "dump")
    else:
        async with await psycopg.AsyncConnection.connect(fleet.url) as connection:
            await fleet.rows.put_back(connection)
    await fleet.start()
    for machine in fleet.machines:
        await until(lambda one=machine: one.health["state"] == "ok" and "fault" not in one.health)


async def _failover(fleet: Fleet) -> None:
    """To a replica that lost the last commits, while the server goes on."""
    await fleet.work()
    await fleet.rows.keep()
    await fleet.work()
    await fleet.rows.fail_over()


async def _home(fleet: Fleet) -> None:
    machine = random.choice(fleet.machines)
    await fleet.work()
    kept = await fleet.copy(machine)
    await fleet.work()
    await machine.told_all()
    await machine.stop()
    put_back(machine, kept)
    await machine.start()
    await until(lambda: machine.health["state"] == "ok" or "accept-restore" in machine.health.get("fault", ""))
    if machine.health["state"] != "ok":  # where little happened since, all is told again without that
        await let_in(fleet.server, machine)


async def _clone(fleet: Fleet) -> None:
    machine = random.choice(fleet.machines)
    await fleet.work()
    kept = await fleet.copy(machine)
    await fleet.work()
    clone = Machine(type(machine.home)(kept), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet.server, machine.name, "cloned")
    await until(lambda: all("split" in one.health.get("fault", "") for one in (machine, clone)))
    assert await machines.split(fleet.server.database, machine.name, await _side(fleet, machine), "test")
    await machine.connected()
    await until(lambda: "join again" in clone.health.get("fault", ""))
    await clone.stop()


async def _side(fleet: Fleet, machine: Machine) -> int:
    """Which of the two the original is."""
    (known,) = await fleet.server.database.rows(
        "SELECT * FROM machines WHERE name = %s AND gone_at IS NULL", machine.name
    )
    token = machine.hub.hub_api.meeting()["token"]
    others = [one["token"] for one in known["others"]]
    return 0 if token in (known["token"], known["token_offered"]) else others.index(token) + 1


async def _clock(fleet: Fleet) -> None:
    """A machine's clock is set, forward or back, by up to a day; half of the time its hub starts again after that."""
    machine = random.choice(fleet.machines)
    await fleet.work()
    assert isinstance(machine.clock, ManualClock)
    machine.clock.jump_wall(random.choice((-1, 1)) * random.uniform(60.0, 86_400.0))
    if random.random() < 0.5:
        await machine.stop()
        await machine.start()
        await machine.connected()
    await fleet.work()
    found = await fleet.alice.get("/api/v1/machines")
    assert not [one for one in found["machines"] if one["silent"]], found


# And how often each is chosen.
KINDS: dict[str, tuple[Callable[[Fleet], Awaitable[None]], int]] = {
    "point in time": (_database, 49),
    "dump": (_dump, 1),
    "failover": (_failover, 50),
    "home": (_home, 50),
    "clone": (_clone, 50),
    "clock": (_clock, 25),
}
