"""Telegram through bad days: outages, floods, lost answers, duplicates, reordering, a restart in the middle."""

from __future__ import annotations

import asyncio

import pytest
from tests.channels import prompts
from tests.channels.conftest import ADA, BOB, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_telegram import FakeTelegram
from tests.support.waiting import until

from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import ManualClock, SystemClock
from atlasbridge.core.errors import ChannelError, StoreError
from atlasbridge.core.prompt.model import PromptState, Receipt


async def test_an_outage_is_survived_and_what_was_tapped_meanwhile_is_heard(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    server.stop()
    ada.tap(ada.last(), "Yes")
    other = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    with pytest.raises(ChannelError, match="cannot be reached"):
        await hub_api.ask(channel, other)
    await server.until(lambda: channel.health()["state"] == "unreachable", "the channel to say so")
    server.start()
    await server.until(lambda: record.prompt_id in hub_api.answers, "the tap of the outage")
    await hub_api.ask(channel, other)
    assert channel.health()["state"] == "ok"


async def test_an_edit_asked_for_during_an_outage_is_made_after_it(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(channel, record)
    server.stop()
    for stage in ("received", "typed", "taken"):
        await channel.update_prompt(message_id, record, Receipt(stage, f"It is {stage}."))
    server.start()
    await server.until(lambda: ada.last()["text"].startswith("✅ answered ·"), "the newest edit")


async def test_words_written_to_a_question_whose_sending_was_not_confirmed_go_to_no_other(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    """She reads the second question; only the confirmation that it was shown is lost on its way back."""
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.TEXT))
    server.fail("sendMessage", "cut_after", times=1)
    asking = asyncio.ensure_future(hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)))
    await server.until(lambda: len(ada.sees()) == 2, "the second question on her phone")
    server.pass_time(5)
    ada.write("blue")
    await server.until(lambda: "Which one do you mean?" in ada.last()["text"], "the question back")
    assert hub_api.answers == {}
    with pytest.raises(ChannelError, match="cannot be reached"):
        await asking


