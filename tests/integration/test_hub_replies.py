"""The way of a reply through a hub with a person and a host, on a clock that is set by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.fake_host import FREE_TEXT, SECRET, UNKNOWN, YES_NO, FakeHost
from tests.support.hubs import LiveHub, channel_named, live_hub, stage_of, why
from tests.support.memory_channel import MemoryChannel
from tests.support.waiting import in_thread, until

from atlasbridge.core.prompt.model import InboundReply, Prompt, PromptState, Receipt, Refusal, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import LOCAL, WorkerSettings


async def ask(live: LiveHub, prompt: Prompt = YES_NO, **session: Any) -> tuple[FakeHost, str]:
    host = await in_thread(FakeHost, live.home, **session)
    prompt_id = host.raise_prompt(prompt)
    await live.event("prompt.raised")
    return host, prompt_id


def local(prompt_id: str, value: str, **fields: Any) -> InboundReply:
    return InboundReply(channel=LOCAL, identity="cli:local", prompt_id=prompt_id, value=value, **fields)


async def test_a_person_answers_and_gets_every_receipt() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        await live.person.until(lambda: live.person.shown)
        live.person.say(live.person.shown[0], "y")
        order = await in_thread(host.answer_typing)
        assert order["answer"] == {"kind": "yes", "value": ""}
        await live.person.until(lambda: len(live.person.edits) == 3 and live.person.outcomes)
        assert [receipt.stage for _, receipt in live.person.edits] == ["received", "typed", "taken"]
        assert isinstance(live.person.outcomes[0][1], Receipt)
        assert live.record(prompt_id).state is PromptState.RESOLVED
        host.close()


async def test_the_first_valid_reply_wins_and_the_other_channel_hears_who_it_was() -> None:
    other = channel_named("other")
    async with live_hub(channels=(channel_named("memory"), other)) as live:
        host, _ = await ask(live)
        for person in live.people.values():
            await person.until(lambda person=person: person.shown)
        record = live.person.shown[0]
        live.person.say(record, "y", identity="memory:anna")
        live.people["other"].say(record, "n", identity="other:bert")
        order = await in_thread(host.answer_typing)
        assert order["answer"]["kind"] == "yes"
        await live.people["other"].until(lambda: live.people["other"].outcomes)
        refusal = live.people["other"].outcomes[0][1]
        assert isinstance(refusal, Reject) and refusal.reason in (Refusal.BAD_NONCE, Refusal.NOT_OPEN)
        await live.people["other"].until(lambda: live.people["other"].edits)
        first = live.people["other"].edits[0][1]
        assert first.by == "memory:anna" and first.stage == "answered_elsewhere"
        host.close()


async def test_a_reply_is_audited_before_it_is_typed() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "y")))
        await in_thread(host.hear, "type")
        events = [entry["event"] for entry in live.hub.ledger.audit_entries(prompt_id=prompt_id)]
        assert "REPLY_RECEIVED" in events and "REPLY_INJECTED" not in events
        host.say("typed", prompt_id=prompt_id, outcome="typed")
        assert stage_of(await answering) == "typed"
        host.close()


async def test_a_stale_prompt_is_refused_and_withdrawn() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "y")))
        await in_thread(host.answer_typing, "stale")
        outcome = await answering
        assert why(outcome) is Refusal.STALE
        assert live.record(prompt_id).state is PromptState.WITHDRAWN
        host.close()


async def test_after_an_answer_at_the_terminal_a_reply_is_refused() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        host.withdraw(prompt_id)
        assert (await live.event("prompt.withdrawn"))["reason"] == "answered_at_terminal"
        outcome = await live.hub.replies.reply(local(prompt_id, "y"))
        assert why(outcome) is Refusal.NOT_OPEN
        host.close()


async def test_after_the_deadline_the_safe_default_is_typed_and_a_late_reply_is_refused() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        live.advance(601)
        order = await in_thread(host.answer_typing)
        assert order["answer"]["kind"] == "no"
        assert (await live.event("prompt.expired"))["default"] == "n"
        assert (await live.event("prompt.injected"))["by"] == "auto:timeout"
        await live.event("prompt.resolved")
        assert why(await live.hub.replies.reply(local(prompt_id, "y"))) is Refusal.EXPIRED
        host.close()


async def test_nothing_is_typed_by_a_timer_for_an_unknown_or_a_secret_prompt() -> None:
    for prompt in (UNKNOWN, SECRET):
        async with live_hub() as live:
            host, prompt_id = await ask(live, prompt)
            live.advance(601)
            assert (await live.event("prompt.expired"))["default"] is None
            assert live.record(prompt_id).state is PromptState.EXPIRED
            assert live.hub.ledger.unsettled() == []
            host.close()


async def test_a_wall_clock_that_jumps_expires_nothing() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        live.clock.jump_wall(86_400)
        live.hub.scheduler.run_due()
        assert live.record(prompt_id).state in (PromptState.ROUTED, PromptState.AWAITING_REPLY)
        host.close()


async def test_the_eleventh_reply_within_a_minute_is_too_fast_but_not_on_this_machine() -> None:
    async with live_hub(channels=(channel_named("chat", remote=True),)) as live:
        host, prompt_id = await ask(live)
        wrong = InboundReply(channel="chat", identity="chat:1", prompt_id=prompt_id, value="maybe")
        reasons = [why(await live.hub.replies.reply(wrong)) for _ in range(11)]
        assert reasons == [Refusal.BAD_VALUE] * 10 + [Refusal.RATE_LIMITED]
        assert why(await live.hub.replies.reply(local(prompt_id, "maybe"))) is Refusal.BAD_VALUE
        live.clock.advance(61)
        assert why(await live.hub.replies.reply(wrong)) is Refusal.BAD_VALUE
        host.close()


async def test_a_person_who_is_not_listed_may_not_answer() -> None:
    chat = channel_named("chat", remote=True)
    policy = PolicySettings(allowed={"chat": frozenset({"chat:1"})})
    async with live_hub(policy=policy, channels=(chat,)) as live:
        host, prompt_id = await ask(live)
        stranger = InboundReply(channel="chat", identity="chat:2", prompt_id=prompt_id, value="y")
        assert why(await live.hub.replies.reply(stranger)) is Refusal.NOT_ALLOWED
        host.close()


async def test_a_secret_is_neither_asked_nor_answered_in_a_chat_and_never_written_down() -> None:
    chat = channel_named("chat", remote=True)
    policy = PolicySettings(allowed={"chat": None})
    async with live_hub(policy=policy, channels=(chat,)) as live:
        host, prompt_id = await ask(live, SECRET)
        await live.people["chat"].until(lambda: len(live.people["chat"].notices) == 2)
        assert live.people["chat"].shown == []
        from_chat = InboundReply(channel="chat", identity="chat:1", prompt_id=prompt_id, value="hunter2")
        assert why(await live.hub.replies.reply(from_chat)) is Refusal.NOT_ALLOWED
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "hunter2")))
        order = await in_thread(host.answer_typing)
        assert order["answer"]["value"] == "hunter2"
        await answering
        written = b"".join(path.read_bytes() for path in live.home.root.iterdir() if path.is_file())
        assert b"hunter2" not in written
        assert "hunter2" not in str(live.hub.stream.recent())
        host.close()


async def test_a_dead_channel_keeps_nobody_else_waiting_and_asks_when_it_is_back() -> None:
    async with live_hub(channels=(channel_named("memory"), channel_named("dead"))) as live:
        dead = live.people["dead"]
        dead.stuck = True
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        live.person.say(live.person.shown[0], "n")
        assert (await in_thread(host.answer_typing))["answer"]["kind"] == "no"
        dead.stuck = False
        host.raise_prompt(YES_NO)
        await dead.until(lambda: dead.shown)
        host.close()


async def test_a_channel_that_is_down_is_tried_again_while_the_prompt_is_open() -> None:
    async with live_hub() as live:
        live.person.down = True
        host, prompt_id = await ask(live)
        await asyncio.sleep(0)
        live.person.down = False
        await live.person.until(lambda: live.person.shown)
        assert live.person.shown[0].prompt_id == prompt_id
        host.close()


async def test_cancel_leaves_the_prompt_alone() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live, UNKNOWN)
        outcome = await live.hub.replies.reply(local(prompt_id, "cancel"))
        assert stage_of(outcome) == "canceled"
        assert live.record(prompt_id).state is PromptState.CANCELED
        host.close()


async def test_free_text_is_answered_by_no_timer_even_if_a_default_came_with_it() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live, FREE_TEXT)
        live.advance(601)
        assert (await live.event("prompt.expired"))["default"] is None
        assert live.record(prompt_id).state is PromptState.EXPIRED
        host.close()


async def test_a_session_without_channels_asks_nobody_but_can_be_answered_here() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live, channels=())
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "y")))
        await in_thread(host.answer_typing)
        assert stage_of(await answering) == "typed"
        assert live.person.shown == [] and live.person.notices == []
        host.close()


async def test_a_reminder_goes_out_once() -> None:
    async with live_hub() as live:
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        live.advance(301)
        await live.person.until(lambda: live.person.edits)
        live.advance(200)
        assert [receipt.stage for _, receipt in live.person.edits] == ["reminder"]
        host.close()


async def test_typed_but_still_there_is_told_and_never_typed_again() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "y")))
        await in_thread(host.answer_typing, "typed", "still_there")
        await answering
        assert (await live.event("prompt.failed"))["reason"] == "still_there"
        assert live.record(prompt_id).state is PromptState.FAILED
        host.close()


async def test_a_channel_that_cannot_be_built_is_a_fault_in_the_status() -> None:
    class Broken(MemoryChannel):
        name = "broken"

        def __init__(self, *_: Any) -> None:
            raise ImportError("no module named colours")

    async with live_hub(channels=(Broken,), worker=WorkerSettings(first_retry_s=0.01)) as live:
        await until(lambda: live.hub.router.health()[0]["state"] == "fault", "the fault")
        assert "colours" in live.hub.router.health()[0]["fault"]


async def test_a_screen_is_shown_at_once_then_whenever_it_changes_until_nobody_looks() -> None:
    async with live_hub() as live:
        host = await in_thread(FakeHost, live.home)
        looking = live.hub.hub_api.watch(host.session_id, fps=5)
        first = asyncio.create_task(anext(looking))
        look = await in_thread(host.hear, "capture")
        assert look["styled"] is True
        host.say("screen", request=look["request"], rows=1, styled=[])
        assert await first == {"rows": 1, "styled": []}
        second = asyncio.create_task(anext(looking))
        assert (await in_thread(host.hear, "watch"))["fps"] == 5
        host.say("screen", request="", rows=2, styled=[])
        assert (await second)["rows"] == 2
        await looking.aclose()
        assert (await in_thread(host.hear, "watch"))["on"] is False
        host.close()


async def test_a_host_that_does_not_answer_shows_nothing() -> None:
    async with live_hub(capture_timeout_s=0.05) as live:
        host = await in_thread(FakeHost, live.home)
        assert await live.hub.hub_api.screen(host.session_id) is None
        assert await live.hub.hub_api.screen("no such session") is None
        host.close()


async def test_keys_from_afar_are_recorded_by_number_and_not_by_content() -> None:
    async with live_hub() as live:
        host = await in_thread(FakeHost, live.home)
        assert await live.hub.hub_api.type_keys(host.session_id, b"ls\r", "web:anna")
        assert (await in_thread(host.hear, "keys"))["data"] == "ls\r"
        (entry,) = live.hub.ledger.audit_entries(event="KEYS_TYPED")
        assert entry["decided_by"] == "web:anna" and entry["count"] == 3 and "ls" not in str(entry)
        host.close()


async def test_a_session_may_set_its_own_time_limit() -> None:
    async with live_hub() as live:
        host = await in_thread(FakeHost, live.home, ttl_s=5.0)
        host.raise_prompt()
        await live.event("prompt.raised")
        live.advance(6)
        assert (await live.event("prompt.expired"))["default"] == "n"
        host.close()
