"""Files and voice notes in Slack, and a thread for each session in channels that take part."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.channels import prompts
from tests.channels.conftest import serving, slack_settings
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import stage, text_of
from tests.support.fake_slack import FakeSlack

from atlasbridge.channels.files import MOST_IN
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.values import replace

HEARING = [sys.executable, "-c", "import sys; print('Add', open(sys.argv[1]).read())", "{file}"]
TEAM_ROOM = "C0TEAM"


async def test_a_file_with_words_is_saved_and_the_words_are_queued(tmp_path: Path) -> None:
    async with stage("slack") as on:
        session = on.hub_api.add_session(cwd=str(tmp_path), label="web")
        on.person.send_file("../plan.png", b"\x89PNG", "make it look like this")
        await on.reads("Queued as number 1")
        assert (tmp_path / "from-chat" / "plan.png").read_bytes() == b"\x89PNG"
        ((_, reply),) = on.hub_api.queue
        assert (reply.session_id, reply.value) == (session.session_id, "make it look like this (from-chat/plan.png)")
        assert "FILE_RECEIVED" in [event for event, _ in on.hub_api.notes] and on.hub_api.replies == []


async def test_a_file_goes_to_the_session_in_whose_thread_it_is_sent(tmp_path: Path) -> None:
    async with stage("slack") as on:
        one, other = tmp_path / "one", tmp_path / "other"
        one.mkdir(), other.mkdir()
        on.hub_api.add_session(cwd=str(other))
        record = await on.ask(prompts.IDLE, cwd=str(one))
        on.clock.advance(5)
        on.person.send_file("x.csv", b"a,b", thread=on.message_of(record))
        await on.reads("as from-chat/x.csv")
        assert (one / "from-chat" / "x.csv").read_bytes() == b"a,b" and not list(other.iterdir())


async def test_a_file_that_slack_does_not_give_or_that_is_too_large_says_so(tmp_path: Path) -> None:
    async with stage("slack") as on:
        on.hub_api.add_session(cwd=str(tmp_path))
        on.person.send_file("big", b"x" * (MOST_IN + 1))
        await on.reads("at most 10 MB")
        on.server.gives_files = False
        on.person.send_file("plan.png", b"secret page")
        await on.reads("files:read")
        on.person.write("", subtype="file_share", files=[{"name": "x", "url_private_download": "http://127.0.0.1:9/x"}])
        await on.reads("the file is not at Slack")
        assert os.listdir(tmp_path) == []


async def test_each_session_has_a_thread_in_a_channel_and_what_is_written_there_is_about_it() -> None:
    hub_api = MiniHub()
    with FakeSlack(ack_s=1.0) as slack:
        ada = slack.person("U0ADA")
        slack.room(TEAM_ROOM, "U0ADA")
        channel = SlackChannel(slack_settings(slack, channels=[TEAM_ROOM]), hub_api, SystemClock())
        async with serving(hub_api, channel):
            await slack.until(lambda: slack.sockets, "the socket")
            web, api = hub_api.add_session(label="web"), hub_api.add_session(label="api")
            asked, other = hub_api.add_prompt(web, prompts.TEXT), hub_api.add_prompt(api, prompts.TEXT)
            for record in (asked, other):
                await hub_api.ask(channel, record)
            roots = [one for one in ada.sees(TEAM_ROOM) if "🧵" in text_of(one)]
            assert ["web" in text_of(one) for one in roots] == [True, False] and len(roots) == 2
            shown = [one for one in ada.sees(TEAM_ROOM) if one.get("_broadcast")]
            assert [one["thread_ts"] for one in shown] == [one["ts"] for one in roots]
            assert not any(one.get("thread_ts") for one in ada.sees())  # direct messages are not threaded
            slack.pass_time(5)
            hub_api.screens[api.session_id] = {"text": "all is well"}
            ada.write("!screen", TEAM_ROOM, roots[1])

            def answered() -> list[Any]:
                return [one for one in ada.sees(TEAM_ROOM) if "all is well" in text_of(one)]

            await slack.until(answered, "the screen")
            assert answered()[0]["thread_ts"] == roots[1]["ts"]
            ada.write("blue", TEAM_ROOM, roots[0])
            await slack.until(lambda: asked.prompt_id in hub_api.answers, "the answer")
            assert hub_api.answers[asked.prompt_id].value == "blue" and other.prompt_id not in hub_api.answers
            count = len(ada.sees(TEAM_ROOM))
            ada.write("nice, thanks", TEAM_ROOM, roots[0])  # nothing is asked there any more: people talk
            ada.write("!last", TEAM_ROOM, roots[1])
            await slack.until(lambda: len(ada.sees(TEAM_ROOM)) > count, "the answer to the command")
            assert not any(
                "Which one" in text_of(one) or "Nothing is waiting" in text_of(one) for one in ada.sees(TEAM_ROOM)
            )
            ended = replace(web, state=SessionState.COMPLETED)
            hub_api.session_records[web.session_id] = ended
            await channel.notify("Session ended", ended)

            def told() -> list[Any]:
                return [one for one in ada.sees(TEAM_ROOM) if "Session ended" in text_of(one)]

            await slack.until(told, "the notice")
            assert told()[0]["thread_ts"] == roots[0]["ts"]


async def test_threads_can_be_switched_off() -> None:
    hub_api = MiniHub()
    with FakeSlack(ack_s=1.0) as slack:
        ada = slack.person("U0ADA")
        slack.room(TEAM_ROOM, "U0ADA")
        channel = SlackChannel(slack_settings(slack, channels=[TEAM_ROOM], threads=False), hub_api, SystemClock())
        async with serving(hub_api, channel):
            await slack.until(lambda: slack.sockets, "the socket")
            await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.TEXT))
            assert len(ada.sees(TEAM_ROOM)) == 1 and "thread_ts" not in ada.last(TEAM_ROOM)
