"""The ntfy channel against a strict fake: what is sent, what is not, buttons, strangers, outages, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.conftest import serving
from tests.channels.mini_hub import MiniHub
from tests.support.fake_ntfy import FakeNtfy

from atlasbridge.channels.callback import encode_callback
from atlasbridge.channels.ntfy import NtfyChannel
from atlasbridge.channels.settings import NtfySettings
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import PromptState, Receipt

OUT, IN = "out-0123456789abcdefghij", "in-0123456789abcdefghij"


@pytest.fixture
def phone() -> Iterator[FakeNtfy]:
    """A server of one's own, where only the phone may read what it is told."""
    with FakeNtfy() as fake:
        fake.unreadable.add(OUT)
        yield fake


def settings(phone: FakeNtfy, **changes: Any) -> dict[str, Any]:
    return {"topic": OUT, "reply_topic": IN, "server": phone.url, "backoff_first_s": 0.02, **changes}


def opened(phone: FakeNtfy, hub_api: MiniHub, **changes: Any) -> NtfyChannel:
    return NtfyChannel(settings(phone, **changes), hub_api, SystemClock())


async def listening(phone: FakeNtfy, times: int = 1) -> None:
    await phone.until(lambda: len(phone.calls_of("listen")) >= times, "the listener")


async def test_a_tap_answers_and_the_notification_takes_the_end_into_its_place(
    phone: FakeNtfy, hub_api: MiniHub
) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        message_id = await hub_api.ask(channel, record)
        (shown,) = phone.messages[OUT]
        assert "Continue? (y/n)" in shown["message"] and [one["label"] for one in shown["actions"]] == [
            "✅ Yes",
            "❌ No",
        ]
        await listening(phone)
        phone.tap(OUT, "Yes")
        await phone.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        reply = hub_api.answers[record.prompt_id]
        assert (reply.value, reply.identity) == ("y", "ntfy:phone") and record.nonce.startswith(reply.nonce)
        moved = hub_api.move(record, PromptState.RESOLVED, "ntfy:phone")
        await channel.update_prompt(
            message_id, moved, Receipt("taken", "Taken.", "ntfy:phone", "Yes", audit_head="7:ab12cd34ef")
        )
        last = phone.messages[OUT][-1]
        assert "audit 7:ab12cd34" in last["message"]
        assert (
            last["sequence_id"] == shown["sequence_id"] and last["title"].startswith("✅ Yes") and last["priority"] == 1
        )


async def test_without_the_words_there_is_no_button_that_agrees(phone: FakeNtfy, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api, show_text=False)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        (shown,) = phone.messages[OUT]
        assert "Continue" not in str(shown) and [one["label"] for one in shown["actions"]] == ["❌ No"]


async def test_who_does_not_trust_the_topic_gets_buttons_that_only_refuse(phone: FakeNtfy, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api, taps_agree=False)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        (shown,) = phone.messages[OUT]
        assert "Continue? (y/n)" in shown["message"] and [one["label"] for one in shown["actions"]] == ["❌ No"]


async def test_a_topic_that_the_tool_could_read_has_no_button_that_agrees(phone: FakeNtfy, hub_api: MiniHub) -> None:
    phone.unreadable.clear()
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        (shown,) = phone.messages[OUT]
        assert [one["label"] for one in shown["actions"]] == ["❌ No"]
        assert channel.health()["taps_agree"] is False


@pytest.mark.parametrize("changes", [{"show_text": False}, {"taps_agree": False}, {}])
async def test_what_no_button_says_is_not_taken_from_the_topic(
    phone: FakeNtfy, hub_api: MiniHub, changes: dict[str, Any]
) -> None:
    """Anyone who reads the topic knows the nonce from the button that refuses."""
    if not changes:
        phone.unreadable.clear()
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api, **changes)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        await listening(phone)
        phone.say(IN, encode_callback(record, "y"))
        phone.tap(OUT, "No")
        await phone.until(lambda: record.prompt_id in hub_api.answers, "the real one")
        assert [reply.value for reply in hub_api.replies] == ["n"]
        assert [event for event, _ in hub_api.notes] == ["CHANNEL_STRANGER"]


