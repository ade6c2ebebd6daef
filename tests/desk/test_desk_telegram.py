"""Telegram at the desk, for all machines: a tap is typed once, rights hold, and another process takes over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.desk_chats import chat_file, sees, telegram_table
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import desk_on, new_machine, until

from atlasbridge.core.prompt.model import PromptState


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
    async with desk_on(database, chats=chats) as desk:
        await desk.in_chat("ada", "telegram:1001", "admin")
        machine = await new_machine(desk, root)
        sitter = machine.sit(cwd="/srv/app", label="deploy")
        prompt_id = sitter.ask()
        card = await sees(ada, "Continue?")
        assert "deploy@box" in card["text"] and "/srv/app" in card["text"]
        tap = ada.tap(card, "Yes")
        await sees(ada, "✅ Yes · ada")
        assert sitter.typed == {prompt_id: {"kind": "yes", "value": ""}} and sitter.orders == [prompt_id]
        record = machine.hub.ledger.prompt(prompt_id)
        assert record is not None and record.state is PromptState.RESOLVED and record.decided_by == "desk:ada"
        assert "Telegram" in record.decided_from
        await until(lambda: tap.answer)
        await machine.stop()
