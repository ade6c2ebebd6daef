"""How loud a chat is and to whom it speaks, as the hub says of each prompt; one digest; /away and /here; one name."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.channels import prompts
from tests.channels.conftest import ADA, BOB, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_telegram import FakeTelegram
from tests.support.fake_telegram_person import Person as Chatter

from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.answer import TIMER
from atlasbridge.core.prompt.model import PromptState, Receipt


def two(server: FakeTelegram, hub_api: MiniHub) -> TelegramChannel:
    return TelegramChannel(telegram_settings(server, allowed_users=[ADA, BOB]), hub_api, SystemClock())


def is_silent(message: dict[str, Any]) -> bool:
    return bool(message.get("disable_notification"))


def sends(server: FakeTelegram) -> list[dict[str, Any]]:
    return [call.params for call in server.calls if call.method == "sendMessage"]


async def test_a_prompt_for_one_person_is_shown_to_that_person_and_later_to_all(
    server: FakeTelegram, hub_api: MiniHub
) -> None:
    ada, bob, channel = server.person(ADA), server.person(BOB), two(server, hub_api)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[record.prompt_id] = Tone(only=frozenset({f"telegram:{ADA}"}))
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        assert len(ada.sees()) == 1 and bob.sees() == []
        hub_api.tones[record.prompt_id] = Tone()
        await hub_api.ask(channel, record)
        await server.until(lambda: bob.sees(), "the wider circle")
        assert len(ada.sees()) == 1


async def test_who_sleeps_gets_it_without_a_sound(server: FakeTelegram, hub_api: MiniHub) -> None:
    server.person(ADA), server.person(BOB)
    channel = two(server, hub_api)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[record.prompt_id] = Tone(silent=frozenset({f"telegram:{BOB}"}))
    async with serving(hub_api, channel):
        message_id = await hub_api.ask(channel, record)
        await server.until(lambda: len(sends(server)) == 2, "both")
        assert {int(one["chat_id"]): is_silent(one) for one in sends(server)} == {ADA: False, BOB: True}
        await channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting."))
        await server.until(lambda: len(sends(server)) == 4, "both reminders")
        assert {int(one["chat_id"]): is_silent(one) for one in sends(server)[2:]} == {ADA: False, BOB: True}


async def test_a_digest_is_one_message_that_is_edited(server: FakeTelegram, hub_api: MiniHub) -> None:
    ada = server.person(ADA)
    channel = TelegramChannel(telegram_settings(server), hub_api, SystemClock())
    async with serving(hub_api, channel):
        for count in range(1, 6):
            await channel.tell_digest("d1", f"{count} more wait", loud=count == 1)
        await server.until(lambda: any("5 more wait" in one["text"] for one in ada.sees()), "the last edit")
        assert len(ada.sees()) == 1 and not is_silent(sends(server)[0])
        await channel.tell_digest("d2", "another", loud=False)
        await server.until(lambda: len(ada.sees()) == 2, "the next digest")
        assert is_silent(sends(server)[1])


async def test_away_and_here_are_said_in_the_chat(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    spoken = {"/away": "until /here", "/away 2h": "for 2h", "/here": "Welcome back.", "/away soon": "Send /away"}
    for text, said in spoken.items():
        ada.write(text)
        await server.until(partial(_heard, ada, said), text)
    assert hub_api.away == [None, 7200.0, 0.0]


async def test_the_name_that_the_configuration_gives_is_the_one_people_read(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    ada = server.person(ADA)
    hub_api.names = {"slack:T1/U7": "Grace"}
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(channel, record)
    moved = hub_api.move(record, PromptState.RESOLVED, "slack:T1/U7")
    await channel.update_prompt(message_id, moved, Receipt("taken", "Taken by slack:T1/U7.", "slack:T1/U7", "Yes"))
    await server.until(lambda: "Grace" in ada.last()["text"], "the name")
    assert "slack:T1" not in ada.last()["text"]


async def test_what_a_timer_let_run_out_without_an_answer_is_not_said_to_be_typed(
    server: FakeTelegram, hub_api: MiniHub, channel: TelegramChannel
) -> None:
    """As the hub tells it: the timer is named in the record, but there is no answer."""
    ada = server.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.EVERY["unknown"])
    message_id = await hub_api.ask(channel, record)
    moved = hub_api.move(record, PromptState.EXPIRED, TIMER)
    await channel.update_prompt(message_id, moved, Receipt("expired", "Nobody answered in time.", TIMER))
    await server.until(lambda: "still waiting" in ada.sees()[0]["text"], "the truth")
    assert "typed" not in ada.sees()[0]["text"].splitlines()[0]


def _heard(person: Chatter, words: str) -> list[dict[str, Any]]:
    return [one for one in person.sees() if words in one["text"]]
