"""The channel that only tells, over one of Apprise's own services: what is said, what is not, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.fake_hook import FakeHook

from atlasbridge.channels.tell import TellChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import Receipt


@pytest.fixture
def hook() -> Iterator[FakeHook]:
    with FakeHook() as fake:
        yield fake


def opened(hook: FakeHook, hub_api: MiniHub, **changes: Any) -> TellChannel:
    return TellChannel({"urls": [hook.apprise_url], **changes}, hub_api, SystemClock())


async def test_by_default_no_word_of_the_tool_leaves_and_the_way_to_answer_does(
    hook: FakeHook, hub_api: MiniHub
) -> None:
    channel = opened(hook, hub_api, page_url="https://desk.example.org")
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    assert await hub_api.ask(channel, record)
    (told,) = hook.told
    assert "Claude Code waits for you" in told["title"] and "https://desk.example.org" in told["message"]
    assert "Continue" not in str(told)


async def test_with_text_the_question_is_told_and_a_secret_never(hook: FakeHook, hub_api: MiniHub) -> None:
    channel = opened(hook, hub_api, show_text=True)
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.SECRET))
    assert "Continue? (y/n)" in str(hook.told[0])
    assert prompts.SECRET.excerpt not in str(hook.told[1])


async def test_what_is_to_make_no_sound_is_not_told_and_a_timer_s_decision_is(hook: FakeHook, hub_api: MiniHub) -> None:
    channel = opened(hook, hub_api)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[record.prompt_id] = Tone(loud=False)
    message_id = await hub_api.ask(channel, record)
    assert hook.told == []
    for stage in ("received", "typed", "default_typed", "taken"):
        await channel.update_prompt(message_id, record, Receipt(stage, "So."))
    (told,) = hook.told
    assert "nobody answered" in told["title"]


async def test_a_service_that_fails_is_a_channel_error_and_counted(hook: FakeHook, hub_api: MiniHub) -> None:
    channel = opened(hook, hub_api)
    hook.fail("post", "status", status=500, times=5)
    with pytest.raises(ChannelError, match="no service") as caught:
        await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    assert "127.0.0.1" not in str(caught.value) and channel.health()["failed"] == 1


def test_an_address_that_apprise_does_not_know_is_named_by_its_number_only(hub_api: MiniHub) -> None:
    with pytest.raises(ConfigError, match="number 1") as caught:
        TellChannel({"urls": ["nonsense-secret-key"]}, hub_api, SystemClock())
    assert "secret" not in str(caught.value)
