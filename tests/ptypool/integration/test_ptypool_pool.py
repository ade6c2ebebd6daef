"""PtyPool on real children: strict capacity, slots and who frees them, waiting in turn, closing."""

from __future__ import annotations

import asyncio
import errno
import signal
from pathlib import Path
from uuid import uuid4

import pytest
from tests.ptypool.waiting import process_exists, read_all
from tests.support.waiting import stays, until

from ptypool import AtCapacity, HandleNotFound, PtyHandle, PtyInternalError, PtyPool, SpawnFailed


async def test_a_pool_counts_its_slots() -> None:
    async with PtyPool(2) as pool:
        assert (pool.active_count, pool.available, pool.handles) == (0, 2, ())
        handle = await pool.spawn("sleep", ["1000"])
        assert (pool.active_count, pool.available, pool.handles) == (1, 1, (handle,))


async def test_a_full_pool_refuses_and_says_how_many_it_takes() -> None:
    async with PtyPool(1) as pool:
        await pool.spawn("sleep", ["1000"])
        with pytest.raises(AtCapacity) as caught:
            await pool.spawn("sleep", ["1000"])
        assert caught.value.max == 1


async def test_capacity_is_strict_when_many_tasks_spawn_at_once() -> None:
    async with PtyPool(5) as pool:
        results = await asyncio.gather(*(pool.spawn("sleep", ["1000"]) for _ in range(25)), return_exceptions=True)
        assert sum(isinstance(result, PtyHandle) for result in results) == 5
        assert sum(isinstance(result, AtCapacity) for result in results) == 20
        assert pool.available == 0


async def test_a_failed_spawn_takes_no_slot() -> None:
    async with PtyPool(1) as pool:
        with pytest.raises(SpawnFailed) as caught:
            await pool.spawn("no-such-program-anywhere")
        assert caught.value.errno == errno.ENOENT
        assert pool.available == 1


async def test_release_frees_the_slot_and_the_child_goes_on() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        pool.release(first.id)
        second = await pool.spawn("sleep", ["1000"])
        assert first.is_alive() and second.is_alive()
        assert pool.handles == (second,)
    assert first.exit_status == second.exit_status == -signal.SIGTERM


async def test_pool_kill_ends_the_child_and_frees_the_slot() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("sleep", ["1000"])
        assert await pool.kill(handle.id) == -signal.SIGTERM
        assert pool.available == 1
        with pytest.raises(HandleNotFound):
            await pool.kill(handle.id)


async def test_the_cleanup_order_of_the_specification_works() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("sleep", ["1000"])
        await handle.kill()
        assert pool.available == 1
        pool.release(handle.id)
        assert handle.closed
        with pytest.raises(HandleNotFound):
            pool.release(handle.id)


async def test_an_unknown_handle_is_not_found() -> None:
    async with PtyPool(1) as pool:
        unknown = uuid4()
        with pytest.raises(HandleNotFound) as caught:
            pool.release(unknown)
        assert caught.value.id == unknown
        with pytest.raises(HandleNotFound):
            await pool.kill(unknown)


async def test_a_child_that_ends_keeps_its_slot_until_it_is_released() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("true")
        await handle.wait()
        with pytest.raises(AtCapacity):
            await pool.spawn("true")
        pool.release(handle.id)
        await pool.spawn("true")


async def test_with_release_on_exit_an_ended_child_frees_its_slot() -> None:
    async with PtyPool(1, release_on_exit=True) as pool:
        handle = await pool.spawn("echo", ["kept"])
        await handle.wait()
        await until(lambda: pool.available == 1)
        assert await read_all(handle) == b"kept\r\n"
        pool.release(handle.id)


async def test_the_environment_is_added_to_ours_or_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_US", "1")
    async with PtyPool(2) as pool:
        added = await pool.spawn("sh", ["-c", "echo $FROM_US$MINE"], {"MINE": "2"})
        assert await read_all(added) == b"12\r\n"
        replaced = await pool.spawn("/bin/sh", ["-c", "echo $FROM_US$MINE"], {"MINE": "2"}, inherit_env=False)
        assert await read_all(replaced) == b"2\r\n"


async def test_a_child_has_a_terminal_type_even_when_we_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)
    async with PtyPool(1) as pool:
        assert await read_all(await pool.spawn("sh", ["-c", "echo $TERM"])) == b"xterm-256color\r\n"


