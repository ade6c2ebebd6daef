"""The page and the hub know each other: what somebody gains who takes the page's port, reads its disk, or guesses."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fake_host import SECRET, FakeHost
from tests.support.fake_hub_api import FakeHub
from tests.support.hubs import HubProcess, hub_process
from tests.support.page_client import API, LinkLogin, enter, enter_now, greet, signer
from tests.support.sample_prompt import MENU, YES_NO
from tests.support.waiting import until, wait_for, written
from tests.web.conftest import bearer, log_in

from atlasbridge.core.clock import ManualClock
from atlasbridge.web import channel as channel_module
from atlasbridge.web.access import proof

frozen = pytest.mark.parametrize("clock", [ManualClock()], ids=["frozen"])


@pytest.fixture
def clock() -> Any:
    from atlasbridge.core.clock import SystemClock

    return SystemClock()


@pytest.fixture
async def hub(tmp_path: Path, clock: Any) -> Any:
    running = FakeHub(tmp_path, clock)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def page(hub: FakeHub) -> Any:
    async with httpx.AsyncClient(base_url=hub.channel.url, timeout=30) as client:
        await log_in(hub, client)
        yield client


def squat(port: int) -> socket.socket:
    """Another user's program on the page's port."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken


async def test_what_a_page_sent_to_somebody_on_its_port_opens_nothing_afterwards(
    hub: FakeHub, page: httpx.AsyncClient
) -> None:
    """All that an open page can have sent: its cookie, and a request that it signed for the hub as it was."""
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    body = json.dumps({"value": "y"}).encode()
    name = hub.channel.site.access.cookie_name
    stolen = {
        "Cookie": f"{name}={page.cookies.get(name)}",
        "X-AtlasBridge-Proof": signer(page).header("POST", path, body),
        "Content-Type": "application/json",
    }
    await hub.restart()
    async with httpx.AsyncClient(base_url=hub.channel.url) as thief:
        for headers in (stolen, {key: value for key, value in stolen.items() if "Proof" not in key}):
            assert (await thief.post(path, content=body, headers=headers)).status_code == 401
        assert hub.answered == []
    await greet(page)
    assert (await page.post(path, json={"value": "n"})).status_code == 200


