"""The fleet's HTTP API: the hub's operations over all machines, tokens with scopes, logins one by one, and what only
administrators do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fleet import HubApi, Machine, new_machine, until

from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.operations import OFFERED
from atlasbridge.web.api import PREFIX, render_openapi


@asynccontextmanager
async def program(fleet_server: HubApi, person: str, scope: str, name: str = "ci") -> AsyncIterator[httpx.AsyncClient]:
    """Something with a token of that person."""
    token, _ = await people.add_token(fleet_server.database, person, name, scope, "test")
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=fleet_server.url + PREFIX, headers=headers, timeout=60) as client:
        yield client


async def open_prompts(client: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def there() -> bool:
        nonlocal found
        found = (await client.get("/prompts")).json()["prompts"]
        return len(found) == count

    await until(there)
    return found


async def test_a_program_answers_with_a_token_and_asks_what_became_of_it(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    await fleet_server.person("alice", machine="box")
    sitter = machine.sit(label="deploy")
    own_id = sitter.ask()
    async with program(fleet_server, "alice", "answer") as client:
        (shown,) = await open_prompts(client, 1)
        assert shown["prompt_id"] == f"{machine.membership.machine_id}.{own_id}"
        assert shown["excerpt"] == "Continue? (y/n)" and shown["type"] == "yes_no"
        assert shown["session"]["machine"] == "box" and shown["session"]["label"] == "deploy"
        answer = {"value": "y", "request_key": "k1", "session_id": shown["session_id"]}
        told = (await client.post(f"/prompts/{shown['prompt_id']}/reply", json=answer)).json()
        assert told["stage"] == "typed" and sitter.typed[own_id]["kind"] == "yes"
        again = (await client.post(f"/prompts/{shown['prompt_id']}/reply", json=answer)).json()
        assert again["stage"] == "typed" and sitter.orders == [own_id]  # the same key is the same answer
        outcome = (await client.get(f"/prompts/{shown['prompt_id']}/outcome", params={"request_key": "k1"})).json()
        assert outcome["arrived"] and not outcome["refused"]
        assert (await client.get(f"/prompts/{shown['prompt_id']}")).json()["state"] in ("injected", "resolved")
        (decided,) = (await client.get("/decisions")).json()["decisions"]
        assert decided["person"] == "alice" and decided["machine"] == "box" and decided["ok"]
        late = await client.post(f"/prompts/{shown['prompt_id']}/reply", json={"value": "n"})
        assert late.status_code == 409 and late.json()["error"] == "not_open"
        found = await fleet_server.database.rows("SELECT place FROM decisions")
        assert found[0]["place"] == "the API, ci"
    await machine.stop()


async def test_a_token_does_no_more_than_its_scope_and_its_person(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    await fleet_server.person("alice", "admin")
    await fleet_server.person("bert", machine="other*")
    machine.sit().ask()
    async with program(fleet_server, "alice", "read") as reader, program(fleet_server, "bert", "admin") as bert:
        (shown,) = await open_prompts(reader, 1)
        path = f"/prompts/{shown['prompt_id']}"
        refused = await reader.post(f"{path}/reply", json={"value": "y"})
        assert refused.status_code == 403 and refused.json()["error"] == "wrong_scope"
        assert (await reader.get("/people")).status_code == 403
        # bert's token says admin, and bert is none; and he sees nothing of this machine
        assert (await bert.get("/people")).status_code == 403
        assert (await bert.get("/prompts")).json()["prompts"] == []
        assert (await bert.get(path)).status_code == 404
        assert (await bert.post(f"{path}/reply", json={"value": "y"})).status_code == 404
        assert (await bert.get("/me")).json()["scope"] == "answer"
    await machine.stop()


async def test_a_token_is_listed_and_revoked_and_so_is_a_login(fleet_server: HubApi) -> None:
    alice, bert = await fleet_server.person("alice", "admin"), await fleet_server.person("bert")
    made = (await bert.post(f"{PREFIX}/tokens", name="ci", scope="answer")).json()
    assert made["token"].startswith("abf_")
    assert (await bert.post(f"{PREFIX}/tokens", name="more", scope="admin")).status_code == 403
    headers = {"authorization": f"Bearer {made['token']}"}
    async with httpx.AsyncClient(base_url=fleet_server.url + PREFIX, headers=headers) as client:
        assert (await client.get("/me")).json()["identity"] == "server:bert"
        assert [one["name"] for one in (await alice.get(f"{PREFIX}/tokens"))["tokens"]] == ["bert/ci"]
        assert (await alice.client.delete(f"{PREFIX}/tokens/{made['token_id']}")).json() == {"revoked": True}
        assert (await client.get("/me")).status_code == 401
    mine = (await bert.get(f"{PREFIX}/logins"))["logins"]
    assert [(one["person"], one["this"]) for one in mine] == [("bert", True)]
    everybody = (await alice.get(f"{PREFIX}/logins"))["logins"]
    assert {one["person"] for one in everybody} == {"alice", "bert"}
    hers = next(one["login_id"] for one in everybody if one["person"] == "alice")
    assert (await bert.client.delete(f"{PREFIX}/logins/{hers}")).status_code == 404  # not his to end
    assert (await alice.client.delete(f"{PREFIX}/logins/{mine[0]['login_id']}")).status_code == 200
    assert (await bert.get(f"{PREFIX}/me"))["status"] == 401
    assert (await alice.get(f"{PREFIX}/me"))["status"] == 200
    noted = await fleet_server.events()
    assert {"TOKEN_CREATED", "TOKEN_REVOKED", "LOGGED_OUT"} <= set(noted)


async def test_an_administrator_looks_after_the_fleet_over_the_api(fleet_server: HubApi, root: Path) -> None:
    await fleet_server.person("alice", "admin")
    machine = await new_machine(fleet_server, root)
    async with program(fleet_server, "alice", "admin") as admin:
        assert (await admin.post("/people", json={"name": "bert"})).json() == {"changed": True}
        link = (await admin.post("/people/link", json={"name": "bert"})).json()["url"]
        assert link.startswith(f"{fleet_server.url}/#login=")
        assert (await admin.post("/teams", json={"team": "backend", "person": "bert"})).json() == {"changed": True}
        right = {"holder": "@backend", "machine": "box", "folder": "/srv"}
        assert (await admin.post("/rights", json=right)).json() == {"changed": True}
        (bert,) = [one for one in (await admin.get("/people")).json()["people"] if one["name"] == "bert"]
        assert bert["teams"] == ["backend"] and bert["rights"][0]["folder"] == "/srv"
        nobody = await admin.post("/rights", json={"holder": "carl"})
        assert nobody.status_code == 409 and "no person named 'carl'" in nobody.json()["message"]
        address = (await admin.post("/invitations", json={"uses": 2})).json()["address"]
        assert address.startswith(fleet_server.url)
        (invitation,) = (await admin.get("/invitations")).json()["invitations"]
        assert invitation["uses_left"] == 2
        assert (await admin.delete(f"/invitations/{invitation['invitation_id']}")).json() == {"changed": True}
        assert (await admin.get("/invitations")).json()["invitations"] == []
        wrong = await admin.put("/rules", json={"text": "[[rule]]\nverdict = 'perhaps'\n"})
        assert wrong.status_code == 409
        text = '[[rule]]\nname = "no removal"\nverdict = "deny"\ncommand = ["rm", "**"]\n'
        digest = (await admin.put("/rules", json={"text": text})).json()["digest"]

        async def used() -> bool:
            (one,) = (await admin.get("/machines")).json()["machines"]
            return bool(one["rules"] == digest and not one["rules_fault"])

        await until(used)
        assert (await admin.get("/rules")).json()["text"] == text
        await _entries(admin, "RULES_SET")
        assert (await admin.request("POST", "/rights/remove", json=right)).json() == {"changed": True}
        assert (await admin.delete("/machines/box")).json() == {"changed": True}
        assert (await admin.get("/machines")).json()["machines"] == []
        assert (await admin.post("/people/remove", json={"name": "bert"})).json() == {"changed": True}
        assert (await admin.post("/people/remove", json={"name": "bert"})).status_code == 404
    await machine.stop()


async def _entries(admin: httpx.AsyncClient, event: str) -> None:
    async def noted() -> bool:
        return event in {one["event"] for one in (await admin.get("/audit")).json()["entries"]}

    await until(noted)


async def test_a_stranger_is_told_nothing_and_counted(fleet_server: HubApi) -> None:
    async with httpx.AsyncClient(base_url=fleet_server.url + PREFIX) as client:
        for headers in ({}, {"authorization": "Bearer abf_wrong"}, {"authorization": "Basic eDp5"}):
            answer = await client.get("/prompts", headers=headers)
            assert answer.status_code == 401 and answer.json()["error"] == "unauthorized"
        assert (await client.get("/health")).json()["status"] == "ok"
    assert "LOGIN_REFUSED" in await fleet_server.events()


async def test_a_browsers_cookie_is_no_token_and_a_token_is_no_cookie(fleet_server: HubApi) -> None:
    alice = await fleet_server.person("alice", "admin")
    cookie = alice.client.cookies["atlasbridge_server"]
    token, _ = await people.add_token(fleet_server.database, "alice", "ci", "read", "test")
    async with httpx.AsyncClient(base_url=fleet_server.url + PREFIX) as client:
        assert (await client.get("/me", headers={"authorization": f"Bearer {cookie}"})).status_code == 401
        assert (await client.get("/me", headers={"cookie": f"atlasbridge_server={token}"})).status_code == 401


async def test_the_document_has_every_operation_once(fleet_server: HubApi) -> None:
    async with httpx.AsyncClient(base_url=fleet_server.url + PREFIX) as client:
        document = (await client.get("/openapi.json")).json()
    listed = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(listed) == sorted((one.method, one.path) for one in OFFERED)
    names = [entry["operationId"] for methods in document["paths"].values() for entry in methods.values()]
    assert len(names) == len(set(names))


@pytest.fixture
async def machine(fleet_server: HubApi, root: Path) -> AsyncIterator[Machine]:
    found = await new_machine(fleet_server, root)
    yield found
    await found.stop()


async def test_sessions_are_listed_by_right(fleet_server: HubApi, machine: Machine) -> None:
    await fleet_server.person("alice", machine="box*", folder="/srv")
    machine.sit(cwd="/srv/api", label="api")
    machine.sit(cwd="/home/x", label="own")
    async with program(fleet_server, "alice", "read") as client:

        async def one() -> bool:
            return len((await client.get("/sessions")).json()["sessions"]) == 1

        await until(one)
        (shown,) = (await client.get("/sessions")).json()["sessions"]
        assert shown["label"] == "api" and shown["machine"] == "box"
        assert (await client.get(f"/sessions/{shown['session_id']}")).json()["label"] == "api"
        assert (await client.get("/sessions/x.y")).status_code == 404


def test_a_generator_finds_every_part_of_the_document() -> None:
    """What made generators leave types out: a list of nothing, a name that leads nowhere."""
    document = render_openapi(OFFERED)
    schemas = document["components"]["schemas"]

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            assert part.get("type") != "array" or part.get("items"), part
            assert "$ref" not in part or str(part["$ref"]).rpartition("/")[2] in schemas, part
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            walk(inner)

    walk(document)
    assert len(schemas) > 40
