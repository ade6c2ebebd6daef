"""The Slack scenarios of the reliability document: QA-010, QA-013, QA-014, QA-015.

Each runs against the strict fake.  QA-010 and QA-013 also run in a live workspace when the environment has its tokens:
ATLASBRIDGE_TEST_SLACK_{BOT_TOKEN,APP_TOKEN,TEAM,USER} and, for the person's words, ..._USER_TOKEN.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from tests.channels import prompts
from tests.channels.conftest import serving, slack_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.waiting import until

from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.prompt.model import Receipt

ADA, BOB = "U0ADA", "U0BOB"
PREFIX = "ATLASBRIDGE_TEST_SLACK_"
LIVE_NAMES = ("BOT_TOKEN", "APP_TOKEN", "TEAM", "USER", "USER_TOKEN")
LIVE = {name: os.environ.get(PREFIX + name, "") for name in LIVE_NAMES}
WORLDS = ["fake", *(["live"] if all(LIVE.values()) else [])]


def worlds(qa_id: str) -> pytest.MarkDecorator:
    """The id is part of the tests' names: `pytest -k QA-010`."""
    return pytest.mark.parametrize("world", WORLDS, ids=[f"{qa_id}-{world}" for world in WORLDS])


class SlackScenario:
    """As the Prompt Lab's scenarios are written, with a Slack in place of a terminal."""

    qa_id: ClassVar[str]
    name: ClassVar[str]
    description: ClassVar[str]
    platform: ClassVar[list[str]] = ["macos", "linux"]

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.hub = MiniHub()
        self.channel = SlackChannel(self.settings, self.hub, SystemClock())

    async def play(self) -> None:
        async with serving(self.hub, self.channel):
            await until(lambda: self.channel.health()["state"] == "ok")
            await self.run()

    async def run(self) -> None:
        raise AssertionError("a scenario says what happens")


class SlackMessageFormatScenario(SlackScenario):
    qa_id = "QA-010"
    name = "SlackMessageFormatScenario"
    description = "Every kind of prompt is a message that Slack takes, and so is every way it can end"

    async def run(self) -> None:
        session = self.hub.add_session()
        for prompt in prompts.EVERY.values():
            record = self.hub.add_prompt(session, prompt)
            message_id = await self.hub.ask(self.channel, record)
            assert message_id
            for stage in ("received", "taken"):
                await self.channel.update_prompt(message_id, record, Receipt(stage, f"It is {stage}.", "cli:local"))
        await until(lambda: self.channel.health()["pending"] == 0)
        assert self.channel.health()["unreachable_chats"] == []


class SlackThreadReplyScenario(SlackScenario):
    qa_id = "QA-013"
    name = "SlackThreadReplyScenario"
    description = "A reply in the thread of a prompt answers that prompt and no other"

    async def write_in_thread(self, message_id: str, text: str) -> None:
        room, ts = message_id.split("/")[:2]
        client = AsyncWebClient(LIVE["USER_TOKEN"])
        await client.chat_postMessage(channel=room, thread_ts=ts, text=text)

    async def run(self) -> None:
        first = self.hub.add_prompt(self.hub.add_session(), prompts.TEXT)
        second = self.hub.add_prompt(self.hub.add_session(), prompts.TEXT)
        ids = [await self.hub.ask(self.channel, record) for record in (first, second)]
        await self.write_in_thread(ids[1], "to the second")
        await until(lambda: second.prompt_id in self.hub.answers)
        await self.write_in_thread(ids[0], "to the first")
        await until(lambda: first.prompt_id in self.hub.answers)
        assert self.hub.answers[first.prompt_id].value == "to the first"
        assert self.hub.answers[second.prompt_id].value == "to the second"