async def test_a_signed_request_is_good_for_itself_and_no_other(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    signed = signer(page)
    json_type = {"Content-Type": "application/json"}
    for method, target, meant in (
        ("POST", path, b'{"value":"n"}'),
        ("PUT", path, b'{"value":"y"}'),
        ("POST", f"{API}/logout", b'{"value":"y"}'),
        ("POST", f"{path}?x=1", b'{"value":"y"}'),
    ):
        headers = {"X-AtlasBridge-Proof": signed.header(method, target, meant), **json_type}
        answer = await page.post(path, content=b'{"value":"y"}', headers=headers)
        assert answer.status_code == 401, (method, target, meant)
    assert hub.answered == []


async def test_a_program_on_the_port_cannot_prove_that_it_is_the_hub(hub: FakeHub, page: httpx.AsyncClient) -> None:
    """It has seen every proof that the hub ever gave, and the page's cookie; a new challenge finds it out."""
    login_id = signer(page).login_id
    seen = (await page.get(f"{API}/hello", params={"who": login_id, "challenge": "old"})).json()
    fresh = (await page.get(f"{API}/hello", params={"who": login_id, "challenge": "new"})).json()
    assert seen["proof"] != fresh["proof"]
    assert fresh["proof"] == proof(signer(page).key, "hub", "new", fresh["epoch"], login_id)
    async with httpx.AsyncClient(base_url=hub.channel.url) as nobody:
        unknown = await nobody.get(f"{API}/hello", params={"who": login_id, "challenge": "new"})
        assert unknown.status_code == 401


async def test_the_stream_begins_with_a_proof(hub: FakeHub, page: httpx.AsyncClient) -> None:
    async with page.stream("GET", f"{API}/events", headers={"X-AtlasBridge-Challenge": "tell me"}) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                first = json.loads(line[6:])
                break
    signed = signer(page)
    assert first["proof"] == proof(signed.key, "hub", "tell me", signed.epoch, signed.login_id)


async def test_a_links_key_is_never_sent_and_a_spy_of_the_login_cannot_use_it(hub: FakeHub) -> None:
    link = hub.channel.site.access.make_link("", "answer")
    login = LinkLogin(link)
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        greeted = (await client.get(f"{API}/hello", params=login.greeting)).json()
        sent = login.body(greeted)
        assert login.key.hex() not in json.dumps(sent) + json.dumps(greeted)
        spoilt = {**sent, "proof": "0" * 64}
        assert (await client.post(f"{API}/login", json=spoilt)).status_code == 401
        assert (await client.post(f"{API}/login", json=sent)).status_code == 200, "a wrong try must not use it up"


async def test_a_page_that_came_in_at_a_port_that_is_no_longer_ours_is_turned_away(tmp_path: Path) -> None:
    """Anyone who has the old port now could pass on what the page sends there."""
    hub = FakeHub(tmp_path)
    await hub.start()
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        await log_in(hub, client)
        await hub.stop()
        with squat(0) as free:
            other = free.getsockname()[1]
        hub.settings["port"] = other  # a person moved the page
        await hub.restart_after_stop()
        client.base_url = httpx.URL(hub.channel.url)
        signed = signer(client)
        hello = await client.get(f"{API}/hello", params={"who": signed.login_id, "challenge": "x"})
        assert hello.status_code == 401, "no proof either, that somebody could pass on"
        signed.epoch = hub.channel.site.access.epoch
        assert (await client.get(f"{API}/me")).status_code == 401
    await hub.stop()


async def test_a_taken_port_is_an_alarm_and_the_page_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "LOOK_AGAIN_S", 0.05)
    hub = FakeHub(tmp_path)
    await hub.start()
    url = hub.channel.url
    await hub.stop()
    port = int(url.rpartition(":")[2])
    with squat(port):
        await hub.restart_after_stop()
        assert hub.channel.url == ""
        report = hub.channel.health()
        assert report["state"] == "alarm" and str(port) in report["fault"]
        assert any(str(port) in told for told in hub.hub_api.told)
        assert [entry["port"] for entry in hub.hub_api.audit if entry["event"] == "WEB_PORT_TAKEN"] == [port]
        assert not (tmp_path / "web.json").exists()
    await until(lambda: hub.channel.url == url, "the port")
    assert hub.channel.health()["state"] == "ok"
    assert "back" in hub.hub_api.told[-1]
    await hub.stop()


@frozen
async def test_guesses_of_another_lock_nobody_out(hub: FakeHub, page: httpx.AsyncClient) -> None:
    token = bearer(hub, "read")
    async with httpx.AsyncClient(base_url=hub.channel.url) as stranger:
        for _ in range(30):
            await stranger.get(f"{API}/me", headers={"Authorization": "Bearer ab_00000000_guess"})
            await stranger.post(f"{API}/login", json={"link": "nothing", "challenge": "x", "epoch": "y", "proof": "z"})
        refused = await stranger.get(f"{API}/me", headers={"Authorization": "Bearer ab_00000000_guess"})
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
        assert (await stranger.get(f"{API}/me", headers=token)).status_code == 200
        fresh = hub.channel.site.access.make_link("", "answer")
        assert (await enter(stranger, fresh)).status_code == 200
    assert (await page.get(f"{API}/me")).status_code == 200


