"""What became of a question stands in its title: which answer, by whom, when; who lost a race is told who won."""

from __future__ import annotations

import re

import pytest
from tests.channels import prompts
from tests.support.chat_stage import Stage, buttons_of, stage, text_of

from atlasbridge.core.prompt.model import PromptRecord, PromptState, Receipt

both = pytest.mark.parametrize("chat", ["telegram", "slack"])


async def title_after(on: Stage, record: PromptRecord, receipt: Receipt, by: str = "") -> str:
    state = PromptState.EXPIRED if receipt.stage == "expired" else PromptState.RESOLVED
    moved = on.hub_api.move(record, state, by)
    (message_id,) = on.hub_api.deliveries(record.prompt_id, on.channel.name)
    before = text_of(on.message_of(record))
    await on.channel.update_prompt(message_id, moved, receipt)
    await on.until(lambda: text_of(on.message_of(record)) != before, "the edit")
    return text_of(on.message_of(record)).split("\n")[0]


@both
@pytest.mark.parametrize(
    ("pressed", "title"), [("Yes", r"✅ Yes · \w+ · \d\d:\d\d"), ("No", r"🛑 No · \w+ · \d\d:\d\d")]
)
async def test_the_title_says_which_answer_was_given_by_whom_and_when(chat: str, pressed: str, title: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        on.press(on.message_of(record), pressed)
        await on.until(lambda: re.match(title, text_of(on.message_of(record))), "the outcome in the title")
        shown = on.message_of(record)
        assert buttons_of(shown) == [] and "Continue? (y/n)" in text_of(shown) and "1001" not in text_of(shown)


@both
async def test_an_answer_given_elsewhere_names_the_answer_the_place_and_the_log(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        receipt = Receipt("taken", "x", "cli:local", answer="n", audit_head="42:abcdef0123456789")
        assert (await title_after(on, record, receipt)).startswith("🛑 No · a terminal · ")
        assert "audit 42:abcdef01" in text_of(on.message_of(record))


@both
async def test_a_timers_decision_is_a_message_of_its_own(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO, label="web-api")
        receipt = Receipt("default_typed", "Typed the answer of auto:timeout.", "auto:timeout")
        assert await title_after(on, record, receipt, "auto:timeout") == "⏱ nobody answered: a timer typed No"
        await on.until(lambda: len(on.person.sees()) == 2, "a message that makes a sound")
        news = text_of(on.person.last())
        assert "nobody answered: a timer typed No" in news and "web-api" in news and "Continue?" in news
        await on.channel.update_prompt("", record, Receipt("taken", "x", "auto:timeout"))
        await on.settle()
        assert sum("nobody answered" in text_of(one) for one in on.person.sees()) == 2  # the title, and the news once


@both
async def test_what_nobody_answered_and_still_waits_says_so(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.TEXT)
        title = await title_after(on, record, Receipt("expired", "Nobody answered in time; nothing was typed."))
        assert title == "⌛ nobody answered in time: still waiting"


@both
async def test_who_lost_a_race_is_told_who_won_with_what(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        late = on.message_of(record)
        moved = on.hub_api.move(record, PromptState.RESOLVED, "web:phone")
        (message_id,) = on.hub_api.deliveries(record.prompt_id, on.channel.name)
        await on.channel.update_prompt(message_id, moved, Receipt("taken", "x", "web:phone", answer="No"))
        tap = on.press(late, "Yes")
        if chat == "telegram":
            await on.until(lambda: tap.answered, "the toast")
            assert str(tap.toast).startswith("Too late. 🛑 No · the page · ")
        else:
            assert text_of(await on.reads("Too late.")).startswith("Too late. 🛑 No · the page · ")


@both
async def test_answered_at_the_terminal_is_said_in_the_title(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.YES_NO)
        title = await title_after(on, record, Receipt("withdrawn", "It was answered at the terminal."))
        assert title.startswith("↩ answered at the terminal · ")
