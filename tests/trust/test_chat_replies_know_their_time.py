"""A text without a reference counts only for the one question that its writer had been shown before writing it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import Stage, playing, stage
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.prompt.model import PromptState, Receipt

both = pytest.mark.parametrize("chat", ["telegram", "slack"])


@both
async def test_a_text_for_the_only_question_shown_before_it_is_taken(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        on.clock.advance(5)
        on.write("y")
        await on.until(lambda: record.prompt_id in on.hub_api.answers, "the answer")


@both
async def test_a_text_written_before_the_question_never_answers_it(chat: str) -> None:
    clock, hub = ManualClock(), MiniHub()
    server = FakeTelegram(clock=clock.wall) if chat == "telegram" else FakeSlack(clock=clock.wall, ack_s=1.0)
    with server:
        person = server.person(1001) if isinstance(server, FakeTelegram) else server.person("U0ADA")
        person.write("y")
        clock.advance(36_000)
        record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
        async with playing(chat, server, hub) as channel:
            on = Stage(hub, server, channel, person, clock)
            await hub.ask(channel, record)
            await on.settle()
            assert hub.replies == []


@both
async def test_a_text_that_was_on_its_way_while_the_question_came_is_asked_back(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO, label="web-api")
        on.write("y")  # within the same second: nobody has read the question yet
        asked = await on.reads("Which one")
        assert on.hub_api.replies == [] and any("web-api" in label for label in on.buttons(asked))
        on.press(asked, "web-api")
        await on.until(lambda: record.prompt_id in on.hub_api.answers, "the answer, after the person said which")
        assert on.hub_api.answers[record.prompt_id].value == "y"
        assert on.hub_api.answers[record.prompt_id].nonce == record.nonce
        assert on.buttons(await on.reads("↪ web-api")) == []


@both
async def test_of_two_questions_that_stood_open_neither_is_guessed_even_when_one_has_ended_since(chat: str) -> None:
    async with stage(chat) as on:
        first = await on.ask(prompts.YES_NO, label="one")
        second = await on.ask(prompts.YES_NO, label="two")
        on.clock.advance(60)
        on.write("y")
        asked = await on.reads("Which one")
        assert [label for label in on.buttons(asked) if "one" in label or "two" in label] == on.buttons(asked)
        assert len(on.buttons(asked)) == 2 and on.hub_api.replies == []
        on.press(asked, "two")
        await on.until(lambda: on.hub_api.answers, "the answer")
        assert list(on.hub_api.answers) == [second.prompt_id] and first.prompt_id not in on.hub_api.answers


@both
async def test_an_ended_question_does_not_pass_its_answer_on_to_the_next(chat: str) -> None:
    async with stage(chat) as on:
        first = await on.ask(prompts.YES_NO)
        on.clock.advance(10)
        written_at = on.clock.wall()
        moved = on.hub_api.move(first, PromptState.WITHDRAWN)
        (message_id,) = on.hub_api.deliveries(first.prompt_id, on.channel.name)
        await on.channel.update_prompt(message_id, moved, Receipt("withdrawn", "The tool moved on."))
        on.clock.advance(5)
        await on.ask(prompts.YES_NO)
        late_s = on.clock.wall() - written_at
        on.clock.jump_wall(-late_s)  # the text was written for the first, and comes late
        on.write("y")
        on.clock.jump_wall(late_s)
        await on.settle()
        assert on.hub_api.replies == []


@both
async def test_a_reference_counts_for_its_own_message_only(chat: str) -> None:
    async with stage(chat) as on:
        first = await on.ask(prompts.YES_NO, label="one")
        second = await on.ask(prompts.YES_NO, label="two")
        on.write("n", reply_to=on.message_of(first))
        await on.until(lambda: first.prompt_id in on.hub_api.answers, "the answer")
        assert second.prompt_id not in on.hub_api.answers
        on.write("y", reply_to=on.message_of(first))  # again: it is settled, and no other is meant
        await on.settle()
        assert second.prompt_id not in on.hub_api.answers


@both
async def test_a_reference_to_something_else_of_ours_is_no_plain_text(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        await on.channel.notify("Session started: claude")
        notice = await on.reads("Session started")
        on.clock.advance(30)
        on.write("y", reply_to=notice)
        await on.reads("Which one")
        assert record.prompt_id not in on.hub_api.answers


@both
async def test_words_from_before_a_restart_are_asked_back(chat: str) -> None:
    clock, hub = ManualClock(), MiniHub()
    server = FakeTelegram(clock=clock.wall) if chat == "telegram" else FakeSlack(clock=clock.wall, ack_s=1.0)
    with server:
        person = server.person(1001) if chat == "telegram" else server.person("U0ADA")  # type: ignore[arg-type]
        clock.jump_wall(hub.clock.wall() - 100 - clock.wall())
        record = hub.add_prompt(hub.add_session(label="web-api"), prompts.YES_NO)
        async with playing(chat, server, hub) as channel:
            await hub.ask(channel, record)
        clock.advance(60)
        person.write("y")  # while nobody listens: what else stood open then is not known any more
        clock.advance(60)
        async with playing(chat, server, hub) as channel:
            on = Stage(hub, server, channel, person, clock)
            await on.reads("Which one")
            assert hub.replies == []


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ({"is_from_offline": True}, "Scheduled"),
        ({"via_bot": {"id": 7, "is_bot": True, "first_name": "b"}}, "from bots"),
        ({"external_reply": {"origin": {"type": "hidden_user", "sender_user_name": "x", "date": 1}}}, "Which one"),
    ],
)
async def test_words_from_before_from_a_bot_or_about_something_elsewhere_are_no_plain_text(
    marks: dict[str, Any], said: str
) -> None:
    """A message that Telegram sends later was written before the question, whatever time it carries."""
    async with stage("telegram") as on:
        await on.ask(prompts.YES_NO)
        on.clock.advance(5)
        on.person.write_marked("y", **marks)
        await on.reads(said)
        assert on.hub_api.replies == []
