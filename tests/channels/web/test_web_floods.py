"""Guesses, floods, oversized and odd input, hostile text, lazy connections: refused in words, and nothing breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.channels.web.conftest import bearer, log_in
from tests.support.fake_desk import FakeHub
from tests.support.raw_http import connect, raw
from tests.support.sample_prompt import HOSTILE, SECRET, YES_NO, hostile_prompt

from atlasbridge.channels.web import app as app_module
from atlasbridge.channels.web import server as server_module
from atlasbridge.core.clock import ManualClock

API = "/api/v1"
frozen = pytest.mark.parametrize("clock", [ManualClock()], ids=["frozen"])


@frozen
async def test_guessing_is_slowed_down_but_a_right_token_still_works(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    good = bearer(hub, "read")
    wrong = {"Authorization": "Bearer ab_00000000_guess"}
    statuses = [(await anyone.get(f"{API}/me", headers=wrong)).status_code for _ in range(14)]
    assert statuses == [401] * 10 + [429] * 4
    assert (await anyone.get(f"{API}/me", headers=good)).status_code == 200


@frozen
async def test_password_guesses_are_limited_and_then_even_the_right_one_waits(
    hub: FakeHub, anyone: httpx.AsyncClient
) -> None:
    hub.channel._site.access.set_password("correct horse battery")
    statuses = [(await anyone.post(f"{API}/login", json={"password": "guess"})).status_code for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    late = await anyone.post(f"{API}/login", json={"password": "correct horse battery"})
    assert late.status_code == 429


@frozen
async def test_a_flood_of_answers_is_limited(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    statuses = [(await page.post(path, json={"value": "nonsense"})).status_code for _ in range(62)]
    assert statuses == [422] * 60 + [429] * 2


async def test_a_secret_is_not_taken_over_an_open_wire(tmp_path: Path) -> None:
    hub = FakeHub(tmp_path, hosts=["box.tailnet.example"])
    await hub.start()
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        await log_in(hub, client)
        name = hub.channel._site.access.cookie_name
        cookie = f"{name}={client.cookies.get(name)}"
        record = await hub.raise_prompt(hub.desk.add_session(), SECRET)
        path = f"{API}/prompts/{record.prompt_id}/reply"
        through_proxy = {"Host": "box.tailnet.example", "Cookie": cookie}
        plain = await client.post(path, json={"value": "hunter2"}, headers=through_proxy)
        assert (plain.status_code, plain.json()["error"]) == (403, "not_private")
        assert hub.answered == []
        safe = {**through_proxy, "X-Forwarded-Proto": "https", "Origin": "https://box.tailnet.example"}
        assert (await client.post(path, json={"value": "hunter2"}, headers=safe)).status_code == 200
    await hub.stop()


async def test_a_login_over_an_open_wire_is_refused(tmp_path: Path) -> None:
    hub = FakeHub(tmp_path, hosts=["box.example"])
    await hub.start()
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        link = hub.channel._site.access.make_link("page", "admin")
        plain = await client.post(f"{API}/login", json={"link": link}, headers={"Host": "box.example"})
        assert plain.status_code == 403
        safe = {"Host": "box.example", "X-Forwarded-Proto": "https"}
        answer = await client.post(f"{API}/login", json={"link": link}, headers=safe)
        assert "Secure" in answer.headers["set-cookie"]
    await hub.stop()


async def test_a_large_body_is_refused_whether_it_says_its_length_or_not(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    said = await page.post(path, json={"value": "y" * 70_000})
    assert said.status_code == 413

    async def chunks() -> Any:
        for _ in range(40):
            yield b"y" * 4096

    unsaid = await page.post(path, content=chunks(), headers={"Content-Type": "application/json"})
    assert unsaid.status_code == 413
    assert hub.answered == []


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'"y"', b'{"value": 1}', b'{"value": "y", "nonce": "x"}', b'{"value": null}'),
        *(b"\xff", b"[" * 20_000, b'{"value": "\\ud800"}', b'{"as_text": true}', b'{"value": "' + b"y" * 9000 + b'"}'),
    ],
)
async def test_an_odd_body_is_refused_and_never_a_fault(hub: FakeHub, page: httpx.AsyncClient, body: bytes) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    answer = await page.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert hub.answered == []


@pytest.mark.parametrize(
    "path", ["/../access.py", "/%2e%2e/access.py", "/static/main.js", "//main.js", "/main.js/", "/..%5caccess.py"]
)
async def test_only_the_pages_own_files_are_served(hub: FakeHub, path: str) -> None:
    answer = await raw(hub, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert b" 404 " in answer.splitlines()[0]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_leaves_as_json_text_only(hub: FakeHub, page: httpx.AsyncClient, text: str) -> None:
    session = hub.desk.add_session(tool=text, cwd=f"/{text}", label=text)
    await hub.raise_prompt(session, hostile_prompt(text))
    for path in ("/prompts", "/history", "/sessions"):
        answer = await page.get(API + path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()
    async with page.stream("GET", f"{API}/events") as stream:
        async for line in stream.aiter_lines():
            assert json.loads(line.removeprefix("data: "))["prompts"][0]["excerpt"] == text
            break


async def test_direction_marks_and_control_bytes_become_visible(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.desk.add_session(cwd="/home/\u202egpj.exe", label="a\x1b[31mb\u200b")
    hub.desk.show(session.session_id, ["run \u202edaolnwod"])
    shown = (await page.get(f"{API}/sessions/{session.session_id}")).json()
    assert (shown["cwd"], shown["label"]) == ("/home/<U+202E>gpj.exe", "a^[[31mb<U+200B>")
    screen = (await page.get(f"{API}/sessions/{session.session_id}/screen")).json()
    assert screen["styled"][0][0][0] == "run <U+202E>daolnwod"


async def test_push_goes_to_known_services_only(hub: FakeHub, page: httpx.AsyncClient) -> None:
    keys = {"p256dh": "B" * 87, "auth": "a" * 22}
    for endpoint in (
        "http://fcm.googleapis.com/x", "https://evil.example/x", "https://fcm.googleapis.com.evil.example/",
        "https://127.0.0.1/x", "https://user@fcm.googleapis.com/x", "https://fcm.googleapis.com:8443/x",
        "https://evilnotify.windows.com/", "file:///etc/passwd", "https://[::1", "gopher://x.y.z",
    ):  # fmt: skip
        answer = await page.post(f"{API}/push/subscriptions", json={"endpoint": endpoint, "keys": keys})
        assert answer.status_code == 422, endpoint
    for endpoint in ("https://fcm.googleapis.com/fcm/send/x", "https://db5p.notify.windows.com/w/?token=x"):
        answer = await page.post(f"{API}/push/subscriptions", json={"endpoint": endpoint, "keys": keys})
        assert answer.status_code == 200, endpoint


async def test_reports_cannot_fill_the_disk(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    folder = hub.desk.home / "reports"
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number}.json").write_text("{}")
    answer = await page.post(f"{API}/prompts/{record.prompt_id}/report", json={})
    assert answer.status_code == 503
    assert len(list(folder.iterdir())) == 1000


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: loc", b"POST /api/v1/login HTTP/1.1\r\nX: "])
async def test_a_connection_that_says_nothing_more_is_closed(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(server_module, "PATIENCE_S", 0.2)
    reader, writer = await connect(hub)
    writer.write(begun)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()


async def test_a_body_that_never_ends_is_given_up(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "BODY_TIMEOUT_S", 0.2)
    head = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
    answer = await raw(hub, head + b"Connection: close\r\n\r\n{")
    assert b" 422 " in answer.splitlines()[0]


async def test_many_idle_connections_leave_room_for_a_real_one(
    hub: FakeHub, anyone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(server_module, "PATIENCE_S", 0.5)
    crowd = [await connect(hub) for _ in range(60)]
    async with asyncio.timeout(30):
        ends = await asyncio.gather(*(reader.read() for reader, _ in crowd), return_exceptions=True)
    assert {end for end in ends if isinstance(end, bytes)} <= {b""}
    assert (await anyone.get(f"{API}/health")).status_code == 200
    for _, writer in crowd:
        writer.close()