async def test_a_question_that_ended_before_its_sending_was_confirmed_does_not_stand_in_the_way(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record, short = (hub_api.add_prompt(hub_api.add_session(), prompts.TEXT) for _ in range(2))
    await hub_api.ask(channel, record)
    server.fail("sendMessage", "slow", seconds=60)
    asking = asyncio.ensure_future(hub_api.ask(channel, short))
    await server.until(lambda: len(server.calls_of("sendMessage")) == 2, "the second question on its way")
    hub_api.move(short, PromptState.CANCELED)
    asking.cancel()
    await asyncio.wait({asking})
    server.pass_time(5)
    ada.write("blue")
    await server.until(lambda: hub_api.answers, "the answer")
    assert list(hub_api.answers) == [record.prompt_id]


@pytest.mark.parametrize("kind", ["status", "garbage", "cut_before"])
async def test_faults_of_the_server_while_polling_lose_nothing(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, kind: str
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    server.fail("getUpdates", kind, times=4)  # type: ignore[arg-type]
    ada.tap(ada.last(), "No")
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    assert hub_api.answers[record.prompt_id].value == "n"


async def test_a_flood_limit_is_obeyed(server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel) -> None:
    ada = server.person(ADA)
    server.fail("sendMessage", "status", status=429, description="Too Many Requests: retry after 1", retry_after=1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    assert loop.time() - began >= 0.9
    assert len(ada.sees()) == 1 and len(server.calls_of("sendMessage")) == 2


async def test_a_long_flood_limit_is_an_error_at_once_and_no_request_goes_out_meanwhile(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    server.person(ADA)
    server.fail("sendMessage", "status", status=429, description="Too Many Requests: retry after 40", retry_after=40)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    for _ in range(3):
        with pytest.raises(ChannelError, match="wants no message"):
            await hub_api.ask(channel, record)
    assert len(server.calls_of("sendMessage")) == 1


async def test_a_flood_limit_of_one_operator_does_not_keep_the_other_waiting(
    server: FakeTelegram, hub_api: MiniHub
) -> None:
    ada, bob = server.person(ADA), server.person(BOB, "Bob")
    channel = TelegramChannel(telegram_settings(server, allowed_users=[ADA, BOB]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        server.fail("sendMessage", "status", status=429, description="Too Many Requests: retry after 2", retry_after=2)
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        await hub_api.ask(channel, record)
        assert len(ada.sees()) + len(bob.sees()) == 1
        await server.until(lambda: ada.sees() and bob.sees(), "the other, later")
        ada.tap(ada.last(), "Yes")
        await server.until(lambda: all("· Ada ·" in p.last()["text"] for p in (ada, bob)), "both edited")


async def test_a_message_whose_sending_was_never_confirmed_can_be_tapped_all_the_same(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    server.fail("sendMessage", "cut_after")
    with pytest.raises(ChannelError):
        await hub_api.ask(channel, record)
    orphan = ada.last()  # as it stands on a phone until the next message comes
    await hub_api.ask(channel, record)
    known = ada.last()
    ada.tap(orphan, "Yes")
    await server.until(lambda: all("· Ada ·" in message["text"] for message in ada.sees()), "both edited")
    ada.tap(known, "No")
    await server.until(lambda: len(hub_api.replies) == 2, "the late tap")
    assert hub_api.answers[record.prompt_id].value == "y"


async def test_duplicates_and_reordering_answer_nothing_twice(server: FakeTelegram, hub_api: MiniHub) -> None:
    ada = server.person(ADA)
    server.duplicate_share = server.reorder_share = 0.8
    settings = telegram_settings(server, replies_per_minute=1000)
    channel = TelegramChannel(settings, hub_api, SystemClock())
    async with serving(hub_api, channel):
        records = [hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO) for _ in range(40)]
        for record in records:
            await hub_api.ask(channel, record)
            ada.tap(ada.last(), "Yes")
            ada.tap(ada.last(), "Yes")
        await server.until(lambda: len(hub_api.answers) == 40, "every answer")
        await server.until(lambda: server.unconfirmed() == 0, "every confirmation")
    assert len(hub_api.replies) == 80  # each tap was heard once, however often it was delivered


async def test_an_update_is_confirmed_only_after_it_is_in_the_inbox(server: FakeTelegram, hub_api: MiniHub) -> None:
    class BrokenInbox(MiniHub):
        broken = True

        async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
            if self.broken:
                raise StoreError("disk full")
            return await super().accept_update(channel, update_id, payload)

    hub = BrokenInbox()
    ada = server.person(ADA)
    channel = TelegramChannel(telegram_settings(server), hub, SystemClock())
    async with serving(hub, channel):
        record = hub.add_prompt(hub.add_session(), prompts.YES_NO)
        await hub.ask(channel, record)
        ada.tap(ada.last(), "Yes")
        await server.until(lambda: channel.health()["state"] == "failing", "the fault")
        assert server.unconfirmed() == 1 and hub.answers == {}
        hub.broken = False
        await server.until(lambda: record.prompt_id in hub.answers, "the answer")
        await server.until(lambda: server.unconfirmed() == 0, "the confirmation")


async def test_a_revoked_token_is_shown_in_the_health(server: FakeTelegram, hub_api: MiniHub) -> None:
    settings = telegram_settings(server, bot_token="1:revoked")
    channel = TelegramChannel(settings, hub_api, SystemClock())
    async with serving(hub_api, channel):
        await until(lambda: channel.health()["state"] == "unauthorized", "the fault in its health")


async def test_a_slow_server_keeps_only_its_own_call_waiting(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(channel, record)
    server.fail("answerCallbackQuery", "slow", seconds=2.0)
    first = ada.tap_data(ada.last(), "ans:bogus")
    ada.tap(ada.last(), "Yes")
    await server.until(lambda: record.prompt_id in hub_api.answers, "the answer, before the slow toast")
    assert not first.answered


async def test_closing_ends_in_time_even_when_the_server_hangs(server: FakeTelegram, hub_api: MiniHub) -> None:
    server.person(ADA)
    server.fail("*", "slow", seconds=60.0, times=1000)
    channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    await channel.start()
    await channel.notify("never arrives")
    await server.until(lambda: server.calls, "a request")
    await asyncio.wait_for(channel.close(), 10)


async def test_a_message_too_old_to_be_edited_keeps_nobody_waiting(server: FakeTelegram, hub_api: MiniHub) -> None:
    clock = ManualClock()
    server.clock = clock.wall
    ada = server.person(ADA)
    channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, channel):
        old, new = (hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO) for _ in range(2))
        message_id = await hub_api.ask(channel, old)
        clock.advance(49 * 3600)
        await channel.update_prompt(message_id, old, Receipt("expired", "Nobody answered.", ""))
        await hub_api.ask(channel, new)
        ada.tap(ada.last(), "Yes")
        await server.until(lambda: new.prompt_id in hub_api.answers, "the answer")
        await server.until(lambda: channel.health()["pending"] == 0, "the end of the edits")
