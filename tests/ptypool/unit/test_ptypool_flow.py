"""The bounded boxes: limits, order, partial writes, and waking those who wait."""

from __future__ import annotations

import asyncio

import pytest

from ptypool import PtyIoError
from ptypool.backend import MESSAGE_LIMIT, Inbox, Outbox


async def test_the_limit_is_256_messages() -> None:
    inbox = Inbox()
    for _ in range(MESSAGE_LIMIT - 1):
        inbox.put(b"x")
    assert not inbox.full
    inbox.put(b"x")
    assert (inbox.full, len(inbox), MESSAGE_LIMIT) == (True, 256, 256)


async def test_an_inbox_asks_for_more_when_it_is_half_empty() -> None:
    inbox = Inbox(limit=4)
    for chunk in (b"1", b"2", b"3", b"4"):
        inbox.put(chunk)
    assert inbox.take() == b"1"
    assert not inbox.wants_more
    assert inbox.take() == b"2"
    assert inbox.wants_more


async def test_a_draining_inbox_keeps_the_newest() -> None:
    inbox = Inbox(limit=2)
    for chunk in (b"1", b"2", b"3"):
        inbox.put(chunk, drop_oldest=True)
    assert [inbox.take(), inbox.take(), inbox.take()] == [b"2", b"3", None]


async def test_the_end_comes_after_what_was_put() -> None:
    inbox = Inbox()
    inbox.put(b"last")
    inbox.end()
    assert [inbox.take(), inbox.take(), inbox.take()] == [b"last", b"", b""]


async def test_an_error_is_raised_after_what_was_put() -> None:
    inbox = Inbox()
    inbox.put(b"last")
    inbox.end(PtyIoError("broken"))
    assert inbox.take() == b"last"
    with pytest.raises(PtyIoError, match="broken"):
        inbox.take()


async def test_two_readers_each_get_a_chunk() -> None:
    inbox = Inbox()

    async def take() -> bytes:
        while (chunk := inbox.take()) is None:
            await inbox.wait()
        return chunk

    readers = [asyncio.create_task(take()) for _ in range(2)]
    await asyncio.sleep(0)
    inbox.put(b"a")
    await asyncio.sleep(0)
    inbox.put(b"b")
    assert sorted(await asyncio.gather(*readers)) == [b"a", b"b"]


async def test_a_partly_written_message_stays_first() -> None:
    outbox = Outbox()
    for message in (b"hello", b"world"):
        await outbox.reserve()
        outbox.put(message)
    outbox.advance(2)
    assert bytes(outbox.first() or b"") == b"llo"
    outbox.advance(3)
    assert bytes(outbox.first() or b"") == b"world"


async def test_a_full_outbox_lets_senders_in_one_by_one_and_in_order() -> None:
    outbox = Outbox(limit=1)
    await outbox.reserve()
    outbox.put(b"0")
    entered: list[int] = []

    async def enter(number: int) -> None:
        await outbox.reserve()
        entered.append(number)
        outbox.put(b"%d" % number)

    senders = [asyncio.create_task(enter(number)) for number in (1, 2, 3)]
    for expected in ([], [1], [1, 2], [1, 2, 3]):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert entered == expected
        outbox.advance(1)
    await asyncio.gather(*senders)


async def test_a_failing_outbox_wakes_everyone_who_waits() -> None:
    outbox = Outbox(limit=1)
    await outbox.reserve()
    outbox.put(b"stuck")
    waiting = [asyncio.create_task(outbox.reserve()) for _ in range(5)]
    flushing = asyncio.create_task(outbox.wait_empty())
    await asyncio.sleep(0)
    outbox.fail(PtyIoError("gone"))
    results = await asyncio.gather(*waiting, flushing, return_exceptions=True)
    assert [type(result) for result in results] == [PtyIoError] * 6
