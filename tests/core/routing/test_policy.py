"""Who is asked, for how long, who may answer, and what a timer may type."""

from __future__ import annotations

import pytest

from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.routing.policy import (
    Audience,
    PolicySettings,
    decide_allowed,
    decide_audience,
    decide_reminders,
    decide_timer_default,
    decide_ttl,
)
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

SESSION = SessionRecord("s", "claude", ("claude",), "/", 1, 1, "")
CHANNELS = [("local", False), ("web", False), ("telegram", True)]
YES_NO = Prompt(PromptType.TYPE_YES_NO, 0.9, "Run it? (y/n)", safe_default="n")
IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "> ", constraints={"idle": True}, safe_default="enter")
SECRET = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Password:", constraints={"secret": True}, safe_default="enter")
TEXT = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Name:", safe_default="enter")
UNKNOWN = Prompt(PromptType.TYPE_UNKNOWN, 0.5, "?", safe_default="n")
DEFAULTS = PolicySettings()


def test_every_channel_is_asked() -> None:
    assert decide_audience(YES_NO, SESSION, CHANNELS, DEFAULTS) == Audience(("local", "web", "telegram"))


def test_a_session_may_choose_its_channels_or_none() -> None:
    assert decide_audience(YES_NO, replace(SESSION, channels=("web",)), CHANNELS, DEFAULTS).ask == ("web",)
    assert decide_audience(YES_NO, replace(SESSION, channels=()), CHANNELS, DEFAULTS) == Audience()


def test_a_chat_hears_of_a_secret_but_is_not_asked_for_it() -> None:
    assert decide_audience(SECRET, SESSION, CHANNELS, DEFAULTS) == Audience(("local", "web"), ("telegram",))


def test_idle_boxes_and_muted_tools_ask_nobody() -> None:
    quiet = PolicySettings(notify_idle=False, muted_tools=frozenset({"bash"}))
    assert decide_audience(IDLE, SESSION, CHANNELS, quiet) == Audience()
    assert decide_audience(YES_NO, SESSION, CHANNELS, quiet).ask
    assert decide_audience(YES_NO, replace(SESSION, tool="bash"), CHANNELS, quiet) == Audience()


def test_a_known_editor_or_pager_at_rest_asks_nobody_and_an_unknown_screen_does() -> None:
    rests = replace(UNKNOWN, constraints={"idle": True, "commands": True})
    assert decide_audience(rests, SESSION, CHANNELS, DEFAULTS) == Audience()
    assert decide_audience(UNKNOWN, SESSION, CHANNELS, DEFAULTS).ask
    assert decide_audience(IDLE, SESSION, CHANNELS, DEFAULTS).ask


def test_free_text_can_be_kept_on_this_machine() -> None:
    kept = PolicySettings(free_text_enabled=False)
    assert decide_audience(TEXT, SESSION, CHANNELS, kept) == Audience(("local", "web"))
    assert decide_audience(YES_NO, SESSION, CHANNELS, kept) == decide_audience(YES_NO, SESSION, CHANNELS, DEFAULTS)


def test_an_idle_box_may_wait_longer_than_a_question() -> None:
    assert decide_ttl(IDLE, DEFAULTS) > decide_ttl(YES_NO, DEFAULTS)


@pytest.mark.parametrize(
    ("prompt", "typed"), [(YES_NO, True), (TEXT, False), (IDLE, False), (SECRET, False), (UNKNOWN, False)]
)
def test_a_timer_types_a_default_only_for_a_known_question(prompt: Prompt, typed: bool) -> None:
    assert decide_timer_default(prompt, DEFAULTS) is typed


def test_a_default_can_be_switched_off_by_type_and_needs_a_value() -> None:
    assert not decide_timer_default(YES_NO, PolicySettings(timer_types=frozenset()))
    assert not decide_timer_default(replace(YES_NO, safe_default=""), DEFAULTS)


def test_only_listed_people_may_answer_and_only_in_configured_channels() -> None:
    settings = PolicySettings(allowed={"telegram": frozenset({"telegram:1"}), "web": None})
    assert decide_allowed("telegram", "telegram:1", remote=True, prompt=YES_NO, settings=settings)
    assert not decide_allowed("telegram", "telegram:2", remote=True, prompt=YES_NO, settings=settings)
    assert decide_allowed("web", "web:anyone", remote=False, prompt=YES_NO, settings=settings)
    assert not decide_allowed("slack", "slack:T/U", remote=True, prompt=YES_NO, settings=settings)
    assert not decide_allowed("telegram", "telegram:1", remote=True, prompt=SECRET, settings=settings)


def test_reminders_come_before_the_end_and_not_for_idle_boxes() -> None:
    settings = PolicySettings(prompt_ttl_s=600, reminder_s=250, max_reminders=5)
    assert decide_reminders(YES_NO, settings) == (250, 500)
    assert decide_reminders(IDLE, settings) == ()
    assert decide_reminders(YES_NO, PolicySettings(reminder_s=0)) == ()
