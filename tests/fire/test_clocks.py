"""Clocks that jump, machines that sleep, machines that start again: no prompt is revived, prolonged or lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import LiveHub, live_hub, short_home
from tests.support.ledgers import YES

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptState, Receipt, Refusal, Reject
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.store.ledger import Ledger

DAY_S = 86_400.0


async def ask(live: LiveHub) -> tuple[FakeHost, str]:
    host = await asyncio.to_thread(FakeHost, live.home)
    prompt_id = host.raise_prompt()
    await live.event("prompt.raised")
    return host, prompt_id


async def reply(live: LiveHub, prompt_id: str) -> Receipt | Reject:
    return await live.hub.replies.reply(InboundReply(LOCAL, "cli:local", prompt_id, "y"))


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S, 3650 * DAY_S, -3650 * DAY_S])
async def test_a_wall_clock_that_jumps_neither_ends_nor_prolongs_a_prompt(jump_s: float) -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        deadline = live.record(prompt_id).deadline
        live.clock.jump_wall(jump_s)
        live.advance(1)
        record = live.record(prompt_id)
        assert record.state in OPEN and record.deadline == deadline
        live.clock.advance(deadline - live.clock.now())
        live.hub.scheduler.run_due()
        assert live.record(prompt_id).state is PromptState.EXPIRED
        live.clock.jump_wall(-jump_s)
        late = await reply(live, prompt_id)
        assert isinstance(late, Reject) and late.reason is Refusal.EXPIRED
        host.close()


async def test_time_goes_on_while_the_machine_sleeps() -> None:
    """The steady clock counts a suspend: what was to expire in the night has expired in the morning."""
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        live.clock.advance(DAY_S)
        late = await reply(live, prompt_id)  # before any timer had a chance to run
        assert isinstance(late, Reject) and late.reason is Refusal.EXPIRED
        live.hub.scheduler.run_due()
        assert live.record(prompt_id).state is PromptState.EXPIRED
        host.close()


def test_the_steady_clock_is_the_one_that_counts_a_suspend() -> None:
    import time

    from atlasbridge.core.clock import SystemClock

    counts = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    before = time.clock_gettime(counts)
    assert before <= SystemClock().now() <= time.clock_gettime(counts)
    bound: Any = SystemClock.now
    assert bound.args == (counts,)


@pytest.mark.parametrize("claimed", [False, True])
def test_a_prompt_does_not_outlive_its_boot(claimed: bool) -> None:
    with short_home() as home:
        from tests.support.ledgers import ask as ask_ledger

        clock = ManualClock(now=1000.0)
        ledger = Ledger.open(home.root, clock, "first boot")
        record = ask_ledger(ledger)
        if claimed:
            ledger.claim(record.prompt_id, record.session_id, None, YES, "cli:local")
        ledger.close()
        after = Ledger.open(home.root, ManualClock(now=5.0), "second boot")
        known = after.prompt(record.prompt_id)
        assert known is not None and known.state in (PromptState.WITHDRAWN, PromptState.FAILED)
        assert [session.state for session in after.sessions(include_ended=True)] == [SessionState.CRASHED]
        refused = after.claim(record.prompt_id, record.session_id, None, YES, "cli:local")
        assert isinstance(refused, Reject) and after.unsettled() == []
        after.close()
