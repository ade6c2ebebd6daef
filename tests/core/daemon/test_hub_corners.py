"""An adversary's view of the hub: words out of order, hosts that come back late, a store that cannot be written."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import LiveHub, live_hub

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import InboundReply, PromptState, Refusal, Reject
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.values import replace


async def ask(live: LiveHub) -> tuple[FakeHost, str]:
    host = await asyncio.to_thread(FakeHost, live.home)
    prompt_id = host.raise_prompt(YES_NO)
    await live.event("prompt.raised")
    return host, prompt_id


def local(prompt_id: str, value: str) -> InboundReply:
    return InboundReply(channel=LOCAL, identity="cli:local", prompt_id=prompt_id, value=value)


def full_disk(*_: Any) -> NoReturn:
    raise StoreError("the disk is full", "make room")


async def test_an_effect_that_is_told_before_the_typing_is_not_lost() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "y")))
        await asyncio.to_thread(host.hear, "type")
        host.say("effect", prompt_id=prompt_id, outcome="taken")
        host.say("typed", prompt_id=prompt_id, outcome="typed", detail="")
        assert not isinstance(await answering, Reject)
        await live.event("prompt.resolved")
        record = live.hub.hub_api.prompt(prompt_id)
        assert record is not None and record.state is PromptState.RESOLVED
        assert live.hub.ledger.audit_entries(prompt_id=prompt_id, event="REPLY_INJECTED")
        host.close()


async def test_what_hook_and_screen_tell_differently_can_only_be_refused() -> None:
    async with live_hub() as live:
        host = await asyncio.to_thread(FakeHost, live.home)
        prompt_id = host.raise_prompt(replace(YES_NO, constraints={"disagrees": True}))
        await live.event("prompt.raised")
        refused = await live.hub.replies.reply(local(prompt_id, "y"))
        assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_VALUE, refused
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "n")))
        await asyncio.to_thread(host.hear, "type")
        host.say("typed", prompt_id=prompt_id, outcome="typed", detail="")
        assert not isinstance(await answering, Reject)
        host.close()


async def test_a_host_that_was_given_up_and_comes_back_is_told_to_ask_anew() -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        host.close()
        live.hub.sessions.end(host.session_id, None, SessionState.CRASHED)
        record = live.hub.hub_api.prompt(prompt_id)
        assert record is not None and record.state is PromptState.WITHDRAWN
        await asyncio.to_thread(host.reconnect)
        assert (await asyncio.to_thread(host.hear, "renew"))["prompt_id"] == prompt_id
        host.close()


async def test_a_cancel_that_cannot_be_recorded_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live_hub() as live:
        host, prompt_id = await ask(live)
        with monkeypatch.context() as broken:
            broken.setattr(live.hub.ledger, "cancel", full_disk)
            outcome = await live.hub.replies.reply(local(prompt_id, "cancel"))
        assert isinstance(outcome, Reject) and outcome.reason is Refusal.UNAVAILABLE
        host.close()


async def test_the_sender_hears_of_a_reply_that_could_not_even_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live_hub() as live:
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        with monkeypatch.context() as broken:
            broken.setattr(live.hub.ledger, "prompt", full_disk)
            live.person.say(live.person.shown[0], "y")
            await live.person.until(lambda: live.person.outcomes)
        outcome = live.person.outcomes[0][1]
        assert isinstance(outcome, Reject) and outcome.reason is Refusal.UNAVAILABLE
        host.close()
