"""What every channel owes the hub, whatever it speaks to: one suite over all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.contracts.channel_drivers import DRIVERS, Driver
from tests.support.hubs import short_home
from tests.support.waiting import until

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.registry import BUILT_IN, ChannelRegistry
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject

STAGES = (
    "received", "typed", "taken", "still_there", "withdrawn", "expired", "default_typed", "canceled", "failed",
    "answered_elsewhere", "reminder",
)  # fmt: skip
CALL_LIMIT_S = 10.0  # what the hub gives a channel


class HomeHub(MiniHub):
    """The page keeps files in the home folder and follows events."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    @property
    def home(self) -> Path:
        return self._folder

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            await asyncio.sleep(3600)
            yield {}

    def offer(self, name: str, answer: Any) -> None:
        """Commands of a person's are the page's own tests."""

    def tell(self, message: str) -> None:
        raise AssertionError(f"an alarm: {message}")

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        return None

    def still_waiting(self) -> list[PromptRecord]:
        return []


@pytest.fixture
async def hub() -> AsyncIterator[HomeHub]:
    with short_home() as home:
        yield HomeHub(home.root)


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    made: Driver = request.param()
    return made


@pytest.fixture
async def channel(driver: Driver, hub: HomeHub) -> AsyncIterator[BaseChannel]:
    made = await driver.open(hub)
    await asyncio.wait_for(made.start(), CALL_LIMIT_S)
    yield made
    await asyncio.wait_for(made.close(), CALL_LIMIT_S)
    with suppress(Exception):
        await driver.stop_service()


async def reply_of(channel: BaseChannel) -> InboundReply:
    return await channel.receive_reply()


def test_every_built_in_channel_has_a_driver_here() -> None:
    assert set(BUILT_IN) <= {driver.name for driver in DRIVERS}


def test_the_registry_gives_the_class_by_its_name(driver: Driver) -> None:
    if driver.name in BUILT_IN:
        found = ChannelRegistry.get(driver.name)
        assert issubclass(found, BaseChannel) and found.name == driver.name


async def test_a_prompt_is_shown_and_its_message_has_an_id(driver: Driver, hub: HomeHub, channel: BaseChannel) -> None:
    record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
    message_id = await asyncio.wait_for(hub.ask(channel, record), CALL_LIMIT_S)
    assert isinstance(message_id, str) and message_id
    if driver.shown():
        assert "Continue? (y/n)" in driver.shown()


async def test_every_kind_of_prompt_can_be_shown_and_ended(channel: BaseChannel, hub: HomeHub) -> None:
    for prompt in prompts.EVERY.values():
        record = hub.add_prompt(hub.add_session(cwd="/home/ada/" + "deep/" * 60), prompt)
        message_id = await asyncio.wait_for(hub.ask(channel, record), CALL_LIMIT_S)
        await asyncio.wait_for(channel.update_prompt(message_id, record, Receipt("taken", "Taken.", "cli:local")), 5)


async def test_an_answer_arrives_whole_and_its_sender_is_told(
    driver: Driver, hub: HomeHub, channel: BaseChannel
) -> None:
    if not driver.carries_replies:
        waiting = asyncio.ensure_future(channel.receive_reply())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        return
    record = hub.add_prompt(hub.add_session(), prompts.MENU)
    await hub.ask(channel, record)
    await driver.answer(record, "3")
    reply = await reply_of(channel)
    assert (reply.channel, reply.value, reply.nonce) == (driver.name, "3", record.nonce)
    assert reply.identity.startswith(f"{driver.name}:") and len(reply.identity) > len(driver.name) + 1
    assert hub.prompt(reply.prompt_id) == record
    await channel.answer_reply(reply, Receipt("received", "Received.", reply.identity))
    await driver.answer(record, "1")
    await channel.answer_reply(await reply_of(channel), Reject(Refusal.NOT_OPEN, "Too late."))


async def test_every_stage_of_a_prompt_can_be_told(channel: BaseChannel, hub: HomeHub) -> None:
    for stage in STAGES:
        record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
        message_id = await hub.ask(channel, record)
        await asyncio.wait_for(channel.update_prompt(message_id, record, Receipt(stage, "So it is.", "web:page")), 5)


async def test_notices_with_and_without_a_session(channel: BaseChannel, hub: HomeHub) -> None:
    await asyncio.wait_for(channel.notify("\x1b[31mhostile\u202e <b>*_` text"), 5)
    await asyncio.wait_for(channel.notify("Session started", hub.add_session()), 5)


async def test_health_is_json_with_a_state(channel: BaseChannel) -> None:
    assert isinstance(json.loads(json.dumps(channel.health()))["state"], str)


async def test_replies_to_strange_tokens_do_no_harm(channel: BaseChannel, driver: Driver) -> None:
    strange = InboundReply(driver.name, f"{driver.name}:x", "0" * 8, "y", token=object())
    if driver.name == "webhook":
        strange = InboundReply(driver.name, f"{driver.name}:x", "0" * 8, "y", token="1")
    await asyncio.wait_for(channel.answer_reply(strange, Reject(Refusal.UNKNOWN_PROMPT, "No.")), 5)


async def test_a_dead_service_is_a_channel_error_in_time(driver: Driver, hub: HomeHub, channel: BaseChannel) -> None:
    if not driver.has_service:
        return
    await driver.stop_service()
    record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
    with pytest.raises(ChannelError) as caught:
        await asyncio.wait_for(hub.ask(channel, record), CALL_LIMIT_S)
    assert str(caught.value)


async def test_closing_ends_every_task_of_the_channel(driver: Driver, hub: HomeHub) -> None:
    before = asyncio.all_tasks()
    channel = await driver.open(hub)
    await channel.start()
    await hub.ask(channel, hub.add_prompt(hub.add_session(), prompts.YES_NO))
    await channel.notify("bye")
    await asyncio.wait_for(channel.close(), CALL_LIMIT_S)
    await driver.stop_service()
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    await until(lambda: all(task.done() for task in left), "the tasks to end", CALL_LIMIT_S)
