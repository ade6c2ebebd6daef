"""Own words arrive: by a reply, after tapping the choice that needs them, and never instead of a choice."""

from __future__ import annotations

import pytest
from tests.channels import prompts
from tests.support.chat_stage import stage, text_of

from atlasbridge.channels.templates import needs_words, reads_as_words, render_hint, takes_words
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.keys import Step, When
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, FormField, Prompt, PromptType
from atlasbridge.core.values import replace

both = pytest.mark.parametrize("chat", ["telegram", "slack"])
QUESTION = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.97,
    "Which colour shall it be?",
    choices=(
        Choice("1", "Red", (Step(b"1"),)),
        Choice("2", "Green", (Step(b"2"),)),
        Choice("3", "Type something."),
        Choice("4", "No, leave it", (Step(b"4"),), refuses=True),
    ),
    constraints={"allows_other": True},
    text_steps=(Step(b"3", When.REDRAWN),),
    line_mode=False,
)
PERMISSION = replace(prompts.MENU, choices=tuple(replace(c, steps=(Step(b"x"),)) for c in prompts.MENU.choices))


@both
async def test_a_reply_in_own_words_is_typed_as_words(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(QUESTION)
        assert "with your own words" in text_of(on.message_of(record))
        on.write("a warm grey", reply_to=on.message_of(record))
        await on.until(lambda: on.hub_api.replies, "the reply")
        reply = on.hub_api.replies[0]
        assert (reply.value, reply.as_text) == ("a warm grey", True)
        assert decide_answer(QUESTION, reply.value, as_text=True) == Answer(AnswerKind.TEXT, "a warm grey")


@both
@pytest.mark.parametrize("said", ["2", "green", "Green", "no", "7", "y"])
async def test_what_names_a_choice_or_should_is_never_typed_as_words(chat: str, said: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(QUESTION)
        on.write(said, reply_to=on.message_of(record))
        await on.until(lambda: on.hub_api.replies, "the reply")
        assert on.hub_api.replies[0].as_text is False


async def test_tapping_the_choice_that_needs_words_asks_for_them_in_telegram() -> None:
    async with stage("telegram") as on:
        record = await on.ask(QUESTION)
        on.press(on.message_of(record), "Type something")
        asked = await on.reads("Write your answer")
        assert asked["reply_markup"]["force_reply"] is True and on.hub_api.replies == []
        on.write("2", reply_to=asked)  # words were asked for: this is no choice
        await on.until(lambda: on.hub_api.replies, "the reply")
        assert (on.hub_api.replies[0].value, on.hub_api.replies[0].as_text) == ("2", True)
        assert on.hub_api.replies[0].prompt_id == record.prompt_id


async def test_tapping_the_choice_that_needs_words_opens_a_field_in_slack() -> None:
    async with stage("slack") as on:
        record = await on.ask(QUESTION)
        for label in ("Type something", "Write an answer"):
            on.press(on.message_of(record), label)
            await on.until(lambda: on.server.views, "the field")
            on.person.submit("a warm grey")
            await on.until(lambda: on.hub_api.replies, "the reply")
            assert (on.hub_api.replies[-1].value, on.hub_api.replies[-1].as_text) == ("a warm grey", True)
            on.server.views.clear()


def test_which_prompts_take_words() -> None:
    assert takes_words(QUESTION) and takes_words(prompts.TEXT) and takes_words(PERMISSION)
    assert not takes_words(prompts.YES_NO) and not takes_words(prompts.SECRET) and not takes_words(prompts.MULTI)
    assert [needs_words(QUESTION, choice.value) for choice in QUESTION.choices] == [False, False, True, False]
    assert not any(needs_words(PERMISSION, choice.value) for choice in PERMISSION.choices)
    assert reads_as_words(PERMISSION, "use the staging database instead")
    assert not reads_as_words(prompts.YES_NO, "maybe later")


def test_a_form_says_how_its_fields_are_named() -> None:
    fields = (FormField("Shell"), FormField("Group"))
    form = Prompt(
        PromptType.TYPE_FREE_TEXT, 0.9, "Edit user", constraints={"fields": ["Shell", "Group"]}, fields=fields
    )
    assert "“Shell: …; Group: …”" in render_hint(form, "a" * 36)
