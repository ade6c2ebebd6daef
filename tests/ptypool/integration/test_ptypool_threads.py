"""One pool, many threads: capacity is strict for every caller, and what cannot be shared says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from ptypool import AtCapacity, PtyInternalError, PtyPool, Session, sync


def together(number: int, work: Callable[[], object]) -> list[object]:
    """Run it in so many threads at the same moment; what each returned, or the error that it raised."""
    start = threading.Barrier(number)

    def one() -> object:
        start.wait()
        try:
            return work()
        except Exception as error:
            return error

    with ThreadPoolExecutor(number) as threads:
        return [future.result() for future in [threads.submit(one) for _ in range(number)]]


def test_six_threads_with_loops_of_their_own_never_exceed_two() -> None:
    pool = PtyPool(2)
    seen: list[int] = []
    hold = threading.Barrier(6)

    async def spawn() -> None:
        try:
            await pool.spawn("cat")
        finally:
            seen.append(pool.active_count())
            hold.wait()

    results = together(6, lambda: asyncio.run(spawn()))
    assert sum(result is None for result in results) == 2
    assert sum(isinstance(result, AtCapacity) for result in results) == 4
    assert max(seen) <= 2
    assert pool.available() == 0
    pool.close_now()
    assert pool.available() == 2


def test_six_threads_through_the_synchronous_pool_never_exceed_two() -> None:
    with sync.PtyPool(2) as pool:
        results = together(6, lambda: pool.spawn("cat"))
        assert sum(isinstance(result, AtCapacity) for result in results) == 4
        assert (pool.active_count(), pool.available()) == (2, 0)


def test_one_who_waits_in_another_thread_is_served() -> None:
    pool = PtyPool(1)

    async def first() -> None:
        handle = await pool.spawn("cat")
        waiting.set()
        while not pool.waiting:
            await asyncio.sleep(0.01)
        await pool.kill(handle.id)

    async def second() -> int | None:
        handle = await pool.acquire("cat", timeout_s=timedelta(seconds=30))
        return await pool.kill(handle.id)

    waiting = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(lambda: asyncio.run(first()))
        assert waiting.wait()
        other = threads.submit(lambda: asyncio.run(second()))
        assert one.result() is None
        assert other.result() is not None
    assert pool.available() == 1


def test_a_handle_of_another_threads_loop_says_where_it_belongs() -> None:
    async def main() -> None:
        async with PtyPool(1) as pool:
            handle = await pool.spawn("cat")
            with pytest.raises(PtyInternalError, match="another thread"):
                await asyncio.to_thread(handle.read_all_available)
            status = await asyncio.to_thread(lambda: asyncio.run(pool.kill(handle.id)))  # the pool may
            assert status is not None
            assert status != 0
            assert pool.available() == 1

    asyncio.run(main())


async def test_durations_and_environments_in_both_forms() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("sh", ["-c", "echo $GREETING; cat"], [("GREETING", "no"), ("GREETING", "hello")])
        assert (await handle.read_timeout(timedelta(seconds=20)) or b"").startswith(b"hello")
        assert await handle.read_timeout(timedelta(milliseconds=20)) is None
        with pytest.raises(AtCapacity):
            await pool.acquire("cat", timeout_s=timedelta(milliseconds=20))
        await handle.kill()
        async with await Session.open(pool, env=[("WORD", "kept")]) as session:
            result = await session.run("echo $WORD", timeout_s=timedelta(seconds=20))
            assert result.output == "kept\n"


async def test_the_fields_of_an_asyncio_handle() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("cat")
        assert handle.reader.try_recv() is None
        await handle.writer.send("abc\n")
        assert b"abc" in (await handle.reader.recv_timeout(timedelta(seconds=20)) or b"")
        handle.master.resize(90, 30)
        assert handle.master.size == handle.size == (30, 90)
        assert handle.child.is_alive()
        assert await handle.child.kill() == handle.child.exit_status


def test_a_child_process_gets_a_loop_of_its_own() -> None:
    """After a fork the parent's loop thread is not there: the synchronous calls start another."""
    import os

    with sync.PtyPool(1) as pool:
        pool.spawn("cat")
        child = os.fork()
        if child == 0:  # nothing of the parent may run in here
            status = 1
            try:
                fresh = sync.PtyPool(1)
                handle = fresh.spawn("echo", ["hello"])
                status = 0 if b"hello" in b"".join(handle) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool.active_count() == 1
