"""Several choices at once: marked with buttons or boxes and sent together; the numbers in words stay possible."""

from __future__ import annotations

from tests.channels import prompts
from tests.channels.conftest import ADA, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support import fake_slack_blocks as kit
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram, Message
from tests.support.fake_telegram_person import Person

from atlasbridge.channels.slack.blocks import question, render
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.channels.telegram.messages import render_rows
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.prompt.model import Choice
from atlasbridge.core.values import replace

WITH_NO = replace(prompts.MULTI, choices=(*prompts.MULTI.choices, Choice("4", "Forget it", refuses=True)))


def labels(message: Message) -> list[str]:
    return [button["text"] for row in message.get("reply_markup", {}).get("inline_keyboard", []) for button in row]


async def tap(server: FakeTelegram, ada: Person, button: str, shows: str) -> None:
    ada.tap(ada.last(), button)
    await server.until(lambda: shows in labels(ada.last()), f"{shows} after {button}")


async def test_taps_mark_and_unmark_and_one_button_sends_them(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), WITH_NO)
    await hub_api.ask(channel, record)
    shown = labels(ada.last())
    assert shown[:4] == ["☐ 1. eggs", "☐ 2. milk", "☐ 3. tea", "✅ Send (0 chosen)"] and "❌ 4. Forget it" in shown
    await tap(server, ada, "3. tea", "☑ 3. tea")
    await tap(server, ada, "2. milk", "☑ 2. milk")
    await tap(server, ada, "1. eggs", "✅ Send (3 chosen)")
    await tap(server, ada, "2. milk", "☐ 2. milk")
    ada.tap(ada.last(), "Send")
    await server.until(lambda: hub_api.answers, "the answer")
    (reply,) = hub_api.replies
    assert (reply.value, reply.nonce) == ("1,3", record.nonce)


async def test_marks_outlive_a_restart_of_the_channel(server: FakeTelegram, hub_api: MiniHub) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MULTI)
    first = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, first):
        await hub_api.ask(first, record)
        await tap(server, ada, "1. eggs", "☑ 1. eggs")
    async with serving(hub_api, TelegramChannel(telegram_settings(server), hub_api, SystemClock())):
        await tap(server, ada, "2. milk", "✅ Send (2 chosen)")
        ada.tap(ada.last(), "Send")
        await server.until(lambda: hub_api.answers, "the answer")
    assert hub_api.replies[0].value == "1,2"


async def test_sending_from_a_screen_that_lags_behind_is_asked_again(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MULTI)
    await hub_api.ask(channel, record)
    stale = ada.last()
    await tap(server, ada, "1. eggs", "☑ 1. eggs")
    early = ada.tap(stale, "Send")
    await server.until(lambda: early.answered, "the toast")
    assert "The selection has changed" in str(early.toast) and hub_api.replies == []
    ada.tap(stale, "2. milk")  # and marks made on it count with the others
    await server.until(lambda: "✅ Send (2 chosen)" in labels(ada.last()), "both marks")


async def test_forged_marks_are_refused(server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), WITH_NO)
    await hub_api.ask(channel, record)
    head = f"{record.prompt_id[:8]}:{record.session_id[:8]}:{record.nonce[:16]}"
    taps = [ada.tap_data(ada.last(), f"{data}") for data in (f"tgl:{head}:3.0", f"tgl:{head}:x", f"snd:{head}:-1")]
    await server.until(lambda: all(one.answered for one in taps), "the toasts")
    wrong = ada.tap_data(ada.last(), f"snd:{head[:18]}{'0' * 16}:1")
    await server.until(lambda: wrong.answered, "the toast")
    assert hub_api.answers == {}


async def test_nothing_marked_is_an_answer_too_and_numbers_in_words_stay(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    session = hub_api.add_session()
    nothing, words = hub_api.add_prompt(session, prompts.MULTI), hub_api.add_prompt(session, prompts.MULTI)
    await hub_api.ask(channel, nothing)
    ada.tap(ada.last(), "Send")
    await server.until(lambda: nothing.prompt_id in hub_api.answers, "the first answer")
    await hub_api.ask(channel, words)
    ada.write("1,3", reply_to=ada.last())
    await server.until(lambda: words.prompt_id in hub_api.answers, "the second answer")
    assert [reply.value for reply in hub_api.replies] == ["none", "1,3"]


def test_every_button_of_a_long_list_fits_and_a_longer_one_is_left_to_words(hub_api: MiniHub) -> None:
    for count, rows in ((30, 31), (31, 0)):
        choices = tuple(Choice(str(number), f"choice {number}") for number in range(1, count + 1))
        record = hub_api.add_prompt(hub_api.add_session(), replace(prompts.MULTI, choices=choices))
        shown = render_rows(record, (1 << count) - 1)
        assert len(shown) == rows
        assert all(len(button["callback_data"].encode()) <= 64 for row in shown for button in row)


async def test_boxes_in_slack_are_marked_and_sent_together(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    record = hub_api.add_prompt(hub_api.add_session(), WITH_NO)
    await hub_api.ask(slack_channel, record)
    first = ada.mark(ada.last(), "eggs")
    second = ada.mark(ada.last(), "eggs", "tea")
    await slack.until(lambda: first.acked and second.acked, "the acknowledgements")
    assert hub_api.replies == [] and len(ada.sees()) == 1  # marking alone says nothing
    ada.click(ada.last(), "Send selection")
    await slack.until(lambda: hub_api.answers, "the answer")
    assert (hub_api.replies[0].value, hub_api.replies[0].nonce) == ("1,3", record.nonce)


def test_a_long_list_in_slack_is_a_menu_and_a_longer_one_is_left_to_words(hub_api: MiniHub) -> None:
    session = hub_api.add_session()
    for count, kind in ((10, "checkboxes"), (11, "multi_static_select"), (101, "")):
        choices = tuple(Choice(str(number), "label " * 20) for number in range(1, count + 1))
        record = hub_api.add_prompt(session, replace(prompts.MULTI, choices=choices))
        blocks = kit.check_blocks(render(question(record, session, "atlas"))["blocks"])
        elements = [one for block in blocks for one in (*block.get("elements", ()), block.get("accessory", {}))]
        kinds = [element["type"] for element in elements if "options" in element]
        assert kinds == ([kind] if kind else [])


async def test_what_the_tool_shows_as_marked_is_marked_from_the_start(
    server: FakeTelegram, slack: FakeSlack, hub_api: MiniHub, channel: TelegramChannel, slack_channel: SlackChannel
) -> None:
    marked = (Choice("1", "eggs", default=True), Choice("2", "milk"), Choice("3", "tea", default=True))
    phone, work = server.person(ADA), slack.person("U0ADA")
    session = hub_api.add_session()
    first, second = (hub_api.add_prompt(session, replace(prompts.MULTI, choices=marked)) for _ in range(2))
    await hub_api.ask(channel, first)
    assert labels(phone.last())[:4] == ["☑ 1. eggs", "☐ 2. milk", "☑ 3. tea", "✅ Send (2 chosen)"]
    await tap(server, phone, "1. eggs", "✅ Send (1 chosen)")
    phone.tap(phone.last(), "Send")
    await hub_api.ask(slack_channel, second)
    work.click(work.last(), "Send selection")
    await server.until(lambda: len(hub_api.answers) == 2, "both answers")
    assert {reply.channel: reply.value for reply in hub_api.replies} == {"telegram": "3", "slack": "1,3"}
