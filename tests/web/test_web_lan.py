"""The page on the local network: only when asked for, only with TLS, with a login."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
from tests.support.fake_hub_api import FakeHub
from tests.support.page_client import Signed, enter
from tests.support.sample_prompt import SECRET

from atlasbridge.web import server as page_server

API = "/api/v1"
NAMES = ["127.0.0.1", "box.local"]


async def lan_hub(tmp_path: Path) -> FakeHub:
    hub = FakeHub(tmp_path, lan=True, lan_host="127.0.0.1", lan_port=0, lan_names=NAMES)
    await hub.start()
    return hub


def lan_client(hub: FakeHub, tmp_path: Path) -> httpx.AsyncClient:
    """Trusts the certificate that the hub made, and nothing else."""
    trust = ssl.create_default_context(cafile=str(tmp_path / "web-cert.pem"))
    return httpx.AsyncClient(base_url=hub.channel.site.urls["lan"], verify=trust, timeout=60)


async def test_the_lan_is_off_unless_asked_for(hub: FakeHub) -> None:
    assert list(hub.channel.site.urls) == ["local"]
    assert [place.name for place in hub.channel.places] == ["local", "tunnel"]


async def test_a_certificate_is_made_and_the_password_lets_in(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    hub.channel.site.access.set_password("correct horse battery")
    async with lan_client(hub, tmp_path) as client:
        assert (await client.get(f"{API}/prompts")).status_code == 401
        answer = await client.post(f"{API}/login", json={"password": "correct horse battery"})
        assert answer.status_code == 200
        given = answer.json()
        client.auth = Signed(given["login_id"], bytes.fromhex(given["key"]), hub.channel.site.access.epoch)
        record = await hub.raise_prompt(hub.hub_api.add_session(), SECRET)
        typed = await client.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "hunter2", "as_text": True})
        assert typed.status_code == 200
    assert (tmp_path / "web-key.pem").stat().st_mode & 0o777 == 0o600
    assert hub.answered[0][2] == "web:page"
    await hub.stop()


async def test_the_lan_speaks_nothing_but_tls(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    plain = hub.channel.site.urls["lan"].replace("https:", "http:")
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"{plain}{API}/health")
    await hub.stop()


async def test_a_cookie_of_the_lan_goes_over_tls_only(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    async with lan_client(hub, tmp_path) as client:
        link = hub.channel.site.access.make_link("page", "admin")
        answer = await enter(client, link, headers={"Host": "box.local"})
        assert "Secure" in answer.headers["set-cookie"]
        assert (await client.get(f"{API}/health", headers={"Host": "other.local"})).status_code == 421
    await hub.stop()


async def test_connections_that_never_shake_hands_cost_little_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "GREETING_S", 1.0)
    hub = await lan_hub(tmp_path)
    port = int(hub.channel.site.urls["lan"].rpartition(":")[2])
    before = resident()
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(600)]
    hello = bytes.fromhex("1603010200")  # the beginning of a handshake, and no more
    for _, writer in silent[::2]:
        writer.write(hello)
    await asyncio.sleep(0)
    (lan,) = [place.listener for place in hub.channel.places if place.name == "lan"]
    assert lan is not None and lan._acceptor is not None
    assert len(lan._acceptor._greetings) <= 64
    assert resident() - before < 60_000, "kilobytes"
    async with lan_client(hub, tmp_path) as client:
        while True:
            try:
                assert (await client.get(f"{API}/health")).status_code == 200
                break
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    for _, writer in silent:
        writer.close()
    await hub.stop()


def resident() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Rss")))


async def test_password_guesses_are_limited_and_a_link_still_opens(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    hub.channel.site.access.set_password("correct horse battery")
    hub.channel.site.access.enter = no_match  # type: ignore[method-assign]
    async with lan_client(hub, tmp_path) as client:
        statuses = [(await client.post(f"{API}/login", json={"password": "guess"})).status_code for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        link = hub.channel.site.access.make_link("", "answer")
        assert (await enter(client, link)).status_code == 200
    await hub.stop()


async def no_match(password: str, agent: str) -> None:
    """As a wrong password, without its half second."""


async def test_the_password_is_not_taken_without_tls(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    hub.channel.site.access.set_password("correct horse battery")
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        answer = await client.post(f"{API}/login", json={"password": "correct horse battery"})
        assert (answer.status_code, answer.json()["error"]) == (403, "not_private")
    await hub.stop()


async def test_a_page_that_is_closed_while_it_opens_leaves_its_port(tmp_path: Path) -> None:
    """Two reloads one after the other: the second ends the page that the first has not finished opening."""

    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("nobody asks for a page")

    place = page_server.Place("local", app, "127.0.0.1", 0, "localhost", ("", ""), also="::1")
    opening = asyncio.create_task(place.open())
    while not place.port:
        await asyncio.sleep(0)
    assert not opening.done()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await place.close()
    page_server.bind("127.0.0.1", place.port).close()
