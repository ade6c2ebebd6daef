"""Discord: direct messages with buttons, a gateway that is resumed, and limits that the server enforces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.conftest import discord_settings, serving
from tests.channels.mini_hub import MiniHub
from tests.support.fake_discord import ADA, FakeDiscord, Message, Person

from atlasbridge.channels.discord.channel import LIMIT, DiscordChannel, block, plain, with_link
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.prompt.model import Choice, Prompt, PromptRecord, PromptType, Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace

LASTING = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Run it?",
    choices=(Choice("1", "Yes"), Choice("2", "Yes, always", always=True), Choice("3", "No", refuses=True)),
)


class Stage:
    def __init__(self, hub: MiniHub, server: FakeDiscord, channel: DiscordChannel) -> None:
        self.hub, self.server, self.channel, self.ada = hub, server, channel, server.person()

    async def ask(self, prompt: Prompt) -> PromptRecord:
        record = self.hub.add_prompt(self.hub.add_session(), prompt)
        await self.hub.ask(self.channel, record)
        return record

    def message_of(self, record: PromptRecord) -> Message:
        place = self.hub.deliveries(record.prompt_id, "discord")[0].split("/")[1]
        return next(one for one in self.ada.sees() if one["id"] == place)

    async def reads(self, words: str) -> Message:
        def seen() -> list[Message]:
            return [one for one in [*self.ada.sees(), *self.server.ephemeral] if words in one.get("content", "")]

        await self.server.until(seen, repr(words))
        return seen()[-1]


@asynccontextmanager
async def stage(**settings: Any) -> AsyncIterator[Stage]:
    hub = MiniHub()
    with FakeDiscord() as server:
        channel = DiscordChannel(discord_settings(server, **settings), hub, SystemClock())
        async with serving(hub, channel):
            await server.until(lambda: server.sessions, "the gateway")
            yield Stage(hub, server, channel)


def labels(message: Message) -> list[str]:
    inside = [one for row in message.get("components") or [] for one in row["components"]]
    return [
        label
        for one in inside
        for label in ([one["label"]] if "label" in one else [o["label"] for o in one["options"]])
    ]


async def test_a_press_answers_and_is_acknowledged_and_the_message_tells_the_outcome() -> None:
    async with stage() as play:
        record = await play.ask(prompts.YES_NO)
        pressed = play.ada.press(play.message_of(record), "✅ Yes")
        await play.server.until(lambda: play.hub.replies, "the reply")
        assert (play.hub.replies[0].value, play.hub.replies[0].identity) == ("y", f"discord:{ADA}")
        await play.server.until(lambda: play.server.interactions[pressed]["answered"], "the acknowledgement")
        await play.server.until(lambda: play.message_of(record)["components"] == [], "the end")
        play.server.pass_time(5)
        play.ada.write("n", reply_to=play.message_of(record))
        await play.reads("Too late")


async def test_a_stranger_and_a_server_s_channel_are_not_heard() -> None:
    async with stage() as play:
        record = await play.ask(prompts.YES_NO)
        message = play.message_of(record)
        Person(play.server, "100000000000000099", "eve").press(message, "✅ Yes")
        play.ada.write("y", reply_to=message, guild_id="5")
        play.ada.write("!status")
        await play.reads("waiting for your answer")
        assert play.hub.replies == []
        assert [event for event, _ in play.hub.notes if event == "CHANNEL_STRANGER"] == ["CHANNEL_STRANGER"]


async def test_an_answer_that_is_not_asked_again_takes_a_second_press() -> None:
    async with stage() as play:
        record = await play.ask(LASTING)
        play.ada.press(play.message_of(record), "♾ always: 2. Yes, always")
        await play.server.until(
            lambda: "♾ Yes, always: 2. Yes, always" in labels(play.message_of(record)), "the second"
        )
        assert play.hub.replies == []
        play.ada.press(play.message_of(record), "♾ Yes, always: 2. Yes, always")
        await play.server.until(lambda: play.hub.replies, "the reply")
        assert play.hub.replies[0].value == "2"


async def test_many_choices_are_menus_and_several_at_once_are_marked() -> None:
    async with stage() as play:
        many = tuple(Choice(str(number), f"Choice {number}") for number in range(1, 41))
        record = await play.ask(replace(LASTING, choices=many))
        play.ada.press(play.message_of(record), "31. Choice 31")
        await play.server.until(lambda: play.hub.replies, "the reply")
        assert play.hub.replies[0].value == "31"
        several = await play.ask(replace(LASTING, choices=many[:4], constraints={"multi_select": True}, digest="m"))
        play.ada.press(play.message_of(several), "1. Choice 1", values=["0", "2"])
        await play.server.until(lambda: len(play.hub.replies) == 2, "the marks")
        assert play.hub.replies[1].value == "1,3"


@pytest.mark.parametrize("length", [10, 600, 20_000])
async def test_a_command_of_any_length_stays_within_the_limit_and_says_what_is_missing(length: int) -> None:
    async with stage() as play:
        shown = "echo " + "`*_" * (length // 3)
        subject = Subject(SubjectKind.COMMAND, shown, "/x", SubjectSource.HOOK, True, shown)
        record = await play.ask(replace(prompts.YES_NO, subject=subject))
        content = play.message_of(record)["content"]
        assert len(content) <= LIMIT and ("of" in content and "characters" in content) == (length > 600)
        if length == 20_000:
            play.ada.press(play.message_of(record), "🔎 Show all")
            sent = await play.reads("The whole text")
            assert sent["file"][1].decode().count("`*_") == length // 3


def test_the_link_to_the_card_can_be_tapped_and_no_other_text_becomes_a_link() -> None:
    link = "🔗 https://box.example:8485/#prompt/9d3c11aa-1c7a-4a0e-9a54-f29cf62b2c6d"
    assert with_link(f"Expires (06:24)\n{link}") == f"Expires \\(06\\:24\\)\n{link}"
    for other in (f"{link}?x=[y](https://evil.example)", "🔗 https://evil.example/", f"default: {link}"):
        assert with_link(other) == plain(other) != other


def test_the_tool_s_text_is_shown_as_it_is() -> None:
    assert block("rm -rf *") == "```\nrm -rf *\n```"
    assert block("a ``` b") == "a \\`\\`\\` b" and plain("@everyone **x**") == "\\@everyone \\*\\*x\\*\\*"


async def test_words_go_to_the_question_and_an_edit_or_a_file_does_not() -> None:
    async with stage() as play:
        record = await play.ask(prompts.TEXT)
        play.server.pass_time(5)
        message = play.ada.write("main", reply_to=play.message_of(record))
        await play.server.until(lambda: play.hub.replies, "the text")
        assert (play.hub.replies[0].value, play.hub.replies[0].as_text) == ("main", True)
        play.server.emit("MESSAGE_UPDATE", {**message, "content": "other", "edited_timestamp": "2026-01-01T00:00:00"})
        await play.reads("An edit changes nothing")
        play.ada.write("", attachments=[{"id": "1"}])
        await play.reads("Only text and buttons")
        assert len(play.hub.replies) == 1


async def test_a_lost_connection_is_resumed_and_nothing_is_taken_twice() -> None:
    async with stage() as play:
        first = await play.ask(prompts.YES_NO)
        play.server.cut_sockets()
        await play.server.until(lambda: play.server.resumed == 1, "the resume")
        play.ada.press(play.message_of(first), "✅ Yes")
        await play.server.until(lambda: play.hub.replies, "the reply")
        play.server.ask_to_reconnect()
        await play.server.until(lambda: play.server.resumed == 2, "the second resume")
        assert (len(play.hub.replies), play.server.identified) == (1, 1)


async def test_what_was_said_while_the_connection_was_down_is_heard_after_the_resume() -> None:
    async with stage() as play:
        record = await play.ask(prompts.YES_NO)
        play.server.fail("GET /gateway/bot", "status", status=503, times=3)
        play.server.cut_sockets()
        play.ada.press(play.message_of(record), "❌ No")
        await play.server.until(lambda: play.hub.replies, "the reply")
        assert play.hub.replies[0].value == "n"


async def test_an_invalid_session_begins_a_new_one() -> None:
    async with stage() as play:
        play.server.invalidate()
        await play.server.until(lambda: play.server.identified == 2, "a new session")
        record = await play.ask(prompts.YES_NO)
        play.ada.press(play.message_of(record), "✅ Yes")
        await play.server.until(lambda: play.hub.replies, "the reply")


async def test_a_connection_that_acknowledges_no_heartbeat_is_given_up() -> None:
    hub = MiniHub()
    with FakeDiscord(heartbeat_s=0.2) as server:
        server.acks = False
        channel = DiscordChannel(discord_settings(server), hub, SystemClock())
        async with serving(hub, channel):
            await server.until(lambda: server.resumed >= 1, "the resume")


async def test_a_wrong_token_is_named() -> None:
    hub = MiniHub()
    with FakeDiscord() as server:
        channel = DiscordChannel(discord_settings(server, bot_token="wrong"), hub, SystemClock())
        async with serving(hub, channel):
            await server.until(lambda: "401" in channel.health()["detail"], "the fault")
            assert channel.health()["state"] == "unauthorized"


async def test_limits_are_kept_and_a_flood_is_waited_out() -> None:
    async with stage() as play:
        play.server.limit(2, 0.5)
        for number in range(4):
            await play.channel.notify(f"Notice {number}")
        await play.reads("Notice 3")
        asked = len(play.server.calls_of("POST /channels/ID/messages"))
        assert asked == 4  # none was refused: the channel waits for room
        play.server.limit(1000, 1.0)
        play.server.fail("POST /channels/ID/messages", "status", status=429, retry_after=1)
        record = await play.ask(prompts.YES_NO)
        assert play.message_of(record)["content"]


async def test_a_lost_answer_of_the_server_makes_no_second_message() -> None:
    async with stage() as play:
        await play.channel.notify("Before")
        await play.reads("Before")
        play.server.fail("POST /channels/ID/messages", "cut_after")
        await play.channel.notify("Only once")
        await play.reads("Only once")
        await play.channel.notify("After")
        await play.reads("After")
        assert sum("Only once" in one["content"] for one in play.ada.sees()) == 1


async def test_a_person_who_accepts_no_messages_is_told_in_the_health() -> None:
    async with stage() as play:
        play.server.blocked.add(ADA)
        await play.channel.notify("Hello")
        await play.server.until(lambda: play.channel.health()["unreachable_chats"], "the fault")
