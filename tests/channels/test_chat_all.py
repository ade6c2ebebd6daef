"""Several questions answered the same way in a chat: a person names only what they were shown, and each is decided
for itself.  The same play on both stages."""

from __future__ import annotations

import re

import pytest
from tests.channels import prompts
from tests.support.chat_stage import Stage, stage, text_of

from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Prompt, PromptType, Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace

BOTH = pytest.mark.parametrize("name", ["telegram", "slack"])
LISTED = re.compile(r"^(\d+)\. .*“(.*)”$", re.M)


def asking(text: str) -> Prompt:
    return Prompt(PromptType.TYPE_YES_NO, 0.9, text, digest=text, safe_default="n")


def command(text: str) -> Prompt:
    subject = Subject(SubjectKind.COMMAND, text, "/x", SubjectSource.HOOK, True, text)
    return replace(asking("Run it? (y/n)"), subject=subject, digest=text)


async def listed(play: Stage) -> tuple[dict[str, str], list[str], str]:
    """What is shown of each, which numbers are offered to be answered, and the whole text."""
    play.command("all y")
    text = text_of(await play.reads("To answer these: "))
    offered = text.rpartition("To answer these: ")[2].split()
    assert offered[0][1:] == "all" and offered[1] == "y"
    return dict(LISTED.findall(text)), offered[2:], text


@BOTH
async def test_the_list_offers_no_more_than_it_shows(name: str) -> None:
    async with stage(name) as play:
        asked = [await play.ask(asking(f"Question {number}? (y/n)")) for number in range(15)]
        shown, offered, text = await listed(play)
        assert list(shown) == offered == [str(number) for number in range(1, 13)]
        assert not any(short_id(one.prompt_id) in text for one in asked)  # a chat needs no ids
        assert "… and 3 more" in text and "Question 12" not in text
        assert play.hub_api.replies == []


@BOTH
async def test_what_is_not_shown_whole_says_so(name: str) -> None:
    async with stage(name) as play:
        await play.ask(asking("Delete " + "x" * 200 + "? (y/n)"))
        await play.ask(command("make test\nrm -rf ~"))
        await play.ask(command("make test"))
        shown, _, _ = await listed(play)
        long, cut, whole = shown.values()
        assert long.endswith("…") and len(long) <= 80
        assert cut.startswith("make test") and cut.endswith("…")
        assert whole == "make test"


@BOTH
async def test_secrets_and_idle_boxes_are_not_among_them(name: str) -> None:
    async with stage(name) as play:
        await play.ask(prompts.YES_NO)
        for odd in ({"secret": True}, {"idle": True}):
            play.hub_api.add_prompt(play.hub_api.add_session(), replace(prompts.TEXT, constraints=odd, digest=str(odd)))
        shown, offered, _ = await listed(play)
        assert len(shown) == len(offered) == 1


@BOTH
@pytest.mark.parametrize("words", ["1 1", "1 3", "1 2 1", "1 elsewhere"])
async def test_a_list_that_names_one_twice_or_one_that_is_unknown_answers_nothing(name: str, words: str) -> None:
    async with stage(name) as play:
        for number in range(2):
            await play.ask(asking(f"Question {number}? (y/n)"))
        await listed(play)
        play.command(f"all y {words}")
        await play.reads("Nothing was answered")
        await play.settle()
        assert play.hub_api.replies == []


@BOTH
async def test_numbers_mean_the_list_that_was_read_and_nothing_without_one(name: str) -> None:
    async with stage(name) as play:
        first = await play.ask(asking("Question 1? (y/n)"))
        play.command("all y 1")
        await play.reads("Nothing was answered")
        await listed(play)
        play.hub_api.open_prompts = lambda: [second, first]  # type: ignore[method-assign]
        second = await play.ask(asking("Question 2? (y/n)"))
        play.command("all y 1")
        await play.until(lambda: len(play.hub_api.replies) == 1, "a reply")
        assert play.hub_api.replies[0].prompt_id == first.prompt_id


@BOTH
async def test_a_session_that_asks_something_else_by_now_is_not_answered_by_its_name(name: str) -> None:
    async with stage(name) as play:
        first = await play.ask(asking("Delete the cache? (y/n)"), label="shop")
        await listed(play)
        session = play.hub_api.session(first.session_id)
        assert session is not None
        play.hub_api.add_prompt(session, asking("Delete it all? (y/n)"))
        play.command("all y shop")
        await play.until(lambda: len(play.hub_api.replies) == 1, "a reply")
        assert play.hub_api.replies[0].nonce == first.nonce  # the gate refuses it if that question is gone


@BOTH
async def test_each_that_is_named_is_decided_for_itself_and_no_other(name: str) -> None:
    async with stage(name) as play:
        asked = [await play.ask(asking(f"Question {number}? (y/n)")) for number in range(3)]
        await listed(play)
        play.command("all y 1 2")
        await play.until(lambda: len(play.hub_api.replies) == 2, "two replies")
        await play.settle()
        said = [(one.prompt_id, one.session_id, one.nonce, one.value) for one in play.hub_api.replies]
        assert said == [(one.prompt_id, one.session_id, one.nonce, "y") for one in asked[:2]]