async def test_each_browser_has_a_name_and_ends_alone(hub: FakeHub, page: httpx.AsyncClient) -> None:
    phone = {"User-Agent": "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/131.0 Mobile Safari/537.36"}
    clients = [httpx.AsyncClient(base_url=hub.channel.url, headers=phone) for _ in range(2)]
    for client in clients:
        assert (await enter(client, hub.channel.site.access.make_link("", "answer"))).status_code == 200
    devices = (await page.get(f"{API}/devices")).json()["devices"]
    assert [item["name"] for item in devices] == ["page", "Chrome on Android", "Chrome on Android 2"]
    assert [item["this"] for item in devices] == [True, False, False]
    renamed = await clients[0].put(f"{API}/me", json={"name": "Ada's phone"})
    assert renamed.json()["name"] == "Adas phone"
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    given = await clients[0].post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "3"})
    answer = given.json()["prompt"]["answer"]
    assert (answer["by"], answer["label"], answer["value"]) == ("web:Adas phone", "No", "3")
    assert (await clients[0].get(f"{API}/devices")).status_code == 403
    assert (await page.delete(f"{API}/devices/{devices[1]['login_id']}")).json() == {"ended": True}
    assert [(await client.get(f"{API}/me")).status_code for client in clients] == [401, 200]
    names = [entry["event"] for entry in hub.hub_api.audit]
    assert {"WEB_LOGIN", "WEB_RENAMED", "WEB_LOGOUT"} <= set(names)
    for client in clients:
        await client.aclose()


@pytest.fixture
def real() -> Any:
    with hub_process("[channels.web]\nport = 0\n") as running:
        yield running


def test_a_link_answers_and_nothing_more_unless_asked(real: HubProcess) -> None:
    link = real.json("web", "--no-open")["links"]["local"]
    with httpx.Client(base_url=link.partition("/#")[0]) as client:
        assert enter_now(client, link).json()["scope"] == "answer"
    (device,) = real.json("web", "devices")
    assert (device["name"], device["scope"]) == ("page", "answer")
    assert real.cli("web", "rename", "page", "hub").returncode == 0
    assert real.cli("web", "revoke", "hub").returncode == 0
    assert real.json("web", "devices") == []
    assert real.cli("web", "revoke", "hub").returncode == 1


def test_nothing_in_the_home_folder_lets_a_process_in(real: HubProcess) -> None:
    """Every word of every file, tried as a token and as a link."""
    link = real.json("web", "--no-open")["links"]["local"]
    url = link.partition("/#")[0]
    with httpx.Client(base_url=url) as client:
        enter_now(client, link)
    found: set[str] = set()
    for path in real.home.root.rglob("*"):
        if path.is_file():
            found |= set(_words(path.read_bytes()))
    with httpx.Client(base_url=url) as thief:
        for word in found:
            assert thief.get(f"{API}/me", headers={"Authorization": f"Bearer {word}"}).status_code in (401, 429)
            hello = thief.get(f"{API}/hello", params={"who": word[:64], "challenge": "x"})
            assert hello.status_code == 401, word


def _words(content: bytes) -> list[str]:
    import re

    return [word.decode() for word in re.findall(rb"[A-Za-z0-9_.-]{12,200}", content)]


def test_a_password_prompt_whose_time_is_over_is_asked_again(real: HubProcess) -> None:
    shown = real.json("web", "--no-open")
    with httpx.Client(base_url=shown["url"], timeout=30) as client, FakeHost(real.home, ttl_s=0.2) as host:
        enter_now(client, shown["links"]["local"])
        prompt_id = host.raise_prompt(SECRET)
        wait_for(lambda: client.get(f"{API}/prompts/{prompt_id}").json().get("state") == "expired")
        with ThreadPoolExecutor(1) as elsewhere:
            asked = elsewhere.submit(client.post, f"{API}/prompts/{prompt_id}/again")
            assert host.hear("renew")["prompt_id"] == prompt_id
            host.raise_prompt(SECRET)
            again = asked.result()
        assert again.status_code == 200, again.text


def test_a_password_is_not_given_to_whoever_has_a_dead_hubs_port(real: HubProcess) -> None:
    record = json.loads(written(real.home.root / "web.json"))
    real.kill_9()
    with squat(record["port"]) as stranger:
        stranger.settimeout(0.5)
        secret = "correct horse battery\n"
        done = real.cli("web", "--set-password", given=secret * 2)
        with pytest.raises(TimeoutError):
            stranger.accept()
        status = real.json("hub", "status")
        (web,) = [item for item in status["channels"] if item["name"] == "web"]
        assert web["state"] == "alarm" and str(record["port"]) in web["fault"]
        refused = real.cli("web", "--no-open")
        assert refused.returncode == 1 and "another program listens" in refused.stderr
    assert done.returncode == 0, done.stderr
