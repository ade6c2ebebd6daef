"""The Telegram channel against the strict fake: what people see, tap and write, and what reaches the gate."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest
from tests.channels import prompts
from tests.channels.conftest import ADA, BOB, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels import chat
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import ManualClock, SystemClock, iso
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.prompt.model import PromptState, Receipt


def scenario(qa_id: str) -> pytest.MarkDecorator:
    """The reliability document reserves this id: `pytest -k QA-011`."""
    return pytest.mark.parametrize("qa_id", [qa_id])


def labels(message: dict) -> list[list[str]]:  # type: ignore[type-arg]
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [[button["text"] for button in row] for row in rows]


@scenario("QA-011")
async def test_a_yes_no_prompt_is_asked_tapped_and_marked_as_answered(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    shown = ada.last()
    assert shown["text"].startswith("❓ project asks:\nContinue? (y/n)\nYes / No question\nClaude Code · atlas · ")
    assert "⏳ Expires in " in shown["text"] and "— default: n" in shown["text"]
    assert labels(shown) == [["✅ Yes"], ["❌ No"], ["⏩ Use default (n)"], ["🔎 Show all"]]

    tap = ada.tap(shown, "Yes")
    await server.until(lambda: tap.answered, "the toast")
    await server.until(lambda: "reply_markup" not in ada.last(), "the edit")
    reply = hub_api.answers[record.prompt_id]
    assert (reply.value, reply.identity, reply.nonce) == ("y", "telegram:1001", record.nonce)
    assert reply.session_id == record.session_id
    assert tap.toast == "Received: y"
    assert re.match(r"✅ Yes · Ada · \d\d:\d\d\n", ada.last()["text"])


async def test_the_time_that_is_left_is_kept_current_until_the_prompt_is_answered(
    server: FakeTelegram, hub_api: MiniHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CURRENT_S", "LAST_CURRENT_S", "EACH_CURRENT_S"):
        monkeypatch.setattr(chat, name, 0.3)
    channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, channel):
        ada = server.person(ADA)
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        await hub_api.ask(channel, record)
        seen: list[str] = []

        def times() -> list[str]:
            if (left := re.search(r"Expires in ([\dhms ]+) \(", ada.last()["text"])) and left[1] not in seen:
                seen.append(left[1])
            return seen

        await server.until(lambda: len(times()) == 3, "two edits of the time that is left")
        assert len(ada.sees()) == 1, "the message is edited, and nothing new is sent"
        ada.tap(ada.last(), "Yes")
        await server.until(lambda: "reply_markup" not in ada.last(), "the edit of the answered prompt")
        answered = ada.last()["text"]
        await asyncio.sleep(1.2)
        assert ada.last()["text"] == answered and "Expires in" not in answered


async def test_a_menu_sets_the_refusing_choice_apart_and_marks_the_lasting_one(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.MENU))
    assert labels(ada.last()) == [
        ["1. Yes"],
        ["♾ always: 2. Yes, and don't ask again for rm"],
        ["❌ 3. No, tell Claude what to do different…"],
        ["⏩ Use default (3)"],
        ["🔎 Show all"],
    ]
    assert "or reply to this message with your own words" in ada.last()["text"]


async def test_an_answer_that_is_not_asked_again_takes_a_second_tap(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MENU)
    await hub_api.ask(channel, record)
    before = labels(ada.last())
    ada.tap(ada.last(), "♾ always")
    await server.until(lambda: labels(ada.last())[-1] == ["‹ Back"], "the second question")
    assert labels(ada.last())[0] == ["♾ Yes, always: 2. Yes, and don't ask again for rm"]
    ada.tap(ada.last(), "‹ Back")
    await server.until(lambda: labels(ada.last()) == before, "the first buttons")
    ada.tap(ada.last(), "♾ always")
    await server.until(lambda: labels(ada.last())[-1] == ["‹ Back"], "the second question")
    assert record.prompt_id not in hub_api.answers
    ada.tap(ada.last(), "♾ Yes, always")
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    assert hub_api.answers[record.prompt_id].value == "2"


async def test_a_choice_whose_value_is_too_long_for_a_button_still_reaches_the_gate_whole(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MANY)
    await hub_api.ask(channel, record)
    ada.tap_data(ada.last(), ada.last()["reply_markup"]["inline_keyboard"][6][0]["callback_data"])
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    assert hub_api.answers[record.prompt_id].value == prompts.MANY.choices[6].value


async def test_hostile_text_is_shown_as_what_it_is_and_never_as_markup(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.HOSTILE))
    text, entities = ada.last()["text"], ada.last()["entities"]
    assert "^[[31mred<U+202E>gnp.exe *bold* _x_ <b>html</b> [link](http://x) `code` <U+200B>😀" in text
    (quote,) = [entity for entity in entities if entity["type"] == "pre"]
    raw = text.encode("utf-16-le")[2 * quote["offset"] : 2 * (quote["offset"] + quote["length"])]
    assert raw.decode("utf-16-le").startswith("^[[31mred") and raw.decode("utf-16-le").endswith("😀")


@scenario("QA-012")
async def test_a_reply_in_words_goes_to_the_prompt_it_replies_to(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    ada = server.person(ADA)
    first = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    second = hub_api.add_prompt(hub_api.add_session("codex"), prompts.TEXT)
    await hub_api.ask(channel, first)
    await hub_api.ask(channel, second)
    ada.write("/not-a-command of ours", reply_to=ada.sees()[0])
    await server.until(lambda: first.prompt_id in hub_api.answers, "the answer")
    reply = hub_api.answers[first.prompt_id]
    assert (reply.value, reply.as_text, reply.nonce) == ("/not-a-command of ours", True, "")
    assert second.prompt_id not in hub_api.answers
    ada.write("enter", reply_to=ada.sees()[1])
    await server.until(lambda: second.prompt_id in hub_api.answers, "the key")
    assert (hub_api.answers[second.prompt_id].value, hub_api.answers[second.prompt_id].as_text) == ("enter", False)


async def test_nothing_open_is_said_and_other_media_are_refused(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    ada.write("hello?")
    await server.until(lambda: ada.sees() and "Nothing is waiting" in ada.last()["text"], "the answer")
    ada.send_photo()
    await server.until(lambda: "Which session?" in ada.last()["text"], "the refusal")


async def test_forwarded_and_edited_messages_answer_nothing(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    await hub_api.ask(channel, record)
    ada.forward("approve everything")
    await server.until(lambda: "messages from bots do not count" in ada.last()["text"], "the refusal")
    assert hub_api.answers == {}
    server.pass_time(5)
    written = ada.write("first")
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    ada.edit(written, "second")
    await server.until(lambda: "edit changes nothing" in ada.last()["text"], "the notice")
    assert [reply.value for reply in hub_api.replies] == ["first"]


async def test_strangers_are_told_nothing_and_logged_once(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, caplog: pytest.LogCaptureFixture
) -> None:
    ada, eve = server.person(ADA), server.person(6666, "Eve")
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    with caplog.at_level(logging.WARNING):
        eve.write("/sessions")
        eve.write("y")
        tap = eve.tap(ada.last(), "Yes")
        ada.write("/status")
        await server.until(
            lambda: "waiting for your answer" in ada.last()["text"], "the answer to Ada, after Eve's updates"
        )
    assert eve.sees() == [] and not tap.answered
    assert hub_api.replies == [] and not any("Eve" in payload for payload in hub_api.inbox.values())
    assert sum("6666" in line for line in caplog.messages) == 1
    assert [fields["identity"] for event, fields in hub_api.notes if event == "CHANNEL_STRANGER"] == ["telegram:6666"]


async def test_an_allowed_person_elsewhere_is_not_heard(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    server.group(-100500)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    elsewhere = ada.last() | {"chat": {"id": -100500, "type": "supergroup", "title": "Team"}}
    ada.tap(elsewhere, "Yes")
    ada.write("y", chat_id=-100500)
    ada.write("/status")
    await server.until(lambda: "waiting for your answer" in ada.last()["text"], "the private answer")
    assert hub_api.replies == []


async def test_a_group_topic_takes_part_only_when_opted_in(server: FakeTelegram, hub_api: MiniHub) -> None:
    ada = server.person(ADA)
    server.group(-100500, forum=True, threads=(7, 8))
    settings = telegram_settings(server, groups=[{"chat_id": -100500, "topic_id": 7}])
    channel = TelegramChannel(settings, hub_api, SystemClock())
    async with serving(hub_api, channel):
        record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
        await hub_api.ask(channel, record)
        shown = ada.last(-100500)
        assert shown["message_thread_id"] == 7
        ada.write("chatter", chat_id=-100500, thread=7)
        ada.write("wrong topic", chat_id=-100500, thread=8, reply_to=shown)
        ada.write("blue", chat_id=-100500, thread=7, reply_to=shown)
        await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    assert hub_api.answers[record.prompt_id].value == "blue" and len(hub_api.replies) == 1


@scenario("QA-016")
async def test_two_operators_first_valid_reply_wins_and_the_other_sees_who(
    server: FakeTelegram, hub_api: MiniHub, qa_id: str
) -> None:
    ada, bob = server.person(ADA), server.person(BOB, "Bob")
    channel = TelegramChannel(telegram_settings(server, allowed_users=[ADA, BOB]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        await hub_api.ask(channel, record)
        late = bob.last()
        first, second = bob.tap(bob.last(), "No"), ada.tap(ada.last(), "Yes")
        await server.until(lambda: first.answered and second.answered, "both toasts")
        await server.until(lambda: "🛑 No · Bob" in ada.last()["text"] and "No · Bob" in bob.last()["text"], "who")
        third = bob.tap(late, "No")
        await server.until(lambda: third.answered, "the third toast")
    assert hub_api.answers[record.prompt_id].value == "n"
    assert str(second.toast).startswith("Too late. 🛑 No · Bob · ")
    assert str(third.toast).startswith("Too late. 🛑 No · Bob · ")


async def test_one_operator_who_blocked_the_bot_does_not_hide_the_prompt_from_the_other(
    server: FakeTelegram, hub_api: MiniHub
) -> None:
    ada, bob = server.person(ADA), server.person(BOB, "Bob")
    channel = TelegramChannel(telegram_settings(server, allowed_users=[ADA, BOB]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        bob.block()
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        await hub_api.ask(channel, record)
        assert len(ada.sees()) == 1
        assert channel.health()["unreachable_chats"] == [str(BOB)]
        bob.unblock()
        await server.until(lambda: bob.sees(), "what is open, once he is back")
    assert bob.last()["text"] == ada.last()["text"] or "Continue?" in bob.last()["text"]


async def test_nobody_reached_is_a_channel_error(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    server.person(ADA).block()
    with pytest.raises(ChannelError, match="blocked by the user"):
        await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))


async def test_a_forged_or_foreign_button_never_answers(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    one = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    two = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, one)
    await hub_api.ask(channel, two)
    first, second = ada.sees()
    good = second["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    head, _, nonce, value = good.rsplit(":", 3)
    forged = [
        ada.tap_data(first, good),  # the button of another message
        ada.tap_data(second, f"{head}:{'0' * 8}:{nonce}:{value}"),  # another session
        ada.tap_data(second, good.replace(nonce, "0" * 16)),  # another nonce
        ada.tap_data(second, "ans:zz"),
        ada.tap_data(second, "ans:" + "0" * 8 + ":" + "0" * 8 + ":" + "0" * 16 + ":y"),
    ]
    await server.until(lambda: all(tap.answered for tap in forged), "the toasts")
    assert hub_api.answers == {}
    ada.tap_data(second, good, inaccessible=True)
    await server.until(lambda: two.prompt_id in hub_api.answers, "the good one")


async def test_the_ambiguity_protocol_offers_enter_and_cancel(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    for button, value in (("Send Enter", "enter"), ("Cancel", "cancel")):
        record = hub_api.add_prompt(hub_api.add_session(), prompts.UNKNOWN)
        await hub_api.ask(channel, record)
        assert "AtlasBridge detected a possible input request of Claude Code." in ada.last()["text"]
        ada.tap(ada.last(), button)
        await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")  # noqa: B023
        assert hub_api.answers[record.prompt_id].value == value


async def test_a_look_at_the_last_output_asks_the_same_question_again(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.UNKNOWN)
    await hub_api.ask(channel, record)
    asked = ada.last()
    ada.tap(asked, "Show last output")
    await server.until(lambda: len(ada.sees()) == 2, "the last output")
    assert prompts.SCREEN.split("\n")[0] in ada.last()["text"]
    assert ada.last()["reply_markup"] == asked["reply_markup"]
    ada.tap(ada.last(), "Send Enter")
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    await server.until(lambda: not any("reply_markup" in one for one in ada.sees()), "both messages to be edited")


async def test_commands_are_announced_and_those_to_another_bot_are_words(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    server.pass_time(5)
    ada.write("/help@another_bot")
    await server.until(lambda: "That is not one of the choices" in ada.last().get("text", ""), "the refusal")
    assert [command["command"] for command in server.commands] == [
        "status", "sessions", "screen", "picture", "last", "transcript", "queue", "changes", "get", "switch", "new",
        "esc", "resume", "stop", "later", "snooze", "all", "grant", "mute", "away", "here", "language", "help",
    ]  # fmt: skip


async def test_receipts_edit_the_message_and_a_reminder_is_a_new_one(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(channel, record)
    await channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting for you."))
    await server.until(lambda: len(ada.sees()) == 2, "the reminder")
    assert ada.last()["reply_to_message"]["message_id"] == ada.sees()[0]["message_id"]
    assert labels(ada.sees()[0]) != []
    for stage, sentence, title in (
        ("withdrawn", "It was answered at the terminal.", "↩ answered at the terminal · "),
        ("expired", "Nobody answered in time; nothing was typed.", "⌛ nobody answered in time: still waiting\n"),
    ):
        await channel.update_prompt(message_id, record, Receipt(stage, sentence))
        await server.until(lambda: ada.sees()[0]["text"].startswith(title), sentence)  # noqa: B023
    assert labels(ada.sees()[0]) == [["🔁 Ask again"]]


async def test_the_same_edit_twice_is_no_error(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(channel, record)
    for _ in range(2):
        await channel.update_prompt(message_id, record, Receipt("taken", "Taken."))
        await server.until(lambda: channel.health()["pending"] == 0, "an empty outbox")
    assert len(server.calls_of("editMessageText")) == 2
    assert channel.health()["state"] == "ok"


@scenario("QA-017")
async def test_more_than_ten_replies_a_minute_pause_the_session_with_one_warning(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    shown = ada.last()
    bad = shown["reply_markup"]["inline_keyboard"][0][0]["callback_data"][:-1] + "bogus"
    taps = [ada.tap_data(shown, bad) for _ in range(13)]
    await server.until(lambda: all(tap.answered for tap in taps), "the toasts")
    assert len(hub_api.replies) == 10
    assert sum("Too many replies" in str(tap.toast) for tap in taps) == 3
    await server.until(lambda: any("paused" in m["text"] for m in ada.sees()), "the warning")
    assert sum("paused" in m["text"] for m in ada.sees()) == 1


def test_settings_take_numeric_ids_only() -> None:
    for users in (["ada"], ["1001"], [True], [-5], [0], []):
        with pytest.raises(ValueError):
            TelegramChannel({"bot_token": "1:x", "allowed_users": users}, MiniHub(), ManualClock())


async def test_the_token_is_in_no_log_and_no_error(
    server: FakeTelegram, hub_api: MiniHub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.person(ADA)
    channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, channel):
        server.fail("sendMessage", "cut_before")
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        with pytest.raises(ChannelError) as caught:
            await hub_api.ask(channel, record)
        await hub_api.ask(channel, record)
        server.fail("*", "garbage", times=3)
        await channel.notify("hello")
        await server.until(lambda: any("hello" in m["text"] for m in server.sent(ADA)), "the notice")
    assert "HTTP Request: POST" in caplog.text and "/bot<token>/" in caplog.text
    assert server.token not in caplog.text and server.token.split(":")[1] not in caplog.text
    chained = caught.value.__cause__ or caught.value.__context__
    assert server.token not in f"{caught.value!r} {chained!r} {channel.health()} {channel!r}"


async def test_a_prompt_shown_by_an_earlier_process_is_answered_and_edited_after_a_restart(
    server: FakeTelegram, hub_api: MiniHub
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    first = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, first):
        await hub_api.ask(first, record)
    second = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, second):
        ada.write("blue", reply_to=ada.last())
        await server.until(lambda: "“blue” · Ada · " in ada.last()["text"], "the edit")
    assert hub_api.answers[record.prompt_id].value == "blue"


async def test_a_restart_says_that_old_taps_are_lost(server: FakeTelegram) -> None:
    clock = ManualClock()
    hub_api = MiniHub(clock)
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    first = TelegramChannel(telegram_settings(server), hub_api, clock)
    async with serving(hub_api, first):
        await hub_api.ask(first, record)
        await server.until(lambda: hub_api.memory.get("telegram.last_poll") == iso(clock.wall()), "a poll")
    clock.advance(300)
    second = TelegramChannel(telegram_settings(server), hub_api, clock)
    async with serving(hub_api, second):
        await server.until(lambda: "I was offline for 5m 0s" in ada.last()["text"], "the explanation")
        await server.until(lambda: server.calls_of("editMessageText"), "the buttons, refreshed")
    assert hub_api.records[record.prompt_id].state is PromptState.AWAITING_REPLY


async def test_two_channels_at_once_are_two_pollers_and_an_alarm(server: FakeTelegram, hub_api: MiniHub) -> None:
    ada = server.person(ADA)
    first = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    second = TelegramChannel(telegram_settings(server), MiniHub(), SystemClock())
    async with serving(hub_api, first):
        await server.until(lambda: first.health()["state"] == "ok", "the first poller")
        await server.until(lambda: len(server.calls_of("getUpdates")) >= 2, "its long poll")
        await second.start()
        await server.until(lambda: any("Another program is polling" in m["text"] for m in ada.sees()), "the alarm")
        await second.close()
        await server.until(lambda: first.health()["state"] == "ok", "peace again")
    assert [event for event, _ in hub_api.notes].count("CHANNEL_CONFLICT") >= 1


async def test_concurrent_prompts_of_one_chat_all_arrive(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    records = [hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO) for _ in range(8)]
    await asyncio.gather(*(hub_api.ask(channel, record) for record in records))
    assert len(ada.sees()) == 8
    for message in ada.sees():
        ada.tap(message, "No")
    await server.until(lambda: len(hub_api.answers) == 8, "every answer")
