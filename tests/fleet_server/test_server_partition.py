"""Cut off for an hour of a clock that is set by hand: local answers win, late decisions are refused and told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.fleet import HubApi, Machine, fleet_server_on, new_machine, short_root, until
from tests.support.postgres import Postgres
from tests.support.server_rig import Wire

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.prompt.model import InboundReply
from atlasbridge.core.values import replace
from atlasbridge.fleet.member import channel as fleet_link
from atlasbridge.fleet.member.membership import write_membership

OUTCOMES = {"typed", "not_open", "expired", "stale", "unavailable", "unknown_prompt"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_link, "LAST_RETRY_S", 0.2)
    monkeypatch.setattr(fleet_link, "FIRST_RETRY_S", 0.05)


async def behind_a_wire(fleet_server: HubApi, root: Path, clock: ManualClock) -> tuple[Machine, Wire]:
    machine = await new_machine(fleet_server, root, clock=clock)
    await machine.stop()
    wire = Wire([int(fleet_server.url.rpartition(":")[2])])
    port = await wire.start()
    write_membership(machine.home.root, replace(machine.membership, url=f"http://127.0.0.1:{port}"))
    return await (await machine.start()).connected(), wire


def advance(machine: Machine, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    machine.hub.scheduler.run_due()


async def test_an_hour_cut_off_local_answers_go_on_and_win(fleet_server: HubApi, root: Path) -> None:
    clock = ManualClock()
    machine, wire = await behind_a_wire(fleet_server, root, clock)
    alice = await fleet_server.person("alice", "admin")
    sitters = [machine.sit(label=str(number)) for number in range(4)]
    ids = [sitter.ask() for sitter in sitters]
    shown = {prompt["prompt_id"]: prompt for prompt in await alice.sees(4)}
    wire.block()
    decided = [asyncio.create_task(alice.decide(shown[prompt_id], "y")) for prompt_id in ids[:3]]
    await until(lambda: _count(fleet_server, 3))
    local = await machine.hub.replies.reply(
        InboundReply(channel="local", identity="cli:local", prompt_id=ids[0], value="n")
    )
    assert local.stage == "typed"  # type: ignore[union-attr]
    sitters[1].answer_here(ids[1])
    advance(machine, clock, 3600)  # the deadline of what nobody answered is the hub's
    await until(lambda: not machine.hub.ledger.open_prompts())
    later = sitters[0].ask()
    wire.unblock()
    told = await asyncio.gather(*decided)
    assert [one["accepted"] for one in told] == [False, False, False]
    assert {one["stage"] for one in told} <= OUTCOMES - {"typed"} and all(one["message"] for one in told)
    assert sitters[0].typed[ids[0]]["kind"] == "no" and sitters[1].typed == {}
    (now,) = await alice.sees(1)
    assert now["prompt_id"] == later
    await machine.stop()
    await wire.stop()


async def _count(fleet_server: HubApi, count: int) -> bool:
    return len(await fleet_server.database.rows("SELECT 1 FROM decisions")) == count


ACTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["ask", "local", "keyboard", "alice", "bert"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(["block", "unblock", "restart", "minutes", "hour"]), st.just(0)),
    ),
    min_size=4,
    max_size=16,
)


@pytest.mark.timeout(600)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=ACTS)
def test_whatever_happens_while_cut_off_each_prompt_is_typed_once_or_not_at_all(
    server: Postgres, acts: list[tuple[str, int]]
) -> None:
    asyncio.run(_play(server.new_database(), acts))


async def _play(url: str, acts: list[tuple[str, int]]) -> None:
    clock = ManualClock()
    with short_root() as root:
        async with fleet_server_on(url) as one, fleet_server_on(url) as two:
            machine, wire = await behind_a_wire(one, root, clock)
            people = {"alice": await one.person("alice", "admin"), "bert": await two.person("bert", "admin")}
            sitters = [machine.sit(label=str(number)) for number in range(3)]
            deciding: list[asyncio.Task[dict[str, object]]] = []
            for act, which in acts:
                sitter = sitters[which]
                prompt_id = sitter.open["prompt_id"] if sitter.open else ""
                match act:
                    case "ask" if not prompt_id:
                        sitter.ask()
                    case "local" if prompt_id:
                        reply = InboundReply(channel="local", identity="cli:local", prompt_id=prompt_id, value="n")
                        await machine.hub.replies.reply(reply)
                    case "keyboard" if prompt_id:
                        sitter.answer_here(prompt_id)
                    case "alice" | "bert":
                        value = "y" if act == "alice" else "n"
                        for prompt in await people[act].prompts():
                            deciding.append(asyncio.create_task(people[act].decide(prompt, value)))
                    case "block":
                        wire.block()
                    case "unblock":
                        wire.unblock()
                    case "restart":
                        await machine.stop()
                        await machine.start()
                    case "minutes" | "hour":
                        advance(machine, clock, 120 if act == "minutes" else 3600)
                await asyncio.sleep(0.02)
            wire.unblock()
            await _judge(one, machine, sitters, await asyncio.gather(*deciding))
            await machine.stop()
            await wire.stop()


async def _judge(fleet_server: HubApi, machine: Machine, sitters: list, told: list) -> None:  # type: ignore[type-arg]
    typed = {prompt_id: answer["kind"] for sitter in sitters for prompt_id, answer in sitter.typed.items()}
    rows = await fleet_server.database.rows("SELECT prompt_id, value, ok, stage, sentence, settled_at FROM decisions")
    assert all(one["settled_at"] and one["sentence"] and one["stage"] in OUTCOMES for one in rows), rows
    for row in rows:
        if row["ok"]:
            assert typed[row["prompt_id"]] == {"y": "yes", "n": "no"}[row["value"]]
    accepted = [row["prompt_id"] for row in rows if row["ok"]]
    assert len(accepted) == len(set(accepted))
    assert all(one["status"] in (200, 403, 404, 409) for one in told)
    await machine.told_all()
    shown = {
        one["prompt_id"] for one in await fleet_server.database.rows("SELECT prompt_id FROM prompts WHERE is_open")
    }
    assert shown == {record.prompt_id for record in machine.hub.ledger.open_prompts()}
