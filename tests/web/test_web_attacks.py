"""Every way in is attacked: other hosts, other origins, forged requests, frames, guesses, floods, odd input."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest
from tests.support.fake_hub_api import FakeHub, FakeHubApi
from tests.support.page_client import LinkLogin, enter, signer
from tests.support.raw_http import raw
from tests.support.sample_prompt import YES_NO
from tests.web.conftest import bearer

from atlasbridge.core.clock import ManualClock
from atlasbridge.web import access as access_module
from atlasbridge.web import access as device_module
from atlasbridge.web.access import Access, Caller, Entry, digest, proof, same
from atlasbridge.web.api import OVER_HTTP as OPERATIONS
from atlasbridge.web.api import in_body
from atlasbridge.web.settings import WebSettings

API = "/api/v1"
STATIC = Path(access_module.__file__).parent / "static"


def redeem(access: Access, link: str) -> Entry | None:
    login = LinkLogin(link)
    given = proof(login.key, "page", login.challenge, access.epoch, login.link_id)
    return access.redeem(login.link_id, login.challenge, access.epoch, given, "page", 0)


def asks(access: Access, entry: Entry) -> Caller | None:
    given = proof(entry.key, "page", access.epoch, "GET", "/api/v1/me", digest(""))
    return access.page(entry.cookie, f"{access.epoch}.{digest('')}.{given}", "GET", "/api/v1/me")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8484", "127.0.0.1.evil.example", "169.254.169.254", "[::2]"]
)
async def test_another_host_name_is_turned_away(hub: FakeHub, page: httpx.AsyncClient, host: str) -> None:
    for path in ("/", f"{API}/prompts", f"{API}/health", "/main.js"):
        answer = await page.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]) == (421, "wrong_host")


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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    page.auth = None  # type: ignore[assignment]
    assert page.cookies.get(hub.channel.site.access.cookie_name)
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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
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
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
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
    link = hub.channel.site.access.make_link("page", "admin")
    answer = await enter(anyone, link)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    secret, key = link.partition(".")[2], signer(anyone).key.hex()
    assert secret not in cookie and key not in cookie
    for sent in (answer.text, answer.request.content.decode(), str(answer.request.url)):
        assert secret not in sent and key not in sent


async def test_a_link_opens_the_page_once(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    link = hub.channel.site.access.make_link("page", "admin")
    answers = await asyncio.gather(*(enter(anyone, link) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401, 401]


async def test_a_link_that_waited_too_long_opens_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    access = Access(FakeHubApi(tmp_path, clock), clock, WebSettings())
    link = access.make_link("page", "admin")
    clock.advance(601)
    assert redeem(access, link) is None


async def test_a_login_ends_after_its_time_and_at_logout(hub: FakeHub, page: httpx.AsyncClient, tmp_path: Path) -> None:
    clock = ManualClock()
    access = Access(FakeHubApi(tmp_path, clock), clock, WebSettings(login_ttl_s=100))
    entry = redeem(access, access.make_link("page", "admin"))
    assert entry is not None and asks(access, entry) is not None
    clock.advance(101)
    assert asks(access, entry) is None
    assert (await page.post(f"{API}/logout")).json() == {"ended": True}
    assert (await page.get(f"{API}/me")).status_code == 401


async def test_a_read_token_reads_and_no_more(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
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
    assert (hub.answered, hub.hub_api.killed) == ([], [])


async def test_an_answer_token_answers_but_types_ends_and_grants_nothing(
    hub: FakeHub, anyone: httpx.AsyncClient
) -> None:
    session = hub.hub_api.add_session()
    record = await hub.raise_prompt(session, YES_NO)
    anyone.headers.update(bearer(hub, "answer"))
    assert (await anyone.post(f"{API}/sessions/{session.session_id}/end", json={})).status_code == 403
    assert (await anyone.post(f"{API}/sessions", json={"launcher": "claude here"})).status_code == 403
    assert (await anyone.put(f"{API}/password", json={"password": "a" * 20})).status_code == 403
    assert (await anyone.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})).status_code == 200
    assert hub.answered[0][2] == "web:token/robot-answer"


async def test_every_operation_but_health_and_login_needs_a_credential(hub: FakeHub, anyone: httpx.AsyncClient) -> None:
    opened = [operation.path for operation in OPERATIONS if not operation.scope]
    assert sorted(opened) == ["/health", "/hello", "/login"]
    for operation in OPERATIONS:
        if operation.scope:
            path = API + re.sub(r"{\w+}", "x", operation.path)
            answer = await anyone.request(operation.method, path, json={} if in_body(operation) else None)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), operation.path


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ab__", "Bearer ab_x_y", "Basic YTpi", "Bearer \u00e9", "Bearer " + "a" * 5000, "ab"]
)
async def test_a_malformed_credential_is_refused(hub: FakeHub, anyone: httpx.AsyncClient, value: str) -> None:
    answer = await anyone.get(f"{API}/prompts", headers={b"Authorization": value.encode()})
    assert answer.status_code == 401


async def test_a_wrong_credential_beside_a_right_cookie_is_refused(hub: FakeHub, page: httpx.AsyncClient) -> None:
    answer = await page.get(f"{API}/prompts", headers={"Authorization": "Bearer ab_00000000_x"})
    assert answer.status_code == 401


@pytest.mark.landing
async def test_every_secret_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    real = same
    watched = lambda left, right: (seen.append((left, right)), real(left, right))[1]  # noqa: E731
    monkeypatch.setattr(access_module, "same", watched)
    monkeypatch.setattr(device_module, "same", watched)
    clock = ManualClock()
    access = Access(FakeHubApi(tmp_path, clock), clock, WebSettings())
    _, secret = access.create_token("ci", "read")
    assert access.bearer(secret) and access.bearer(secret[:-1] + "!") is None
    entry = redeem(access, access.make_link("page", "read"))
    assert entry is not None
    assert asks(access, entry) and access.page(entry.cookie, f"{access.epoch}.x.wrong", "GET", "/") is None
    access.set_password("correct horse battery")
    assert await access.enter("correct horse battery", "page")
    assert await access.enter("wrong", "page") is None
    assert len(seen) == 2 + 1 + 2 + 2 + 2


def test_no_digest_is_compared_by_the_equal_sign() -> None:
    folder = Path(access_module.__file__).parent
    assert "hmac.compare_digest" in (folder / "access.py").read_text()
    for path in folder.glob("*.py"):
        assert re.findall(r"digest == |== .*digest|proof == |== .*proof\(", path.read_text()) == [], path.name


def test_only_digests_are_kept(tmp_path: Path) -> None:
    clock = ManualClock()
    hub_api = FakeHubApi(tmp_path, clock)
    access = Access(hub_api, clock, WebSettings())
    _, token = access.create_token("ci", "admin")
    link = access.make_link("page", "admin")
    entry = redeem(access, link)
    access.set_password("correct horse battery")
    assert entry is not None
    kept = json.dumps(hub_api.notes) + json.dumps(hub_api.audit)
    secrets = (token.split("_", 2)[2], entry.cookie.partition(".")[2], entry.key.hex(), link, link[13:])
    for secret in (*secrets, "correct horse battery"):
        assert secret not in kept


async def test_two_hubs_on_one_machine_do_not_log_each_other_out(tmp_path: Path) -> None:
    hubs = [FakeHub(tmp_path / name) for name in ("one", "two")]
    async with httpx.AsyncClient(timeout=30, verify=False) as browser:  # one cookie jar for all ports, as browsers have
        signers = []
        for hub in hubs:
            hub.hub_api.home.mkdir()
            await hub.start()
            browser.base_url = httpx.URL(hub.channel.url)
            assert (await enter(browser, hub.channel.site.access.make_link("page", "admin"))).status_code == 200
            signers.append(signer(browser))
        for hub, signed in zip(hubs, signers, strict=True):
            answer = await browser.get(f"{hub.channel.url}{API}/me", auth=signed)
            assert answer.status_code == 200
    for hub in hubs:
        await hub.stop()
