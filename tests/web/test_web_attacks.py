"""Each door is attacked: other hosts, other origins, forged requests, frames, guesses, floods, odd input."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fake_desk import FakeDesk, FakeHub
from tests.support.sample_prompt import HOSTILE, SECRET, YES_NO, hostile_prompt
from tests.web.conftest import bearer, log_in

from atlasbridge.channels.web import access as access_module
from atlasbridge.channels.web import app as app_module
from atlasbridge.channels.web import server as server_module
from atlasbridge.channels.web.access import Access
from atlasbridge.channels.web.catalogue import OPERATIONS
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.clock import ManualClock

API = "/api/v1"
frozen = pytest.mark.parametrize("clock", [ManualClock()], ids=["frozen"])
STATIC = Path(access_module.__file__).parent / "static"


def port_of(hub: FakeHub) -> str:
    return hub.channel.url.rpartition(":")[2]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8484", "127.0.0.1.evil.example", "169.254.169.254", "[::2]"]
)
async def test_another_host_name_is_turned_away(hub: FakeHub, page: httpx.AsyncClient, host: str) -> None:
    for path in ("/", f"{API}/prompts", f"{API}/health", "/main.js"):
        answer = await page.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]) == (421, "wrong_host")


async def raw(hub: FakeHub, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port_of(hub)))
    writer.write(request)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    return answer


async def test_two_host_headers_or_none_are_turned_away(hub: FakeHub) -> None:
    none = await raw(hub, b"GET /api/v1/health HTTP/1.0\r\n\r\n")
    two = await raw(hub, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert b" 421 " in none.splitlines()[0]
    assert two.splitlines()[0].split()[1] in (b"400", b"421")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "localhost:9000", "LOCALHOST"])
async def test_loopback_names_are_served_through_a_tunnel_of_any_port(
    hub: FakeHub, anyone: httpx.AsyncClient, host: str
) -> None:
    assert (await anyone.get(f"{API}/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost", "file://", "", "http://127.0.0.1"],
)
async def test_a_request_of_another_origin_changes_nothing(hub: FakeHub, page: httpx.AsyncClient, origin: str) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    answer = await page.post(path, json={"value": "y"}, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["error"]) == (403, "wrong_origin")
    assert hub.answered == []


async def test_the_pages_own_origin_is_served(hub: FakeHub, page: httpx.AsyncClient) -> None:
    answer = await page.get(f"{API}/me", headers={"Origin": hub.channel.url, "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_browser_that_says_cross_site_is_refused_even_for_reads(
    hub: FakeHub, page: httpx.AsyncClient, site: str
) -> None:
    assert (await page.get(f"{API}/prompts", headers={"Sec-Fetch-Site": site})).status_code == 403


async def test_the_cookie_alone_opens_nothing_so_a_forged_request_fails(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    del page.headers["X-AtlasBridge-Key"]
    assert page.cookies.get("atlasbridge")
    assert (await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})).status_code == 401
    assert (await page.get(f"{API}/prompts")).status_code == 401
    assert hub.answered == []


async def test_the_key_alone_opens_nothing(hub: FakeHub, page: httpx.AsyncClient) -> None:
    page.cookies.clear()
    assert (await page.get(f"{API}/prompts")).status_code == 401


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""]
)
async def test_a_form_of_another_page_is_not_read(hub: FakeHub, page: httpx.AsyncClient, kind: str) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    answer = await page.post(path, content=b'{"value": "y"}', headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert hub.answered == []


async def test_no_cross_origin_permission_is_ever_given(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for path in (f"{API}/prompts", f"{API}/login", "/"):
        answer = await anyone.options(path, headers=headers)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_every_answer_carries_the_protective_headers(hub: FakeHub, page: httpx.AsyncClient) -> None:
    paths = ["/", "/main.js", "/sw.js", f"{API}/prompts", f"{API}/openapi.json", "/nothing", f"{API}/prompts/none"]
    answers = [await page.get(path) for path in paths] + [await page.get("/", headers={"Host": "evil.example"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers


async def test_nothing_of_the_api_is_ever_cached(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.desk.add_session(), YES_NO)
    for path in ("/prompts", f"/prompts/{record.prompt_id}", "/history", "/audit", "/metrics", "/nothing"):
        answer = await page.get(API + path)
        assert answer.headers["cache-control"] == "no-store"


def test_the_page_has_no_inline_script_or_style_and_never_reads_text_as_markup() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\son\w+=|<style|\sstyle=|javascript:|https?://", page) == []
    for path in STATIC.glob("*.js"):
        source = path.read_text()
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", source
        )
        assert found == [], path.name


def test_the_service_worker_never_keeps_an_answer_of_the_api() -> None:
    assert 'startsWith("/api/")) return' in (STATIC / "sw.js").read_text()


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    link = hub.channel._site.access.make_link("page", "admin")
    answer = await anyone.post(f"{API}/login", json={"link": link})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    assert link not in cookie and link not in answer.text
    assert answer.json()["key"] not in cookie


async def test_a_link_opens_the_page_once(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    link = hub.channel._site.access.make_link("page", "admin")
    answers = await asyncio.gather(*(anyone.post(f"{API}/login", json={"link": link}) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401, 401]


async def test_a_link_that_waited_too_long_opens_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    access = Access(FakeDesk(tmp_path, clock), clock, WebSettings())
    link = access.make_link("page", "admin")
    clock.advance(601)
    assert access.redeem(link) is None


async def test_a_login_ends_after_its_time_and_at_logout(hub: FakeHub, page: httpx.AsyncClient, tmp_path: Path) -> None:
    clock = ManualClock()
    access = Access(FakeDesk(tmp_path, clock), clock, WebSettings(login_ttl_s=100))
    entry = access.redeem(access.make_link("page", "admin"))
    assert entry is not None and access.page(entry[0], entry[1]) is not None
    clock.advance(101)
    assert access.page(entry[0], entry[1]) is None
    assert (await page.post(f"{API}/logout")).json() == {"ended": True}
    assert (await page.get(f"{API}/me")).status_code == 401


async def test_a_read_token_reads_and_no_more(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    session = hub.desk.add_session()
    record = await hub.raise_prompt(session, YES_NO)
    anyone.headers.update(bearer(hub, "read"))
    assert (await anyone.get(f"{API}/prompts")).status_code == 200
    for method, path, body in (
        ("POST", f"/prompts/{record.prompt_id}/reply", {"value": "y"}),
        ("POST", f"/sessions/{session.session_id}/end", {}),
        ("POST", f"/sessions/{session.session_id}/typing", {"on": True}),
        ("POST", "/tokens", {"name": "more", "scope": "admin"}),
        ("POST", "/links", {}),
    ):
        answer = await anyone.request(method, API + path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "wrong_scope")
    assert (hub.answered, hub.desk.killed) == ([], [])


async def test_an_answer_token_answers_but_types_ends_and_grants_nothing(
    hub: FakeHub, anyone: httpx.AsyncClient
) -> None:
    session = hub.desk.add_session()
    record = await hub.raise_prompt(session, YES_NO)
    anyone.headers.update(bearer(hub, "answer"))
    assert (await anyone.post(f"{API}/sessions/{session.session_id}/end", json={})).status_code == 403
    assert (await anyone.post(f"{API}/sessions", json={"launcher": "claude here"})).status_code == 403
    assert (await anyone.put(f"{API}/password", json={"password": "a" * 20})).status_code == 403
    assert (await anyone.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})).status_code == 200
    assert hub.answered[0][2] == "web:token/robot-answer"


async def test_every_operation_but_health_and_login_needs_a_credential(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    opened = [operation.path for operation in OPERATIONS if not operation.scope]
    assert opened == ["/health", "/login"]
    for operation in OPERATIONS:
        if operation.scope:
            path = API + re.sub(r"{\w+}", "x", operation.path)
            answer = await anyone.request(operation.method, path, json={} if operation.body else None)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), operation.path


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ab__", "Bearer ab_x_y", "Basic YTpi", "Bearer \u00e9", "Bearer " + "a" * 5000, "ab"]
)
async def test_a_malformed_credential_is_refused(hub: FakeHub, anyone: httpx.AsyncClient, value: str) -> None:
    answer = await anyone.get(f"{API}/prompts", headers={"Authorization": value.encode()})
    assert answer.status_code == 401


async def test_a_wrong_credential_beside_a_right_cookie_is_refused(hub: FakeHub, page: httpx.AsyncClient) -> None:
    answer = await page.get(f"{API}/prompts", headers={"Authorization": "Bearer ab_00000000_x"})
    assert answer.status_code == 401


async def test_every_secret_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    real = access_module.same
    monkeypatch.setattr(access_module, "same", lambda left, right: (seen.append((left, right)), real(left, right))[1])
    clock = ManualClock()
    access = Access(FakeDesk(tmp_path, clock), clock, WebSettings())
    _, secret = access.create_token("ci", "read")
    assert access.bearer(secret) and access.bearer(secret[:-1] + "!") is None
    entry = access.redeem(access.make_link("page", "read"))
    assert entry is not None
    assert access.page(entry[0], entry[1]) and access.page(entry[0], "wrong") is None
    access.set_password("correct horse battery")
    assert await access.enter("correct horse battery")
    assert await access.enter("wrong") is None
    assert len(seen) == 2 + 1 + 4 + 2


def test_no_digest_is_compared_by_the_equal_sign() -> None:
    source = Path(access_module.__file__).read_text()
    assert "hmac.compare_digest" in source
    assert re.findall(r"digest == |== .*digest", source) == []


def test_only_digests_are_kept(tmp_path: Path) -> None:
    clock = ManualClock()
    desk = FakeDesk(tmp_path, clock)
    access = Access(desk, clock, WebSettings())
    _, token = access.create_token("ci", "admin")
    entry = access.redeem(access.make_link("page", "admin"))
    access.set_password("correct horse battery")
    assert entry is not None
    kept = json.dumps(desk.notes) + json.dumps(desk.audit)
    for secret in (token.rpartition("_")[2], entry[0].partition(".")[2], entry[1], "correct horse battery"):
        assert secret not in kept


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
    statuses = [(await page.post(path, json={"value": "nonsense"})).status_code for _ in range(25)]
    assert statuses[:20] == [422] * 20
    assert 429 in statuses[20:]


async def test_a_secret_is_not_taken_over_an_open_wire(tmp_path: Path) -> None:
    hub = FakeHub(tmp_path, hosts=["box.tailnet.example"])
    await hub.start()
    async with httpx.AsyncClient(base_url=hub.channel.url) as client:
        await log_in(hub, client)
        cookie = client.cookies.get("atlasbridge")
        record = await hub.raise_prompt(hub.desk.add_session(), SECRET)
        path = f"{API}/prompts/{record.prompt_id}/reply"
        through_proxy = {"Host": "box.tailnet.example", "Cookie": f"atlasbridge={cookie}"}
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
    session = hub.desk.add_session(cwd="/tmp/\u202egpj.exe", label="a\x1b[31mb\u200b")
    hub.desk.show(session.session_id, ["run \u202edaolnwod"])
    shown = (await page.get(f"{API}/sessions/{session.session_id}")).json()
    assert (shown["cwd"], shown["label"]) == ("/tmp/<U+202E>gpj.exe", "a^[[31mb<U+200B>")
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


async def connect(hub: FakeHub) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(port_of(hub)))


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
