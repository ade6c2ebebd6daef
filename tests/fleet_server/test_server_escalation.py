"""Who is told when, at the server: steps that outlive a process, quiet hours, presence, reminders, one sound for
many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import HubApi, fleet_server_on, new_machine, until
from tests.support.server_chats import chat_file, sees, telegram_table, with_words

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.daemon.escalation import SILENT_S, WORD_S
from atlasbridge.core.daemon.service import ChannelPlan
from atlasbridge.core.prompt.model import InboundReply, PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.fleet.server import people

STEPS = """
[[escalation]]
name = "deploys"
label = "deploy"
steps = [{ who = ["ada"] }, { after_seconds = 120, who = ["@oncall"] }]
"""


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    with FakeTelegram() as server:
        yield server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def with_two(fleet_server: HubApi) -> None:
    await fleet_server.in_chat("ada", "telegram:1001", "admin")
    await fleet_server.in_chat("bob", "telegram:1002", "admin")


async def test_a_later_step_is_taken_by_the_next_process_and_the_first_is_not_repeated(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    chats = chat_file(tmp_path, STEPS, telegram=telegram_table(telegram))
    ada, bob = telegram.person(1001), telegram.person(1002)
    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await with_two(fleet_server)
        await people.set_team(fleet_server.database, "oncall", "bob", True, "test")
        port = int(fleet_server.url.rpartition(":")[2])
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit(label="deploy")
        prompt_id = sitter.ask()
        await sees(ada, "Continue?")
        await until(lambda: _count(fleet_server, "chat_deliveries", 1))
        assert bob.sees() == []
    clock.advance(121)
    async with fleet_server_on(database, clock, port, chats=chats) as fleet_server:
        card = await sees(bob, "Continue?")
        assert len(with_words(ada, "Continue?")) == 1, "she was asked once"
        bob.tap(card, "No")
        await until(lambda: sitter.typed)
        assert sitter.typed[prompt_id]["kind"] == "no"
        await sees(ada, "🛑 No · bob")
        await machine.stop()


async def _count(fleet_server: HubApi, table: str, count: int) -> bool:
    return len(await fleet_server.database.rows(f"SELECT 1 FROM {table}")) == count


async def test_who_wants_quiet_is_asked_without_a_sound_and_everybody_is_reminded_once(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    ada, bob = telegram.person(1001), telegram.person(1002)
    chats = chat_file(tmp_path, telegram=telegram_table(telegram))
    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await with_two(fleet_server)
        await people.set_quiet(fleet_server.database, "bob", ("00:00-12:00", "12:00-00:00"), "UTC", "test")
        machine = await new_machine(fleet_server, root)
        machine.sit(label="app").ask()
        assert not (await sees(ada, "Continue?")).get("disable_notification")
        await sees(bob, "Continue?")
        silent = {call.params["chat_id"]: call.params.get("disable_notification") for call in _asked(telegram)}
        assert silent == {1001: None, 1002: True}
        clock.advance(301)
        await sees(ada, "Still waiting")
        clock.advance(120)
        await sees(bob, "Still waiting")
        assert len(with_words(ada, "Still waiting")) == 1
        await machine.stop()


def _asked(telegram: FakeTelegram) -> list[Any]:
    return [call for call in telegram.calls_of("sendMessage") if "Continue?" in str(call.params.get("text"))]


async def test_of_many_at_once_each_person_hears_one_sound(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    chats = chat_file(tmp_path, telegram=telegram_table(telegram))
    ada, bob = telegram.person(1001), telegram.person(1002)
    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", machine="box")
        await fleet_server.in_chat("bob", "telegram:1002", machine="other")
        box, other = await new_machine(fleet_server, root), await new_machine(fleet_server, root, "other")
        for number in range(3):
            box.sit(label=f"n{number}").ask()
        await sees(ada, "Continue?", 3)
        other.sit().ask()
        await sees(bob, "Continue?")
        loud = [call.params["chat_id"] for call in _asked(telegram) if not call.params.get("disable_notification")]
        assert sorted(loud) == [1001, 1002], "one sound for three questions, and none taken from somebody else"
        await box.stop()
        await other.stop()


async def test_keys_at_the_terminal_hold_back_the_first_word_and_away_does_not(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    chats = chat_file(tmp_path, telegram=telegram_table(telegram))
    ada = telegram.person(1001)
    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit(label="here", attached=True)
        sitter.ask(typed_age_s=1.0)
        await machine.told_all()
        await until(lambda: _promised(fleet_server))
        assert ada.sees() == [] and await _count(fleet_server, "chat_steps", 0)
        clock.advance(20)
        await sees(ada, "Continue?")
        ada.write("/away")
        await sees(ada, "Away until")
        second = machine.sit(label="there", attached=True)
        second.ask(typed_age_s=1.0)
        await sees(ada, "there@box")
        await machine.stop()


async def _promised(fleet_server: HubApi) -> bool:
    return bool(await fleet_server.database.rows("SELECT 1 FROM prompts WHERE chats_ask"))


async def test_a_snooze_is_kept_and_asks_again(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    chats = chat_file(tmp_path, telegram=telegram_table(telegram))
    ada = telegram.person(1001)
    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        prompt_id = machine.sit().ask()
        await sees(ada, "Continue?")
        ada.write(f"/snooze {prompt_id[:8]} 8m")
        await sees(ada, "asked again in 8 minutes")
        clock.advance(301)
        ada.write(f"/snooze {prompt_id[:8]} 60m")
        await sees(ada, "minutes at most")
        assert not with_words(ada, "Still waiting"), "nobody is told of it before that"
        clock.advance(180)
        await sees(ada, "Still waiting")
        await machine.stop()


class Own(BaseChannel):
    """A chat of the machine itself."""

    name = "own"
    remote = True
    asked: list[str]

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        self.asked.append(event.prompt_id)
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        await until(lambda: False, deadline_s=3600)
        raise AssertionError

    async def notify(self, message: str, session: SessionRecord | None = None) -> None: ...

    async def close(self) -> None: ...


async def test_a_machines_own_chats_keep_still_while_the_fleet_server_asks_and_go_on_when_it_is_silent(
    database: str, root: Path, tmp_path: Path, telegram: FakeTelegram, clock: ManualClock
) -> None:
    chats = chat_file(tmp_path, telegram=telegram_table(telegram))
    ada, asked = telegram.person(1001), list[str]()

    def build(fleet_server: Any) -> Own:
        made = Own({}, fleet_server, clock)
        made.asked = asked
        return made

    async with fleet_server_on(database, clock, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", machine="box")
        await until(lambda: fleet_server.carries)
        own = ManualClock()
        machine = await new_machine(fleet_server, root, clock=own, channels=(ChannelPlan("own", True, build),))
        stranger = await new_machine(fleet_server, root, "unwatched", own, (ChannelPlan("own", True, build),))
        first = machine.sit().ask()
        await sees(ada, "Continue?")
        nobodys = stranger.sit().ask()  # nobody in a chat may see that one
        await stranger.told_all()
        assert asked == []
        own.advance(WORD_S + 1)
        await until(lambda: asked == [nobodys])
        own.advance(30)
        await machine.told_all()
        assert asked == [nobodys], "the server asks for the first one"
    own.advance(SILENT_S + 1)
    await until(lambda: asked == [nobodys, first])
    await machine.stop()
    await stranger.stop()
