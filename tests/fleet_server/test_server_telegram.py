"""Telegram at the server, for all machines: a tap is typed once, rights hold, and another process takes over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import YES_NO, HubApi, fleet_server_on, new_machine, until
from tests.support.server_chats import chat_file, sees, telegram_table, with_words
from tests.support.server_rig import Rig, rig

from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import PromptState, PromptType
from atlasbridge.core.values import replace
from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.database import Database

SECRET = {"secret": True}


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    with FakeTelegram() as server:
        yield server


@pytest.fixture
def chats(telegram: FakeTelegram, tmp_path: Path) -> Path:
    return chat_file(tmp_path, telegram=telegram_table(telegram))


async def test_a_prompt_of_a_machine_is_answered_by_a_tap_typed_once_and_its_message_says_so(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    ada = telegram.person(1001)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit(cwd="/srv/app", label="deploy")
        prompt_id = sitter.ask()
        card = await sees(ada, "Continue?")
        assert "deploy@box" in card["text"] and "/srv/app" in card["text"]
        tap = ada.tap(card, "Yes")
        await sees(ada, "✅ Yes · ada")
        assert sitter.typed == {prompt_id: {"kind": "yes", "value": ""}} and sitter.orders == [prompt_id]
        record = machine.hub.ledger.prompt(prompt_id)
        assert record is not None and record.state is PromptState.RESOLVED and record.decided_by == "server:ada"
        assert "Telegram" in record.decided_from
        await until(lambda: tap.toast)
        assert "Yes" in str(tap.toast) or "y" in str(tap.toast)
        await machine.stop()


async def test_who_may_not_see_a_machine_hears_nothing_of_it_and_a_forged_tap_is_refused_and_logged(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    ada, bob = telegram.person(1001), telegram.person(1002)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        await fleet_server.in_chat("bob", "telegram:1002", machine="other")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit(label="deploy")
        sitter.ask()
        card = await sees(ada, "Continue?")
        forged = next(one for row in card["reply_markup"]["inline_keyboard"] for one in row if "Yes" in one["text"])
        bob.write("/status")
        bob.write("/sessions")
        await until(lambda: len(bob.sees()) >= 2)
        look = next(one for row in card["reply_markup"]["inline_keyboard"] for one in row if one is not forged)
        for pressed in (forged, look):
            tap = bob.tap_data(bob.last(), pressed["callback_data"])
            await until(lambda tap=tap: tap.toast)
            assert "no such prompt" in str(tap.toast)
        assert not with_words(bob, "deploy") and not with_words(bob, "Continue?")
        assert sitter.orders == []
        entry, *_ = await fleet_server.database.rows(
            "SELECT fields FROM audit_pending WHERE event = 'DECISION_REFUSED' UNION ALL"
            " SELECT entry::jsonb FROM audit_entries WHERE entry::jsonb ->> 'event' = 'DECISION_REFUSED'"
        )
        assert entry["fields"]["decided_by"] == "bob" and entry["fields"]["reason"] == "not_allowed"
        await machine.stop()


async def test_who_may_only_see_is_shown_the_question_and_refused(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    bob = telegram.person(1002)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("bob", "telegram:1002", machine="box", may="see")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit()
        sitter.ask()
        tap = bob.tap(await sees(bob, "Continue?"), "Yes")
        await until(lambda: tap.toast)
        assert "not answer it" in str(tap.toast) and sitter.orders == []
        assert "DECISION_REFUSED" in await fleet_server.events()
        await machine.stop()


async def test_a_stranger_is_told_nothing_and_noted(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    mallory = telegram.person(6666)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        mallory.write("/status")
        await until(lambda: _noted(fleet_server, "CHANNEL_STRANGER"))
        assert mallory.sees() == []


async def _noted(fleet_server: HubApi, event: str) -> bool:
    return event in await fleet_server.events()


async def test_an_answer_at_the_machine_is_told_in_the_message_and_a_late_tap_is_too_late(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    ada = telegram.person(1001)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit()
        prompt_id = sitter.ask()
        card = await sees(ada, "Continue?")
        sitter.answer_here(prompt_id)
        await sees(ada, "↩")
        tap = ada.tap(card, "Yes")
        await until(lambda: tap.toast)
        assert sitter.orders == [] and "Too late" in str(tap.toast)
        await machine.stop()


async def test_a_secret_is_shown_without_its_words_and_never_taken_in_a_chat(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    ada = telegram.person(1001)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        sitter = machine.sit(label="vault")
        secret = replace(YES_NO, type=PromptType.TYPE_FREE_TEXT, excerpt="Passphrase of prod-7:", constraints=SECRET)
        prompt_id = sitter.ask(secret)
        card = await sees(ada, "asks for a secret")
        assert "vault@box" in card["text"] and "prod-7" not in card["text"]
        assert f"atlasbridge reply {prompt_id[:8]}" in card["text"], "where to answer it, in words that work there"
        ada.write("hunter2", reply_to=card)
        await sees(ada, "never")
        assert sitter.orders == []
        rows = await fleet_server.database.rows("SELECT payload FROM chat_inbox")
        assert "hunter2" not in str(rows)
        await machine.stop()


async def test_a_file_of_a_machine_is_never_read_from_the_fleet_servers_own_disk(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    (root / "there").mkdir()
    (root / "there" / "plan.txt").write_text("of the server itself")
    ada = telegram.person(1001)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(fleet_server, root)
        machine.sit(cwd=str(root / "there"), label="app").ask()
        await sees(ada, "Continue?")
        ada.write("/get app@box plan.txt")
        await sees(ada, "another machine")
        await machine.stop()


async def test_a_screen_is_asked_of_its_machine_by_right_and_in_a_group_only_what_all_may_see_is_told(
    database: str, root: Path, telegram: FakeTelegram, tmp_path: Path
) -> None:
    ada, bob = telegram.person(1001), telegram.person(1002)
    telegram.group(-100)
    chats = chat_file(tmp_path, "[[channels.telegram.groups]]\nchat_id = -100", telegram=telegram_table(telegram))
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", "admin")
        await fleet_server.in_chat("bob", "telegram:1002", machine="shared")
        machine, shared = await new_machine(fleet_server, root), await new_machine(fleet_server, root, "shared")
        machine.sit(label="payroll").ask()
        shared.sit(label="docs").ask()
        await sees(ada, "payroll@box")
        await sees(bob, "docs@shared")
        ada.write("/screen payroll@box")
        await sees(ada, "$ ls")
        bob.write("/screen payroll@box")
        await sees(bob, "Which session?")
        ada.write("/status", chat_id=-100)
        await until(lambda: any("docs@shared:" in str(one.get("text")) for one in ada.sees(-100)))
        told = "".join(str(one.get("text")) for one in ada.sees(-100))
        assert "payroll" not in told and "docs@shared" in told
        assert "SCREEN_WATCHED" in await fleet_server.events()
        await machine.stop()
        await shared.stop()


async def test_the_same_ids_on_two_machines_are_two_prompts(
    database: str, root: Path, telegram: FakeTelegram, chats: Path
) -> None:
    ada = telegram.person(1001)
    async with fleet_server_on(database, chats=chats) as fleet_server:
        await fleet_server.in_chat("ada", "telegram:1001", machine="box")
        await fleet_server.in_chat("bob", "telegram:1002", machine="evil")
        honest, evil = await new_machine(fleet_server, root), await new_machine(fleet_server, root, "evil")
        sitter = honest.sit(label="deploy")
        prompt_id = sitter.ask()
        card = await sees(ada, "Continue?")
        liar = evil.sit(label="harmless")
        liar.record = replace(liar.record, session_id=sitter.session_id)
        liar.session_id = sitter.session_id
        liar.connect(evil.hub)
        body = {"prompt_id": prompt_id, "prompt": encode_prompt(replace(YES_NO, excerpt="Eat cake?"))}
        evil.hub.sessions.handle(liar, {"m": "raise", **body})  # type: ignore[arg-type]
        await sees(telegram.person(1002), "Eat cake?")
        bob = telegram.person(1002)
        tap = bob.tap(bob.last(), "Yes")
        await until(lambda: tap.toast)
        assert sitter.orders == [], "another machine's prompt of the same id was not answered"
        ada.tap(card, "No")
        await until(lambda: sitter.typed)
        assert sitter.typed[prompt_id]["kind"] == "no"
        await honest.stop()
        await evil.stop()


async def test_the_fleet_server_that_had_the_chats_is_killed_and_another_goes_on_without_asking_twice(
    telegram: FakeTelegram,
) -> None:
    ada = telegram.person(1001)
    async with rig(chats=lambda root: chat_file(root, telegram=telegram_table(telegram))) as fleet:
        await people.set_identity(fleet.database, "alice", "telegram:1001", True, "test")
        await fleet.add_member("box", sessions=1, pause_s=0.0)
        card = await sees(ada, "Continue with")
        await until(lambda: _rows(fleet.database, "SELECT 1 FROM chat_deliveries"))
        fleet.kill_fleet_server(await _who_carries(fleet))
        ada.tap(card, "Yes")
        await until(lambda: with_words(ada, "✅ Yes · alice"))  # the same message, edited by the other server
        (first,) = await fleet.database.rows("SELECT prompt_id FROM decisions WHERE ok")
        asked = f"Continue with {first['prompt_id'][:8]}?"
        await until(lambda: len(with_words(ada, "Continue with")) >= 2)  # the session asks its next question
        assert len(with_words(ada, asked)) == 1, "it was asked twice"
        assert fleet.typed()[0][first["prompt_id"]] == "yes" and fleet.typed()[1] == 0


async def test_the_database_dies_and_comes_back_and_nothing_is_asked_twice_or_lost(telegram: FakeTelegram) -> None:
    ada = telegram.person(1001)
    async with rig(fleet_servers=1, chats=lambda root: chat_file(root, telegram=telegram_table(telegram))) as fleet:
        await people.set_identity(fleet.database, "alice", "telegram:1001", True, "test")
        await fleet.add_member("box", sessions=1, pause_s=0.0)
        card = await sees(ada, "Continue with")
        await until(lambda: _rows(fleet.database, "SELECT 1 FROM chat_deliveries"))
        fleet.server.kill_9()
        ada.tap(card, "Yes")
        fleet.server.start()
        await until(lambda: _rows(fleet.database, "SELECT 1 FROM decisions WHERE ok"))
        await until(lambda: with_words(ada, "✅ Yes · alice"))
        (first,) = await fleet.database.rows("SELECT prompt_id FROM decisions WHERE ok")
        assert len(with_words(ada, f"Continue with {first['prompt_id'][:8]}?")) == 1
        assert fleet.typed()[0][first["prompt_id"]] == "yes" and fleet.typed()[1] == 0


async def _rows(database: Database, query: str) -> bool:
    return bool(await database.rows(query))


async def _who_carries(fleet: Rig) -> int:
    """The port of the server that has the chats."""
    async with httpx.AsyncClient() as client:
        told = {
            port: (await client.get(f"http://127.0.0.1:{port}/health")).json()["chats"] for port in fleet.fleet_servers
        }
    (found,) = [port for port, carries in told.items() if carries]
    return found
