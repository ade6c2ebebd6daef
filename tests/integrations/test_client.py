"""The client library: what a program asks, sees and answers, and what it is told when the hub restarts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integrations.conftest import HubApi
from tests.support.waiting import wait_for

from atlasbridge.client import AsyncClient, Client, Refused


@pytest.fixture
def client(hub_api: HubApi) -> Client:
    return Client(hub_api.hub.home.root, label="a test")


def test_an_answer_is_true_only_if_a_person_agreed(hub_api: HubApi, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?")
        hub_api.answer("y")
        assert asked.result() and asked.result().words == "yes"
        refused = pool.submit(client.ask, "Go on?")
        hub_api.answer("n")
        assert not refused.result() and refused.result().refused
    assert not client.ask("Anybody?", ttl_s=0.3)


def test_setting_leave_withdraws_the_question(hub_api: HubApi, client: Client) -> None:
    leave = threading.Event()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?", leave=leave)
        hub_api.next()
        leave.set()
        assert asked.result().outcome == "withdrawn"
    hub_api.wait_quiet()


def test_a_program_sees_what_is_open_and_answers_it(hub_api: HubApi, client: Client) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    prompt = hub_api.next()
    assert [item.prompt_id for item in client.prompts()] == [prompt["prompt_id"]]
    with pytest.raises(Refused) as refused:
        client.reply(prompt["prompt_id"], "perhaps")
    assert refused.value.reason == "bad_value"
    assert client.reply(prompt["prompt_id"], "y")
    assert asking.communicate()[0] == "yes\n"


def test_events_go_on_after_a_restart_of_the_hub_and_say_so(hub_api: HubApi, client: Client) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    prompt = hub_api.next()
    events = client.events()
    assert next(events).prompt_id == prompt["prompt_id"]
    hub_api.hub.kill_9()
    hub_api.hub.start()
    names = []
    while "prompt.raised" not in names:
        names.append(next(events).event)
    assert names[0] == "hub.reconnected"
    assert isinstance(events, Generator)
    events.close()
    hub_api.answer("n")
    asking.communicate()


async def test_cancelling_an_async_question_withdraws_it(hub_api: HubApi) -> None:
    client = AsyncClient(hub_api.hub.home.root)
    asked = asyncio.create_task(client.ask("Go on?"))
    await asyncio.to_thread(hub_api.next)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await asyncio.to_thread(hub_api.wait_quiet)


async def test_many_questions_at_once_each_get_their_own_answer(hub_api: HubApi) -> None:
    client = AsyncClient(hub_api.hub.home.root)
    asked = [asyncio.create_task(client.ask(f"Number {n}?", choices=["even", "odd"])) for n in range(30)]
    answered: set[str] = set()

    def answer_all() -> None:
        while len(answered) < 30:
            wait_for(lambda: any(item["prompt_id"] not in answered for item in hub_api.prompts()))
            for item in hub_api.prompts():
                number = int(item["excerpt"].split()[1].rstrip("?"))
                hub_api.reply(item["prompt_id"], "odd" if number % 2 else "even")
                answered.add(item["prompt_id"])

    await asyncio.to_thread(answer_all)
    words = [(await question).words for question in asked]
    assert words == ["odd" if n % 2 else "even" for n in range(30)]
