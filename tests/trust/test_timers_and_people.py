"""A timer types nothing while somebody sits at the terminal; it says what it will do, and then that it did."""

from __future__ import annotations

import asyncio

from tests.support.fake_host import FakeHost
from tests.support.hubs import LiveHub, live_hub
from tests.support.waiting import stays, until
from tests.trust.test_receipts_tell_the_truth import raised

from atlasbridge.core.host.hub_link import render_signal
from atlasbridge.core.prompt.model import PromptState


async def attached(live: LiveHub, host: FakeHost, typed_age_s: float | None) -> None:
    host.say("state", attached=True, rows=24, cols=80)
    host.say("presence", typed_age_s=typed_age_s)
    session_id = host.session_id
    await until(lambda: bool((known := live.hub.ledger.session(session_id)) and known.attached))


async def expired(live: LiveHub, prompt_id: str) -> str:
    """What people read of it."""

    def done() -> bool:
        record = live.hub.ledger.prompt(prompt_id)
        return record is not None and record.state is PromptState.EXPIRED

    await until(done)
    await until(lambda: any(receipt.stage == "expired" for _, receipt in live.person.edits))
    return next(receipt.sentence for _, receipt in live.person.edits if receipt.stage == "expired")


async def test_a_timer_types_nothing_while_the_attached_terminal_is_in_use() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            await attached(live, host, None)
            asked = asyncio.create_task(asyncio.to_thread(host.hear, "presence"))
            live.advance(601)
            await asked
            host.say("presence", typed_age_s=30.0)
            await until(lambda: live.hub.life.escalation.last_key_at(host.session_id) is not None)
            live.advance(1)
            said = await expired(live, prompt_id)
            assert said == "Nobody answered in time; nothing was typed, because its terminal is in use."
            record = live.hub.ledger.prompt(prompt_id)
            assert record is not None and record.decided_value == ""


async def test_a_terminal_that_nobody_has_used_for_so_long_is_typed_into() -> None:
    async with live_hub() as live:
        host, _ = await raised(live)
        with host:
            await attached(live, host, None)
            asked = asyncio.create_task(asyncio.to_thread(host.hear, "presence"))
            live.advance(601)
            await asked
            host.say("presence", typed_age_s=4000.0)
            typing = asyncio.create_task(asyncio.to_thread(host.answer_typing))
            live.advance(1)
            assert (await typing)["answer"]["kind"] == "no"


async def test_a_minute_before_the_terminal_and_the_channels_hear_what_a_timer_will_do() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            heard = asyncio.create_task(asyncio.to_thread(host.hear, "notice"))
            live.advance(541)
            notice = await heard
            assert notice["signal"] == "bell"
            assert notice["text"] == (
                'AtlasBridge: In one minute a timer answers "n" in deploy, unless somebody answers first.'
            )
            await until(lambda: any("a timer answers" in text for text in live.person.notices))
            typing = asyncio.create_task(asyncio.to_thread(host.answer_typing))
            live.advance(61)
            await typing
            await until(lambda: any(receipt.stage == "taken" for _, receipt in live.person.edits))
            assert all("timer" in receipt.sentence for _, receipt in live.person.edits if receipt.stage != "reminder")
            assert prompt_id


async def test_nobody_is_warned_of_a_prompt_that_was_answered() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            host.withdraw(prompt_id)
            await until(lambda: not live.hub.ledger.open_prompts(host.session_id))
            live.advance(700)
            await stays(lambda: not any("timer" in text for text in live.person.notices))


def test_a_signal_holds_nothing_that_a_terminal_would_obey() -> None:
    assert render_signal("bell", "x") == b"\a" and render_signal("none", "x") == b"" == render_signal("other", "x")
    assert render_signal("osc9", "a\x1b]0;evil\ab") == b"\x1b]9;a]0;evilb\x1b\\"
    assert render_signal("title", "a\nb\x9cc") == b"\x1b]2;abc\x1b\\"