async def test_pwd_follows_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/somewhere/else")
    async with PtyPool(2) as pool:
        assert await read_all(await pool.spawn("printenv", ["PWD"], cwd=tmp_path)) == f"{tmp_path}\r\n".encode()
        own = await pool.spawn("printenv", ["PWD"], {"PWD": "/mine"}, tmp_path)
        assert await read_all(own) == b"/mine\r\n"


async def test_acquire_waits_for_a_slot() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        waiting = asyncio.create_task(pool.acquire("echo", ["second"]))
        await stays(lambda: not waiting.done())
        pool.release(first.id)
        assert await read_all(await waiting) == b"second\r\n"


async def test_acquire_gives_up_when_its_time_is_over() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        with pytest.raises(AtCapacity):
            await pool.acquire("true", timeout_s=0.05)
        pool.release(first.id)
        assert pool.available == 1


async def test_those_who_wait_are_served_in_turn_and_nobody_pushes_in() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        order: list[int] = []

        async def take(number: int) -> None:
            handle = await pool.acquire("sleep", ["1000"])
            order.append(number)
            pool.release(handle.id)

        waiting = [asyncio.create_task(take(number)) for number in range(5)]
        await asyncio.sleep(0)
        pool.release(first.id)
        with pytest.raises(AtCapacity):  # the slot is promised
            await pool.spawn("true")
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3, 4]
        assert pool.available == 1


async def test_a_cancelled_wait_passes_its_slot_on() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        cancelled = asyncio.create_task(pool.acquire("sleep", ["1000"]))
        patient = asyncio.create_task(pool.acquire("echo", ["mine"]))
        await asyncio.sleep(0)
        pool.release(first.id)  # promised to the first, who is cancelled before it can take it
        cancelled.cancel()
        assert await read_all(await patient) == b"mine\r\n"
        assert cancelled.cancelled()


async def test_a_failed_acquire_passes_its_slot_on() -> None:
    async with PtyPool(1) as pool:
        first = await pool.spawn("sleep", ["1000"])
        failing = asyncio.create_task(pool.acquire("no-such-program-anywhere"))
        patient = asyncio.create_task(pool.acquire("echo", ["mine"]))
        await asyncio.sleep(0)
        pool.release(first.id)
        with pytest.raises(SpawnFailed):
            await failing
        assert await read_all(await patient) == b"mine\r\n"


async def test_closing_ends_every_child_and_whoever_waits() -> None:
    pool = PtyPool(3, grace_s=0.3)
    handles = [await pool.spawn("sleep", ["1000"]) for _ in range(2)]
    handles.append(await pool.spawn("sh", ["-c", "trap '' TERM HUP; while :; do sleep 1; done"]))
    waiting = asyncio.create_task(pool.acquire("true"))
    await asyncio.sleep(0)
    await pool.close()
    assert all(handle.closed and not process_exists(handle.pid) for handle in handles)
    with pytest.raises(PtyInternalError, match="closed"):
        await waiting
    assert pool.active_count == 0


async def test_a_closed_pool_lets_nobody_in_and_may_be_closed_again() -> None:
    pool = PtyPool(1)
    await pool.close()
    await pool.close()
    with pytest.raises(PtyInternalError, match="closed"):
        await pool.spawn("true")
    with pytest.raises(PtyInternalError, match="closed"):
        await pool.acquire("true")


async def test_leaving_the_pool_by_an_error_ends_the_children() -> None:
    with pytest.raises(RuntimeError, match="on the way"):
        async with PtyPool(1) as pool:
            handle = await pool.spawn("sleep", ["1000"])
            raise RuntimeError("on the way")
    assert not process_exists(handle.pid)


def test_a_pool_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        PtyPool(0)


async def test_a_hundred_children_talk_at_once() -> None:
    async with PtyPool(100) as pool:
        handles = [await pool.spawn("cat") for _ in range(100)]
        for number, handle in enumerate(handles):
            await handle.send_line(f"child {number}.")
        for number, handle in enumerate(handles):
            output = b""
            while output.count(f"child {number}.".encode()) < 2:
                output += await handle.read()
        assert pool.available == 0
    assert not any(process_exists(handle.pid) for handle in handles)
