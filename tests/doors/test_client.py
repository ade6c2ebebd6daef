"""The client library: what a program asks, sees and answers, and what it is told when the hub restarts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.doors.conftest import Desk
from tests.support.waiting import wait_for

from atlasbridge.client import AsyncClient, Client, Refused


@pytest.fixture
def client(desk: Desk) -> Client:
    return Client(desk.hub.home.root, label="a test")


def test_an_answer_is_true_only_if_a_person_agreed(desk: Desk, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?")
        desk.answer("y")
        assert asked.result(30) and asked.result().words == "yes"
        refused = pool.submit(client.ask, "Go on?")
        desk.answer("n")
        assert not refused.result(30) and refused.result().refused
    assert not client.ask("Anybody?", ttl_s=0.3)


def test_setting_leave_withdraws_the_question(desk: Desk, client: Client) -> None:
    leave = threading.Event()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Go on?", leave=leave)
        desk.next()
        leave.set()
        assert asked.result(30).outcome == "withdrawn"
    desk.wait_quiet()


def test_a_program_sees_what_is_open_and_answers_it(desk: Desk, client: Client) -> None:
    asking = desk.hub.popen("ask", "Deploy?")
    prompt = desk.next()
    assert [item["prompt_id"] for item in client.prompts()] == [prompt["prompt_id"]]
    with pytest.raises(Refused) as refused:
        client.reply(prompt["prompt_id"], "perhaps")
    assert refused.value.reason == "bad_value"
    assert client.reply(prompt["prompt_id"], "y")
    assert asking.communicate(timeout=30)[0] == "yes\n"


def test_events_go_on_after_a_restart_of_the_hub_and_say_so(desk: Desk, client: Client) -> None:
    asking = desk.hub.popen("ask", "Deploy?")
    prompt = desk.next()
    events = client.events()
    assert next(events)["prompt_id"] == prompt["prompt_id"]
    desk.hub.kill_9()
    desk.hub.start()
    names = []
    while "prompt.raised" not in names:
        names.append(next(events)["event"])
    assert names[0] == "hub.reconnected"
    assert isinstance(events, Generator)
    events.close()
    desk.answer("n")
    asking.communicate(timeout=30)


async def test_cancelling_an_async_question_withdraws_it(desk: Desk) -> None:
    client = AsyncClient(desk.hub.home.root)
    asked = asyncio.create_task(client.ask("Go on?"))
    await asyncio.to_thread(desk.next)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await asyncio.to_thread(desk.wait_quiet)


async def test_many_questions_at_once_each_get_their_own_answer(desk: Desk) -> None:
    client = AsyncClient(desk.hub.home.root)
    asked = [asyncio.create_task(client.ask(f"Number {n}?", choices=["even", "odd"])) for n in range(30)]
    answered: set[str] = set()

    def answer_all() -> None:
        while len(answered) < 30:
            wait_for(lambda: any(item["prompt_id"] not in answered for item in desk.prompts()))
            for item in desk.prompts():
                number = int(item["excerpt"].split()[1].rstrip("?"))
                desk.reply(item["prompt_id"], "odd" if number % 2 else "even")
                answered.add(item["prompt_id"])

    await asyncio.to_thread(answer_all)
    words = [(await question).words for question in asked]
    assert words == ["odd" if n % 2 else "even" for n in range(30)]
