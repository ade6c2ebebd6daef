"""The client library over HTTP: the same questions and answers, with a token, and no way around a person."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, TypedDict

import pytest
from tests.integrations.conftest import HubApi
from tests.support.hubs import HubProcess, free_port, hub_process, with_page
from tests.support.person import Person
from tests.support.waiting import wait_for, written

from atlasbridge.client import AsyncClient, Client, Question, Refused
from atlasbridge.core.errors import ConfigError, HubUnavailable


@pytest.fixture
def hub_api() -> Iterator[HubApi]:
    person = Person()
    with hub_process(with_page()) as hub:
        yield HubApi(hub, person)
    person.close()


def address(hub: HubProcess) -> str:
    return str(json.loads(written(hub.home.root / "web.json"))["url"])


class Credentials(TypedDict):
    url: str
    token: str


def credentials(hub: HubProcess, scope: str, name: str = "") -> Credentials:
    url = address(hub)
    made = hub.cli("token", "create", name or f"a-{scope}", "--scope", scope)
    assert made.returncode == 0, made.stderr
    return {"url": url, "token": made.stdout.strip()}


@pytest.fixture
def client(hub_api: HubApi) -> Client:
    return Client(label="nightly", **credentials(hub_api.hub, "ask"))


def test_an_answer_over_http_is_true_only_if_a_person_agreed(hub_api: HubApi, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?")
        prompt = hub_api.answer("y")
        assert asked.result() and asked.result().words == "yes" and asked.result().by == "cli:local"
        refused = pool.submit(client.ask, "Where to?", choices=["staging", "Cancel"])
        hub_api.answer("cancel")
        assert not refused.result() and refused.result().words == "Cancel"
    assert (prompt["tool"], prompt["label"]) == ("ask", "nightly")
    assert client.ask("Anybody?", ttl_s=0.3).outcome == "expired"
    assert client.ask("Anybody?", ttl_s=0.3, default="no").words == "no"


def test_a_secret_is_handed_over_and_kept_nowhere(hub_api: HubApi, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Token?", secret=True)
        hub_api.answer("hunter2-hunter2", as_text=True)
        assert asked.result().words == "hunter2-hunter2"
    kept = b"".join(path.read_bytes() for path in hub_api.hub.home.root.rglob("*") if path.is_file())
    assert b"hunter2" not in kept


def test_who_leaves_withdraws_and_who_dies_does_so_soon(hub_api: HubApi, client: Client) -> None:
    leave = threading.Event()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?", leave=leave)
        hub_api.next()
        leave.set()
        assert asked.result().outcome == "withdrawn"
    hub_api.wait_quiet()


@pytest.mark.parametrize("after_claim", [False, True])
def test_a_hub_that_is_killed_asks_the_same_question_and_loses_no_answer(
    hub_api: HubApi, client: Client, after_claim: bool
) -> None:
    leave = threading.Event()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Which?", choices=["first", "second"], leave=leave)
        before = hub_api.next()
        answering = pool.submit(hub_api.try_reply, before["prompt_id"], "first") if after_claim else None
        hub_api.hub.kill_9()
        taken = bool(answering and answering.result())
        hub_api.hub.start()

        def answer_again() -> bool:
            for prompt in hub_api.prompts():
                assert not taken and prompt["prompt_id"] == before["prompt_id"]
                hub_api.try_reply(prompt["prompt_id"], "second")
            return asked.done()

        try:
            wait_for(answer_again, "the answer")
            assert asked.result().words in (("first",) if taken else ("first", "second"))
        finally:
            leave.set()  # or a failure would wait for an answer for ever


def test_a_program_sees_what_is_open_and_answers_it(hub_api: HubApi) -> None:
    client = Client(**credentials(hub_api.hub, "answer"))
    asking = hub_api.hub.popen("ask", "Deploy?", "--label", "release")
    prompt = hub_api.next()
    (seen,) = client.prompts()
    assert (seen.prompt_id, seen.tool, seen.label) == (prompt["prompt_id"], "ask", "release")
    with pytest.raises(Refused) as refused:
        client.reply(prompt["prompt_id"], "perhaps")
    assert refused.value.reason == "bad_value"
    assert client.reply(prompt["prompt_id"], "y")
    assert asking.communicate()[0] == "yes\n"


def test_who_asked_cannot_answer_with_the_same_token(hub_api: HubApi) -> None:
    client = Client(**credentials(hub_api.hub, "answer"))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "May I?")
        prompt = hub_api.next()
        with pytest.raises(Refused) as refused:
            client.reply(prompt["prompt_id"], "y")
        assert refused.value.reason == "self"
        assert hub_api.next()["prompt_id"] == prompt["prompt_id"]
        hub_api.answer("n")
        assert not asked.result()
    assert any(entry["event"] == "SELF_REFUSED" for entry in hub_api.audit())


def test_a_token_that_may_ask_may_not_answer_and_one_that_may_look_may_not_ask(hub_api: HubApi, client: Client) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    with pytest.raises(Refused, match="answer"):
        client.reply(hub_api.next()["prompt_id"], "y")
    with pytest.raises(Refused, match="ask"):
        Client(**credentials(hub_api.hub, "read")).ask("May I?")
    hub_api.answer("n")
    asking.communicate()


def test_nobody_hears_the_answer_to_anothers_question(hub_api: HubApi, client: Client) -> None:
    other = Client(**credentials(hub_api.hub, "ask", "another"))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Mine?")
        question_id = hub_api.next()["session_id"]
        prompt, open_question = other.open_question_of(Question("Mine?"))
        open_question._id = question_id  # type: ignore[union-attr]
        with pytest.raises(Refused) as refused:
            open_question.ask(prompt)
        assert refused.value.reason == "not_yours"
        hub_api.answer("y")
        assert asked.result()


def test_events_go_on_after_a_restart_of_the_hub_and_say_so(hub_api: HubApi, client: Client) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?", "--label", "release")
    prompt = hub_api.next()
    events = client.events()
    first = next(events)
    assert (first.event, first.prompt_id, first.fields["label"]) == ("prompt.raised", prompt["prompt_id"], "release")
    hub_api.hub.kill_9()
    hub_api.hub.start()
    names: list[str] = []
    while "prompt.raised" not in names:
        names.append(next(events).event)
    assert names[0] == "hub.reconnected"
    hub_api.answer("n")
    while "prompt.resolved" not in names:
        names.append(next(events).event)
    events.close()  # type: ignore[attr-defined]
    asking.communicate()


async def test_the_async_client_asks_tells_and_withdraws(hub_api: HubApi) -> None:
    client = AsyncClient(**(await asyncio.to_thread(credentials, hub_api.hub, "ask")))
    asked = [asyncio.create_task(client.ask(f"Number {n}?", choices=["even", "odd"])) for n in range(10)]

    def answer_all() -> None:
        for _ in range(10):
            prompt = hub_api.next()
            number = int(prompt["excerpt"].split()[1].rstrip("?"))
            hub_api.reply(prompt["prompt_id"], "odd" if number % 2 else "even")

    await asyncio.to_thread(answer_all)
    assert [(await question).words for question in asked] == ["odd" if n % 2 else "even" for n in range(10)]
    await client.notify("half way")
    left = asyncio.create_task(client.ask("Go on?"))
    await asyncio.to_thread(hub_api.next)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    await asyncio.to_thread(hub_api.wait_quiet)


def test_a_revoked_token_hears_nothing_more(hub_api: HubApi, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?")
        hub_api.next()
        assert hub_api.hub.cli("token", "revoke", "a-ask").returncode == 0
        with pytest.raises(Refused) as refused:
            asked.result()
    assert refused.value.status == 401


def test_the_token_is_shown_to_nobody_who_cannot_prove_to_be_the_hub(hub_api: HubApi) -> None:
    seen: list[str] = []

    class Impostor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(str(self.headers))
            body = json.dumps({"epoch": "x", "proof": "0" * 64}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Impostor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        token = credentials(hub_api.hub, "ask")["token"]
        with pytest.raises(Refused) as refused:
            Client(url=f"http://127.0.0.1:{server.server_port}", token=token).ask("Go on?")
        assert refused.value.reason == "not_the_hub"
        assert seen and not any("Bearer" in head or token in head for head in seen)
    finally:
        server.shutdown()
        server.server_close()


SECRET = "s3cret"
ANSWERED = {"outcome": "answered", "answer": {"kind": "yes", "value": ""}, "by": "web:Ada"}


class BehindProxy(BaseHTTPRequestHandler):
    """A hub that takes a question, then what proxies say in its place, then the hub with its answer."""

    protocol_version = "HTTP/1.1"
    answers: list[tuple[int, str]]
    ids: list[str]

    def do_GET(self) -> None:
        query = dict(pair.split("=") for pair in self.path.partition("?")[2].split("&"))
        key = hashlib.sha256(SECRET.encode()).hexdigest().encode()
        proved = hmac.new(key, f"hub\n{query['challenge']}\nx\nwho".encode(), "sha256").hexdigest()
        self._tell(200, json.dumps({"epoch": "x", "proof": proved}))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.ids.append(asked["question_id"])
        self._tell(*self.answers.pop(0))

    def _tell(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_proxy_that_cannot_reach_the_hub_ends_no_question() -> None:
    answers = [
        (200, 'data: {"prompt_id": "p1"}\n\n'),  # and the connection ends
        (502, "<h1>Bad gateway</h1>"),
        (502, '{"message": "Bad gateway"}'),
        (504, '{"error": "timeout", "message": "upstream timed out"}'),
        (524, "[]"),
        (403, "{}"),
        (200, f"data: {json.dumps(ANSWERED)}\n\n"),
    ]
    ids: list[str] = []

    server = HTTPServer(("127.0.0.1", 0), type("Server", (BehindProxy,), {"answers": answers, "ids": ids}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        answer = Client(url=f"http://127.0.0.1:{server.server_port}", token=f"ab_who_{SECRET}").ask("Go on?")
        assert answer and answer.by == "web:Ada"
        assert len(ids) == 7 and len(set(ids)) == 1  # the same question each time
    finally:
        server.shutdown()
        server.server_close()


def test_what_cannot_work_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="open wire"):
        Client(url="http://desk.example:8484", token="ab_1_2")
    with pytest.raises(ConfigError, match="no token"):
        Client(url="http://127.0.0.1:8484", token="hello")
    with pytest.raises(HubUnavailable):
        Client(url=f"http://127.0.0.1:{free_port()}", token="ab_1_2").ask("Go on?")
