"""Attacks on a fleet server: each is refused, and stands in the server's log."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fleet_server.conftest import database, fleet_server, root, server
from tests.support.fleet import YES_NO, HubApi, new_machine, until
from tests.support.hubs import hub_process
from tests.support.waiting import wait_for

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.fleet_wire import PATH, decode_message, encode_message
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.values import replace
from atlasbridge.fleet.keys import new_key
from atlasbridge.fleet.member.joining import RefusedByServer, WebSocket, enter, join
from atlasbridge.fleet.server import decisions, machines, people

__all__ = ["database", "fleet_server", "root", "server"]
pytestmark = pytest.mark.heavy
PLAIN: dict[str, Any] = {"ca": "", "screens": True, "rules": "tighten", "ephemeral": False}
SECRET = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Password:", "hunter2?", constraints={"secret": True}, digest="d2")


async def dial(fleet_server: HubApi, machine: Any, **about: Any) -> WebSocket:
    """With the machine's own memory of its last meeting, as anyone who has its key has that, too."""
    link = await WebSocket.dial(fleet_server.url, PATH)
    machine_id = machine.membership.machine_id
    known = await fleet_server.database.rows("SELECT token_offered AS token FROM machines WHERE id = %s", machine_id)
    given = {"epoch": f"{machine_id}/x", "screens": True, "token": known[0]["token"] if known else "", **about}
    try:
        await enter(link, machine.membership, **given)
    except ChannelError:
        await link.close()
        raise
    return link


async def say(link: WebSocket, kind: str, **fields: Any) -> None:
    await link.send(encode_message(kind, **fields))


async def hears(link: WebSocket, kind: str) -> dict[str, Any]:
    while True:
        text = await link.receive()
        assert text is not None, "the server closed the link"
        if (message := decode_message(text))["m"] == kind:
            return message


async def test_a_token_is_good_once(fleet_server: HubApi) -> None:
    invitation = await fleet_server.invite()
    await join(invitation, "one", **PLAIN)
    with pytest.raises(RefusedByServer):
        await join(invitation, "two", **PLAIN)
    with pytest.raises(RefusedByServer):
        await join(replace(invitation, token="guessed"), "three", **PLAIN)
    assert [one["name"] for one in await machines.listing(fleet_server.database)] == ["one"]
    assert (await fleet_server.events()).count("JOIN_REFUSED") == 2


async def test_of_many_who_use_one_token_at_once_one_joins(fleet_server: HubApi) -> None:
    invitation = await fleet_server.invite()
    tried = await asyncio.gather(*(join(invitation, f"m{n}", **PLAIN) for n in range(6)), return_exceptions=True)
    assert sum(not isinstance(one, BaseException) for one in tried) == 1
    assert all(isinstance(one, RefusedByServer) for one in tried if isinstance(one, BaseException))


async def test_a_token_for_one_name_is_not_good_for_another(fleet_server: HubApi) -> None:
    invitation = await fleet_server.invite(name="laptop")
    with pytest.raises(RefusedByServer):
        await join(invitation, "evil", **PLAIN)
    assert (await join(invitation, "laptop", **PLAIN)).name == "laptop"


