"""What the server does besides: rules for all, screens while somebody looks, figures, machines that come for a
while."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path

import httpx
import pytest
from tests.support.fleet import YES_NO, HubApi, fleet_server_on, new_machine, until

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType, Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace
from atlasbridge.fleet.server import machines
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.migrate import migrate
from atlasbridge.fleet.server.server import Address, refuse_open_sockets, serve

RULES = """
[[rule]]
name = "two for a push"
verdict = "ask"
approvals = 2
command = ["git", "push", "**"]

[[rule]]
name = "no removal"
verdict = "deny"
command = ["rm", "**"]
"""
PERMISSION = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.95,
    "Run it?",
    choices=(Choice("1", "Yes", (Step(b"1"),)), Choice("2", "No", (Step(b"2"),), refuses=True)),
    digest="d9",
)


def asks(command: str) -> Prompt:
    subject = Subject(SubjectKind.COMMAND, command, "/srv", SubjectSource.HOOK, True, command)
    return replace(PERMISSION, subject=subject)


async def send_rules(fleet_server: HubApi, machine_id: str, text: str) -> str:
    digest = await machines.set_rules(fleet_server.database, text, "test")
    fleet_server.context.wakeups.tell(f"job:{machine_id}")
    return digest


async def test_rules_go_to_every_machine_and_several_people_must_agree(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    digest = await send_rules(fleet_server, machine.membership.machine_id, RULES)
    await until(lambda: _uses(fleet_server, digest))
    alice, bert = await fleet_server.person("alice", "admin"), await fleet_server.person("bert", "admin")
    sitter = machine.sit()
    removal = sitter.ask(asks("rm -rf build"))
    await until(lambda: removal in sitter.typed)
    assert sitter.typed[removal]["value"] == "2"
    push = sitter.ask(asks("git push origin main"))
    (shown,) = await alice.sees(1)
    first = await alice.decide(shown, "1")
    assert first["accepted"] and first["stage"] == "voted" and push not in sitter.typed
    again = await alice.decide(shown, "1")
    assert again["stage"] == "voted" and push not in sitter.typed  # the same person does not count twice
    await until(lambda: _agreed(bert))
    second = await bert.decide(shown, "1")
    assert second["stage"] == "typed" and sitter.typed[push]["value"] == "1"
    await machine.stop()


async def test_what_a_rule_wants_signed_is_refused_at_the_server_and_not_approved_without_a_passkey(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    rule = '[[rule]]\nname = "signed"\nverdict = "ask"\nproof = "passkey"\ncommand = ["git", "push", "**"]\n'
    digest = await send_rules(fleet_server, machine.membership.machine_id, rule)
    await until(lambda: _uses(fleet_server, digest))
    sitter = machine.sit()
    push = sitter.ask(asks("git push"))
    (shown,) = await alice.sees(1)
    assert shown["constraints"]["proof"]["rule"] == "signed"
    approved = await alice.decide(shown, "1")
    assert not approved["accepted"] and approved["stage"] == "needs_passkey" and push not in sitter.typed, approved
    assert (await alice.decide(shown, "2"))["accepted"] and sitter.typed[push]["value"] == "2"
    await machine.stop()


async def _uses(fleet_server: HubApi, digest: str) -> bool:
    return bool(
        await fleet_server.database.rows("SELECT 1 FROM machines WHERE policy = %s AND policy_fault = ''", digest)
    )


async def _agreed(visitor) -> bool:  # type: ignore[no-untyped-def]
    return [one["agreed"] for one in await visitor.prompts()] == [["alice"]]


async def test_rules_that_would_allow_need_the_machines_own_consent(fleet_server: HubApi, root: Path) -> None:
    strict, open_one = (
        await new_machine(fleet_server, root, "strict"),
        await new_machine(fleet_server, root, "open", rules="allow"),
    )
    text = '[[rule]]\nname = "tests"\nverdict = "allow"\ncommand = ["npm", "test"]\n'
    digest = await machines.set_rules(fleet_server.database, text, "test")
    for machine in (strict, open_one):
        fleet_server.context.wakeups.tell(f"job:{machine.membership.machine_id}")
    await until(lambda: _fault(fleet_server, "strict"))
    await until(lambda: _uses(fleet_server, digest))
    sitters = [machine.sit() for machine in (strict, open_one)]
    ids = [sitter.ask(asks("npm test")) for sitter in sitters]
    await until(lambda: ids[1] in sitters[1].typed)
    assert sitters[0].typed == {}
    for machine in (strict, open_one):
        await machine.stop()


async def _fault(fleet_server: HubApi, name: str) -> bool:
    return bool(await fleet_server.database.rows("SELECT 1 FROM machines WHERE name = %s AND policy_fault <> ''", name))


async def test_a_screen_passes_only_while_somebody_looks(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await alice.sees(1)
    path = f"/api/v1/sessions/{shown['machine_id']}.{shown['session_id']}/screen/stream"
    async with alice.client.stream("GET", path) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                assert json.loads(line[6:])["lines"] == ["$ ls", "a b"]
                break
    await until(lambda: getattr(sitter, "watchers", 1) == 0)
    await until(lambda: _no_screens(fleet_server))
    assert "SCREEN_WATCHED" in await fleet_server.events()
    await machines.allow_screens(fleet_server.database, "box", False)
    assert (await alice.client.get(path)).status_code == 403
    await machine.stop()


async def _no_screens(fleet_server: HubApi) -> bool:
    return not await fleet_server.database.rows("SELECT 1 FROM screens")


async def test_a_machine_that_joined_without_screens_shows_none(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, screens=False)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await alice.sees(1)
    path = f"/api/v1/sessions/{shown['machine_id']}.{shown['session_id']}/screen/stream"
    assert not shown["screens"] and (await alice.client.get(path)).status_code == 403
    await machine.stop()


async def test_prompts_are_filtered_and_cut_to_a_page(fleet_server: HubApi, root: Path) -> None:
    one, two = await new_machine(fleet_server, root, "one"), await new_machine(fleet_server, root, "two")
    alice = await fleet_server.person("alice", "admin")
    for number in range(6):
        one.sit(cwd=f"/srv/{number}", label="build").ask()
    two.sit(cwd="/etc", label="deploy").ask(replace(YES_NO, excerpt="Deploy the moon? (y/n)", digest="m"))
    await alice.sees(7)
    for query, count in (({"machine": "two"}, 1), ({"folder": "/srv"}, 6), ({"label": "build"}, 6), ({"q": "MOON"}, 1)):
        assert len(await alice.prompts(**query)) == count, query
    page = await alice.get("/api/v1/prompts", limit=5)
    rest = await alice.get("/api/v1/prompts", limit=5, offset=5)
    assert page["total"] == 7 and (len(page["prompts"]), len(rest["prompts"])) == (5, 2)
    for machine in (one, two):
        await machine.stop()


async def test_five_thousand_open_prompts_stay_usable(fleet_server: HubApi) -> None:
    """By the work PostgreSQL does for a page, not by a clock."""
    alice = await fleet_server.person("alice", "admin")
    await fleet_server.database.rows(
        "INSERT INTO machines (id, name, public_key, joined_at) SELECT 'm' || n, 'm' || n, n::text, now()"
        " FROM generate_series(1, 50) n"
    )
    await fleet_server.database.rows(
        "INSERT INTO prompts (machine_id, prompt_id, session_id, seq, state, is_open, body, raised_at)"
        " SELECT 'm' || (1 + n %% 50), 'p' || n, 's' || n, 1, 'created', true,"
        """ jsonb_build_object('question', repeat('Why? ', 200) || n), now() FROM generate_series(1, 5000) n"""
    )
    found = await alice.get("/api/v1/prompts", limit=50)
    assert found["total"] == 5000 and len(found["prompts"]) == 50
    narrowed = await alice.get("/api/v1/prompts", machine="m7", q="Why")
    assert narrowed["total"] == 100
    assert len(json.dumps(found)) < 200_000


async def test_figures_and_health_are_told_to_who_may_know(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    machine.sit().ask()
    await alice.sees(1)
    async with httpx.AsyncClient(base_url=fleet_server.url) as stranger:
        assert (await stranger.get("/health")).status_code == (await stranger.get("/ready")).status_code == 200
        assert (await stranger.get("/metrics")).status_code == 401
    text = (await alice.client.get("/metrics")).text
    assert "atlasbridge_fleet_open_prompts 1.0\n" in text and "atlasbridge_fleet_machines_connected 1.0\n" in text
    assert 'atlasbridge_fleet_machine_messages_total{kind="up"}' in text
    assert "atlasbridge_fleet_http_request_seconds_bucket" in text and "# HELP atlasbridge_fleet_machines " in text
    await machine.stop()


async def test_an_ephemeral_machine_is_gone_once_it_is_silent(database: str, root: Path) -> None:
    clock = ManualClock(wall=1_800_000_000.0)
    async with fleet_server_on(database, clock) as fleet_server:
        job = await new_machine(fleet_server, root, "job", ephemeral=True)
        laptop = await new_machine(fleet_server, root, "laptop")
        job.sit().ask()
        alice = await fleet_server.person("alice", "admin")
        await alice.sees(1)
        await job.stop()
        clock.advance(3600)
        await until(lambda: _heard(fleet_server, "laptop", laptop))
        assert len(await machines.reap(fleet_server.database)) == 1
        await alice.sees(0)
        assert [one["name"] for one in await machines.listing(fleet_server.database)] == ["laptop"]
        await laptop.stop()


async def _heard(fleet_server: HubApi, name: str, machine) -> bool:  # type: ignore[no-untyped-def]
    machine.sit()
    await machine.told_all()
    now = fleet_server.database.now()
    found = await fleet_server.database.rows("SELECT seen_at FROM machines WHERE name = %s", name)
    return bool(found[0]["seen_at"] == now)


async def test_two_machines_of_one_name_are_told_apart(fleet_server: HubApi, root: Path) -> None:
    first = await new_machine(fleet_server, root / "a", "vm")
    second = await new_machine(fleet_server, root / "b", "vm")
    assert (first.name, second.name) == ("vm", "vm-2")
    for machine in (first, second):
        await machine.stop()


async def test_a_machine_that_comes_twice_is_heard_through_its_newer_link(fleet_server: HubApi, root: Path) -> None:
    """A half-open link: the old one may not write any more, whichever of them is slower."""
    from atlasbridge.core.fleet_wire import PATH, encode_message
    from atlasbridge.fleet.member.joining import WebSocket, enter

    machine = await new_machine(fleet_server, root)
    epoch = machine.hub.ledger.membership.begin(machine.membership.machine_id)
    meeting = machine.hub.hub_api.meeting()
    await machine.stop()
    old = await WebSocket.dial(fleet_server.url, PATH)
    await enter(old, machine.membership, epoch=epoch, **meeting)
    await (await machine.start()).connected()
    body = {"state": "created", "session_id": "s", "question": "from the grave"}
    item = {"seq": 10_000, "kind": "prompt", "id": "late", "body": body}
    await old.send(encode_message("up", seq=10_000, items=[item], head=None))
    while await old.receive() is not None:
        pass
    assert await fleet_server.database.rows("SELECT 1 FROM prompts WHERE prompt_id = 'late'") == []
    await old.close()
    await machine.stop()


async def test_the_address_is_told_once_connections_are_taken(database: str) -> None:
    """A service manager, or a person, goes on at once."""
    loop, connected = asyncio.get_running_loop(), asyncio.Event()

    def ready(address: str) -> None:
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 5).close()
        loop.call_soon(connected.set)

    tables = Database(database)
    await tables.open()
    await migrate(tables)
    await tables.close()
    serving = asyncio.create_task(serve(database, Address(port=0), ready))
    waiting = asyncio.create_task(connected.wait())
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not serving.done():
        signal.raise_signal(signal.SIGTERM)
    await serving


def test_a_fleet_server_without_tls_listens_on_loopback_only() -> None:
    refuse_open_sockets(Address(host="127.0.0.1"))
    refuse_open_sockets(Address(host="0.0.0.0", url="https://desk.example.org"))
    refuse_open_sockets(Address(host="0.0.0.0", cert="c.pem", key="k.pem"))
    with pytest.raises(ConfigError, match="in the clear"):
        refuse_open_sockets(Address(host="0.0.0.0"))