class SlackMultiUserScenario(SlackScenario):
    qa_id = "QA-014"
    name = "SlackMultiUserScenario"
    description = "Several approvers: the first valid click wins, the others see who it was, strangers count nothing"

    slack: FakeSlack

    async def run(self) -> None:
        ada, bob, eve = self.slack.person(ADA), self.slack.person(BOB, "bob"), self.slack.person("U0EVE", "eve")
        record = self.hub.add_prompt(self.hub.add_session(), prompts.YES_NO)
        await self.hub.ask(self.channel, record)
        shown = {person.user_id: person.last() for person in (ada, bob)}
        clicks = [eve.click(shown[BOB], "Yes", bob.dm), bob.click(shown[BOB], "No")]
        await self.slack.until(lambda: record.prompt_id in self.hub.answers, "the first answer")
        clicks.append(ada.click(shown[ADA], "Yes"))
        await self.slack.until(lambda: all(click.acked for click in clicks), "the acknowledgements")
        await self.slack.until(
            lambda: all("🛑 no · bob" in str(one.sees()[0]).lower() for one in (ada, bob)), "who it was"
        )
        await self.slack.until(lambda: "too late. 🛑 no · bob" in str(ada.last()).lower(), "the late answer")
        assert self.hub.answers[record.prompt_id].identity == "slack:T0TEAM/U0BOB"
        assert self.hub.answers[record.prompt_id].value == "n"
        assert {reply.identity for reply in self.hub.replies} == {"slack:T0TEAM/U0BOB", "slack:T0TEAM/U0ADA"}


class SlackRateLimitScenario(SlackScenario):
    qa_id = "QA-015"
    name = "SlackRateLimitScenario"
    description = "Slack's 429 is waited out by its Retry-After; nothing is lost and nothing is posted twice"

    slack: FakeSlack

    async def run(self) -> None:
        ada = self.slack.person(ADA)
        self.slack.fail("chat.postMessage", "status", status=429, retry_after=1)
        record = self.hub.add_prompt(self.hub.add_session(), prompts.YES_NO)
        began = asyncio.get_running_loop().time()
        message_id = await self.hub.ask(self.channel, record)
        assert asyncio.get_running_loop().time() - began >= 0.9
        self.slack.fail("chat.update", "status", status=429, retry_after=1)
        await self.channel.update_prompt(message_id, record, Receipt("taken", "It is taken.", "cli:local"))
        await self.slack.until(lambda: "a terminal" in str(ada.last()), "the edit, later")
        assert len(ada.sees()) == 1
        assert len(self.slack.calls_of("chat.postMessage")) == len(self.slack.calls_of("chat.update")) == 2


SCENARIOS = [SlackMessageFormatScenario, SlackThreadReplyScenario, SlackMultiUserScenario, SlackRateLimitScenario]


def live_settings() -> dict[str, Any]:
    tokens = {"bot_token": LIVE["BOT_TOKEN"], "app_token": LIVE["APP_TOKEN"]}
    return {**tokens, "team_id": LIVE["TEAM"], "allowed_users": [LIVE["USER"]], "host_name": "atlasbridge-test"}


@worlds("QA-010")
async def test_qa_010_slack_message_format(slack: FakeSlack, world: str) -> None:
    slack.person(ADA)
    await SlackMessageFormatScenario(slack_settings(slack) if world == "fake" else live_settings()).play()


@worlds("QA-013")
async def test_qa_013_slack_thread_reply(slack: FakeSlack, world: str) -> None:
    ada = slack.person(ADA)
    scenario = SlackThreadReplyScenario(slack_settings(slack) if world == "fake" else live_settings())
    if world == "fake":

        async def write(message_id: str, text: str) -> None:
            room, ts = message_id.split("/")[:2]
            ada.write(text, room, thread={"ts": ts})

        scenario.write_in_thread = write  # type: ignore[method-assign]
    await scenario.play()


@pytest.mark.parametrize("world", ["fake"], ids=["QA-014-fake"])
async def test_qa_014_slack_multi_user(slack: FakeSlack, world: str) -> None:
    for user_id, name in ((ADA, "ada"), (BOB, "bob")):
        slack.person(user_id, name)
    scenario = SlackMultiUserScenario(slack_settings(slack, allowed_users=[ADA, BOB]))
    scenario.slack = slack
    await scenario.play()


@pytest.mark.parametrize("world", ["fake"], ids=["QA-015-fake"])
async def test_qa_015_slack_rate_limit(slack: FakeSlack, world: str) -> None:
    scenario = SlackRateLimitScenario(slack_settings(slack))
    scenario.slack = slack
    slack.person(ADA)
    await scenario.play()


def test_the_scenarios_carry_the_ids_of_the_specification() -> None:
    assert [scenario.qa_id for scenario in SCENARIOS] == ["QA-010", "QA-013", "QA-014", "QA-015"]
