"""An answer for later, being asked again, several answered the same way: in a chat, the same play on both stages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.channels import prompts
from tests.support.chat_stage import Stage, stage, text_of

from atlasbridge.channels.commands import pick
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptState, PromptType, Receipt
from atlasbridge.core.scheduler.times import LIMIT

BOTH = pytest.mark.parametrize("name", ["telegram", "slack"])


def limited() -> Prompt:
    resets = iso(SystemClock().wall() + 3600)
    return Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "What next?", constraints={"idle": True, LIMIT: resets}, digest="i")


async def tell(play: Stage, record: PromptRecord, receipt: Receipt) -> None:
    for message_id in play.hub_api.deliveries(record.prompt_id, play.channel.name):
        await play.channel.update_prompt(message_id, record, receipt)


@BOTH
async def test_a_reply_to_the_card_gives_an_answer_for_later(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        sign = "/" if name == "telegram" else "!"
        play.write(f"{sign}later 06:00 y", reply_to=play.message_of(record))
        await play.reads("at 06:00 (1a2b3c4d)")
        ((reply, when),) = play.hub_api.kept
        assert (reply.prompt_id, reply.value, when) == (record.prompt_id, "y", "06:00")
        assert reply.identity.startswith(name) and play.hub_api.replies == []


@BOTH
async def test_an_answer_for_later_is_given_by_id_listed_and_taken_back(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.TEXT)
        play.command(f"later {short_id(record.prompt_id)} in 2h go on then")
        await play.reads("at in 2h")
        assert play.hub_api.kept[0][0].value == "go on then"
        play.command("later")
        await play.reads("answer “go on then”")
        play.command("later off project")
        await play.reads("Removed.")
        play.command("later")
        await play.reads("No scheduled answers.")


@BOTH
async def test_an_answer_for_later_is_taken_back_by_a_reply_to_its_question(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        sign = "/" if name == "telegram" else "!"
        play.write(f"{sign}later 06:00 y", reply_to=play.message_of(record))
        await play.reads("at 06:00 (1a2b3c4d)")
        play.write(f"{sign}later off", reply_to=play.message_of(record))
        await play.reads("Removed.")
        assert play.hub_api.replies == []


def test_a_word_names_an_item_of_a_list_by_number_session_or_id() -> None:
    items = [("web", "aaaa1111"), ("api", "bbbb2222"), ("web", "12345678")]

    def found(word: str) -> list[str]:
        return [key for _, key in pick(items, word, lambda one: one[0], lambda one: one[1])]

    assert found("2") == found("API") == found("bbbb") == ["bbbb2222"]
    assert found("web") == ["aaaa1111", "12345678"] and found("12345678") == ["12345678"]
    assert found("zzzz") == found("9") == found("aa") == [] and len(found("")) == 3


@BOTH
@pytest.mark.parametrize(
    "words", ["later nothing 06:00 y", "later", "snooze", "snooze nothing 5m", "all", "all y ffffffff"]
)
async def test_what_names_no_prompt_does_nothing_and_says_how(name: str, words: str) -> None:
    async with stage(name) as play:
        play.command(words)
        await play.until(lambda: play.person.sees(), words)
        assert play.hub_api.kept == [] and play.hub_api.snoozed == [] and play.hub_api.replies == []


@BOTH
async def test_a_bad_moment_is_told(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        play.command(f"later {short_id(record.prompt_id)} soon y")
        await play.reads("Give a time")
        assert play.hub_api.kept == []


@BOTH
async def test_a_card_about_a_limit_offers_to_go_on_when_it_resets(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(limited())
        card = play.message_of(record)
        (label,) = [one for one in play.buttons(card) if "limit resets" in one]
        play.press(card, label)
        await play.until(lambda: play.hub_api.kept, "the answer for later")
        ((reply, when),) = play.hub_api.kept
        assert (reply.value, reply.as_text, when) == ("continue", True, "limit-resets")
        assert reply.prompt_id == record.prompt_id


@BOTH
async def test_a_reminder_offers_to_be_asked_again_later(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        await tell(play, record, Receipt("reminder", "Still waiting."))
        reminder = await play.reads("Still waiting")
        play.press(reminder, "💤 In 15 minutes")
        await play.until(lambda: play.hub_api.snoozed, "the snooze")
        assert [(reply.prompt_id, for_s) for reply, for_s in play.hub_api.snoozed] == [(record.prompt_id, 900.0)]
        play.command(f"snooze {short_id(record.prompt_id)} 2h")
        await play.until(lambda: len(play.hub_api.snoozed) == 2, "the second snooze")
        assert play.hub_api.snoozed[1][1] == 7200.0


@BOTH
async def test_what_was_said_for_later_stands_beside_the_card_which_stays_open(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        await tell(play, record, Receipt("postponed", "Bob answers Yes at 06:00 (1a2b3c4d).", "slack:T1/U9"))
        await play.reads("Bob answers Yes at 06:00")
        assert any("Yes" in label for label in play.buttons(play.message_of(record)))


@BOTH
async def test_several_are_answered_the_same_way_each_for_itself(name: str) -> None:
    async with stage(name) as play:
        records = [await play.ask(prompts.YES_NO, cwd=f"/home/ada/p{number}") for number in range(3)]
        play.command("all n")
        listed = text_of(await play.reads("To answer these"))
        assert all(f"{number}. p{number - 1}: " in listed for number in (1, 2, 3))
        play.command("all n 1 p2")
        await play.until(lambda: len(play.hub_api.answers) == 2, "two answers")
        assert {reply.prompt_id for reply in play.hub_api.replies} == {records[0].prompt_id, records[2].prompt_id}
        assert {reply.value for reply in play.hub_api.replies} == {"n"}


@BOTH
async def test_a_tool_s_own_command_as_a_reply_is_still_its_own(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.TEXT)
        sign = "/" if name == "telegram" else "!"
        play.write(f"{sign}compact now", reply_to=play.message_of(record))
        await play.until(lambda: play.hub_api.replies, "the text")
        reply: Any = play.hub_api.replies[0]
        assert reply.value == f"{sign}compact now"


@BOTH
@pytest.mark.parametrize("words", ["later in 2h y", "snooze 15m"])
async def test_without_a_name_the_only_question_is_meant_and_of_two_a_tap_chooses(name: str, words: str) -> None:
    async with stage(name) as play:
        kept: list[Any] = play.hub_api.kept if words.startswith("later") else play.hub_api.snoozed
        first = await play.ask(prompts.YES_NO, cwd="/home/ada/web")
        play.clock.advance(5)
        play.command(words)
        await play.until(lambda: len(kept) == 1, "the only one")
        second = await play.ask(prompts.YES_NO, cwd="/home/ada/api")
        play.command(words)
        which = await play.reads("Which one do you mean?")
        assert len(kept) == 1
        play.press(which, next(label for label in play.buttons(which) if label.startswith("api:")))
        await play.until(lambda: len(kept) == 2, "the one that was tapped")
        assert [reply.prompt_id for reply, _ in kept] == [first.prompt_id, second.prompt_id]
        assert kept[0][0].value == kept[1][0].value and play.hub_api.replies == []


@BOTH
@pytest.mark.parametrize("words", ["later in 2h y", "snooze 15m", "grant 30m"])
async def test_without_a_name_a_question_that_nobody_had_time_to_read_is_not_meant(name: str, words: str) -> None:
    async with stage(name) as play:
        first = await play.ask(prompts.YES_NO, cwd="/home/ada/web")
        play.clock.advance(5)
        play.hub_api.move(first, PromptState.RESOLVED)
        second = await play.ask(prompts.YES_NO, cwd="/home/ada/api")
        play.command(words)
        which = await play.reads("Which one do you mean?")
        hub: Any = play.hub_api
        assert [*hub.kept, *hub.snoozed, *hub.granted] == []
        play.press(which, next(label for label in play.buttons(which) if label.startswith("api:")))
        await play.until(lambda: hub.kept or hub.snoozed or hub.granted, "the one that was tapped")
        meant = [reply.prompt_id for reply, _ in (*hub.kept, *hub.snoozed, *hub.granted)]
        assert meant == [second.prompt_id]


@BOTH
async def test_a_name_that_is_not_there_is_told_although_only_one_question_waits(name: str) -> None:
    async with stage(name) as play:
        await play.ask(prompts.YES_NO)
        play.command("later shop 06:00 y")
        await play.reads("There is no such prompt.")
        assert play.hub_api.kept == []


@BOTH
@pytest.mark.parametrize("words", ["later in 2h y", "snooze 15m"])
async def test_what_the_hub_tells_beside_the_card_is_not_told_a_second_time(name: str, words: str) -> None:
    async with stage(name) as play:
        play.hub_api.kept_id = "1a2b3c4d"
        record = await play.ask(prompts.YES_NO)
        play.clock.advance(5)
        play.command(words)
        await play.until(lambda: play.hub_api.kept or play.hub_api.snoozed, "the command")
        await tell(play, record, Receipt("postponed", "Ada is asked again at 06:00 (1a2b3c4d)."))
        await play.reads("Ada is asked again")
        await play.settle()
        told = [one for one in map(text_of, play.person.sees()) if "1a2b3c4d" in one]
        assert told == ["⏰ project: Ada is asked again at 06:00 (1a2b3c4d)."]
