"""Decisions that share a commit, through a whole hub: if it fails nothing is typed, and all goes on as before."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import LiveHub, live_hub, stage_of, why
from tests.support.waiting import in_thread, until

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import InboundReply, PromptState, Refusal
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.values import replace


def local(prompt_id: str, value: str) -> InboundReply:
    return InboundReply(channel=LOCAL, identity="cli:local", prompt_id=prompt_id, value=value)


async def ask(live: LiveHub, **session: Any) -> tuple[FakeHost, str]:
    host = await in_thread(FakeHost, live.home, **session)
    prompt_id = host.raise_prompt()
    await until(lambda: (known := live.hub.hub_api.prompt(prompt_id)) and known.state is PromptState.AWAITING_REPLY)
    return host, prompt_id


def spoil_the_round(live: LiveHub) -> asyncio.Future[None]:
    """Something in the round that is being made up refers to nothing, which SQLite finds out when it commits."""

    def refer_to_nothing() -> None:
        with live.hub.ledger.journal.write() as work:
            work.connection.execute("PRAGMA defer_foreign_keys = ON")
            work.connection.execute("INSERT INTO votes VALUES ('nobody asked', 'ada', 'x', 'y', '')")

    return live.hub.rounds.start(refer_to_nothing)


def full_disk(*_: Any) -> NoReturn:
    raise StoreError("the disk is full", "make room")


async def test_a_claim_that_is_not_committed_is_refused_and_the_host_never_hears_of_it() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        spoilt = spoil_the_round(live)
        outcome = await live.hub.replies.reply(local(prompt_id, "y"))
        assert why(outcome) is Refusal.UNAVAILABLE
        with pytest.raises(StoreError):
            await spoilt
        assert live.record(prompt_id).state is PromptState.AWAITING_REPLY
        again = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "n")))
        order = await in_thread(host.answer_typing)
        assert order["answer"]["kind"] == "no"  # the first word that reaches the host is of the second answer
        assert stage_of(await again) == "typed"
        events = [one["event"] for one in live.hub.stream.recent()]
        assert events.count("reply.received") == 1
        host.close()


async def test_a_request_that_was_typed_before_does_not_share_the_refusal_of_its_round() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        request = replace(local(prompt_id, "y"), request_key="decision-1")
        typing = asyncio.create_task(live.hub.replies.reply(request))
        await in_thread(host.answer_typing)
        assert stage_of(await typing) == "typed"
        spoilt = spoil_the_round(live)
        again = await live.hub.replies.reply(request)
        with pytest.raises(StoreError):
            await spoilt
        assert stage_of(again) == "typed"
        host.close()


async def test_a_refusal_that_the_disk_did_not_take_holds_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        request = replace(local(prompt_id, "y"), request_key="decision-2")
        with monkeypatch.context() as full:
            full.setattr(live.hub.ledger, "keep_refusal", full_disk)
            spoilt = spoil_the_round(live)
            first = await live.hub.replies.reply(request)
        with pytest.raises(StoreError):
            await spoilt
        assert why(first) is Refusal.UNAVAILABLE
        assert await live.hub.replies.reply(request) == first  # delivered twice: it was told that nothing is typed
        assert live.record(prompt_id).state is PromptState.AWAITING_REPLY
        host.close()


async def test_a_cancel_that_is_not_committed_leaves_the_prompt_its_time() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        spoilt = spoil_the_round(live)
        assert why(await live.hub.replies.reply(local(prompt_id, "cancel"))) is Refusal.UNAVAILABLE
        with pytest.raises(StoreError):
            await spoilt
        record = live.record(prompt_id)
        live.advance(record.deadline - live.clock.now() + 1)
        assert live.record(prompt_id).state is PromptState.EXPIRED
        host.close()


async def test_a_question_that_is_not_committed_is_asked_when_its_host_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live_hub() as live:
        host, first = await ask(live)
        host.say("withdraw", prompt_id=first, reason="moved_on")
        await live.event("prompt.withdrawn")
        start = live.hub.rounds.start

        def start_spoilt(act: Any, urgent: bool = False) -> Any:
            monkeypatch.undo()
            spoil_the_round(live).add_done_callback(lambda done: done.exception())
            return start(act, urgent)

        monkeypatch.setattr(live.hub.rounds, "start", start_spoilt)
        prompt_id = host.raise_prompt()
        await until(lambda: live.hub.hosts.get(host.session_id) is None, "the hub to cut the host off")
        assert live.hub.hub_api.prompt(prompt_id) is None
        assert prompt_id not in [one.get("prompt_id") for one in live.hub.stream.recent()]
        await in_thread(host.reconnect)
        await until(lambda: live.hub.hub_api.prompt(prompt_id), "the question")
        host.close()


async def test_two_answers_at_the_same_moment_share_a_round_and_one_wins() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        both = [asyncio.create_task(live.hub.replies.reply(local(prompt_id, value))) for value in ("y", "n")]
        order = await in_thread(host.answer_typing)
        outcomes = await asyncio.gather(*both)
        assert order["answer"]["kind"] == "yes" and stage_of(outcomes[0]) == "typed"
        assert why(outcomes[1]) is Refusal.NOT_OPEN
        host.close()


async def test_a_prompt_that_is_settled_at_once_is_still_edited_where_it_was_shown() -> None:
    async with live_hub() as live:
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        second = host.raise_prompt()
        host.say("withdraw", prompt_id=second, reason="moved_on")
        await live.person.until(lambda: second in dict(live.person.edits))
        host.close()
