"""From a machine's prompt to a person at the server and back, and who wins when several answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.fleet import HubApi, Sitter, fleet_server_on, new_machine, until

from atlasbridge.core.prompt.model import InboundReply, PromptState, Refusal


async def test_a_prompt_is_shown_at_the_fleet_server_answered_there_and_typed_once(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", machine="box")
    sitter = machine.sit(cwd="/srv/app", label="deploy")
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    assert (shown["machine"], shown["folder"], shown["label"]) == ("box", "/srv/app", "deploy")
    told = await alice.decide(shown, "y")
    assert told["accepted"] and told["stage"] == "typed" and "server:alice" in told["message"]
    assert sitter.typed == {prompt_id: {"kind": "yes", "value": ""}} and sitter.orders == [prompt_id]
    await alice.sees(0)
    record = machine.hub.ledger.prompt(prompt_id)
    assert record is not None and record.state is PromptState.RESOLVED and record.decided_by == "server:alice"
    assert {"JOINED", "DECIDED", "SETTLED"} <= set(await fleet_server.events())
    await machine.stop()


async def test_an_answer_at_the_machine_wins_and_the_late_decision_is_refused_and_told(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    sitter.types = False
    local = InboundReply(channel="local", identity="cli:local", prompt_id=prompt_id, value="n")
    answering = asyncio.create_task(machine.hub.replies.reply(local))
    await until(lambda: sitter.orders)
    told = await alice.decide(shown, "y")
    assert not told["accepted"] if told["status"] == 200 else told["reason"] == "not_open"
    sitter.type_answer(prompt_id, {"kind": "no", "value": ""}, machine.hub)
    await answering
    assert sitter.typed[prompt_id]["kind"] == "no"
    await machine.stop()


async def test_of_two_people_at_two_fleet_servers_one_wins_and_the_other_hears_who(
    fleet_server: HubApi, database: str, root: Path
) -> None:
    async with fleet_server_on(database) as other:
        machine = await new_machine(fleet_server, root)
        alice = await fleet_server.person("alice", "admin")
        await other.person("bert", "admin")
        bert = await other.visitor("bert")
        for number in range(10):
            sitter = machine.sit(label=str(number))
            sitter.ask()
        shown = await alice.sees(10)
        answers = await asyncio.gather(
            *(one.decide(prompt, value) for prompt in shown for one, value in ((alice, "y"), (bert, "n")))
        )
        for mine, theirs in zip(answers[::2], answers[1::2], strict=True):
            assert sorted((mine["status"], theirs["status"])) == [200, 409]
            lost, name = (theirs, "alice") if theirs["status"] == 409 else (mine, "bert")
            assert lost["reason"] == "not_open" and lost["message"] == f"{name} answered first."
        assert all(len(sitter.typed) == 1 and len(sitter.orders) == 1 for sitter in machine.sitters)
        await machine.stop()


async def test_the_same_request_sent_again_is_the_same_decision(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await alice.sees(1)
    first, second = await asyncio.gather(alice.decide(shown, "y", key="k"), alice.decide(shown, "y", key="k"))
    third = await alice.decide(shown, "y", key="k")
    decisions = await fleet_server.database.rows("SELECT id FROM decisions")
    assert len(decisions) == 1 and len(sitter.orders) == 1
    assert first["accepted"] and second["accepted"] and third["accepted"]
    await machine.stop()


async def test_a_value_that_is_no_answer_is_refused_and_the_prompt_stays_open(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await alice.sees(1)
    told = await alice.decide(shown, "perhaps")
    assert not told["accepted"] and told["stage"] == Refusal.BAD_VALUE.value and sitter.orders == []
    assert (await alice.decide(shown, "n"))["accepted"]
    await machine.stop()


async def test_a_decision_for_a_machine_that_is_away_waits_for_it(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    await machine.stop()
    deciding = asyncio.create_task(alice.decide(shown, "y"))
    await until(lambda: _under_way(fleet_server))
    await machine.start()
    assert (await deciding)["accepted"] and list(sitter.typed) == [prompt_id]
    await machine.stop()


async def _under_way(fleet_server: HubApi) -> bool:
    return bool(await fleet_server.database.rows("SELECT 1 FROM decisions WHERE settled_at IS NULL"))


async def test_the_hub_dies_between_claim_and_typing_and_the_decision_is_typed_once(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter: Sitter = machine.sit()
    sitter.types = False
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    deciding = asyncio.create_task(alice.decide(shown, "y"))
    await until(lambda: sitter.orders)
    await machine.stop()  # the order was heard, nothing was typed
    sitter.types = True
    await machine.start()
    told = await deciding
    assert told["accepted"], told
    assert list(sitter.typed) == [prompt_id]
    await alice.sees(0)
    await machine.stop()
