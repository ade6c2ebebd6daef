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
LISTED = re.compile(r"^([0-9a-f]{8}) · .*“(.*)”$", re.M)


def asking(text: str) -> Prompt:
    return Prompt(PromptType.TYPE_YES_NO, 0.9, text, digest=text, safe_default="n")


def command(text: str) -> Prompt:
    subject = Subject(SubjectKind.COMMAND, text, "/x", SubjectSource.HOOK, True, text)
    return replace(asking("Run it? (y/n)"), subject=subject, digest=text)


async def listed(play: Stage) -> tuple[dict[str, str], list[str], str]:
    """What is shown of each, which ids are offered to be answered, and the whole text."""
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
        assert list(shown) == offered == [short_id(one.prompt_id) for one in asked[:12]]
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
@pytest.mark.parametrize("ids", ["{0} {0}", "{0} ffffffff", "{0} {1} {0}"])
async def test_a_list_that_names_one_twice_or_one_that_is_unknown_answers_nothing(name: str, ids: str) -> None:
    async with stage(name) as play:
        asked = [short_id((await play.ask(asking(f"Question {number}? (y/n)"))).prompt_id) for number in range(2)]
        play.command("all y " + ids.format(*asked))
        await play.reads("Nothing was answered")
        await play.settle()
        assert play.hub_api.replies == []


@BOTH
async def test_each_that_is_named_is_decided_for_itself_and_no_other(name: str) -> None:
    async with stage(name) as play:
        asked = [await play.ask(asking(f"Question {number}? (y/n)")) for number in range(3)]
        wanted = asked[:2]
        play.command("all y " + " ".join(short_id(one.prompt_id) for one in wanted))
        await play.until(lambda: len(play.hub_api.replies) == 2, "two replies")
        await play.settle()
        said = [(one.prompt_id, one.session_id, one.nonce, one.value) for one in play.hub_api.replies]
        assert said == [(one.prompt_id, one.session_id, one.nonce, "y") for one in wanted]
