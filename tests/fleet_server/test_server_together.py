"""Many at once at a server: they share statements and commits, and nobody gets another's answer, fault or delay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import HubApi, Machine, fleet_server_on, new_machine, until

from atlasbridge.core.operations import Refused
from atlasbridge.fleet.server import people, reports
from atlasbridge.fleet.server.database import MOST, Batch, Database
from atlasbridge.fleet.server.decisions import Decision, Proposal, find, propose
from atlasbridge.fleet.server.machines import Entered


class Worker:
    """Doubles numbers; `go` lets it."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.go = asyncio.Event()

    async def __call__(self, numbers: list[int]) -> list[int]:
        self.calls.append(list(numbers))
        await self.go.wait()
        if -1 in numbers:
            raise ValueError("not that one")
        return [2 * number for number in numbers]


async def test_who_comes_while_one_is_answered_is_answered_with_the_next() -> None:
    worker = Worker()
    double = Batch(worker, ValueError)
    first = asyncio.create_task(double(1))
    await until(lambda: worker.calls)
    others = [asyncio.create_task(double(number)) for number in range(2, 6)]
    await asyncio.sleep(0)
    worker.go.set()
    assert await first == 2 and await asyncio.gather(*others) == [4, 6, 8, 10]
    assert worker.calls == [[1], [2, 3, 4, 5]]
    assert await double(7) == 14


async def test_a_long_row_is_answered_in_parts() -> None:
    worker = Worker()
    worker.go.set()
    double = Batch(worker, ValueError)
    assert await asyncio.gather(*map(double, range(2 * MOST + 1))) == [2 * one for one in range(2 * MOST + 1)]
    assert max(map(len, worker.calls)) <= MOST


async def test_one_that_cannot_be_answered_fails_alone() -> None:
    worker = Worker()
    worker.go.set()
    double = Batch(worker, ValueError)
    found = await asyncio.gather(*map(double, (1, -1, 3)), return_exceptions=True)
    assert found[0] == 2 and isinstance(found[1], ValueError) and found[2] == 6
    with pytest.raises(ValueError, match="not that one"):
        await double(-1)


async def test_who_goes_away_takes_nobody_along() -> None:
    worker = Worker()
    double = Batch(worker, ValueError)
    leaves, stays = asyncio.create_task(double(1)), asyncio.create_task(double(2))
    await until(lambda: worker.calls)
    leaves.cancel()
    worker.go.set()
    assert await stays == 4
    with pytest.raises(asyncio.CancelledError):
        await leaves


def asked(machine: Machine, count: int) -> list[Any]:
    sitters = [machine.sit(label=str(number)) for number in range(count)]
    for sitter in sitters:
        sitter.ask()
    return sitters


NESTED = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET {}=off', current_database()); END $$"


async def test_of_two_fleet_servers_that_take_many_at_once_each_row_has_one_winner(
    fleet_server: HubApi, root: Path
) -> None:
    """In opposite orders: anyone who locked them as they come would wait for the other for ever."""
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    asked(machine, 60)
    names = [(one["machine_id"], one["prompt_id"]) for one in await alice.sees(60)]
    await machine.stop()
    for way in (
        "enable_hashjoin",
        "enable_mergejoin",
        "enable_seqscan",
        "jit",
    ):  # each row is looked for when it is its turn
        await fleet_server.database.rows(NESTED.format(way))
    both = [Database(fleet_server.database.url) for _ in range(2)]
    await asyncio.gather(*(one.open() for one in both))
    orders = (sorted(names), sorted(names, reverse=True))
    for _ in range(6):
        found = await asyncio.gather(
            *(
                propose(place, Proposal(*name, "alice", "y"))
                for place, order in zip(both, orders, strict=True)
                for name in order
            )
        )
        mine, theirs = found[: len(names)], found[len(names) :][::-1]
        for pair in zip(mine, theirs, strict=True):
            assert {type(one) for one in pair} == {Decision, Refused}
        await fleet_server.database.rows("UPDATE prompts SET decision_id = NULL")
    assert len(await fleet_server.database.rows("SELECT id FROM decisions")) == 6 * len(names)
    await asyncio.gather(*(one.close() for one in both))


