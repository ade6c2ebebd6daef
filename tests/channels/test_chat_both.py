"""What a person finds alike in Telegram and in Slack: the same play on both stages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import Message, channel_at, playing, stage, text_of
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram

BOTH = pytest.mark.parametrize("name", ["telegram", "slack"])
HEARING = [sys.executable, "-c", "import sys; print('Add', open(sys.argv[1]).read())", "{file}"]


@BOTH
async def test_a_secret_is_neither_asked_for_nor_taken_nor_kept(name: str) -> None:
    async with stage(name) as play:
        shown = play.message_of(await play.ask(prompts.SECRET))
        assert "Chat never carries secrets" in text_of(shown) and play.buttons(shown) == []
        play.write("hunter2", shown)
        await play.reads("Delete your message")
        assert play.hub_api.replies == [] and "hunter2" not in json.dumps(list(play.hub_api.inbox.values()))


@BOTH
async def test_show_more_sends_the_screen_and_a_long_one_as_a_file(name: str) -> None:
    async with stage(name) as play:
        asked = play.message_of(await play.ask(prompts.UNKNOWN))
        assert play.buttons(asked) == ["↩ Send Enter", "🔎 Show last output", "✖ Cancel"]
        play.press(asked, "Show last output")
        await play.until(lambda: len(play.person.sees()) == 2, "the screen")
        screen = play.person.sees()[-1]
        assert "line 12" in text_of(screen) and (name == "telegram" or screen["thread_ts"] == asked["ts"])
        play.press(play.message_of(await play.ask(prompts.LONG)), "Show last output")
        await play.until(play.files, "the file")
        assert play.files() == [b"x" * 9000]


@BOTH
async def test_plain_words_mean_the_only_prompt_that_there_was_time_to_read(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.IDLE)
        shown = text_of(play.message_of(record))
        assert "waits for your next instruction" in shown and "finished" not in shown
        play.clock.advance(5)
        play.write("go on")
        await play.until(lambda: record.prompt_id in play.hub_api.answers, "the answer")
        assert play.hub_api.answers[record.prompt_id].value == "go on"
        await play.ask(prompts.TEXT)
        play.write("which?")
        await play.reads("Which one do you mean?")
        assert len(play.hub_api.answers) == 1


@BOTH
async def test_plain_words_with_several_sessions_are_asked_back_and_switch_decides(name: str) -> None:
    async with stage(name) as play:
        await play.ask(prompts.TEXT)
        record = await play.ask(prompts.TEXT, tool="codex")
        play.clock.advance(5)
        play.write("blue")
        await play.reads("Which one do you mean?")
        assert play.hub_api.answers == {}
        play.command(f"switch {record.session_id[:8]}")
        await play.reads("Messages now go to project (Codex)")
        play.write("green")
        await play.until(lambda: play.hub_api.answers, "the answer")
        assert list(play.hub_api.answers) == [record.prompt_id]
        play.command("switch off")
        await play.reads("no longer go to one session")


@BOTH
async def test_commands_tell_what_runs_and_waits(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.YES_NO)
        session = record.session_id
        for words, expected in (
            ("sessions", "project · Claude Code · waits for you"),
            ("status", "waiting for your answer"),
            ("help", "mute 30m"),
            ("dance", "dance"),
        ):
            play.command(words)
            await play.reads(expected)
        play.hub_api.screens[session] = {"text": "$ make\nall good"}
        play.command("screen")
        await play.reads("all good")
        play.hub_api.screens[session] = {"text": "long line\n" * 1000}
        play.command("screen")
        await play.until(play.files, "the file")
        assert b"long line" in play.files()[0]
        assert play.hub_api.replies == []  # none of it was taken for an answer


@BOTH
async def test_muting_keeps_notices_away_but_never_prompts(name: str) -> None:
    async with stage(name) as play:
        session = play.hub_api.add_session()
        play.command("mute 30m")
        await play.reads("Muted for 30m")
        await play.channel.notify("Session started", session)
        await play.ask(prompts.YES_NO)
        play.command("mute off")
        await play.reads("No longer muted")
        assert "Session started" not in play.all_text() and "Continue?" in play.all_text()
        await play.channel.notify("Session ended", session)
        await play.reads("Session ended")


@BOTH
async def test_an_edit_changes_nothing_and_says_so(name: str) -> None:
    async with stage(name) as play:
        record = await play.ask(prompts.TEXT)
        message = play.write("first", play.message_of(record))
        await play.until(lambda: record.prompt_id in play.hub_api.answers, "the answer")
        play.person.edit(message, "second")
        await play.reads("edit changes nothing")
        assert [reply.value for reply in play.hub_api.replies] == ["first"]


@BOTH
async def test_a_voice_note_is_shown_in_words_and_answers_only_after_a_press(name: str) -> None:
    async with stage(name, transcriber=HEARING) as play:
        record = await play.ask(prompts.IDLE)
        play.clock.advance(5)
        play.speak(b"a test\n for it")
        heard = await play.reads("🎙 “Add a test for it”")
        assert play.hub_api.replies == []
        play.press(heard, "project")
        await play.until(lambda: record.prompt_id in play.hub_api.answers, "the answer")
        assert play.hub_api.answers[record.prompt_id].value == "Add a test for it"


@BOTH
async def test_a_voice_note_never_answers_a_secret_and_needs_a_transcriber(name: str) -> None:
    async with stage(name, transcriber=HEARING) as play:
        record = await play.ask(prompts.SECRET)
        play.speak(b"hunter2", play.message_of(record))
        await play.reads("Secrets are never taken in a chat")
        assert play.hub_api.replies == [] and "hunter2" not in play.all_text()
    async with stage(name) as play:
        await play.ask(prompts.YES_NO)
        play.speak(b"yes")
        await play.reads("no `transcriber`")
        assert play.hub_api.replies == []


@pytest.fixture
def server(name: str) -> Iterator[Any]:
    with FakeTelegram() if name == "telegram" else FakeSlack(ack_s=1.0) as fake:
        yield fake


def is_confirmed(server: FakeTelegram | FakeSlack) -> bool:
    """The service has nothing left that it would send again."""
    return not server.unconfirmed() if isinstance(server, FakeTelegram) else all(one.acked for one in server.envelopes)


async def die_after(server: Any, hub: MiniHub, prompt: Any, act: Any) -> None:
    """A channel whose process ends when what this person did is in the inbox: nobody routes, so nothing is decided."""
    ada = server.person(1001 if isinstance(server, FakeTelegram) else "U0ADA")
    dying = channel_at(server, hub)
    await dying.start()
    if isinstance(server, FakeSlack):
        await server.until(lambda: server.sockets, "the socket")
    await hub.ask(dying, hub.add_prompt(hub.add_session(), prompt))
    act(ada)
    await server.until(lambda: hub.pending_updates(dying.name), "the inbox")
    await server.until(lambda: is_confirmed(server), "the word that it arrived")
    await dying.close()
    assert hub.answers == {}


@BOTH
async def test_a_press_that_was_accepted_before_a_crash_answers_once_after_it(name: str, server: Any) -> None:
    hub = MiniHub()

    def press(ada: Any) -> Message:
        act = ada.tap if name == "telegram" else ada.click
        pressed: Message = act(ada.last(), "Yes")
        return pressed

    await die_after(server, hub, prompts.YES_NO, press)
    for _ in range(2):
        async with playing(name, server, hub):
            await server.until(lambda: hub.answers and not hub.pending_updates(name), "the answer")
    assert [reply.value for reply in hub.replies] == ["y"]


@BOTH
async def test_words_that_named_no_prompt_are_not_guessed_about_after_a_crash(name: str, server: Any) -> None:
    hub = MiniHub()
    await die_after(server, hub, prompts.TEXT, lambda ada: (server.pass_time(5), ada.write("blue")))
    ada = server.person(1001 if name == "telegram" else "U0ADA")
    async with playing(name, server, hub):
        await server.until(lambda: any("AtlasBridge restarted" in text_of(one) for one in ada.sees()), "the sentence")
    assert hub.answers == {}
