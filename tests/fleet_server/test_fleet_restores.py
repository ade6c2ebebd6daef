"""Stores that go back in time: a restored database, a restored home, a cloned one, and a clock that is wrong.

Afterwards everything open is shown exactly once, nothing answered is open, and no answer goes to the wrong machine.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import HubApi, Machine, Visitor, fleet_server_on, let_in, new_machine, until
from tests.support.postgres import Postgres, Rows, programs

from atlasbridge.core.clock import SystemClock
from atlasbridge.fleet.member import channel
from atlasbridge.fleet.server import machines


def dump(url: str, path: Path) -> None:
    words = [str(programs() / "pg_dump"), "--format=custom", "--file", str(path), url]
    subprocess.run(words, check=True)


def restore(url: str, path: Path) -> None:
    words = [str(programs() / "pg_restore"), "--clean", "--if-exists", "--no-owner", "--dbname", url, str(path)]
    subprocess.run(words, check=True, capture_output=True)


async def shown(visitor: Visitor) -> set[str]:
    return {str(one["prompt_id"]) for one in await visitor.prompts(limit=200)}


async def shows(visitor: Visitor, *prompt_ids: str) -> None:
    """Wait until exactly these are open on the page."""

    async def same() -> bool:
        return await shown(visitor) == set(prompt_ids)

    await until(same)


async def listed(fleet_server: HubApi, name: str) -> dict[str, Any]:
    return next(one for one in await machines.listing(fleet_server.database) if one["name"] == name)


async def held_as(fleet_server: HubApi, name: str, why: str) -> None:
    async def is_held() -> bool:
        return (await listed(fleet_server, name))["held"] == why

    await until(is_held)


async def confirmed(fleet_server: HubApi, name: str) -> None:
    """The machine has written down its newest meeting, and the server knows."""

    async def both_know() -> bool:
        found = await listed(fleet_server, name)
        return bool(found["token"] == found["token_offered"] and found["connected_to"])

    await until(both_know)


async def test_a_restored_database_shows_what_is_open_and_closes_what_was_answered(
    server: Postgres, database: str, root: Path
) -> None:
    async with fleet_server_on(database) as fleet_server:
        machine = await new_machine(fleet_server, root)
        alice = await fleet_server.person("alice", "admin")
        first, second, third = machine.sit(), machine.sit(), machine.sit()
        answered, kept = first.ask(), second.ask()
        await shows(alice, answered, kept)
        await machine.told_all()
        dump(database, root / "dump")
        (one,) = [prompt for prompt in await alice.prompts() if prompt["prompt_id"] == answered]
        assert (await alice.decide(one, "y"))["accepted"]
        fresh = third.ask()
        await shows(alice, kept, fresh)
        await machine.told_all()
    restore(database, root / "dump")
    async with fleet_server_on(database, port=int(fleet_server.url.rpartition(":")[2])) as fleet_server:
        alice = await fleet_server.visitor("alice")
        await shows(alice, kept, fresh)
        assert "STORE_WENT_BACK" in await fleet_server.events()
        assert (
            "earlier state" in (await listed(fleet_server, "box"))["went_back"]
            and "earlier state" in machine.health["notice"]
        )
        states = await fleet_server.database.rows("SELECT state FROM prompts WHERE prompt_id = %s", answered)
        assert states[0]["state"] == "resolved"  # the machine said what had become of it
        (one,) = [prompt for prompt in await alice.prompts() if prompt["prompt_id"] == fresh]
        assert (await alice.decide(one, "n"))["accepted"] and third.typed[fresh]["kind"] == "no"
        assert len(first.orders) == 1  # nothing was typed twice
        assert "FLEET_TOLD_AGAIN" in {str(entry["event"]) for entry in machine.hub.ledger.audit_entries()}
        await machine.stop()


async def test_a_server_that_lost_its_last_commits_in_a_failover_is_told_them_again(
    fleet_server: HubApi, root: Path
) -> None:
    """As a replica that had not got them yet: the machine's meeting is known, its last word is not."""
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    prompt_id = machine.sit().ask()
    await shows(alice, prompt_id)
    await machine.told_all()
    async with fleet_server.database.transaction() as connection:
        await connection.execute("DELETE FROM prompts")
        await connection.execute("UPDATE machines SET acked = acked - 1, generation = generation + 1")
    fleet_server.context.wakeups.tell(f"job:{machine.membership.machine_id}")
    await shows(alice, prompt_id)
    assert "STORE_WENT_BACK" in await fleet_server.events()
    await machine.stop()