async def test_the_same_wish_at_two_fleet_servers_at_once_is_one_decision(fleet_server: HubApi, root: Path) -> None:
    other = Database(fleet_server.database.url)
    await other.open()
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    asked(machine, 12)
    names = [(one["machine_id"], one["prompt_id"]) for one in await alice.sees(12)]
    await machine.stop()
    wishes = [Proposal(*name, "alice", "y", request_key=f"key {number}") for number, name in enumerate(names)]
    found = await asyncio.gather(
        *(propose(place, wish) for wish in wishes for place in (fleet_server.database, other) * 2)
    )
    for at in range(0, len(found), 4):
        ids = {one.decision_id for one in found[at : at + 4] if isinstance(one, Decision)}
        assert len(ids) == 1 and all(isinstance(one, Decision) for one in found[at : at + 4])
    await other.close()


async def test_one_request_that_no_table_can_keep_spoils_nobody_elses(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitters = asked(machine, 8)
    shown = await alice.sees(8)
    bad = {"machine_id": "%00", "prompt_id": "p"}
    answers = await asyncio.gather(
        *(alice.decide(one, "y") for one in shown), *(alice.decide(bad, "y") for _ in range(4))
    )
    assert all(one["accepted"] for one in answers[:8])
    assert {one["status"] for one in answers[8:]} == {400}
    assert all(len(sitter.typed) == 1 for sitter in sitters)
    await machine.stop()


async def test_of_many_decisions_at_once_only_those_go_out_whose_people_may_still_answer(
    fleet_server: HubApi, root: Path
) -> None:
    """They wait for their machine; in between one of the two people is sent away."""
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    bert = await fleet_server.person("bert", machine="box")
    sitters = asked(machine, 10)
    shown = await alice.sees(10)
    await machine.stop()
    who = [alice, bert] * 5
    deciding = [asyncio.create_task(one.decide(prompt, "y")) for one, prompt in zip(who, shown, strict=True)]
    await until(lambda: decided(fleet_server, 10))
    await people.remove(fleet_server.database, "bert", "test")
    await (await machine.start()).connected()
    answers = await asyncio.gather(*deciding)
    for one, told in zip(who, answers, strict=True):
        assert told["accepted"] if one is alice else told["stage"] == "not_allowed", told
    assert sum(len(sitter.typed) for sitter in sitters) == 5
    await machine.stop()


async def decided(fleet_server: HubApi, count: int) -> bool:
    return len(await fleet_server.database.rows("SELECT 1 FROM decisions")) == count


async def test_a_decision_is_not_found_by_who_did_not_make_it(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    asked(machine, 1)
    (shown,) = await alice.sees(1)
    assert (await alice.decide(shown, "y"))["accepted"]
    (made,) = await fleet_server.database.rows("SELECT id FROM decisions")
    mine, other = await asyncio.gather(*(find(fleet_server.database, made["id"], name) for name in ("alice", "bert")))
    assert mine is not None and mine.ok and other is None
    await machine.stop()


async def test_a_word_of_one_fleet_server_is_heard_at_the_other_and_once_at_its_own(
    fleet_server: HubApi, database: str
) -> None:
    async with fleet_server_on(database) as running:
        own, other = fleet_server.context.wakeups, running.context.wakeups
        with own.waiting("a") as here, other.waiting("b") as there:

            def both_listen() -> bool:
                own.tell("b")
                other.tell("a")
                return here.is_set() and there.is_set()

            await until(both_listen)
        with own.waiting("k") as here, other.waiting("k") as there, own.waiting("last") as last:
            own.tell("k")
            assert here.is_set(), "who told it hears it at once"
            here.clear()
            await until(there.is_set)
            other.tell("last")
            await until(last.is_set)
            assert not here.is_set(), "its own word does not come back"


async def test_an_older_link_writes_nothing_beside_the_one_that_took_over(fleet_server: HubApi, root: Path) -> None:
    """Both speak at the same moment, so that one statement takes what they say."""
    machine = await new_machine(fleet_server, root)
    await machine.stop()
    (known,) = await fleet_server.database.rows("SELECT id, generation FROM machines")
    older, newer = (Entered(known["id"], "box", known["generation"] - back, 0) for back in (1, 0))

    def said(number: int) -> dict[str, Any]:
        body = {"session_id": str(number), "state": "active"}
        return {"seq": number, "items": [{"kind": "session", "id": str(number), "seq": number, "body": body}]}

    found = await asyncio.gather(
        reports.take(fleet_server.database, older, said(10_001)),
        reports.take(fleet_server.database, newer, said(10_002)),
        return_exceptions=True,
    )
    assert isinstance(found[0], reports.Fenced) and found[1] == 0
    kept = await fleet_server.database.rows("SELECT session_id FROM sessions WHERE seq > 10000")
    assert [one["session_id"] for one in kept] == ["10002"]
