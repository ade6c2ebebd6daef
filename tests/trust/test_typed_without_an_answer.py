"""A host tells every hub what it typed and on whose word: what no decision explains is an alarm, told everywhere."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import LiveHub, live_hub

from atlasbridge.core.daemon.sessions import TypingReport, find_unasked, read_typing_reports
from atlasbridge.core.host.hub_link import OrderLog
from atlasbridge.core.peer import Peer, started_at

HUB = (4711, 1)
STRANGER = (999_999, 77)


def this_hub() -> tuple[int, int]:
    return os.getpid(), started_at(os.getpid())


def alarms(live: LiveHub) -> list[str]:
    return [text for text in live.person.notices if "ALARM" in text]


async def test_keys_on_the_word_of_a_process_that_was_never_the_hub_are_an_alarm() -> None:
    async with live_hub() as live:
        with await asyncio.to_thread(FakeHost, live.home, channels=(), label="shop") as host:
            host.words = [["keys", "", *this_hub(), 1.0], ["keys", "", *STRANGER, 2.0]]
            await asyncio.to_thread(host.reconnect)
            await live.person.until(lambda: bool(alarms(live)))
            assert len(alarms(live)) == 1 and "shop" in alarms(live)[0] and "999999" in alarms(live)[0]
            (entry,) = live.hub.ledger.audit_entries(event="TYPED_UNASKED")
            assert entry["session_id"] == host.session_id and entry["pid"] == 999_999
            assert [one["pid"] for one in (await live.asked("status"))["unasked"]] == [999_999]
            await asyncio.to_thread(host.reconnect)
            assert len(live.hub.ledger.audit_entries(event="TYPED_UNASKED")) == 1, "it is told once"


async def test_an_answer_that_nobody_gave_is_an_alarm_and_one_that_was_given_is_none() -> None:
    async with live_hub() as live:
        with await asyncio.to_thread(FakeHost, live.home) as host:
            prompt_id = host.raise_prompt()
            await live.person.until(lambda: bool(live.person.shown))
            host.words = [["answer", prompt_id, *this_hub(), 1.0]]
            await asyncio.to_thread(host.reconnect)
            assert len(live.hub.ledger.audit_entries(event="TYPED_UNASKED")) == 1
        with await asyncio.to_thread(FakeHost, live.home) as other:
            prompt_id = other.raise_prompt()
            await live.person.until(lambda: len(live.person.shown) > 1)
            replying = asyncio.create_task(live.asked("reply", prompt_id=prompt_id, value="n"))
            await asyncio.to_thread(other.answer_typing)
            assert (await replying)["ok"]
            other.words = [["answer", prompt_id, *this_hub(), 1.0]]
            await asyncio.to_thread(other.reconnect)
            assert len(live.hub.ledger.audit_entries(event="TYPED_UNASKED")) == 1


async def test_what_was_typed_is_told_with_the_end_too() -> None:
    async with live_hub() as live:
        with await asyncio.to_thread(FakeHost, live.home) as host:
            host.say("end", exit_code=0, status=0, typed=[], words=[["keys", "", *STRANGER, 0.1]])
            await live.event("session.ended")
            assert len(live.hub.ledger.audit_entries(event="TYPED_UNASKED")) == 1


WORD = TypingReport("answer", "p", HUB, 5.0)


@pytest.mark.parametrize(
    ("word", "decided", "is_alarm"),
    [
        (WORD, True, False),
        (WORD, False, True),
        (TypingReport("answer", "p", STRANGER, 5.0), True, True),
        (TypingReport("answer", "p", (7, 0), 5.0), True, False),
        (TypingReport("answer", "p", HUB, 100.0), False, False),
        (TypingReport("keys", "", STRANGER, 100.0), True, True),
        (TypingReport("keys", "", HUB, 5.0), False, False),
    ],
)
def test_what_explains_a_word(word: TypingReport, decided: bool, is_alarm: bool) -> None:
    assert find_unasked([word], {HUB}, lambda _: decided, kept_s=50.0) == ([word] if is_alarm else [])


@pytest.mark.parametrize(
    "told", [None, 7, {}, ["keys"], [["keys", "", "1", 2, 3]], [["dance", "", 1, 2, 3.0]], [[1] * 5]]
)
def test_what_cannot_be_read_says_nothing(told: Any) -> None:
    assert read_typing_reports(told) == []


def test_a_host_keeps_the_last_words_of_each_hub() -> None:
    words = OrderLog()
    for number in range(300):
        words.keep("answer", f"p{number}", Peer(5, 0, 50), number)
    for _ in range(300):
        words.keep("keys", "", Peer(6, 0, 60), 300.0)
    told = words.told(301.0)
    assert len(told) == 256 and told[-1] == ["keys", "", 6, 60, 1.0] and told[-2][1] == "p299"