async def test_a_restored_home_waits_for_a_persons_word_and_then_everything_open_is_shown(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    first, second = machine.sit(), machine.sit()
    answered = first.ask()
    await shows(alice, answered)
    await machine.told_all()
    await machine.stop()
    shutil.copytree(machine.home.root, root / "backup")
    await machine.start()
    await machine.connected()
    (one,) = await alice.prompts()
    assert (await alice.decide(one, "y"))["accepted"]
    fresh = second.ask()
    await shows(alice, fresh)
    await machine.told_all()
    await machine.stop()
    put_back(machine, root / "backup")
    await machine.start()
    await held_as(fleet_server, "box", "restored")
    await until(lambda: "accept-restore box" in machine.health.get("fault", ""))
    await let_in(fleet_server, machine)
    await shows(alice, fresh)  # the hosts outlived it, and told the old store what had happened
    assert len(first.typed) == 1 and len(first.orders) == 1
    assert {"MACHINE_RESTORED", "RESTORE_ACCEPTED", "RESTORE_USED"} <= set(await fleet_server.events())
    assert (await listed(fleet_server, "box"))["held"] == ""
    (one,) = await alice.prompts()
    assert (await alice.decide(one, "n"))["accepted"] and second.typed[fresh]["kind"] == "no"
    await machine.stop()


def put_back(machine: Machine, backup: Path) -> None:
    shutil.rmtree(machine.home.root)
    shutil.copytree(backup, machine.home.root)


async def test_what_a_restored_machine_was_sent_and_never_spoke_of_is_told_as_not_known(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.types = False
    sitter.ask()
    (one,) = await alice.sees(1)
    await machine.stop()
    shutil.copytree(machine.home.root, root / "backup")
    await machine.start()
    await machine.connected()
    await confirmed(fleet_server, "box")
    wish = asyncio.create_task(alice.decide(one, "y"))
    await until(lambda: sitter.orders)
    await machine.stop()
    sitter.open = None
    machine.sitters.clear()
    put_back(machine, root / "backup")
    await machine.start()
    await held_as(fleet_server, "box", "restored")
    await machines.accept_restore(fleet_server.database, "box", "test")
    told = await wish
    assert not told["accepted"] and told["stage"] == "unknown" and told["message"].startswith("Unknown"), told
    await machine.stop()


async def test_two_machines_with_one_key_are_both_held_until_a_person_says_which_goes_on(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    mine = sitter.ask()
    await shows(alice, mine)
    await machine.told_all()
    await machine.stop()
    shutil.copytree(machine.home.root, root / "copy")
    await machine.start()
    await machine.connected()
    await confirmed(fleet_server, "box")
    clone = Machine(type(machine.home)(root / "copy"), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet_server, "box", "cloned")
    await until(lambda: all("split box" in one.health.get("fault", "") for one in (machine, clone)))
    assert "MACHINE_CLONED" in await fleet_server.events()
    assert len(await machines.sides(fleet_server.database, "box")) == 2
    assert await machines.split(fleet_server.database, "box", 0, "test")
    await machine.connected()
    await until(lambda: "join again" in clone.health.get("fault", ""))
    await shows(alice, mine)
    (one,) = await alice.prompts()
    assert (await alice.decide(one, "y"))["accepted"] and list(sitter.typed) == [mine]
    assert clone.hub.ledger.reply(mine) is None
    await clone.stop()
    await machine.stop()


async def test_the_other_of_two_machines_can_be_the_one_that_goes_on(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    await machine.stop()
    shutil.copytree(machine.home.root, root / "copy")
    await machine.start()
    await machine.connected()
    await confirmed(fleet_server, "box")
    clone = Machine(type(machine.home)(root / "copy"), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet_server, "box", "cloned")
    assert await machines.split(fleet_server.database, "box", 1, "test")
    await clone.connected()
    await until(lambda: "join again" in machine.health.get("fault", ""))
    for one in (clone, machine):
        await one.stop()


async def test_a_machine_and_its_copy_each_know_the_number_by_which_a_person_keeps_it(
    fleet_server: HubApi, root: Path
) -> None:
    """The copy was made in the midst of a connection, and neither has told anything since: the copy is let in first."""
    machine = await new_machine(fleet_server, root)
    machine.sit().ask()
    await machine.told_all()
    await confirmed(fleet_server, "box")
    shutil.copytree(machine.home.root, root / "copy", ignore=shutil.ignore_patterns("*.sock"))
    clone = Machine(type(machine.home)(root / "copy"), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet_server, "box", "cloned")
    await until(lambda: all("this is number" in one.health.get("fault", "") for one in (machine, clone)))
    (number,) = re.findall("number ([12])", machine.health["fault"])
    assert f"number {3 - int(number)}" in clone.health["fault"]
    assert await machines.split(fleet_server.database, "box", int(number) - 1, "test")
    await machine.connected()
    await until(lambda: "join again" in clone.health.get("fault", ""))
    for one in (clone, machine):
        await one.stop()


async def test_a_copy_that_came_while_its_original_slept_is_told_apart_as_soon_as_the_original_is_back(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    sitter = machine.sit()
    sitter.ask()
    await machine.told_all()
    await confirmed(fleet_server, "box")
    shutil.copytree(machine.home.root, root / "copy", ignore=shutil.ignore_patterns("*.sock"))
    sitter.ask()
    await machine.told_all()
    await machine.stop()
    clone = Machine(type(machine.home)(root / "copy"), machine.membership, machine.clock)
    await clone.start()
    await held_as(fleet_server, "box", "restored")
    await machine.start()
    await held_as(fleet_server, "box", "cloned")
    await until(lambda: "this is number 1" in machine.health.get("fault", ""))
    await until(lambda: "this is number 2" in clone.health.get("fault", ""))
    assert await machines.split(fleet_server.database, "box", 0, "test")
    await machine.connected()
    await until(lambda: "join again" in clone.health.get("fault", ""))
    for one in (clone, machine):
        await one.stop()


async def test_a_link_that_breaks_at_any_moment_of_a_meeting_is_no_restore(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    prompt_id = sitter.ask()
    for _ in range(10):
        async with fleet_server.database.transaction() as connection:
            await connection.execute("UPDATE machines SET generation = generation + 1")
        fleet_server.context.wakeups.tell(f"job:{machine.membership.machine_id}")
        await until(lambda: machine.health["state"] != "ok")
        await machine.connected()
    await shows(alice, prompt_id)
    found = await listed(fleet_server, "box")
    assert (found["held"], found["went_back"]) == ("", "")
    await machine.stop()


async def test_a_server_whose_clock_is_ahead_sends_no_machine_away(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SystemClock.wall
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: real() + 15 * 60))
    async with fleet_server_on(database) as fleet_server:
        machine = await new_machine(fleet_server, root, ephemeral=True)
        assert abs(fleet_server.database.clock.wall() - real()) < 5
        assert await machines.reap(fleet_server.database) == []
        alice = await fleet_server.person("alice", "admin")
        (found,) = (await alice.get("/api/v1/machines"))["machines"]
        assert found["connected"] and not found["silent"]
        await machine.stop()


@pytest.mark.parametrize("breaks", [True, False], ids=["its connections break", "a pooler hides it"])
async def test_a_failover_to_an_older_copy_below_a_running_server_loses_nothing(
    server: Postgres, database: str, root: Path, breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes on and so would the links, of which nobody has to say anything for a while."""
    monkeypatch.setattr(channel, "BEAT_S", 0.2)
    async with fleet_server_on(database) as fleet_server:
        machine = await new_machine(fleet_server, root)
        alice = await fleet_server.person("alice", "admin")
        first, second = machine.sit(), machine.sit()
        answered = first.ask()
        await shows(alice, answered)
        await machine.told_all()
        await confirmed(fleet_server, "box")
        rows = Rows(database)
        await rows.keep()
        (one,) = await alice.prompts()
        assert (await alice.decide(one, "y"))["accepted"]
        fresh = second.ask()
        await shows(alice, fresh)
        await machine.told_all()
        await rows.fail_over(breaks)
        await shows(alice, fresh)
        assert "STORE_WENT_BACK" in await fleet_server.events()
        assert first.orders == [answered]
        (one,) = await alice.prompts()
        assert (await alice.decide(one, "n"))["accepted"] and second.orders == [fresh]
        await machine.stop()


async def test_a_home_put_back_from_a_snapshot_of_the_same_connection_can_be_accepted(
    fleet_server: HubApi, root: Path
) -> None:
    """Both states have the same token, because the machine had not connected again in between."""
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    first, second = machine.sit(), machine.sit()
    await confirmed(fleet_server, "box")
    shutil.copytree(machine.home.root, root / "snapshot", ignore=shutil.ignore_patterns("*.sock"))
    first.ask()
    await shows(alice, str(first.open and first.open["prompt_id"]))
    (one,) = await alice.prompts()
    assert (await alice.decide(one, "y"))["accepted"]
    await machine.told_all()
    await machine.stop()
    put_back(machine, root / "snapshot")
    await machine.start()
    await held_as(fleet_server, "box", "restored")
    fresh = second.ask()
    await let_in(fleet_server, machine)
    await shows(alice, fresh)
    await machine.stop()


@pytest.mark.parametrize("keep", ["the original", "the copy"])
async def test_a_copy_with_the_same_token_beside_its_original_is_told_apart(
    fleet_server: HubApi, root: Path, keep: str
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    first = machine.sit()
    await confirmed(fleet_server, "box")
    shutil.copytree(machine.home.root, root / "copy", ignore=shutil.ignore_patterns("*.sock"))
    prompt_id = first.ask()
    await shows(alice, prompt_id)
    await machine.told_all()
    clone = await Machine(type(machine.home)(root / "copy"), machine.membership, machine.clock).start()
    await held_as(fleet_server, "box", "cloned")
    await until(lambda: all("split" in one.health.get("fault", "") for one in (machine, clone)))
    assert await machines.split(fleet_server.database, "box", ["the original", "the copy"].index(keep), "test")
    kept, other = (machine, clone) if keep == "the original" else (clone, machine)
    await kept.connected()
    await until(lambda: "join again" in other.health.get("fault", ""))
    await shows(alice, *([prompt_id] if kept is machine else []))
    await clone.stop()
    await machine.stop()
