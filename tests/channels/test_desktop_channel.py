"""The desktop channel against a program that notes what it was to show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.fake_desktop import FakeDesktop

from atlasbridge.channels.desktop import DesktopChannel, choose_program, close_words, show_words
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.values import replace


@pytest.fixture
def screen() -> Iterator[FakeDesktop]:
    fake = FakeDesktop()
    yield fake
    fake.remove()


def opened(screen: FakeDesktop, hub_api: MiniHub, **changes: object) -> DesktopChannel:
    return DesktopChannel({"program": screen.program, **changes}, hub_api, SystemClock())


async def test_a_question_is_shown_and_taken_back_when_it_is_settled(screen: FakeDesktop, hub_api: MiniHub) -> None:
    channel, record = opened(screen, hub_api), hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(channel, record)
    (shown,) = screen.calls()
    assert "critical" in shown and record.prompt.excerpt in shown[-1] and "boolean:suppress-sound:true" in shown
    await channel.update_prompt(message_id, record, Receipt("reminder", "Still waiting."))
    assert screen.calls()[1][screen.calls()[1].index("--replace-id") + 1] == "1"
    moved = hub_api.move(record, PromptState.RESOLVED, "web:page")
    await channel.update_prompt(message_id, moved, Receipt("taken", "Taken.", "web:page", "Yes"))
    last = screen.calls()[2]
    assert last[last.index("--replace-id") + 1] == "1" and last[last.index("--expire-time") + 1] == "1"
    await channel.update_prompt(message_id, moved, Receipt("taken", "Taken.", "web:page", "Yes"))
    assert len(screen.calls()) == 3


async def test_what_makes_no_sound_and_a_secret_are_not_shown_by_themselves(
    screen: FakeDesktop, hub_api: MiniHub
) -> None:
    channel = opened(screen, hub_api, sound=True)
    quiet = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[quiet.prompt_id] = Tone(loud=False)
    await hub_api.ask(channel, quiet)
    assert screen.calls() == []
    await channel.tell_digest("d", "2 more questions:\n• a\n• b", loud=True)
    await channel.tell_digest("d", "Settled: api, shop", loud=False)
    first, second = screen.calls()
    assert "string:sound-name:message-new-instant" in first and "--replace-id" in second
    secret = hub_api.add_prompt(hub_api.add_session(), prompts.SECRET)
    await hub_api.ask(channel, secret)
    assert "Password" not in str(screen.calls()[2])


async def test_text_of_a_tool_is_never_an_option_or_markup(screen: FakeDesktop, hub_api: MiniHub) -> None:
    channel = opened(screen, hub_api)
    asked = replace(prompts.YES_NO, excerpt="--help <b>run</b> & go? (y/n)")
    await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), asked))
    (shown,) = screen.calls()
    assert shown[-3] == "--" and "&lt;b&gt;run" in shown[-1] and "<b>" not in shown[-1]


async def test_a_program_that_fails_or_is_gone_is_told(screen: FakeDesktop, hub_api: MiniHub) -> None:
    channel, record = opened(screen, hub_api), hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    screen.remove()
    with pytest.raises(ChannelError, match="could not be shown"):
        await hub_api.ask(channel, record)
    with pytest.raises(ConfigError, match="no program"):
        DesktopChannel({"program": "/nowhere/notify-send"}, hub_api, SystemClock())


def test_macos_is_spoken_to_with_arguments_of_their_own() -> None:
    def find(name: str) -> str | None:
        return f"/usr/bin/{name}"

    program = choose_program("darwin", find)
    words = show_words(program, "t", '" & do shell script', urgent=True, sound=True)
    assert words[0] == "/usr/bin/osascript" and words[-4:] == ["--", "t", '" & do shell script', "Ping"]
    assert close_words(program, "7") == []
    assert choose_program("linux", find) == "/usr/bin/notify-send" and choose_program("linux", lambda name: None) == ""
