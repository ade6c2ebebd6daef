"""Answers with a moment of their own, and being asked again later: through a hub with a host."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.fake_host import SECRET, YES_NO, FakeHost
from tests.support.hubs import LiveHub, channel_named, live_hub
from tests.support.waiting import in_thread, until

from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.prompt.model import (
    InboundReply,
    Prompt,
    PromptRecord,
    PromptState,
    PromptType,
    Receipt,
    Refusal,
    Reject,
)
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.scheduler.times import LIMIT
from atlasbridge.core.values import replace

HERE, CHAT = channel_named("memory"), channel_named("chat", remote=True)
POLICY = PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:1"})})
LIMITED = Prompt(
    PromptType.TYPE_FREE_TEXT,
    0.9,
    "What next?",
    constraints={"idle": True},
    digest="idle",
    screen="You've hit your session limit · resets in 2 hours",
)


async def asked(live: LiveHub, prompt: Prompt = YES_NO) -> tuple[FakeHost, str]:
    host = await in_thread(FakeHost, live.home)
    prompt_id = host.raise_prompt(prompt)
    await until(lambda: live.hub.ledger.prompt(prompt_id) is not None)
    await until(lambda: record_of(live, prompt_id).state is PromptState.AWAITING_REPLY)
    return host, prompt_id


def record_of(live: LiveHub, prompt_id: str) -> PromptRecord:
    found = live.hub.ledger.prompt(prompt_id)
    assert found is not None
    return found


def refusal(outcome: Receipt | Reject) -> Refusal:
    assert isinstance(outcome, Reject), outcome
    return outcome.reason


def kept(outcome: Receipt | Reject) -> Receipt:
    assert isinstance(outcome, Receipt), outcome
    return outcome


def reply(prompt_id: str, value: str = "y", **fields: Any) -> InboundReply:
    return InboundReply("chat", "chat:1", prompt_id, value, place="Ana's phone", **fields)


async def test_an_answer_for_later_is_typed_at_its_moment_and_not_before() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        assert kept(live.hub.later.postpone(reply(prompt_id), "in 2h")).stage == "postponed"
        (one,) = live.hub.hub_api.later()
        assert one["value"] == "y" and one["prompt_id"] == prompt_id
        assert parse_iso(one["due_at"]) == live.clock.wall() + 7200
        live.advance(3600)  # the prompt's own ten minutes are long over
        assert record_of(live, prompt_id).state is PromptState.AWAITING_REPLY
        live.advance(3601)
        order = await in_thread(host.answer_typing)
        assert order["prompt_id"] == prompt_id
        await until(lambda: record_of(live, prompt_id).state is PromptState.RESOLVED)
        decided = record_of(live, prompt_id)
        assert decided.decided_by == "chat:1" and "Ana's phone, given for later at" in decided.decided_from
        await until(lambda: live.hub.hub_api.later() == [])
        events = [entry["event"] for entry in live.hub.ledger.audit_entries(prompt_id=prompt_id)]
        assert events.index("REPLY_POSTPONED") < events.index("REPLY_RECEIVED") < events.index("REPLY_INJECTED")
        host.close()


async def test_somebody_may_answer_before_and_the_later_answer_comes_to_nothing() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        live.hub.later.postpone(reply(prompt_id), "in 2h")
        typing = asyncio.create_task(in_thread(host.answer_typing))
        outcome = await live.hub.replies.reply(InboundReply("local", "cli:local", prompt_id, "n"))
        assert isinstance(outcome, Receipt)
        await typing
        await until(lambda: live.hub.hub_api.later() == [])
        live.advance(7300)
        assert record_of(live, prompt_id).decided_by == "cli:local"
        (entry,) = [e for e in live.hub.ledger.audit_entries(prompt_id=prompt_id) if e["event"] == "REPLY_REVOKED"]
        assert entry["outcome"] == "overtaken"
        host.close()


async def test_what_was_given_for_later_is_taken_back_and_the_prompt_waits_as_before() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        later_id = kept(live.hub.later.postpone(reply(prompt_id), "in 2h")).answer
        stranger = InboundReply("chat", "chat:9", "", "")
        refused = live.hub.later.revoke(stranger, later_id)
        assert isinstance(refused, Reject) and refused.reason is Refusal.NOT_ALLOWED
        assert isinstance(live.hub.later.revoke(reply(""), later_id[:8]), Receipt)
        assert live.hub.hub_api.later() == []
        assert isinstance(live.hub.later.revoke(reply(""), later_id), Reject)
        live.advance(599)
        assert record_of(live, prompt_id).state is PromptState.AWAITING_REPLY
        live.advance(2)  # its own time counts again, from when it was taken back
        await in_thread(host.answer_typing)
        assert record_of(live, prompt_id).decided_by.startswith("auto:")
        host.close()


async def test_a_second_answer_for_later_takes_the_place_of_the_first() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        live.hub.later.postpone(reply(prompt_id, "y"), "in 2h")
        live.hub.later.postpone(reply(prompt_id, "n"), "in 1h")
        (one,) = live.hub.hub_api.later()
        assert one["value"] == "n"
        live.advance(3601)
        assert (await in_thread(host.answer_typing))["answer"]["kind"] == "no"
        host.close()


async def test_it_is_given_by_the_next_hub_exactly_once() -> None:
    """The same store, and a hub that remembers nothing: what waits gets its moment back, also when that has passed."""
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        live.hub.later.postpone(reply(prompt_id), "in 2h")
        (one,) = live.hub.hub_api.later()
        live.hub.scheduler.cancel(f"later:{one['later_id']}")
        live.advance(7200 + 1800)
        assert record_of(live, prompt_id).state is PromptState.AWAITING_REPLY
        live.hub.later.recover()
        live.hub.later.recover()
        live.advance(0.1)
        await in_thread(host.answer_typing)
        await until(lambda: record_of(live, prompt_id).state is PromptState.RESOLVED)
        entries = [e for e in live.hub.ledger.audit_entries(prompt_id=prompt_id) if e["event"] == "REPLY_RECEIVED"]
        assert len(entries) == 1
        host.close()


async def test_a_session_that_is_not_connected_at_the_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlasbridge.core.daemon.scheduled_answers.AGAIN_S", 0.05)
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        live.hub.later.postpone(reply(prompt_id), "in 1h")
        live.advance(3599)
        host.close()
        await until(lambda: live.hub.hosts.get(host.session_id) is None)
        live.hub.replies.settings = replace(live.hub.replies.settings, host_patience_s=0.05)
        live.advance(2)
        await until(lambda: any(e["event"] == "REPLY_REFUSED" for e in live.hub.ledger.audit_entries(limit=1000)))
        await in_thread(host.reconnect)
        await in_thread(host.answer_typing)
        await until(lambda: record_of(live, prompt_id).state is PromptState.RESOLVED)
        host.close()


async def test_what_is_not_on_the_screen_any_more_at_the_moment_is_not_typed() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        live.hub.later.postpone(reply(prompt_id), "in 1h")
        live.advance(3601)
        await in_thread(host.answer_typing, "stale")
        await until(lambda: record_of(live, prompt_id).state is PromptState.WITHDRAWN)
        chat = live.people["chat"]
        await chat.until(lambda: any("was not sent" in notice for notice in chat.notices))
        host.close()


async def test_secrets_strangers_bad_values_and_bad_moments_are_refused_at_once() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        other, secret = await asked(live, SECRET)
        hub_api, later = live.hub.hub_api, live.hub.later
        local = InboundReply("local", "cli:local", secret, "hunter2")
        assert refusal(later.postpone(local, "in 1h")) is Refusal.NOT_ALLOWED
        assert refusal(later.postpone(InboundReply("chat", "chat:9", prompt_id, "y"), "in 1h")) is Refusal.NOT_ALLOWED
        assert refusal(later.postpone(reply(prompt_id, "perhaps"), "in 1h")) is Refusal.BAD_VALUE
        assert refusal(later.postpone(reply(prompt_id, "cancel"), "in 1h")) is Refusal.BAD_VALUE
        for when in ("", "soon", "in 9 days", "limit-resets"):
            assert refusal(later.postpone(reply(prompt_id), when)) is Refusal.BAD_VALUE, when
        assert refusal(later.postpone(reply("f" * 32), "in 1h")) is Refusal.UNKNOWN_PROMPT
        assert hub_api.later() == []
        assert "hunter2" not in str(live.hub.ledger.audit_entries(limit=1000))
        host.close(), other.close()


async def test_a_screen_that_speaks_of_a_limit_says_when_and_takes_an_answer_for_then() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live, LIMITED)
        assert record_of(live, prompt_id).prompt.constraints[LIMIT] == iso(live.clock.wall() + 7200)
        kept(live.hub.later.postpone(reply(prompt_id, "continue"), "limit-resets"))
        live.advance(7200)
        assert live.hub.hub_api.later()
        live.advance(61)
        order = await in_thread(host.answer_typing)
        assert order["answer"]["value"] == "continue"
        host.close()


async def test_a_snooze_silences_it_and_asks_again_at_its_moment() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        chat = live.people["chat"]
        await chat.until(lambda: chat.shown)
        told = live.hub.later.snooze(reply(prompt_id), 15 * 60)
        assert isinstance(told, Receipt) and told.stage == "snoozed"
        live.advance(14 * 60)  # neither the reminder after five minutes, nor the end after ten
        await chat.until(lambda: chat.edits)
        assert [receipt.stage for _, receipt in chat.edits] == ["snoozed"]
        live.advance(61)
        await chat.until(lambda: [receipt.stage for _, receipt in chat.edits] == ["snoozed", "reminder"])
        assert live.hub.hub_api.later() == []
        live.advance(590)
        assert record_of(live, prompt_id).state is PromptState.AWAITING_REPLY
        live.advance(12)
        await in_thread(host.answer_typing)
        host.close()


async def test_a_snooze_is_a_minute_to_a_day_for_who_may_answer_what_is_open() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        later = live.hub.later
        assert refusal(later.snooze(reply(prompt_id), 5)) is Refusal.BAD_VALUE
        assert refusal(later.snooze(reply(prompt_id), 86_401)) is Refusal.BAD_VALUE
        assert refusal(later.snooze(InboundReply("chat", "chat:9", prompt_id, ""), 900)) is Refusal.NOT_ALLOWED
        assert (
            refusal(later.snooze(InboundReply("local", "x", prompt_id, "", inside_session="s" * 32), 900))
            is Refusal.SELF
        )
        host.withdraw(prompt_id)
        await until(lambda: record_of(live, prompt_id).state is PromptState.WITHDRAWN)
        assert refusal(later.snooze(reply(prompt_id), 900)) is Refusal.NOT_OPEN
        host.close()