async def test_a_machine_that_was_sent_away_is_cut_off_and_stays_out(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    machine.sit().ask()
    (shown,) = await alice.sees(1)
    gone = await machines.remove(fleet_server.database, "box", "test", "revoked")
    fleet_server.context.wakeups.tell(f"job:{gone}")
    await until(lambda: "belong" in machine.health.get("fault", ""))
    await alice.sees(0)
    late = await alice.decide(shown, "y")
    assert late["reason"] == "not_open" and machine.sitters[0].orders == []
    assert {"REVOKED", "ENTER_REFUSED"} <= set(await fleet_server.events())
    await machine.stop()


async def test_a_machine_without_the_right_key_does_not_enter(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    machine.membership = replace(machine.membership, key=new_key())
    with pytest.raises(RefusedByServer):
        await dial(fleet_server, machine)
    assert "ENTER_REFUSED" in await fleet_server.events()
    await machine.stop()


async def test_a_hub_cannot_speak_for_another(fleet_server: HubApi, root: Path) -> None:
    """It sends another's prompt id as its own, and an outcome for a decision that is not its own."""
    honest, evil = await new_machine(fleet_server, root, "honest"), await new_machine(fleet_server, root, "evil")
    alice = await fleet_server.person("alice", "admin")
    sitter = honest.sit()
    sitter.types = False
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    await evil.stop()
    link = await dial(fleet_server, evil)
    body = {**shown, "question": "Feed the cat?", "state": "resolved", "machine": honest.membership.machine_id}
    item = {"seq": 999, "kind": "prompt", "id": prompt_id, "body": body, "machine_id": honest.membership.machine_id}
    await say(link, "up", seq=999, items=[item], head=[1, "x"])
    await hears(link, "ack")
    (still,) = await alice.sees(1)
    assert still["machine"] == "honest" and still["question"] == YES_NO.excerpt
    deciding = asyncio.create_task(alice.decide(shown, "y"))
    await until(lambda: sitter.orders)
    (decision,) = await fleet_server.database.rows("SELECT id FROM decisions")
    await say(link, "outcome", id=decision["id"], ok=True, stage="typed", sentence="done")
    await until(lambda: _noted(fleet_server, "FORGED"))
    assert not deciding.done()
    sitter.type_answer(prompt_id, {"kind": "yes", "value": ""}, honest.hub)
    assert (await deciding)["accepted"]
    await link.close()
    await honest.stop()


async def _noted(fleet_server: HubApi, event: str) -> bool:
    return event in await fleet_server.events()


async def test_messages_that_make_no_sense_end_the_link_and_nothing_else(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    await machine.stop()
    nonsense: list[dict[str, Any]] = [
        {"m": "up"},
        {"m": "up", "seq": "x", "items": []},
        {"m": "up", "seq": 1, "items": [{"seq": 1, "kind": "prompt", "id": "", "body": {"state": "created"}}]},
        {"m": "up", "seq": 1, "items": [{"seq": 1, "kind": "prompt", "id": "a" * 99, "body": {"state": "created"}}]},
        {"m": "outcome", "id": "x"},
        {"m": "proof", "request": "x", "lines": 7},
    ]
    for message in nonsense:
        link = await dial(fleet_server, machine)
        await link.send(encode_message(message.pop("m"), **message))
        assert await _ends(link), message
        await link.close()
    assert await fleet_server.database.rows("SELECT 1 FROM prompts") == []


async def _ends(link: WebSocket) -> bool:
    while (text := await link.receive()) is not None:
        assert decode_message(text)["m"] != "ack", text
    return True


async def test_text_that_postgresql_cannot_keep_is_kept_as_near_as_can_be(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    await machine.stop()
    nasty = "rm \x00 \ud800 'x'; DROP TABLE prompts; --"
    body = {"state": "created", "session_id": "s", "question": nasty, "cwd": nasty, nasty: [nasty]}
    link = await dial(fleet_server, machine)
    item = {"seq": 1, "kind": "prompt", "id": "p", "body": body}
    await link.send(json.dumps({"m": "up", "seq": 1, "items": [item], "head": [2**70, nasty]}))
    await hears(link, "ack")
    (shown,) = await alice.sees(1)
    assert shown["question"].endswith("'x'; DROP TABLE prompts; --")
    await link.close()


async def test_a_person_sees_and_answers_only_what_is_theirs(fleet_server: HubApi, root: Path) -> None:
    box, other = await new_machine(fleet_server, root, "box"), await new_machine(fleet_server, root, "other_1")
    bert = await fleet_server.person("bert", machine="box", folder="/srv/app")
    carl = await fleet_server.person("carl", machine="*", may="see")
    dora = await fleet_server.person("dora")
    for machine in (box, other):
        for cwd in ("/srv/app", "/srv/app/sub", "/srv/apple", "/etc"):
            machine.sit(cwd=cwd).ask()
    everything = await carl.sees(8)
    assert sorted(one["folder"] for one in await bert.sees(2)) == ["/srv/app", "/srv/app/sub"]
    assert await dora.prompts() == [] and (await dora.get("/api/v1/machines"))["machines"] == []
    assert [one["name"] for one in (await bert.get("/api/v1/machines"))["machines"]] == ["box"]
    for prompt in everything:
        mine = (
            prompt["machine"] == "box" and prompt["folder"].startswith("/srv/app") and "apple" not in prompt["folder"]
        )
        assert (await dora.decide(prompt, "y"))["reason"] == "unknown_prompt"
        assert (await carl.decide(prompt, "y"))["reason"] == "not_allowed"
        told = await bert.decide(prompt, "n")
        assert told.get("accepted") if mine else told["reason"] == "unknown_prompt"
    assert sum(len(sitter.typed) for sitter in (*box.sitters, *other.sitters)) == 2
    assert (await fleet_server.events()).count("DECISION_REFUSED") == 22
    for machine in (box, other):
        await machine.stop()


@pytest.mark.parametrize("arrived", [False, True])
async def test_an_answer_that_was_lost_on_its_way_is_not_typed_once_its_person_was_removed(
    fleet_server: HubApi, root: Path, arrived: bool
) -> None:
    """It was sent and nothing was heard: perhaps it arrived, perhaps not."""
    machine, bert = await new_machine(fleet_server, root, "box"), await fleet_server.person("bert", machine="box")
    sitter, database = machine.sit(), fleet_server.database
    asked = sitter.ask()
    (shown,) = await bert.sees(1)
    if arrived:
        assert (await bert.decide(shown, "y", key="once"))["accepted"]
    await machine.stop()
    if not arrived:
        wish = decisions.Proposal(shown["machine_id"], asked, "bert", "y", request_key="once")
        assert isinstance(await decisions.propose(database, wish), decisions.Decision)
    lost = "UPDATE decisions SET stage = 'sent', settled_at = NULL, ok = NULL WHERE request_key = 'once'"
    await database.rows(lost)
    await people.remove(database, "bert", "test")
    await machine.start()

    async def settled() -> list[dict[str, Any]]:
        return await database.rows("SELECT * FROM decisions WHERE settled_at IS NOT NULL")

    await until(settled)
    (told,) = await settled()
    assert (told["ok"], told["stage"]) == ((True, "typed") if arrived else (False, "not_allowed")), told
    assert sitter.orders == ([asked] if arrived else [])
    await machine.stop()


async def test_a_pattern_of_a_right_is_no_pattern_of_sql(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, "box")
    bert = await fleet_server.person("bert", machine="b_x", folder="%")
    machine.sit(cwd="/srv").ask()
    await machine.told_all()
    assert await bert.prompts() == []
    await machine.stop()


async def test_a_team_gives_and_takes(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, "box")
    bert = await fleet_server.person("bert")
    await people.set_team(fleet_server.database, "ops", "bert", True, "test")
    await people.allow(fleet_server.database, "@ops", "box", "*", "answer", "test")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await bert.sees(1)
    await people.set_team(fleet_server.database, "ops", "bert", False, "test")
    assert (await bert.decide(shown, "y"))["reason"] == "unknown_prompt" and sitter.orders == []
    await machine.stop()


async def test_who_was_removed_is_logged_out_at_once(fleet_server: HubApi) -> None:
    bert = await fleet_server.person("bert", "admin")
    assert (await bert.get("/api/v1/me"))["status"] == 200
    await people.remove(fleet_server.database, "bert", "test")
    assert (await bert.get("/api/v1/me"))["status"] == 401


async def test_a_login_link_is_good_once_and_a_guess_is_noted(fleet_server: HubApi) -> None:
    await people.add(fleet_server.database, "alice", "admin", "test")
    token = await people.login_link(fleet_server.database, "alice")
    async with httpx.AsyncClient(base_url=fleet_server.url) as client:
        assert (await client.post("/api/v1/login", json={"link": token})).status_code == 200
        cookie = client.cookies.jar
        assert all(one.has_nonstandard_attr("HttpOnly") for one in cookie)
        assert (await client.post("/api/v1/login", json={"link": token})).status_code == 403
    assert (await fleet_server.events()).count("LOGIN_REFUSED") == 1


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}], ids=str
)
async def test_a_page_of_another_site_decides_nothing(
    fleet_server: HubApi, root: Path, headers: dict[str, str]
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    machine.sit().ask()
    (shown,) = await alice.sees(1)
    path = f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/reply"
    answer = await alice.client.post(path, json={"value": "y"}, headers=headers)
    assert answer.status_code in (403, 421) and machine.sitters[0].orders == []
    await machine.stop()


async def test_a_secret_never_passes_the_fleet_server(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask(SECRET)
    (shown,) = await alice.sees(1)
    assert "Password" not in str(shown) and "hunter2" not in str(shown) and shown["constraints"]["secret"]
    told = await alice.decide(shown, "swordfish")
    assert told["reason"] == "secret" and sitter.orders == []
    dumped = str(await fleet_server.database.rows("SELECT * FROM prompts"))
    assert "Password" not in dumped and "hunter2" not in dumped
    kept = str(await fleet_server.database.rows("SELECT * FROM decisions")) + str(
        await fleet_server.database.rows("SELECT * FROM audit_entries")
    )
    assert "swordfish" not in kept
    await machine.stop()


async def test_a_session_kept_from_the_fleet_server_is_not_told_there(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    quiet, told = machine.sit(channels=()), machine.sit(channels=("server",))
    quiet.ask()
    told.ask()
    (shown,) = await alice.sees(1)
    await machine.told_all()
    assert shown["session_id"] == told.session_id
    assert quiet.session_id not in str(await fleet_server.database.rows("SELECT * FROM sessions, prompts"))
    await machine.stop()


async def test_another_fleet_server_at_the_same_address_is_not_believed(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    await machine.stop()
    machine.membership = replace(machine.membership, server_key=new_key())
    with pytest.raises(ChannelError):
        await dial(fleet_server, machine)
    with pytest.raises(ChannelError, match="another server"):
        await join(replace(await fleet_server.invite(), server_key=new_key()), "box", **PLAIN)


def test_a_program_inside_a_session_cannot_join_a_fleet_server() -> None:
    """No server is needed to see it refused: the hub is asked before anything else."""
    with hub_process() as hub:
        address = "http://127.0.0.1:9/#token.key"
        script = f"'{sys.executable}' -m atlasbridge join '{address}' > {hub.home.root}/said 2>&1; sleep 600"
        done = hub.cli("run", "--detach", "--", "bash", "-c", script)
        assert done.returncode == 0, done.stderr
        said = hub.home.root / "said"
        wait_for(lambda: said.exists() and "\natlasbridge: " in said.read_text())
        assert "cannot be reached" not in said.read_text() and not hub.home.membership.exists()
        outside = hub.cli("join", address)
        assert "cannot be reached" in outside.stderr and not hub.home.membership.exists()
        hub.cli("kill", done.stdout.split()[-1])
