"""The API does what its table says, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.support import waiting
from tests.support.fake_hub_api import FakeHub
from tests.support.page_client import greet
from tests.support.sample_prompt import MENU, SECRET, TEXT, YES_NO
from tests.web.conftest import bearer

from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.values import replace

API = "/api/v1"


@asynccontextmanager
async def listening(client: httpx.AsyncClient, path: str = "/events") -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    async with client.stream("GET", API + path) as response:
        assert response.status_code == 200, await response.aread()
        yield _events(response)


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


async def until(events: AsyncIterator[dict[str, Any]], name: str) -> dict[str, Any]:
    async for event in events:
        if event["event"] == name:
            return event
    raise AssertionError(f"the stream ended before {name}")


async def test_an_open_prompt_is_listed_without_its_nonce(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    answer = await page.get(f"{API}/prompts")
    (shown,) = answer.json()["prompts"]
    assert shown["prompt_id"] == record.prompt_id
    assert [choice["label"] for choice in shown["choices"]] == ["Yes", "Yes, and don't ask again", "No"]
    assert shown["session"]["tool"] == "claude"
    assert record.nonce not in answer.text


async def test_a_reply_is_typed_once_and_the_second_is_refused(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    first = await page.post(path, json={"value": "1"})
    second = await page.post(path, json={"value": "3"})
    assert (first.status_code, first.json()["stage"]) == (200, "typed")
    assert (second.status_code, second.json()["error"]) == (409, "not_open")
    assert hub.answered == [(record.prompt_id, "1", "web:page")]


async def test_many_replies_at_once_type_one_answer(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/reply"
    answers = await asyncio.gather(*(page.post(path, json={"value": "y"}) for _ in range(15)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 14
    assert len(hub.answered) == 1


async def test_a_value_that_fits_no_choice_is_refused_in_words(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    answer = await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "maybe"})
    assert (answer.status_code, answer.json()["error"]) == (422, "bad_value")
    assert "choices" in answer.json()["message"]
    assert hub.answered == []


async def test_sentences_are_in_the_language_of_the_page_that_asks(hub: FakeHub, page: httpx.AsyncClient) -> None:
    page.headers["accept-language"] = "fr, de-AT;q=0.9, en;q=0.5"
    nothing = await page.get(f"{API}/prompts/{'0' * 32}")
    assert nothing.json() == {"error": "unknown_prompt", "message": "diese Frage gibt es nicht"}
    async with listening(page) as events:
        await until(events, "hello")
        await hub.channel.notify("The web page is back: http://localhost")
        assert (await until(events, "notice"))["sentence"] == "Die Webseite ist wieder da: http://localhost"
    page.headers["accept-language"] = "en"
    assert (await page.get(f"{API}/prompts/{'0' * 32}")).json()["message"] == "there is no such prompt"


async def test_a_reply_for_another_session_is_refused(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    body = {"value": "y", "session_id": hub.hub_api.add_session().session_id}
    answer = await page.post(f"{API}/prompts/{record.prompt_id}/reply", json=body)
    assert (answer.status_code, answer.json()["error"]) == (409, "wrong_session")


async def test_the_short_id_finds_a_prompt(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), TEXT)
    answer = await page.post(f"{API}/prompts/{record.prompt_id[:8]}/reply", json={"value": "shop", "as_text": True})
    assert answer.status_code == 200
    assert hub.answered == [(record.prompt_id, "shop", "web:page")]


async def test_a_stream_begins_with_the_whole_picture_and_goes_on(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    before = await hub.raise_prompt(session, YES_NO)
    async with listening(page) as events:
        hello = await until(events, "hello")
        assert [prompt["prompt_id"] for prompt in hello["prompts"]] == [before.prompt_id]
        after = await hub.raise_prompt(session, MENU)
        raised = await until(events, "prompt.raised")
        assert raised["prompt"]["prompt_id"] == after.prompt_id


async def test_a_stream_tells_each_stage_of_an_answer(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    async with listening(page) as events:
        await until(events, "hello")
        await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "n"})
        stages = [(await until(events, "receipt"))["stage"] for _ in range(3)]
    assert stages == ["received", "typed", "taken"]


async def test_a_stream_says_who_answered_elsewhere(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    async with listening(page) as events:
        await until(events, "hello")
        receipt = Receipt("answered_elsewhere", "Answered by telegram:123.", "telegram:123")
        await hub.move(record, PromptState.REPLY_RECEIVED, receipt)
        told = await until(events, "receipt")
    assert told["by"] == "telegram:123"
    assert told["prompt"]["decided_by"] == "telegram:123"


async def test_a_listener_that_does_not_read_is_cut_off_and_nobody_else_waits(hub: FakeHub) -> None:
    broadcast = hub.channel.site.broadcast
    lazy = broadcast.join()
    for number in range(300):
        broadcast.publish({"event": "x", "number": number})
    assert broadcast.listeners == 0
    assert lazy.get_nowait() is None


async def test_a_watched_screen_sends_only_rows_that_changed_and_stops_with_its_watcher(
    hub: FakeHub, page: httpx.AsyncClient
) -> None:
    session = hub.hub_api.add_session()
    hub.hub_api.show(session.session_id, ["one", "two"])
    async with listening(page, f"/sessions/{session.session_id}/screen/stream") as events:
        first = await until(events, "screen")
        assert [row[0][0] for row in first["styled"]] == ["one", "two"]
        hub.hub_api.show(session.session_id, ["one", "three"])
        second = await until(events, "screen")
        assert second["changed"] == {"1": [["three", None, None, 0]]}
        assert hub.hub_api.watching == 1
    await waiting.until(lambda: not hub.hub_api.watching, "the watching to end")


async def test_keys_are_refused_until_typing_is_switched_on_for_that_session(
    hub: FakeHub, page: httpx.AsyncClient
) -> None:
    first, second = hub.hub_api.add_session(), hub.hub_api.add_session()
    keys = f"{API}/sessions/{first.session_id}/keys"
    assert (await page.post(keys, json={"data": "ls\r"})).json()["error"] == "typing_off"
    await page.post(f"{API}/sessions/{first.session_id}/typing", json={"on": True})
    assert (await page.post(keys, json={"data": "ls\r"})).status_code == 200
    other = await page.post(f"{API}/sessions/{second.session_id}/keys", json={"data": "ls\r"})
    assert other.json()["error"] == "typing_off"
    assert hub.hub_api.typed == [(first.session_id, b"ls\r", "web:page")]
    assert [entry["event"] for entry in hub.hub_api.audit][-1] == "WEB_TYPING"


async def test_a_session_is_ended_and_then_unknown_to_actions(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    path = f"{API}/sessions/{session.session_id}"
    assert (await page.post(f"{path}/end", json={})).status_code == 200
    assert hub.hub_api.killed == [(session.session_id, False)]
    assert (await page.post(f"{path}/end", json={})).status_code == 404
    assert (await page.get(path)).json()["state"] == SessionState.TERMINATED.value
    assert (await page.get(f"{path}/screen")).status_code == 200, "its last screen is still there"
    assert (await page.get(f"{API}/sessions/{'0' * 32}/screen")).status_code == 404


async def test_only_configured_sessions_can_be_started(hub: FakeHub, page: httpx.AsyncClient) -> None:
    started = await page.post(f"{API}/sessions", json={"launcher": "claude here"})
    refused = await page.post(f"{API}/sessions", json={"launcher": "rm -rf /"})
    assert started.json()["session_id"] in hub.hub_api.all_sessions
    assert (refused.status_code, refused.json()["error"]) == (404, "unknown_launcher")
    elsewhere = await page.post(f"{API}/sessions", json={"launcher": "claude here", "folder": "/etc"})
    assert (elsewhere.status_code, elsewhere.json()["error"]) == (403, "not_allowed")
    words = {"launcher": "claude here", "folder": "/home/ada/blog", "arguments": ["-p", "a b"], "name": " blog "}
    assert (await page.post(f"{API}/sessions", json=words)).status_code == 200
    assert hub.hub_api.launched[-1] == ("claude here", "/home/ada/blog", ("-p", "a b"), "blog")


async def test_a_session_is_renamed_explained_and_its_past_is_read(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    hub.hub_api.past[session.session_id] = [[["an earlier line\u202e", 2, None, 0]]]
    path = f"{API}/sessions/{session.session_id}"
    renamed = await page.put(f"{path}/name", json={"name": "shop\u202eapi"})
    assert renamed.json() == {"name": "shop<U+202E>api"}
    assert (await page.get(path)).json()["label"] == "shop<U+202E>api"
    assert (await page.get(f"{path}/why")).json()["why"][-1] == "it is busy: no prompt"
    past = (await page.get(f"{path}/screen?styled=true&past=true")).json()["past"]
    assert past == [[["an earlier line<U+202E>", 2, None, 0]]]
    assert "past" not in (await page.get(f"{path}/screen?styled=true")).json()
    assert (await page.put(f"{API}/sessions/none/name", json={"name": "x"})).status_code == 404


async def test_the_pages_files_come_packed_to_who_can_read_that(page: httpx.AsyncClient) -> None:
    packed = await page.get("/main.js")
    plain = await page.get("/main.js", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < len(plain.content) / 2


@pytest.mark.parametrize(("verdict", "where"), [("not_a_prompt", "prompts"), ("missed", "sessions")])
async def test_a_report_becomes_a_private_file_for_the_lab(
    hub: FakeHub, page: httpx.AsyncClient, verdict: str, where: str
) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
    thing = record.prompt_id if where == "prompts" else record.session_id
    answer = await page.post(f"{API}/{where}/{thing}/report", json={"note": "it was a log line"})
    path = hub.hub_api.home / "reports" / answer.json()["report"]
    report = json.loads(path.read_text())
    assert (report["verdict"], report["session_id"], report["note"]) == (
        verdict,
        record.session_id,
        "it was a log line",
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await page.get(f"{API}/statistics")).json()["reported"][verdict] == 1


async def test_history_is_searched_and_paged(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    for number in range(5):
        await hub.raise_prompt(session, replace(TEXT, excerpt=f"name {number}"))
    first = (await page.get(f"{API}/history", params={"limit": 3})).json()["prompts"]
    second = (await page.get(f"{API}/history", params={"before": first[-1]["prompt_id"]})).json()["prompts"]
    assert [item["excerpt"] for item in first + second] == [f"name {number}" for number in (4, 3, 2, 1, 0)]
    found = (await page.get(f"{API}/history", params={"search": "NAME 2"})).json()["prompts"]
    assert [item["excerpt"] for item in found] == ["name 2"]


async def test_metrics_count_what_happened(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})
    await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})
    text = (await page.get(f"{API}/metrics")).text
    assert "atlasbridge_sessions 1" in text
    assert 'atlasbridge_replies_refused_total{reason="not_open"} 1' in text
    assert "atlasbridge_answer_wait_seconds_count 1" in text
    assert 'atlasbridge_events_total{event="prompt.raised"} 1' in text


async def test_a_token_lives_until_it_is_revoked_and_survives_a_restart(
    hub: FakeHub, page: httpx.AsyncClient, anyone: httpx.AsyncClient
) -> None:
    created = (await page.post(f"{API}/tokens", json={"name": "ci", "scope": "read"})).json()
    headers = {"Authorization": f"Bearer {created['token']}"}
    assert (await anyone.get(f"{API}/prompts", headers=headers)).status_code == 200
    await hub.restart()
    async with httpx.AsyncClient(base_url=hub.channel.url) as again:
        assert (await again.get(f"{API}/prompts", headers=headers)).status_code == 200
        deleted = await again.delete(f"{API}/tokens/{created['token_id']}", headers=bearer(hub, "admin"))
        assert deleted.status_code == 200
        assert (await again.get(f"{API}/prompts", headers=headers)).status_code == 401
    assert created["token"].split("_", 2)[2] not in hub.hub_api.notes["web.tokens"]


async def test_a_login_survives_a_restart_on_the_same_port(hub: FakeHub, page: httpx.AsyncClient) -> None:
    before = hub.channel.url
    await hub.restart()
    assert hub.channel.url == before
    assert (await page.get(f"{API}/me")).status_code == 401  # it was signed for another start
    await greet(page)
    assert (await page.get(f"{API}/me")).json()["identity"] == "web:page"


async def test_a_secret_is_answered_over_loopback_and_leaves_no_trace(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), SECRET)
    answer = await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "hunter2", "as_text": True})
    assert answer.status_code == 200
    kept = json.dumps([hub.hub_api.notes, hub.hub_api.audit]) + hub.channel.site.counters.render({})
    assert "hunter2" not in kept + answer.text


async def test_the_address_is_written_down_and_nothing_that_lets_anybody_in(hub: FakeHub) -> None:
    path = hub.hub_api.home / "web.json"
    record = json.loads(path.read_text())
    assert set(record) == {"url", "port", "pid", "urls"}
    assert record["url"] == hub.channel.url
    assert path.stat().st_mode & 0o777 == 0o600
    await hub.channel.close()
    assert not path.exists()


async def test_a_port_that_is_taken_at_the_very_first_start_gives_a_free_one(hub: FakeHub, tmp_path: Any) -> None:
    port = int(hub.channel.url.rpartition(":")[2])
    (tmp_path / "second").mkdir()
    second = FakeHub(tmp_path / "second", port=port)
    await second.start()
    assert second.channel.url != hub.channel.url
    await second.stop()


@pytest.mark.parametrize("what", ["events", "screen"])
async def test_a_stream_ends_with_the_right_to_follow_it(hub: FakeHub, anyone: httpx.AsyncClient, what: str) -> None:
    session = hub.hub_api.add_session()
    token, secret = hub.channel.site.access.create_token("ci", "read")
    anyone.headers["Authorization"] = f"Bearer {secret}"
    path = "/events" if what == "events" else f"/sessions/{session.session_id}/screen/stream"
    async with listening(anyone, path) as events:
        await anext(events)
        headers = bearer(hub, "admin")
        assert (await anyone.delete(f"{API}/tokens/{token.token_id}", headers=headers)).status_code == 200
        assert [event async for event in events] == []
    assert (await anyone.get(f"{API}/events")).status_code == 401
    assert hub.hub_api.watching == 0


async def test_a_question_for_the_head_of_a_stream_opens_none(hub: FakeHub, page: httpx.AsyncClient) -> None:
    answer = await page.head(f"{API}/events")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    assert hub.channel.site.broadcast.listeners == 0


@pytest.mark.parametrize("path", ["/events", "/sessions/SESSION/screen/stream"])
async def test_closing_ends_open_streams_soon(hub: FakeHub, page: httpx.AsyncClient, path: str) -> None:
    session = hub.hub_api.add_session()
    async with asyncio.timeout(60), listening(page, path.replace("SESSION", session.session_id)) as events:
        await anext(events)
        await hub.channel.close()
        assert [event async for event in events] == []


async def test_an_answer_for_later_is_kept_shown_and_taken_back(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}/later"
    bad = await page.post(path, json={"value": "y", "when": "soon"})
    assert (bad.status_code, bad.json()["error"]) == (422, "bad_value")
    kept = await page.post(path, json={"value": "y", "when": "06:00"})
    assert (kept.status_code, kept.json()["stage"]) == (200, "postponed")
    ((reply, when),) = hub.hub_api.kept
    assert (reply.value, reply.identity, when) == ("y", "web:page", "06:00")
    (shown,) = (await page.get(f"{API}/prompts")).json()["prompts"]
    assert shown["later"][0]["value"] == "y"
    assert len((await page.get(f"{API}/later")).json()["later"]) == 1
    assert (await page.delete(f"{API}/later/ffffffff")).status_code == 404
    assert (await page.delete(f"{API}/later/1a2b3c4d")).json()["stage"] == "revoked"
    assert (await page.get(f"{API}/later")).json()["later"] == [] and hub.answered == []


async def test_a_page_can_ask_to_be_asked_again(hub: FakeHub, page: httpx.AsyncClient) -> None:
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    path = f"{API}/prompts/{record.prompt_id}"
    assert (await page.post(f"{path}/snooze", json={"for_s": 900})).json()["stage"] == "snoozed"
    assert [(reply.prompt_id, for_s) for reply, for_s in hub.hub_api.snoozed] == [(record.prompt_id, 900)]
    for wrong in ({"for_s": 5}, {"for_s": 90_000}, {}, {"for_s": 900, "unknown": 1}):
        assert (await page.post(f"{path}/snooze", json=wrong)).status_code == 422
    assert (await page.post(f"{path}/later", json={"when": "x" * 65})).status_code == 422
    assert (await page.post(f"{API}/prompts/{'f' * 32}/snooze", json={"for_s": 900})).status_code == 404


async def test_one_name_for_a_person_also_on_the_page(hub: FakeHub, page: httpx.AsyncClient) -> None:
    hub.hub_api.names = {"web:page": "Ada"}
    record = await hub.raise_prompt(hub.hub_api.add_session(), YES_NO)
    await page.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "y"})
    shown = (await page.get(f"{API}/prompts/{record.prompt_id}")).json()
    assert shown["names"] == {"web:page": "Ada"}


async def test_instructions_for_later_are_queued_listed_and_taken_back(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    queued = await page.post(f"{API}/sessions/{session.session_id}/queue", json={"text": "run the tests"})
    assert (queued.status_code, queued.json()["stage"]) == (200, "queued")
    (shown,) = (await page.get(f"{API}/queue")).json()["queue"]
    assert (shown["text"], shown["session_id"]) == ("run the tests", session.session_id)
    assert (await page.post(f"{API}/sessions/{session.session_id}/queue", json={"text": ""})).status_code == 422
    assert (await page.delete(f"{API}/queue/ffffffff")).status_code == 404
    assert (await page.delete(f"{API}/queue/{shown['queue_id']}")).json()["stage"] == "revoked"
    assert (await page.get(f"{API}/queue")).json()["queue"] == []


async def test_a_stopped_session_says_so_and_goes_on_from_the_page(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session(stopped=True)
    (shown,) = (await page.get(f"{API}/sessions")).json()["sessions"]
    assert shown["stopped"] is True
    assert (await page.post(f"{API}/sessions/{session.session_id}/resume", json={})).json() == {"resumed": True}
    assert hub.hub_api.resumed == [session.session_id]
    assert (await page.post(f"{API}/sessions/ffffffff/resume", json={})).status_code == 404


async def test_a_session_s_words_are_told_as_text(hub: FakeHub, page: httpx.AsyncClient) -> None:
    session = hub.hub_api.add_session()
    rows = [
        "❯ mend the login",
        "",
        "● Read(login.py)",
        "  ⎿  Read 4 lines",
        "",
        "● Done: all tests pass.",
        "",
        "───",
        "❯ ",
    ]
    hub.hub_api.show(session.session_id, [[[row, None, None, 0]] for row in rows])
    path = f"{API}/sessions/{session.session_id}/words"
    assert (await page.get(f"{path}?last=true")).json() == {"text": "● Done: all tests pass."}
    told = (await page.get(path)).json()["text"]
    assert told.startswith("❯ mend the login") and told.endswith("all tests pass.")
    assert (await page.get(f"{API}/sessions/nobody/words")).status_code == 404
