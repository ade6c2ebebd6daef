"""What a chat does when the link was down, when two hubs share a token, and how it speaks of people and sessions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.channels import prompts
from tests.channels.conftest import ADA, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import playing, stage, text_of
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.outbox import NOTICE, QUESTION, Turns
from atlasbridge.channels.slack.api import MANIFEST, setup_steps
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import ManualClock, SystemClock, iso
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Answer, PromptState, Receipt
from atlasbridge.core.values import replace

both = pytest.mark.parametrize("chat", ["telegram", "slack"])


@both
async def test_what_came_and_went_while_nobody_listened_is_told_with_what_became_of_it(chat: str) -> None:
    hub = MiniHub()
    server = FakeTelegram() if chat == "telegram" else FakeSlack(ack_s=1.0)
    with server:
        person = server.person(ADA) if chat == "telegram" else server.person("U0ADA")  # type: ignore[arg-type]
        hub.memory[f"{chat}.last_poll"] = iso(hub.clock.wall() - 3600)
        session = hub.add_session(label="web-api")
        for by, state in (
            ("", PromptState.EXPIRED),
            ("auto:timeout", PromptState.RESOLVED),
            ("cli:local", PromptState.RESOLVED),
        ):
            hub.move(hub.add_prompt(session, prompts.YES_NO), state, by)
        async with playing(chat, server, hub):
            await server.until(lambda: any("Meanwhile" in text_of(one) for one in person.sees()), "the note")
        told = next(text_of(one) for one in person.sees() if "Meanwhile" in text_of(one))
    assert told.startswith("📭 I was offline for 1h 0m. Meanwhile:")
    assert "web-api · “Continue? (y/n)”: nobody answered, nothing was typed" in told
    assert "nobody answered: a timer typed No" in told and "and 1 more, settled elsewhere" in told


async def test_two_hubs_on_one_token_are_one_alarm_an_hour() -> None:
    clock = ManualClock()
    hub_api = MiniHub(clock)
    with FakeTelegram() as server:
        ada = server.person(ADA)
        channel = TelegramChannel(telegram_settings(server), hub_api, clock)
        async with serving(hub_api, channel):
            for _ in range(20):
                await channel.state_changed("conflict", "terminated by other getUpdates request")
                await channel.state_changed("ok", "")
            await server.until(lambda: ada.sees(), "the alarm")
            clock.advance(3601)
            await channel.state_changed("conflict", "terminated by other getUpdates request")
            await server.until(lambda: len(ada.sees()) == 2, "the next alarm")
    assert [event for event, _ in hub_api.notes] == ["CHANNEL_CONFLICT"] * 2


async def test_a_question_overtakes_the_notices_that_wait() -> None:
    turns, order = Turns(), []

    async def speak(urgency: int, name: str) -> None:
        async with turns.take(urgency):
            order.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(speak(NOTICE, f"notice {number}"))
        await asyncio.sleep(0)
        group.create_task(speak(QUESTION, "question"))
    assert order.index("question") <= 2 and len(order) == 6


@both
async def test_a_question_does_not_wait_behind_session_notices(chat: str) -> None:
    async with stage(chat, messages_per_s=20.0) as on:
        session = on.hub_api.add_session()
        for number in range(30):
            await on.channel.notify(f"Session started: number {number}", session)
        await on.until(lambda: on.person.sees(), "the first notice")
        await on.ask(prompts.YES_NO)
        before = [text_of(one) for one in on.person.sees()]
        assert any("Continue?" in text for text in before) and len(before) < 15


@both
async def test_muting_mutes_reminders(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        (message_id,) = on.hub_api.deliveries(record.prompt_id, on.channel.name)
        on.command("mute 30m")
        await on.reads("Muted for 30m 0s")
        await on.channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting for an answer."))
        on.command("mute off")
        await on.reads("No longer muted")
        assert "Still waiting" not in on.all_text()
        await on.channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting for an answer."))
        assert "“Continue? (y/n)” · project" in text_of(await on.reads("🔔 Still waiting"))


@both
async def test_twenty_honest_answers_in_a_minute_all_count(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session()
        for _ in range(20):
            record = on.hub_api.add_prompt(session, prompts.YES_NO)
            await on.hub_api.ask(on.channel, record)
            on.write("perhaps", reply_to=on.message_of(record))  # a slip of the thumb is no attack
            on.press(on.message_of(record), "Yes")
            await on.until(lambda: record.prompt_id in on.hub_api.answers, "the answer")  # noqa: B023
        assert len(on.hub_api.answers) == 20


@both
async def test_sessions_can_be_started_interrupted_and_ended_by_name(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session(label="web-api")
        on.hub_api.launchable = ["nightly"]
        on.command("esc web-api")
        await on.reads("Esc was pressed in web-api.")
        on.command("stop")
        await on.reads("Which session?")
        on.command("stop web-api")
        await on.reads("AtlasBridge asked web-api to end.")
        on.command("new")
        await on.reads("with one of: nightly")
        on.command("new nightly")
        await on.reads("Started nightly")
        assert [(key, data) for key, data, _ in on.hub_api.typed] == [(session.session_id, b"\x1b")]
        assert on.hub_api.killed == [session.session_id]
        assert "SESSION_STOPPED" in [event for event, _ in on.hub_api.notes]


async def test_a_groups_number_is_told_in_private_to_who_asks_or_adds_the_bot() -> None:
    with FakeTelegram() as server:
        ada, hub_api = server.person(ADA), MiniHub()
        server.group(-100500, forum=True, threads=(7,))
        channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
        async with serving(hub_api, channel):
            await server.until(lambda: server.commands, "the bot")
            ada.write("/where", chat_id=-100500, thread=7)
            await server.until(lambda: ada.sees(), "the number")
        assert "chat_id = -100500\ntopic_id = 7" in ada.last()["text"] and ada.sees(-100500) == []


async def test_a_copy_whose_sending_was_never_confirmed_loses_its_buttons_when_the_next_arrives() -> None:
    async with stage("telegram") as on:
        on.server.fail("sendMessage", "cut_after")
        record = on.hub_api.add_prompt(on.hub_api.add_session(), prompts.YES_NO)
        with pytest.raises(Exception, match="nobody was reached"):
            await on.hub_api.ask(on.channel, record)
        await on.hub_api.ask(on.channel, record)
        lost, known = on.person.sees()
        assert "reply_markup" not in lost and "reply_markup" in known
        on.press(known, "No")
        await on.until(lambda: "🛑 No" in text_of(on.person.sees()[1]), "the outcome")
        on.person.tap_data(lost, known["reply_markup"]["inline_keyboard"][0][0]["callback_data"])  # a phone that lags
        await on.until(lambda: "🛑 No" in text_of(on.person.sees()[0]), "the same outcome on the copy")
        assert "reply_markup" not in on.person.sees()[0] and on.hub_api.answers[record.prompt_id].value == "n"


def test_long_instructions_and_joined_letters_are_taken() -> None:
    idle = replace(prompts.IDLE, multiline=True, line_mode=False)
    assert isinstance(decide_answer(idle, "x" * 4096, as_text=True), Answer)
    assert not isinstance(decide_answer(idle, "x" * 4097, as_text=True), Answer)
    for joined in ("می‌خواهم", "👩‍💻 ok", "क्‍ष"):
        assert isinstance(decide_answer(replace(prompts.TEXT, constraints={}), joined, as_text=True), Answer)
    for hidden in ("rm\u200c -rf", "\u200dx", "a\u200bb"):
        assert not isinstance(decide_answer(prompts.TEXT, hidden, as_text=True), Answer)


def test_the_manifest_opens_the_messages_tab_and_is_the_one_in_the_docs() -> None:
    assert MANIFEST["features"]["app_home"]["messages_tab_enabled"] is True
    assert MANIFEST["features"]["app_home"]["messages_tab_read_only_enabled"] is False
    kept = Path(__file__).parents[2] / "docs" / "slack-manifest.json"
    assert json.loads(kept.read_text()) == MANIFEST
    assert "Messages Tab" in setup_steps() and '"socket_mode_enabled": true' in setup_steps()