async def test_a_lasting_permission_is_not_taken_from_the_topic_either(phone: FakeNtfy, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MENU)
    lasting = next(choice.value for choice in record.prompt.choices if choice.always)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        await listening(phone)
        assert all("always" not in one["label"] for one in phone.messages[OUT][0]["actions"])
        phone.say(IN, encode_callback(record, lasting))
        phone.tap(OUT, "No")
        await phone.until(lambda: record.prompt_id in hub_api.answers, "the real one")
        assert lasting not in [reply.value for reply in hub_api.replies]


def test_a_public_server_gets_no_words_unless_somebody_wants_that() -> None:
    given: dict[str, Any] = {"topic": OUT, "reply_topic": IN}
    assert not NtfySettings(**given).shows_text
    assert NtfySettings(**given, show_text=True).shows_text
    assert NtfySettings(**given, server="https://push.example.org").shows_text


@pytest.mark.parametrize("wrong", [{"topic": "short"}, {"topic": IN}, {"allowed_users": []}])
def test_a_topic_that_could_be_guessed_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        NtfySettings(**{"topic": OUT, "reply_topic": IN, **wrong})


async def test_what_does_not_fit_says_so_and_can_only_be_refused(phone: FakeNtfy, hub_api: MiniHub) -> None:
    from atlasbridge.core.values import replace

    long = replace(prompts.MENU, question="rm -rf " + "x" * 6000)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), long))
        (shown,) = phone.messages[OUT]
        assert "(cut or incomplete)" in shown["message"]
        assert [one["label"][:1] for one in shown["actions"]] == ["❌"]


async def test_strangers_and_forgeries_reach_nobody(phone: FakeNtfy, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        await listening(phone)
        for text in ("y", "hello", "", "x" * 4000, f"{'f' * 8}:{'0' * 16}:y"):
            phone.say(IN, text)
        phone.tap(OUT, "No")
        await phone.until(lambda: record.prompt_id in hub_api.answers, "the real one")
        assert [reply.value for reply in hub_api.replies] == ["n"]
        assert [event for event, _ in hub_api.notes] == ["CHANNEL_STRANGER"]


async def test_a_broken_line_is_taken_up_again_and_nothing_is_lost_or_said_twice(
    phone: FakeNtfy, hub_api: MiniHub
) -> None:
    records = [hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO) for _ in range(2)]
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        for record in records:
            await hub_api.ask(channel, record)
        await listening(phone)
        phone.say(IN, encode_callback(records[0], "y"))
        await phone.until(lambda: len(phone.messages[OUT]) == 3, "the first answer on its notification")
        phone.stop()
        phone.start()
        phone.say(IN, encode_callback(records[1], "n"))
        await phone.until(lambda: len(phone.messages[OUT]) == 4, "the second answer on its notification")
        phone.hang_up()
        await listening(phone, 3)
        assert [reply.value for reply in hub_api.replies] == ["y", "n"]


async def test_what_was_said_while_we_were_gone_is_heard_after_a_restart(phone: FakeNtfy, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    async with serving(hub_api, first := opened(phone, hub_api)):
        await hub_api.ask(first, record)
        await listening(phone)
    phone.say(IN, encode_callback(record, "n"))
    await phone.until(lambda: phone.messages.get(IN), "the words")
    async with serving(hub_api, opened(phone, hub_api)):
        await phone.until(lambda: record.prompt_id in hub_api.answers, "heard")


async def test_a_refusal_of_the_server_is_a_channel_error_with_a_hint(phone: FakeNtfy, hub_api: MiniHub) -> None:
    phone.token = "tk_right"
    channel = opened(phone, hub_api, access_token="tk_wrong")
    with pytest.raises(ChannelError, match="403") as caught:
        await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    assert caught.value.hint and "tk_wrong" not in str(caught.value) and OUT not in str(caught.value)
    await channel.close()


async def test_a_silent_prompt_has_a_low_priority_and_a_reminder_takes_its_place(
    phone: FakeNtfy, hub_api: MiniHub
) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[record.prompt_id] = Tone(loud=False)
    channel = opened(phone, hub_api)
    async with serving(hub_api, channel):
        message_id = await hub_api.ask(channel, record)
        hub_api.tones.clear()
        await channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting."))
        first, second = phone.messages[OUT]
        assert (first["priority"], second["priority"]) == (2, 4) and first["sequence_id"] == second["sequence_id"]
        await asyncio.sleep(0)
