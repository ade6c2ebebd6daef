"""A hub whose disk is full, that is flooded, or whose session is slow says so, stays quick and keeps true records."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import LiveHub, live_hub

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import InboundReply, PromptState, Receipt, Refusal, Reject
from atlasbridge.core.routing.router import LOCAL


def local(prompt_id: str, value: str) -> InboundReply:
    return InboundReply(channel=LOCAL, identity="cli:local", prompt_id=prompt_id, value=value)


async def ask(live: LiveHub) -> tuple[FakeHost, str]:
    host = await asyncio.to_thread(FakeHost, live.home)
    prompt_id = host.raise_prompt(YES_NO)
    await live.event("prompt.raised")
    return host, prompt_id


def fill(live: LiveHub) -> Any:
    """The disk is full from now on; calling what is returned makes room."""
    database = live.hub.ledger.journal.database
    connection = database.connection

    class FullDisk:
        """The connection, to which nothing can be written."""

        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if sql.startswith(("BEGIN", "COMMIT")):
                raise sqlite3.OperationalError("database or disk is full")
            return connection.execute(sql, *given)

        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

    full = type("FullDatabase", (type(database),), {"connection": FullDisk()})
    database.__class__, before = full, database.__class__
    return lambda: setattr(database, "__class__", before)


async def test_a_full_disk_is_an_event_and_a_message_and_so_is_its_end() -> None:
    async with live_hub() as live:
        free = fill(live)
        with pytest.raises(StoreError):
            live.hub.ledger.note("HUB_START")
        alarm = await live.event("store.alarm")
        assert "full" in alarm["alarm"] and "types nothing" in alarm["sentence"]
        assert (await live.asked("status"))["alarm"] == alarm["alarm"]
        await live.person.until(lambda: any("cannot record it" in text for text in live.person.notices))
        free()
        live.advance(60)  # it looks for itself, nobody has to ask
        await live.event("store.recovered")
        await live.person.until(lambda: any("again" in text for text in live.person.notices))


async def test_who_follows_the_events_hears_of_an_alarm_that_is_already_on() -> None:
    async with live_hub() as live:
        free = fill(live)
        with pytest.raises(StoreError):
            live.hub.ledger.note("HUB_START")
        events = await live.hub.operations.operate({"op": "events", "follow": True})
        assert not isinstance(events, dict)
        first = await anext(aiter(events))
        assert first["event"] == "store.alarm"
        free()


async def test_of_a_flood_of_refused_replies_the_first_are_recorded_and_the_rest_is_counted() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        for _ in range(500):
            refused = await live.hub.replies.reply(local(prompt_id, "perhaps"))
            assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_VALUE
        entries = live.hub.ledger.audit_entries(event="REPLY_REFUSED", limit=1000)
        assert 1 <= len(entries) <= 40
        live.advance(61)
        entries = live.hub.ledger.audit_entries(event="REPLY_REFUSED", limit=1000)
        assert len(entries) + sum(entry.get("more", 0) for entry in entries) - 1 == 500
        assert entries[-1]["reason"] == "bad_value" and entries[-1]["decided_by"] == "cli:local"
        host.close()


async def test_what_was_counted_is_recorded_when_the_hub_ends() -> None:
    async with live_hub() as live:
        for _ in range(100):
            await live.hub.replies.reply(local("none", "y"))
        ledger = live.hub.ledger
        live.hub.replies.close()
        entries = ledger.audit_entries(event="REPLY_REFUSED", limit=1000)
        assert len(entries) + entries[-1]["more"] - 1 == 100


async def test_an_answer_that_takes_long_to_type_is_called_accepted_and_not_refused() -> None:
    async with live_hub(type_timeout_s=0.05) as live:
        host, prompt_id = await ask(live)
        outcome = await live.hub.replies.reply(local(prompt_id, "y"))
        assert isinstance(outcome, Receipt) and outcome.stage == "received"
        assert "not confirmed yet" in outcome.sentence
        assert live.hub.ledger.audit_entries(event="REPLY_REFUSED") == []
        await asyncio.to_thread(host.answer_typing)
        await live.event("prompt.resolved")
        host.close()


async def test_a_prompt_that_a_killed_hub_left_unrouted_is_routed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live_hub() as live:
        host = await asyncio.to_thread(FakeHost, live.home)
        monkeypatch.setattr(live.hub.life.escalation, "begin", lambda record, session: None)  # as if killed before it
        prompt_id = host.raise_prompt(YES_NO)
        await live.event("prompt.raised")
        record = live.hub.ledger.prompt(prompt_id)
        assert record is not None and record.state is PromptState.CREATED
        await asyncio.to_thread(host.reconnect)
        await live.person.until(lambda: live.person.shown)
        await live.event("prompt.routed")
        events = [entry["event"] for entry in live.hub.ledger.audit_entries(prompt_id=prompt_id)]
        assert events == ["PROMPT_DETECTED", "PROMPT_ROUTED", "PROMPT_DELIVERED"]
        host.close()


async def test_the_hub_answers_while_the_audit_log_is_verified() -> None:
    async with live_hub() as live:
        for number in range(3000):
            live.hub.ledger.note("KEYS_TYPED", count=number)
        longest, loop = 0.0, asyncio.get_running_loop()
        verifying = asyncio.create_task(live.asked("audit.verify"))
        turns = 0
        while not verifying.done():
            before = loop.time()
            await asyncio.sleep(0)
            longest, turns = max(longest, loop.time() - before), turns + 1
            live.hub.ledger.note("KEYS_TYPED", count=-1)  # what is written meanwhile is no fault
        verdict = (await verifying)["verdict"]
        assert verdict["ok"] and verdict["count"] > 3000, verdict
        assert turns > 3, f"the loop stood still: {longest}"
