"""The channel scenarios that the reliability document reserves ids for, for Telegram: QA-011, QA-012, QA-016, QA-017.

QA-010, QA-013, QA-014 and QA-015 are the same for Slack.
"""

from __future__ import annotations

import pytest
from tests.channels import prompts
from tests.channels.conftest import ADA, BOB, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock

of = pytest.mark.parametrize


@of("qa_id", ["QA-011"])
async def test_telegram_message_format(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    """Header of ours, the quoted question, the time left, the default, and the document's buttons."""
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    shown = ada.last()
    assert "Claude Code" in shown["text"] and "Continue? (y/n)" in shown["text"]
    assert "⏳ Expires in " in shown["text"] and shown["text"].endswith("— default: n")
    buttons = [button for row in shown["reply_markup"]["inline_keyboard"] for button in row]
    assert [button["text"] for button in buttons[:3]] == ["✅ Yes", "❌ No", "⏩ Use default (n)"]
    assert all(len(button["callback_data"].encode()) <= 64 for button in buttons)


@of("qa_id", ["QA-012"])
async def test_telegram_text_reply(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    """Text that replies to a prompt's message answers that prompt; the word enter presses the key."""
    ada = server.person(ADA)
    first = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    second = hub_api.add_prompt(hub_api.add_session("codex"), prompts.TEXT)
    await hub_api.ask(channel, first)
    await hub_api.ask(channel, second)
    ada.write("orion", reply_to=ada.sees()[0])
    await server.until(lambda: first.prompt_id in hub_api.answers, "the text")
    ada.write("enter", reply_to=ada.sees()[1])
    await server.until(lambda: second.prompt_id in hub_api.answers, "the key")
    said, pressed = hub_api.answers[first.prompt_id], hub_api.answers[second.prompt_id]
    assert (said.value, said.as_text, pressed.value, pressed.as_text) == ("orion", True, "enter", False)


@of("qa_id", ["QA-016"])
async def test_telegram_multi_user(server: FakeTelegram, hub_api: MiniHub, qa_id: str) -> None:
    """The first valid reply wins; the others are told who answered."""
    ada, bob = server.person(ADA), server.person(BOB, "Bob")
    channel = TelegramChannel(telegram_settings(server, allowed_users=[ADA, BOB]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
        await hub_api.ask(channel, record)
        late = ada.last()
        won = bob.tap(bob.last(), "No")
        await server.until(lambda: won.answered and "No · Bob" in ada.last()["text"], "who answered")
        lost = ada.tap(late, "Yes")
        await server.until(lambda: lost.answered, "the loser's word")
    assert hub_api.answers[record.prompt_id].value == "n"
    assert "Bob" in str(lost.toast)


@of("qa_id", ["QA-017"])
async def test_telegram_rate_limit(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel, qa_id: str
) -> None:
    """More than ten callbacks a minute are not processed: one warning, and the session is paused."""
    ada = server.person(ADA)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    shown = ada.last()
    bad = shown["reply_markup"]["inline_keyboard"][0][0]["callback_data"][:-1] + "bogus"
    taps = [ada.tap_data(shown, bad) for _ in range(13)]
    await server.until(lambda: all(tap.answered for tap in taps), "the toasts")
    await server.until(lambda: any("paused" in one["text"] for one in ada.sees()), "the warning")
    assert len(hub_api.replies) == 10 and sum("paused" in one["text"] for one in ada.sees()) == 1
