"""People's attention through a hub with a host: who is asked when, how loud, and what is never lost."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.fake_host import SECRET, UNKNOWN, YES_NO, FakeHost
from tests.support.hubs import LiveHub, channel_named, live_hub
from tests.support.waiting import in_thread, stays, until

from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.escalation import Escalation
from atlasbridge.core.policy.escalation import (
    AttentionSettings,
    EscalationPolicy,
    EscalationStep,
    PeopleBook,
    Person,
    parse_quiet,
)
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptState, PromptType, Receipt, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import replace

HERE, CHAT = channel_named("memory"), channel_named("chat", remote=True)
BOTH = (HERE, CHAT)
ALLOWED = {"memory": None, "chat": frozenset({"chat:1", "chat:2"})}
POLICY = PolicySettings(allowed=ALLOWED)
IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "What next?", constraints={"idle": True}, digest="idle")


async def a_host(live: LiveHub, **session: Any) -> FakeHost:
    return await in_thread(FakeHost, live.home, **{"attached": True, **session})


async def shows(live: LiveHub, name: str, count: int = 1) -> list[PromptRecord]:
    person = live.people[name]
    await person.until(lambda: len(person.shown) >= count)
    return person.shown


async def test_with_nobody_at_the_keyboard_chat_and_hub_api_are_asked_at_once() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        host.raise_prompt()
        await shows(live, "memory")
        await shows(live, "chat")
        host.close()


async def test_keys_a_moment_ago_hold_the_chat_back_and_the_host_is_asked_once_more() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        host.say("presence", typed_age_s=3.0)
        host.say("raise", **_raise(host, typed_age_s=3.0))
        await shows(live, "memory")
        assert not live.people["chat"].shown
        live.advance(17.1)
        await in_thread(host.hear, "presence")
        assert not live.people["chat"].shown
        host.say("presence", typed_age_s=5.0)  # they went on typing elsewhere in that session
        await until(lambda: (live.hub.life.escalation.last_key_at(host.session_id) or 0) > 1010)
        live.advance(15.1)
        await in_thread(host.hear, "presence")
        host.say("presence", typed_age_s=20.1)
        await shows(live, "chat")
        host.close()


async def test_a_host_that_says_nothing_more_holds_nobody_back() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        host.say("raise", **_raise(host, typed_age_s=0.0))
        await shows(live, "memory")
        live.advance(20.1)
        live.advance(0.6)
        await shows(live, "chat")
        host.close()


async def test_away_asks_the_chat_at_once_and_here_ends_it() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        host.say("raise", **_raise(host, typed_age_s=0.0))
        await shows(live, "memory")
        assert not live.people["chat"].shown
        await live.asked("away", for_s=3600.0)
        await shows(live, "chat")
        assert (await live.asked("people"))["away"]
        live.advance(3601)
        assert not (await live.asked("people"))["away"]
        await live.asked("away")
        live.advance(86_400)
        assert (await live.asked("people"))["away"]
        await live.asked("here")
        assert not (await live.asked("people"))["away"]
        host.close()


async def test_a_detached_session_has_nobody_at_its_keyboard() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live, attached=False)
        host.say("raise", **_raise(host, typed_age_s=0.0))
        await shows(live, "chat")
        host.close()


async def test_a_reminder_comes_once_also_over_a_restart() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        prompt_id = host.raise_prompt()
        await shows(live, "chat")
        await shows(live, "memory")
        live.advance(301)
        chat = live.people["chat"]
        await chat.until(lambda: chat.edits)
        life = live.hub.life
        life.escalation = Escalation(life.hub)  # all that a former process only remembered
        life.watch_again(live.record(prompt_id), live.session(host))
        live.advance(100)
        await stays(lambda: [receipt.stage for _, receipt in chat.edits] == ["reminder"] and len(chat.shown) == 1)
        host.close()


async def test_what_was_to_be_shown_and_was_not_is_shown_after_a_restart() -> None:
    async with live_hub(POLICY, BOTH) as live:
        await until(lambda: "chat" in live.people)
        live.people["chat"].stuck = True
        host = await a_host(live)
        prompt_id = host.raise_prompt()
        await shows(live, "memory")
        live.people["chat"].stuck = False
        life = live.hub.life
        life.escalation = Escalation(life.hub)
        life.watch_again(live.record(prompt_id), live.session(host))
        await shows(live, "chat")
        assert len(live.people["memory"].shown) == 1
        host.close()


async def test_a_escalation_of_one_s_own_says_who_and_when() -> None:
    ana = Person("Ana", ("chat:1",))
    escalation_policy = EscalationPolicy(
        (EscalationStep(0, ("Ana",), ("chat",)), EscalationStep(60)), "own", tool="claude"
    )
    policy = replace(POLICY, attention=AttentionSettings(PeopleBook.of(ana), (escalation_policy,)))
    async with live_hub(policy, BOTH) as live:
        host = await a_host(live, tool="claude")
        prompt_id = host.raise_prompt()
        await shows(live, "chat")
        assert not live.people["memory"].shown
        assert live.hub.hub_api.tone(prompt_id, "chat").only == frozenset({"chat:1"})
        live.advance(61)
        await shows(live, "memory")
        await shows(live, "chat", 2)
        assert live.hub.hub_api.tone(prompt_id, "chat").only is None
        host.close()


async def test_quiet_hours_make_it_silent_for_one_and_not_for_the_other() -> None:
    sleeper = Person("Ana", ("chat:1",), (parse_quiet("00:00-23:59"),))
    policy = replace(POLICY, attention=AttentionSettings(PeopleBook.of(sleeper)))
    async with live_hub(policy, BOTH) as live:
        host = await a_host(live)
        prompt_id = host.raise_prompt()
        await shows(live, "chat")
        tone = live.hub.hub_api.tone(prompt_id, "chat")
        assert not tone.sounds_for("chat:1") and tone.sounds_for("chat:2")
        host.close()


async def test_many_at_once_make_one_sound_and_one_digest_that_is_edited() -> None:
    async with live_hub(POLICY, BOTH) as live:
        hosts = [await a_host(live) for _ in range(5)]
        ids = [host.raise_prompt() for host in hosts]
        await shows(live, "chat", 5)
        loud = [prompt_id for prompt_id in ids if live.hub.hub_api.tone(prompt_id, "chat").loud]
        assert len(loud) == 1
        chat = live.people["chat"]
        await chat.until(lambda: len(chat.digests) == 4)
        assert len({key for key, _, _ in chat.digests}) == 1
        assert [sounds for _, _, sounds in chat.digests] == [True, False, False, False]
        joined = [host for host, prompt_id in zip(hosts, ids, strict=True) if prompt_id not in loud]
        joined[0].withdraw(joined[0].open_id)
        await chat.until(lambda: len(chat.digests) == 5)
        assert chat.digests[-1][1].startswith("3 more questions, 1 settled:")
        for host in hosts:
            host.close()


async def test_a_permission_takes_the_sound_of_idle_notices() -> None:
    async with live_hub(POLICY, BOTH) as live:
        asks, rests = await a_host(live), await a_host(live)
        asks.raise_prompt()
        await shows(live, "chat")
        live.advance(100)
        idle = rests.raise_prompt(IDLE)
        await shows(live, "chat", 2)
        assert not live.hub.hub_api.tone(idle, "chat").loud
        asks.close(), rests.close()


async def test_what_expired_and_still_stands_is_shown_as_waiting_and_can_be_asked_again() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host = await a_host(live)
        prompt_id = host.raise_prompt(UNKNOWN)
        await shows(live, "chat")
        live.advance(601)
        assert live.record(prompt_id).state is PromptState.EXPIRED
        assert [record.prompt_id for record in live.hub.hub_api.still_waiting()] == [prompt_id]
        assert [one["prompt_id"] for one in (await live.asked("prompts"))["still_waiting"]] == [prompt_id]
        assert (await live.asked("sessions"))["sessions"][0]["still_waiting"] == prompt_id
        assert (await live.asked("status"))["still_waiting"] == 1
        asking = asyncio.create_task(live.hub.life.ask_again(prompt_id))
        assert (await in_thread(host.hear, "renew"))["prompt_id"] == prompt_id
        renewed = host.raise_prompt(UNKNOWN)
        receipt = await asking
        assert isinstance(receipt, Receipt) and (receipt.stage, receipt.answer) == ("asked_again", renewed)
        assert live.hub.hub_api.still_waiting() == []
        assert live.record(prompt_id).state is PromptState.WITHDRAWN
        await shows(live, "chat", 2)
        again = await live.hub.life.ask_again(prompt_id)
        assert isinstance(again, Reject) and again.sentence
        host.close()


async def test_what_left_the_screen_or_was_answered_by_the_timer_does_not_wait() -> None:
    async with live_hub(POLICY, BOTH) as live:
        host, other = await a_host(live), await a_host(live)
        gone, default = host.raise_prompt(UNKNOWN), other.raise_prompt(YES_NO)
        await shows(live, "chat", 2)
        live.advance(601)
        await in_thread(other.hear, "presence")  # nobody is typed over who sits at the terminal
        live.advance(1)
        await in_thread(other.answer_typing)
        host.withdraw(gone)
        await until(lambda: live.record(gone).state is PromptState.WITHDRAWN)
        await until(lambda: live.record(default).state is PromptState.RESOLVED)
        assert live.hub.hub_api.still_waiting() == []
        for prompt_id in (gone, default, "f" * 32):
            assert isinstance(await live.hub.life.ask_again(prompt_id), Reject)
        host.close(), other.close()


async def test_a_delivery_that_fails_is_told_elsewhere_and_in_status() -> None:
    async with live_hub(POLICY, BOTH) as live:
        await until(lambda: len(live.people) == 2)
        live.people["chat"].down = True
        host = await a_host(live)
        host.raise_prompt()
        hub_api = live.people["memory"]
        await hub_api.until(lambda: any("could not show a question in chat" in notice for notice in hub_api.notices))
        report = next(one for one in live.hub.router.health() if one["name"] == "chat")
        assert report["unreached"] == 1 and "down" in report["why"]
        live.people["chat"].down = False
        await shows(live, "chat")
        await until(lambda: "unreached" not in next(one for one in live.hub.router.health() if one["name"] == "chat"))
        assert sum("could not show a question in chat" in notice for notice in hub_api.notices) == 1
        host.close()


async def test_many_are_answered_the_same_way_and_each_is_decided_for_itself() -> None:
    async with live_hub(POLICY, BOTH) as live:
        hosts = [await a_host(live) for _ in range(3)]
        ids = [host.raise_prompt() for host in hosts]
        secret_host = await a_host(live)
        secret = secret_host.raise_prompt(SECRET)
        await until(lambda: all(live.hub.ledger.prompt(one) for one in (*ids, secret)))
        typing = [asyncio.create_task(in_thread(host.answer_typing)) for host in hosts]
        done = await live.asked("reply_many", prompt_ids=[*ids, "f" * 32], value="n")
        await asyncio.gather(*typing)
        assert done["answered"] == 3 and [one["ok"] for one in done["results"]] == [True, True, True, False]
        entries = [e for e in live.hub.ledger.audit_entries(limit=1000) if e["event"] == "REPLY_RECEIVED"]
        assert {entry["prompt_id"] for entry in entries} == set(ids)
        for wrong in ([], [ids[0], ids[0]]):
            refused = await live.asked("reply_many", prompt_ids=wrong, value="n")
            assert not refused["ok"]
        for host in (*hosts, secret_host):
            host.close()


async def test_an_hour_stays_an_hour_over_a_restart() -> None:
    policy = replace(POLICY, attention=AttentionSettings(digest_s=0, notices_per_hour=1))
    async with live_hub(policy, BOTH) as live:
        first, second = await a_host(live), await a_host(live)
        first.raise_prompt()
        await shows(live, "chat")
        assert len(live.hub.ledger.sounds_since(iso(live.clock.wall() - 3600))) == 2
        live.hub.life.escalation = Escalation(live.hub.life.hub)
        other = second.raise_prompt()
        await shows(live, "chat", 2)
        assert not live.hub.hub_api.tone(other, "chat").loud
        first.close(), second.close()


def _raise(host: FakeHost, **fields: Any) -> dict[str, Any]:
    from atlasbridge.core.ids import new_id
    from atlasbridge.core.prompt.codec import encode_prompt

    host.open = {"prompt_id": new_id(), "prompt": encode_prompt(YES_NO)}
    return {**host.open, **fields}
