"""Push messages of a fleet server: to whom, once, and taken back when the prompt is settled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_push import PushService, Subscriber
from tests.support.fleet import HubApi, Visitor, fleet_server_on, new_machine, until
from tests.support.waiting import DEADLINE_S

from atlasbridge.fleet.server import people

API = "/api/v1"


@pytest.fixture
async def service(fleet_server: HubApi) -> AsyncIterator[PushService]:
    running = PushService()
    runner = await running.start()
    fleet_server.context.push.hosts = (f"127.0.0.1:{running.port}",)
    yield running
    await runner.cleanup()


async def subscribe(visitor: Visitor, service: PushService, name: str = "phone") -> Subscriber:
    phone = Subscriber(service, name)
    assert (await visitor.get(f"{API}/push"))["available"] is True
    answer = await visitor.client.post(f"{API}/push/subscriptions", json=phone.to_json())
    assert answer.json() == {"subscribed": True}, answer.text
    return phone


async def received(service: PushService, phone: Subscriber) -> dict[str, Any]:
    _, body = await asyncio.wait_for(service.received.get(), DEADLINE_S)
    return phone.open(body)


async def nothing_comes(fleet_server: HubApi, service: PushService) -> bool:
    await fleet_server.context.push.look()
    await asyncio.wait_for(fleet_server.context.push.idle(), DEADLINE_S)
    return service.received.empty()


async def test_a_prompt_of_a_machine_reaches_a_phone_once_and_is_taken_back(
    fleet_server: HubApi, service: PushService, root: Path, database: str
) -> None:
    machine = await new_machine(fleet_server, root, "one")
    alice = await fleet_server.person("alice", "admin")
    async with fleet_server_on(database) as other:
        other.context.push.hosts = fleet_server.context.push.hosts
        phone = await subscribe(alice, service)
        sitter = machine.sit(label="deploy")
        prompt_id = sitter.ask()
        message = await received(service, phone)
        here = f"{machine.membership.machine_id}.{prompt_id}"
        assert (message["title"], message["body"]) == ("one: deploy asks", "Continue? (y/n)")
        assert (message["tag"], message["url"]) == (here, f"/#prompt/{here}")
        assert [one["value"] for one in message["actions"]] == ["n", "y"]
        assert await nothing_comes(fleet_server, service) and await nothing_comes(other, service)
        shown = (await alice.sees(1))[0]
        assert (await alice.decide(shown, "y"))["accepted"] is True
        message = await received(service, phone)
        assert (message["kind"], message["tag"]) == ("settled", here)
        assert await nothing_comes(fleet_server, service) and await nothing_comes(other, service)
    await machine.stop()


async def test_only_a_person_who_is_allowed_to_answer_is_told(
    fleet_server: HubApi, service: PushService, root: Path
) -> None:
    machine = await new_machine(fleet_server, root, "one")
    seeing = await fleet_server.person("sees", machine="one", may="see")
    elsewhere = await fleet_server.person("elsewhere", machine="one", folder="/etc")
    answering = await fleet_server.person("answers", machine="one", folder="/srv")
    for visitor, name in ((seeing, "sees"), (elsewhere, "elsewhere")):
        await subscribe(visitor, service, name)
    phone = await subscribe(answering, service, "answers")
    machine.sit(cwd="/srv/app").ask()
    assert (await received(service, phone))["kind"] == "ask"
    assert await nothing_comes(fleet_server, service)
    await machine.stop()


async def test_a_subscription_ends_with_its_login_and_with_its_browser(
    fleet_server: HubApi, service: PushService, root: Path
) -> None:
    machine = await new_machine(fleet_server, root, "one")
    alice, bert = await fleet_server.person("alice", "admin"), await fleet_server.person("bert", "admin")
    carl = await fleet_server.person("carl", "admin")
    for visitor, name in ((alice, "alice"), (bert, "bert"), (carl, "carl")):
        await subscribe(visitor, service, name)
    await alice.post(f"{API}/logout")
    gone = await bert.client.request("DELETE", f"{API}/push/subscriptions", json=Subscriber(service, "bert").to_json())
    assert gone.status_code == 422  # only the address is asked for
    endpoint = Subscriber(service, "bert").endpoint
    gone = await bert.client.request("DELETE", f"{API}/push/subscriptions", json={"endpoint": endpoint})
    assert gone.json() == {"removed": True}
    service.status = 410  # carl's browser has thrown its subscription away
    machine.sit().ask()
    await asyncio.wait_for(service.received.get(), DEADLINE_S)

    async def forgotten() -> bool:
        await fleet_server.context.push.look()
        return not await fleet_server.database.rows("SELECT 1 FROM push_subscriptions")

    await until(forgotten)
    assert service.received.empty()
    await machine.stop()


async def test_an_address_of_no_push_service_and_a_program_are_refused(
    fleet_server: HubApi, service: PushService
) -> None:
    alice = await fleet_server.person("alice", "admin")
    phone = Subscriber(service)
    phone.endpoint = "https://internal.example/send"
    answer = await alice.client.post(f"{API}/push/subscriptions", json=phone.to_json())
    assert (answer.status_code, answer.json()["error"]) == (422, "bad_value")
    token, _ = await people.add_token(fleet_server.database, "alice", "ci", "answer", "alice")
    bearer = {"Authorization": f"Bearer {token}"}
    phone = Subscriber(service)
    answer = await alice.client.post(f"{API}/push/subscriptions", json=phone.to_json(), headers=bearer)
    assert answer.json()["error"] == "no_device"


async def test_in_quiet_hours_a_phone_is_told_without_a_sound(
    fleet_server: HubApi, service: PushService, root: Path
) -> None:
    machine = await new_machine(fleet_server, root, "one")
    alice = await fleet_server.person("alice", "admin")
    await people.set_quiet(fleet_server.database, "alice", ("00:00-23:59",), "UTC", "alice")
    phone = await subscribe(alice, service)
    machine.sit().ask()
    headers, body = await asyncio.wait_for(service.received.get(), DEADLINE_S)
    assert headers["Urgency"] == "low" and phone.open(body)["silent"] is True
    await machine.stop()
