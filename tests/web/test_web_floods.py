"""Guesses, floods, oversized and odd input, hostile text, lazy connections: refused in words, and nothing breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fake_hub_api import FakeHub
from tests.support.page_client import enter
from tests.support.raw_http import connect, raw
from tests.support.sample_prompt import HOSTILE, SECRET, YES_NO, hostile_prompt
from tests.web.conftest import bearer, log_in

from atlasbridge.core.clock import ManualClock
from atlasbridge.web import api as api_module
from atlasbridge.web import server as server_module

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
async def test_a_flood_of_answers_is_limited(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    statuses = [(await page.post(path, json={"value": "nonsense"})).status_code for _ in range(62)]
    assert statuses == [422] * 60 + [429] * 2


async def test_a_secret_is_not_taken_over_an_open_wire(tmp_path: Path) -> None:
    hub = FakeHub(tmp_path, hosts=["box.tailnet.example"])
    await hub.start()
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        await log_in(hub, client)
        name = hub.channel.site.access.cookie_name
        cookie = f"{name}={client.cookies.get(name)}"
        record = await hub.raise_prompt(hub.hub_api.add_session(), SECRET)
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
        link = hub.channel.site.access.make_link("page", "admin")
        plain = await enter(client, link, headers={"Host": "box.example"})
        assert plain.status_code == 403
        safe = {"Host": "box.example", "X-Forwarded-Proto": "https"}
        answer = await enter(client, link, headers=safe)
        assert "Secure" in answer.headers["set-cookie"]
    await hub.stop()


async def test_a_large_body_is_refused_whether_it_says_its_length_or_not(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
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
    session = hub.hub_api.add_session(tool=text, cwd=f"/{text}", label=text)
    await hub.raise_prompt(session, hostile_prompt(text))
    for path in ("/prompts", "/history", "/sessions"):
        answer = await page.get(API + path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()
    async with page.stream("GET", f"{API}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                assert json.loads(line.removeprefix("data: "))["prompts"][0]["excerpt"] == text
                break


async def test_direction_marks_and_control_bytes_become_visible(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session(cwd="/home/\u202egpj.exe", label="a\x1b[31mb\u200b")
    hub.hub_api.show(session.session_id, ["run \u202edaolnwod"])
    shown = (await page.get(f"{API}/sessions/{session.session_id}")).json()
    assert (shown["cwd"], shown["label"]) == ("/home/<U+202E>gpj.exe", "a^[[31mb<U+200B>")
    screen = (await page.get(f"{API}/sessions/{session.session_id}/screen")).json()
    assert screen["styled"][0][0][0] == "run <U+202E>daolnwod"


async def test_joined_pictures_on_a_screen_stay_joined_and_other_joiners_are_shown(
    hub: FakeHub, page: httpx.AsyncClient
) -> None:
    session = hub.hub_api.add_session()
    hub.hub_api.show(session.session_id, ["\U0001f469\u200d\U0001f4bb", "pay\u200dpal"])
    screen = (await page.get(f"{API}/sessions/{session.session_id}/screen")).json()
    assert [row[0][0] for row in screen["styled"]] == ["\U0001f469\u200d\U0001f4bb", "pay<U+200D>pal"]


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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    folder = hub.hub_api.home / "reports"
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
    assert await reader.read() == b""
    writer.close()


async def test_a_body_that_never_ends_is_given_up(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "BODY_TIMEOUT_S", 0.2)
    head = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
    answer = await raw(hub, head + b"Connection: close\r\n\r\n{")
    assert b" 408 " in answer.splitlines()[0]


async def test_many_idle_connections_leave_room_for_a_real_one(
    hub: FakeHub, anyone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(server_module, "PATIENCE_S", 0.5)
    directory = [await connect(hub) for _ in range(60)]
    ends = await asyncio.gather(*(reader.read() for reader, _ in directory), return_exceptions=True)
    assert {end for end in ends if isinstance(end, bytes)} <= {b""}
    assert (await anyone.get(f"{API}/health")).status_code == 200
    for _, writer in directory:
        writer.close()


async def test_a_length_beside_chunks_is_refused(hub: FakeHub) -> None:
    head = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    answer = await raw(hub, head + both)
    assert b" 400 " in answer.splitlines()[0]


async def test_three_hundred_slow_bodies_keep_nobody_waiting(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    head = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: 50\r\n\r\n{"
    slow = []
    for _ in range(300):
        reader, writer = await connect(hub)
        writer.write(head)
        slow.append((reader, writer))
    async with asyncio.timeout(20):
        answer = await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})
        fresh = hub.channel.site.access.make_link("", "answer")
        async with httpx.AsyncClient(base_url=hub.channel.url) as other:
            assert (await enter(other, fresh)).status_code == 200
    assert answer.status_code == 200
    for _, writer in slow:
        writer.close()


async def test_refusals_say_when_to_come_back_and_how_to_identify(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    refused = await anyone.get(f"{API}/prompts")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    wrong = {"Authorization": "Bearer ab_00000000_guess"}
    answers = [await anyone.get(f"{API}/me", headers=wrong) for _ in range(12)]
    assert answers[-1].status_code == 429 and int(answers[-1].headers["retry-after"]) >= 1


async def events(page: httpx.AsyncClient, count: int, **headers: str) -> list[tuple[str, dict[str, Any]]]:
    out, event_id = [], ""
    async with page.stream("GET", f"{API}/events", headers=headers) as stream:
        async for line in stream.aiter_lines():
            event_id = line[4:] if line.startswith("id: ") else event_id
            if line.startswith("data: "):
                out.append((event_id, json.loads(line[6:])))
                if len(out) == count:
                    break
    return out


async def test_a_listener_that_was_away_gets_what_it_missed(hub: FakeHub, page: httpx.AsyncClient) -> None:
    ((last, hello),) = await events(page, 1)
    assert hello["event"] == "hello" and last
    session = hub.hub_api.add_session()
    first = await hub.raise_prompt(session, YES_NO)
    missed = await events(page, 2, **{"Last-Event-ID": last})
    assert [event["event"] for _, event in missed] == ["session.started", "prompt.raised"]
    assert missed[1][1]["prompt_id"] == first.prompt_id
    for unknown in ("other-1", "", f"{last.rpartition('-')[0]}-999999", f"{last.rpartition('-')[0]}-x"):
        ((_, again),) = await events(page, 1, **{"Last-Event-ID": unknown})
        assert again["event"] == "hello", unknown


async def test_sending_an_answer_again_does_nothing_twice(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}"
    unknown = (await page.get(f"{path}/outcome", params={"request_key": "k1"})).json()
    assert (unknown["arrived"], unknown["prompt"]["state"]) == (False, "awaiting_reply")
    body = {"value": "y", "request_key": "k1"}
    answers = [await page.post(f"{path}/reply", json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(hub.answered) == 1
    known = (await page.get(f"{path}/outcome", params={"request_key": "k1"})).json()
    assert (known["arrived"], known["refused"], known["prompt"]["answer"]["label"]) == (True, False, "Yes")
    other = await page.post(f"{path}/reply", json={"value": "n", "request_key": "k2"})
    assert (other.status_code, other.json()["error"]) == (409, "not_open")


async def test_keys_of_a_stream_are_typed_in_order_and_once(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    path = f"{API}/sessions/{session.session_id}"
    await page.post(f"{path}/typing", json={"on": True})

    async def send(number: int, data: str) -> int:
        body = {"data": data, "stream": "s1", "number": number}
        return (await page.post(f"{path}/keys", json=body)).status_code

    assert [await send(0, "a"), await send(2, "c"), await send(1, "b"), await send(1, "b"), await send(2, "c")] == [
        200, 409, 200, 200, 200,
    ]  # fmt: skip
    assert b"".join(data for _, data, _ in hub.hub_api.typed) == b"abc"
