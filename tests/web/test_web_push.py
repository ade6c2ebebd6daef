"""Web Push as far as a machine without internet allows: a push service on loopback and a browser's half of the keys."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import http_ece
import httpx
import pytest
from aiohttp import web
from py_vapid import Vapid02
from tests.support.fake_hub_api import FakeHub
from tests.support.fake_push import PushService, Subscriber
from tests.support.page_client import signer
from tests.support.sample_prompt import MENU, SECRET
from tests.support.waiting import until
from tests.web.conftest import log_in

from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.values import replace
from atlasbridge.web.push import is_known_service
from atlasbridge.web.settings import PUSH_SERVICES

API = "/api/v1"


async def serve(tmp_path: Path) -> tuple[FakeHub, PushService, web.AppRunner, httpx.AsyncClient]:
    service = PushService()
    runner = await service.start()
    hub = FakeHub(tmp_path, push_hosts=[f"127.0.0.1:{service.port}"])
    await hub.start()
    client = httpx.AsyncClient(base_url=hub.channel.url, timeout=60, verify=False)
    await log_in(hub, client)
    return hub, service, runner, client


async def stop(hub: FakeHub, runner: web.AppRunner, client: httpx.AsyncClient) -> None:
    await client.aclose()
    await hub.stop()
    await runner.cleanup()


async def test_a_prompt_reaches_a_sleeping_phone_encrypted_and_signed(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    offered = (await client.get(f"{API}/push")).json()
    assert offered["available"] is True
    assert (await client.post(f"{API}/push/subscriptions", json=phone.to_json())).status_code == 200
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    headers, body = await service.received.get()
    message = phone.open(body)
    assert (message["title"], message["body"]) == ("claude asks", "Do you want to proceed?")
    assert message["url"] == f"/#prompt/{record.prompt_id}"
    assert [(item["action"], item["value"]) for item in message["actions"]] == [("refuse", "3"), ("agree", "1")]
    assert (headers["Urgency"], headers["Topic"]) == ("high", record.prompt_id.replace("-", "")[:32])
    assert 500 < int(headers["TTL"]) <= 600
    assert b"proceed" not in body
    scheme, _, claim = headers["Authorization"].partition(" ")
    assert scheme == "vapid"
    assert Vapid02.verify(headers["Authorization"])
    assert offered["public_key"] in claim
    key_file = tmp_path / "web-push.pem"
    assert key_file.stat().st_mode & 0o777 == 0o600
    await stop(hub, runner, client)


async def test_a_subscription_that_is_gone_is_forgotten_and_a_secret_is_not_quoted(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    service.status = 410
    await hub.raise_prompt(hub.hub_api.add_session(), SECRET)
    _, body = await service.received.get()
    message = phone.open(body)
    assert (message["body"], message["actions"]) == ("It asks for a secret.", [])
    await until(lambda: hub.hub_api.notes["web.push"] == "[]", "the device to be forgotten")
    await stop(hub, runner, client)


async def test_a_push_service_that_is_away_keeps_nobody_waiting(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    await client.post(f"{API}/push/subscriptions", json=Subscriber(service).to_json())
    await runner.cleanup()
    async with asyncio.timeout(20):
        record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
        answer = await client.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "1"})
    assert answer.status_code == 200
    await stop(hub, runner, client)


async def test_a_browser_can_take_its_subscription_back(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    answer = await client.request("DELETE", f"{API}/push/subscriptions", json={"endpoint": phone.endpoint})
    assert answer.json() == {"removed": True}
    assert hub.hub_api.notes["web.push"] == "[]"
    await stop(hub, runner, client)


async def test_what_is_settled_is_taken_back_from_the_phone(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    await service.received.get()
    await client.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "3"})
    headers, body = await service.received.get()
    message = phone.open(body)
    assert (message["kind"], message["tag"]) == ("settled", record.prompt_id)
    assert headers["Urgency"] == "low"
    await stop(hub, runner, client)


async def test_agreeing_is_not_offered_where_the_message_does_not_show_everything(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    await hub.raise_prompt(hub.hub_api.add_session(), replace(MENU, excerpt="echo " + "x" * 600 + "; rm -rf ~"))
    _, body = await service.received.get()
    message = phone.open(body)
    assert "more characters" in message["body"]
    assert [item["action"] for item in message["actions"]] == ["refuse"]
    await stop(hub, runner, client)


async def test_a_hundred_and_fifty_prompts_at_once_are_told_and_the_hub_goes_on_answering(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phones = [Subscriber(service, f"phone-{number}") for number in range(4)]
    for phone in phones:
        await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    session = hub.hub_api.add_session()
    before = threading.active_count()
    for _ in range(150):
        await hub.raise_prompt(session, MENU)
    assert (await client.get(f"{API}/prompts")).status_code == 200
    told: dict[str, int] = {}
    while sum(told.values()) < 4 * 150:
        _, body = await service.received.get()
        message = next(opened for opened in (_try(phone, body) for phone in phones) if opened)
        count = int(message["title"].split()[0]) if "programs" in message["title"] else 1
        told[message["phone"]] = told.get(message["phone"], 0) + count
    assert set(told.values()) == {150}
    assert threading.active_count() <= before + 4, "no thread for each of them"
    assert multiprocessing.active_children() == []
    await stop(hub, runner, client)


def _try(phone: Subscriber, body: bytes) -> dict[str, Any] | None:
    try:
        return {**phone.open(body), "phone": phone.endpoint}
    except http_ece.ECEException:
        return None


@pytest.mark.parametrize("way", ["log-out", "revoke", "everybody", "time"])
async def test_a_subscription_ends_with_its_login(tmp_path: Path, way: str) -> None:
    hub, service, runner, client = await serve(tmp_path)
    await client.post(f"{API}/push/subscriptions", json=Subscriber(service).to_json())
    login_id = signer(client).login_id
    if way == "log-out":
        await client.post(f"{API}/logout")
    elif way == "revoke":
        await client.delete(f"{API}/devices/{login_id}")
    elif way == "everybody":
        await client.delete(f"{API}/logins")
    else:
        devices = hub.channel.site.access.devices
        devices._known[login_id] = dataclasses.replace(devices._known[login_id], until=0.0)
        devices.all()
    assert json.loads(hub.hub_api.notes["web.push"]) == []
    await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(service.received.get(), 0.5)
    await stop(hub, runner, client)


async def test_a_redirect_of_a_push_service_is_not_followed(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    service.status = 307
    service.location = f"http://127.0.0.1:{service.port}/send/internal"
    await client.post(f"{API}/push/subscriptions", json=Subscriber(service).to_json())
    await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    await service.received.get()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(service.received.get(), 0.5)
    await stop(hub, runner, client)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://evil.example\\.notify.windows.com/x", "https://fcm.googleapis.com:99999/x", "https://fcm.googleapis.com:x/",
        "https://fcm.googleapis.com@evil.example/", "https://evil.example#@fcm.googleapis.com/", "https://fcm.googleapis.com\n/",
        "https://fcm.googleapis.com%2f@evil.example/", "//fcm.googleapis.com/x", "https:fcm.googleapis.com/x", "https:///x",
        "https://evil.example?.notify.windows.com/", "https://.notify.windows.com/", "https://a_b.notify.windows.com/",
        "https://fcm.googleapis.com./x", "https://\u0130.notify.windows.com/x", "HTTP://fcm.googleapis.com/x",
    ],
)  # fmt: skip
def test_an_endpoint_is_read_as_the_sender_will_read_it(endpoint: str) -> None:
    assert is_known_service(endpoint, PUSH_SERVICES) is False


async def test_who_types_at_the_terminal_is_pushed_to_only_if_it_still_waits_then(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    hub.hub_api.holds = [0.05, 0.05, 0.0, 30.0]  # looked at again and again; then of the second prompt
    first = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    _, body = await service.received.get()
    assert phone.open(body)["tag"] == first.prompt_id and hub.hub_api.holds == [30.0]
    second = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    await hub.move(second, PromptState.WITHDRAWN, Receipt("withdrawn", "It was answered at the terminal."))
    await hub.move(first, PromptState.WITHDRAWN, Receipt("withdrawn", "It was answered at the terminal."))
    _, body = await service.received.get()
    assert phone.open(body)["tag"] == first.prompt_id, "of the second nobody was told, so nothing is taken back"
    assert service.received.empty()
    await stop(hub, runner, client)


async def test_who_sleeps_is_pushed_to_without_a_sound(tmp_path: Path) -> None:
    hub, service, runner, client = await serve(tmp_path)
    phone = Subscriber(service)
    await client.post(f"{API}/push/subscriptions", json=phone.to_json())
    hub.hub_api.sleepers = {"web:page"}
    await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    headers, body = await service.received.get()
    assert headers["Urgency"] == "low" and phone.open(body)["silent"] is True
    await stop(hub, runner, client)
