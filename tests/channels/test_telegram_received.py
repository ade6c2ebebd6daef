"""Photos, files and voice notes in Telegram, and a topic for each session in a forum."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.channels import prompts
from tests.channels.conftest import ADA, serving, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import stage, text_of
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.files import MOST_IN
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.values import replace

GROUP = -1001
HEARING = [sys.executable, "-c", "import sys; print('Add', open(sys.argv[1]).read())", "{file}"]


async def test_a_photo_with_a_caption_is_saved_and_its_instruction_queued(tmp_path: Path) -> None:
    async with stage("telegram") as on:
        session = on.hub_api.add_session(cwd=str(tmp_path), label="web")
        on.person.send_file("photo", b"\xff\xd8picture", caption="make it look like this")
        await on.reads("Queued as number 1")
        (saved,) = (tmp_path / "from-chat").iterdir()
        assert saved.read_bytes() == b"\xff\xd8picture" and saved.suffix == ".jpg"
        ((_, reply),) = on.hub_api.queue
        assert reply.session_id == session.session_id
        assert reply.value == f"make it look like this (from-chat/{saved.name})"
        assert "FILE_RECEIVED" in [event for event, _ in on.hub_api.notes] and on.hub_api.replies == []


async def test_a_file_goes_to_the_session_whose_message_it_replies_to(tmp_path: Path) -> None:
    async with stage("telegram") as on:
        one, other = tmp_path / "one", tmp_path / "other"
        one.mkdir(), other.mkdir()
        on.hub_api.add_session(cwd=str(other))
        record = await on.ask(prompts.IDLE, cwd=str(one))
        on.person.send_file("document", b"a,b", file_name="../../x.csv")
        await on.reads("Which session?")
        on.person.send_file("document", b"a,b", on.message_of(record), file_name="../../x.csv")
        await on.reads("as from-chat/x.csv")
        assert (one / "from-chat" / "x.csv").read_bytes() == b"a,b" and not list(other.iterdir())
        assert sorted(os.listdir(tmp_path)) == ["one", "other"]
        on.person.send_file("document", b"x" * (MOST_IN + 1), on.message_of(record), file_name="big")
        await on.reads("at most 10 MB")
        assert len(list((one / "from-chat").iterdir())) == 1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([], "no `transcriber`"),
        (["/does/not/exist", "{file}"], "The transcriber failed"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "The transcriber failed"),
        ([sys.executable, "-c", ""], "could not be understood"),
    ],
)
async def test_a_voice_note_that_cannot_be_heard_says_so(command: list[str], told: str) -> None:
    async with stage("telegram", transcriber=command) as on:
        await on.ask(prompts.YES_NO)
        on.person.send_file("voice", b"yes")
        await on.reads(told)
        assert on.hub_api.replies == []


async def test_a_forum_gets_a_topic_for_each_session_and_commands_there_are_about_it(
    server: FakeTelegram, hub_api: MiniHub
) -> None:
    ada, group = server.person(ADA), server.group(GROUP, forum=True)
    group.manages_topics = True
    channel = TelegramChannel(telegram_settings(server, groups=[{"chat_id": GROUP}]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        web, api = hub_api.add_session(label="web"), hub_api.add_session(label="api")
        for session in (web, api):
            hub_api.screens[session.session_id] = {"text": f"screen of {session.label}"}
            await hub_api.ask(channel, hub_api.add_prompt(session, prompts.YES_NO))
        await server.until(lambda: len(server.sent(GROUP)) == 2, "both prompts in the group")
        names = {name.split(" · ")[0]: thread for thread, name in group.topics.items()}
        assert {one["message_thread_id"] for one in server.sent(GROUP)} == set(names.values()) and len(names) == 2
        assert all("message_thread_id" not in one for one in ada.sees())
        ada.write("/screen", chat_id=GROUP, thread=names["api"])
        await server.until(lambda: "screen of api" in text_of(server.sent(GROUP)[-1]), "its screen")
        assert server.sent(GROUP)[-1]["message_thread_id"] == names["api"]
        ada.write("lunch?", chat_id=GROUP, thread=names["api"])  # talk among people stays talk
        await hub_api.ask(channel, hub_api.add_prompt(web, prompts.TEXT))
        await server.until(lambda: len(server.sent(GROUP)) == 4, "the next prompt")
        assert len(group.topics) == 2 and server.sent(GROUP)[-1]["message_thread_id"] == names["web"]
        hub_api.session_records[web.session_id] = replace(web, state=SessionState.COMPLETED)
        await channel.notify("Session ended", web)
        await server.until(lambda: group.closed == {names["web"]}, "the closed topic")
        assert hub_api.replies == []


async def test_where_no_topic_can_be_made_the_group_itself_is_used(server: FakeTelegram, hub_api: MiniHub) -> None:
    server.person(ADA)
    server.group(GROUP, forum=True)  # without the right to manage topics
    channel = TelegramChannel(telegram_settings(server, groups=[{"chat_id": GROUP}]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        for _ in range(2):
            await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
        await server.until(lambda: len(server.sent(GROUP)) == 2, "both prompts")
        assert all("message_thread_id" not in one for one in server.sent(GROUP))
        assert [call.method for call in server.calls].count("createForumTopic") == 1
