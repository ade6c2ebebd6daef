"""What was accepted when a process died is taken up by the next one, once, and then forgotten but for its number."""

from __future__ import annotations

import asyncio

from tests.channels import prompts
from tests.channels.conftest import ADA, serving, slack_settings, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import short_home

from atlasbridge.channels.incoming import WITHHELD
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.operations import Caller, Kept, Refused
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import PromptRecord, Receipt
from atlasbridge.core.store.ledger import Ledger


def slack_on(slack: FakeSlack, hub_api: MiniHub) -> SlackChannel:
    return SlackChannel(slack_settings(slack), hub_api, SystemClock())


def telegram_on(server: FakeTelegram, hub_api: MiniHub) -> TelegramChannel:
    return TelegramChannel(telegram_settings(server), hub_api, SystemClock())


async def test_what_was_withheld_or_makes_no_sense_does_not_make_the_channel_deaf(
    server: FakeTelegram, slack: FakeSlack, hub_api: MiniHub
) -> None:
    ada = server.person(ADA)
    slack.person("U0ADA")
    for channel in ("telegram", "slack"):
        await hub_api.accept_update(channel, "1", WITHHELD)
        await hub_api.accept_update(channel, "2", "{broken")
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    phone, work = telegram_on(server, hub_api), slack_on(slack, hub_api)
    async with serving(hub_api, phone, work):
        await hub_api.ask(phone, record)
        ada.tap(ada.last(), "Yes")
        await server.until(lambda: hub_api.answers, "the answer")
        await slack.until(lambda: slack.sockets, "the socket")


async def test_what_has_had_its_effect_is_forgotten_but_for_its_number(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    await hub_api.ask(channel, record)
    ada.write("a private word", reply_to=ada.last())
    ada.write("/status")
    await server.until(lambda: hub_api.answers, "the answer")
    await server.until(lambda: len(hub_api.inbox) == 2 and not any(hub_api.inbox.values()), "the end of both")
    await asyncio.sleep(0)


def test_the_store_keeps_what_is_pending_over_a_restart() -> None:
    with short_home() as home:
        ledger = Ledger.open(home.root, SystemClock(), "boot")
        ledger.accept_update("slack", "a", "first")
        ledger.accept_update("slack", "b", "second")
        ledger.accept_update("telegram", "c", "other")
        ledger.settle_update("slack", "a")
        ledger.close()
        ledger = Ledger.open(home.root, SystemClock(), "boot")
        assert ledger.pending_updates("slack") == [("b", "second")]
        assert ledger.accept_update("slack", "a", "again") is False
        assert ledger.pending_updates("slack") == [("b", "second")]
        ledger.close()


SNOOZE = "💤 In 15 minutes"


async def remind(hub_api: MiniHub, channel: Channel, record: PromptRecord) -> None:
    for message_id in hub_api.shown[record.prompt_id, channel.name]:
        await channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting."))


class SlowToSnooze(MiniHub):
    """Its first snooze never comes to an end, as where the process dies over it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def do_snooze(self, caller: Caller, prompt_id: str, for_s: float) -> Kept | Refused:
        self.asked += 1
        if self.asked == 1:
            await asyncio.Event().wait()
        return await super().do_snooze(caller, prompt_id, for_s)


async def test_a_snooze_that_a_process_died_over_is_kept_by_the_next(server: FakeTelegram) -> None:
    hub_api, ada = SlowToSnooze(), server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    dying = telegram_on(server, hub_api)
    await dying.start()
    await hub_api.ask(dying, record)
    await remind(hub_api, dying, record)
    await server.until(lambda: "Still waiting" in str(ada.last()), "the reminder")
    ada.tap(ada.last(), SNOOZE)
    await server.until(lambda: hub_api.asked, "the tap")
    await server.until(lambda: server.unconfirmed() == 0, "the confirmation")
    await dying.close()
    assert hub_api.snoozed == [] and len(hub_api.pending_updates("telegram")) == 1
    async with serving(hub_api, telegram_on(server, hub_api)):
        await server.until(lambda: hub_api.snoozed, "the snooze")
        await server.until(lambda: not hub_api.pending_updates("telegram"), "the end of it")
    assert len(hub_api.snoozed) == 1


async def test_a_click_for_later_that_a_process_died_over_is_kept_by_the_next(slack: FakeSlack) -> None:
    hub_api, ada = SlowToSnooze(), slack.person("U0ADA")
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    dying = slack_on(slack, hub_api)
    await dying.start()
    await slack.until(lambda: slack.sockets, "the socket")
    await hub_api.ask(dying, record)
    await remind(hub_api, dying, record)
    await slack.until(lambda: "Still waiting" in str(ada.last()), "the reminder")
    ada.click(ada.last(), SNOOZE)
    await slack.until(lambda: hub_api.asked, "the click")
    await dying.close()
    assert hub_api.snoozed == [] and len(hub_api.pending_updates("slack")) == 1
    async with serving(hub_api, slack_on(slack, hub_api)):
        await slack.until(lambda: hub_api.snoozed, "the snooze")
        await slack.until(lambda: not hub_api.pending_updates("slack"), "the end of it")
    assert len(hub_api.snoozed) == 1
