"""Nothing is left behind: descriptors, zombies, children; also when the loop or the pool goes early, and after fork."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap

import pytest
from tests.ptypool.waiting import open_descriptors, process_exists, read_until
from tests.support.tier import times
from tests.support.waiting import wait_for

from ptypool import PtyHandle, PtyInternalError, PtyPool


def children() -> set[int]:
    """Of this process, zombies too; other tests of a run may have left some of theirs."""
    listing = subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True)
    rows = [line.split() for line in listing.communicate()[0].splitlines()]
    return {int(pid) for pid, parent in rows if int(parent) == os.getpid()} - {listing.pid}


async def test_two_thousand_opened_and_closed_leave_no_descriptor_and_no_zombie() -> None:
    others = children()
    async with PtyPool(50) as pool:
        await pool.kill((await pool.spawn("true")).id)  # what asyncio opens for itself is open from here on
        before = open_descriptors()
        for _ in range(times(40, quickly=1)):
            handles = [await pool.spawn("/bin/true") for _ in range(50)]
            await asyncio.gather(*(pool.kill(handle.id) for handle in handles))
        assert open_descriptors() <= before
        assert pool.available == 50
    assert children() <= others


async def test_children_that_end_by_themselves_leave_nothing_either() -> None:
    async with PtyPool(1, release_on_exit=True) as pool:
        await (await pool.spawn("true")).wait()
        before = open_descriptors()
        for _ in range(50):
            handle = await pool.acquire("echo", ["x"])
            assert b"".join([chunk async for chunk in handle]) == b"x\r\n"
            await handle.wait()
        assert open_descriptors() <= before


def abandoned_loop() -> tuple[PtyPool, PtyHandle]:
    """A pool whose event loop was closed while a child ran."""
    pool = PtyPool(2)
    loop = asyncio.new_event_loop()
    handle = loop.run_until_complete(pool.spawn("sleep", ["1000"]))
    loop.close()
    return pool, handle


def test_a_pool_can_be_closed_after_its_loop() -> None:
    before = open_descriptors()
    pool, handle = abandoned_loop()
    assert handle.is_alive()
    pool.close_now()
    assert not process_exists(handle.pid)
    assert handle.closed and handle.exit_status is not None
    assert open_descriptors() <= before


def test_a_handle_says_that_its_loop_is_closed() -> None:
    pool, handle = abandoned_loop()

    async def use() -> None:
        with pytest.raises(PtyInternalError, match="event loop"):
            await handle.read()
        with pytest.raises(PtyInternalError, match="event loop"):
            await handle.send("x")
        with pytest.raises(PtyInternalError, match="event loop"):
            await handle.kill()

    asyncio.run(use())
    pool.close_now()


def test_a_forgotten_pool_does_not_leave_its_children() -> None:
    pool, handle = abandoned_loop()
    pid = handle.pid
    with pytest.warns(ResourceWarning, match="not closed"):
        del pool, handle
        gc.collect()
    assert not process_exists(pid)


def test_a_program_that_ends_without_closing_takes_its_children_along() -> None:
    code = """
        import asyncio, ptypool
        pool = ptypool.PtyPool(1)
        async def main():
            handle = await pool.spawn("sleep", ["1000"])
            print(handle.pid)
        asyncio.run(main())
        """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    pid = int(said.stdout)
    wait_for(lambda: not process_exists(pid))


async def test_a_forked_process_cannot_touch_our_children() -> None:
    async with PtyPool(2) as pool:
        handle = await pool.spawn("cat")
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:  # what a library that forks does, up to the exit handlers
            said = b""
            for use in (lambda: pool.release(handle.id), handle.is_alive, pool.close_now, handle.read_all_available):
                try:
                    use()
                    said += b"did "
                except PtyInternalError:
                    said += b"refused "
            pool._finalizer()
            os.write(write_end, said)
            os._exit(0)
        os.waitpid(pid, 0)  # noqa: ASYNC222 - the child is short
        os.close(write_end)
        assert os.read(read_end, 100) == b"refused " * 4
        os.close(read_end)
        assert handle.is_alive()
        await handle.send_line("still ours")
        await read_until(handle, b"still ours\r\nstill ours")


async def test_a_pool_works_in_a_process_that_was_forked_before() -> None:
    code = """
        import asyncio, os, ptypool
        outer = ptypool.PtyPool(1)
        async def use(pool):
            async with pool:
                handle = await pool.spawn("echo", ["inner"])
                return b"".join([chunk async for chunk in handle])
        pid = os.fork()
        if pid == 0:
            assert asyncio.run(use(ptypool.PtyPool(1))) == b"inner\\r\\n"
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), asyncio.run(use(outer)))
        """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(code), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said.decode().strip() == "0 b'inner\\r\\n'"


async def test_stubborn_trees_are_gone_after_close() -> None:
    script = "trap '' TERM HUP; (trap '' TERM HUP; sleep 1000; :) & sleep 1001 & echo $! $$ ready; wait; wait; wait"
    async with PtyPool(3, grace_s=0.2) as pool:
        pids: list[int] = []
        for _ in range(3):
            said = await read_until(await pool.spawn("bash", ["-c", "set -m; " + script]), b"ready")
            pids += [int(word) for word in said.split() if word.isdigit()]
    assert len(pids) >= 6
    wait_for(lambda: not any(process_exists(pid) for pid in pids))


async def test_what_an_exited_shell_left_behind_goes_with_the_pool() -> None:
    async with PtyPool(1) as pool:
        script = "trap '' HUP; sleep 1000 >/dev/null 2>&1 </dev/null & echo $! ready"
        handle = await pool.spawn("sh", ["-c", script])
        left = int((await read_until(handle, b"ready")).split()[0])
        await handle.wait()
        assert process_exists(left)
    wait_for(lambda: not process_exists(left))
