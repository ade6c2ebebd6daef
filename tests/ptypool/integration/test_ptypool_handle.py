"""PtyHandle on real children: reading, writing, backpressure both ways, waiting, resizing, ending."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ptypool.waiting import DEADLINE_S, process_exists, read_all, read_until
from tests.support.waiting import until

from ptypool import PtyIoError, PtyPool
from ptypool.backend import MESSAGE_LIMIT

RAW_ECHO = "import sys, tty; tty.setraw(0); print('ready', flush=True)\n"


@pytest.fixture
async def pool() -> AsyncIterator[PtyPool]:
    async with PtyPool(10, grace_s=0.3) as pool:
        yield pool


async def test_a_line_goes_in_and_its_answer_comes_out(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", 'read line; echo "<$line>"'])
    await handle.send_line("hello")
    assert b"<hello>" in await read_all(handle)


async def test_bytes_and_text_are_both_sent(pool: PtyPool) -> None:
    handle = await pool.spawn("cat")
    await handle.send("grüße ")
    await handle.send(b"\xc3\xa9")
    await handle.send_line(b"!")
    assert "grüße é!".encode() in await read_until(handle, b"!\r\n")


async def test_standard_error_comes_with_standard_output(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "echo out; echo err >&2"])
    assert await read_all(handle) == b"out\r\nerr\r\n"


async def test_the_last_bytes_of_a_child_are_not_lost(pool: PtyPool) -> None:
    for _ in range(20):
        handle = await pool.spawn("sh", ["-c", "printf %s last"])
        await handle.wait()
        assert await read_all(handle) == b"last"
        pool.release(handle.id)


async def test_reading_at_the_end_gives_nothing_for_ever(pool: PtyPool) -> None:
    handle = await pool.spawn("true")
    assert await read_all(handle) == b""
    assert await handle.read() == b""
    assert await handle.read_timeout(1) == b""
    assert handle.read_all_available() == b""


async def test_read_timeout_returns_none_when_nothing_comes(pool: PtyPool) -> None:
    handle = await pool.spawn("sleep", ["1000"])
    assert await handle.read_timeout(0.01) is None
    assert await handle.read_timeout(0) is None
    assert handle.is_alive()


async def test_a_chunk_is_not_lost_to_a_timeout(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.01; done"])
    output = b""
    while (chunk := await handle.read_timeout(0.003)) != b"":
        output += chunk or b""
    assert output.split() == [b"%d" % number for number in range(1, 10)]


async def test_all_that_is_available_is_read_without_waiting(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "echo one; echo two; exec sleep 1000"])
    seen: list[bytes] = []
    await until(lambda: bool(seen.append(handle.read_all_available())) or b"".join(seen) == b"one\r\ntwo\r\n")
    assert handle.read_all_available() == b""


async def test_a_flooding_child_is_stopped_by_the_kernel(pool: PtyPool, tmp_path: Path) -> None:
    code = (
        "import os, sys\nwritten = 0\ncounter = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "while True:\n    written += os.write(1, b'x' * 4096)\n    os.pwrite(counter, b'%020d' % written, 0)"
    )
    handle = await pool.spawn(sys.executable, ["-c", code, str(tmp_path / "written")])
    await until(lambda: handle.backlog == MESSAGE_LIMIT)
    before, written = -1, 0
    async with asyncio.timeout(DEADLINE_S):
        while written != before:  # a child that is not stopped never comes out of here
            before, written = written, int((tmp_path / "written").read_text())
            await asyncio.sleep(0.2)
    assert handle.backlog == MESSAGE_LIMIT
    held = len(handle.read_all_available())  # a crowded machine reads more at a time
    assert written - held < 200_000  # what the kernel holds


async def test_a_stopped_flood_goes_on_without_a_gap_when_it_is_read(pool: PtyPool) -> None:
    handle = await pool.spawn("seq", ["300000"])
    await until(lambda: handle.backlog >= MESSAGE_LIMIT)
    assert (await read_all(handle)).split() == [b"%d" % number for number in range(1, 300_001)]


async def test_a_child_that_does_not_read_makes_send_wait_and_nothing_else(pool: PtyPool) -> None:
    deaf = await pool.spawn(sys.executable, ["-c", RAW_ECHO + "import time; time.sleep(1000)"])
    await read_until(deaf, b"ready")
    sent = 0

    async def flood() -> None:
        nonlocal sent
        while True:
            await deaf.send(b"x" * 4096)
            sent += 1

    sender = asyncio.create_task(flood())
    other = await pool.spawn("cat")
    await other.send_line("alive")
    await read_until(other, b"alive\r\nalive")
    await until(lambda: sent >= MESSAGE_LIMIT)
    await other.send_line("still alive")
    await read_until(other, b"still alive\r\nstill alive")
    assert sent < 2 * MESSAGE_LIMIT and not sender.done()  # the kernel takes a few more, in its own time
    await deaf.kill()
    with pytest.raises(PtyIoError):
        await sender


async def test_a_large_message_is_written_whole_to_a_slow_reader(pool: PtyPool) -> None:
    code = RAW_ECHO + (
        "import hashlib, os, time\n"
        "seen = hashlib.sha256(); left = 1_000_000\n"
        "while left:\n"
        "    chunk = os.read(0, min(left, 3000)); seen.update(chunk); left -= len(chunk)\n"
        "print(seen.hexdigest(), flush=True)"
    )
    handle = await pool.spawn(sys.executable, ["-c", code])
    await read_until(handle, b"ready")
    message = bytes(range(256)) * 3907
    await handle.send(message[:1_000_000])
    await handle.drain()
    assert hashlib.sha256(message[:1_000_000]).hexdigest().encode() in await read_all(handle)


async def test_messages_from_many_tasks_are_not_mixed(pool: PtyPool) -> None:
    handle = await pool.spawn(sys.executable, ["-c", RAW_ECHO + "import os\nwhile True: os.write(1, os.read(0, 100))"])
    await read_until(handle, b"ready\n")
    lines = [f"{number:03}".encode() * 30 + b";" for number in range(400)]
    senders = asyncio.gather(*(handle.send(line) for line in lines))
    seen = b""
    while seen.count(b";") < len(lines):
        seen += await handle.read()
    await senders
    assert [line.strip() + b";" for line in seen.split(b";")[:-1]] == lines


@pytest.mark.parametrize("ending", ["\n", "\r"])
async def test_the_longest_line_of_a_canonical_terminal_passes(pool: PtyPool, ending: str) -> None:
    handle = await pool.spawn("sh", ["-c", "stty -echo; echo ready; head -n 1 | wc -c"])
    await read_until(handle, b"ready")
    await handle.send("x" * 4095 + ending)
    assert (await read_until(handle, b"4096")).split() == [b"4096"]


async def test_a_longer_line_is_refused_and_nothing_of_it_is_sent(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "stty -echo; echo ready; cat"])
    await read_until(handle, b"ready\r\n")
    with pytest.raises(PtyIoError, match="4096 bytes is longer than the 4095") as caught:
        await handle.send_line("x" * 4096)
    assert caught.value.errno == errno.EMSGSIZE
    await handle.send_line("short")
    assert await read_until(handle, b"short\r\n") == b"short\r\n"


async def test_a_line_sent_in_pieces_is_measured_as_a_whole(pool: PtyPool) -> None:
    handle = await pool.spawn("cat")
    await handle.send("x" * 3000)
    with pytest.raises(PtyIoError, match="longer"):
        await handle.send("y" * 1096)
    await handle.send("y" * 1095 + "\n" + "z" * 4000)


async def test_a_raw_terminal_takes_lines_of_any_length(pool: PtyPool) -> None:
    code = RAW_ECHO + "import os\nleft = 20000\nwhile left: left -= len(os.read(0, left))\nprint('got all', flush=True)"
    handle = await pool.spawn(sys.executable, ["-c", code])
    await read_until(handle, b"ready")
    await handle.send(b"x" * 20000)
    await read_until(handle, b"got all")


async def test_sending_to_a_child_that_has_ended_is_an_error(pool: PtyPool) -> None:
    handle = await pool.spawn("true")
    await handle.wait()
    with pytest.raises(PtyIoError, match=r"ended|closed"):
        await handle.send("x")


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", -9)])
async def test_the_exit_status_is_told(pool: PtyPool, script: str, status: int) -> None:
    handle = await pool.spawn("sh", ["-c", script])
    assert await handle.wait() == status
    assert handle.exit_status == status
    assert not handle.is_alive()


async def test_a_living_child_has_no_exit_status(pool: PtyPool) -> None:
    handle = await pool.spawn("sleep", ["1000"])
    assert handle.is_alive()
    assert handle.exit_status is None
    assert process_exists(handle.pid)


async def test_many_tasks_may_wait_for_one_child_and_be_cancelled(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "read x; exit 3"])
    waiting = [asyncio.create_task(handle.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await handle.send_line("go")
    assert await asyncio.gather(*waiting[1:]) == [3, 3]


async def test_is_alive_sees_an_end_that_the_event_loop_has_not_seen(pool: PtyPool) -> None:
    handle = await pool.spawn("true")
    os.waitid(os.P_PID, handle.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not turn
    assert not handle.is_alive()
    assert handle.exit_status == 0


async def test_a_child_reaped_by_somebody_else_has_an_unknown_status(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "exit 3"])
    os.waitpid(handle.pid, 0)  # noqa: ASYNC222 - before the loop turns
    assert await handle.wait() == 255


async def test_without_pidfds_the_end_is_noticed_too(pool: PtyPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    handle = await pool.spawn("sh", ["-c", "exec </dev/null >/dev/null 2>&1; exit 6"])
    assert await handle.wait() == 6
    assert await (await pool.spawn("sleep", ["1000"])).kill() == -signal.SIGTERM


async def test_resizing_reaches_the_child(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done"])
    await read_until(handle, b"ready")
    handle.resize(120, 40)
    assert handle.size == (40, 120)
    await read_until(handle, b"40 120")


async def test_the_size_of_the_start_is_the_asked_one(pool: PtyPool) -> None:
    handle = await pool.spawn("stty", ["size"], size=(50, 200))
    assert handle.size == (50, 200)
    assert await read_all(handle) == b"50 200\r\n"


async def test_resizing_a_closed_terminal_is_an_error_and_its_size_stays_known(pool: PtyPool) -> None:
    handle = await pool.spawn("sleep", ["1000"], size=(30, 90))
    await handle.kill()
    assert handle.size == (30, 90)
    with pytest.raises(PtyIoError, match="closed"):
        handle.resize(10, 10)


async def test_killing_ends_the_child_and_closes_the_terminal(pool: PtyPool) -> None:
    handle = await pool.spawn(
        "sh", ["-c", "trap 'echo goodbye; exit 5' TERM; echo ready; while :; do sleep 0.01; done"]
    )
    await read_until(handle, b"ready\r\n")
    assert await handle.kill() == 5
    assert handle.closed and not handle.is_alive() and not process_exists(handle.pid)
    assert (await read_all(handle)).endswith(b"goodbye\r\n")


async def test_killing_twice_and_at_once_is_fine(pool: PtyPool) -> None:
    handle = await pool.spawn("sleep", ["1000"])
    assert list(await asyncio.gather(handle.kill(), handle.kill())) == [-15, -15]
    assert await handle.kill() == -15


async def test_killing_goes_on_when_the_killer_is_cancelled(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "trap '' TERM HUP; echo ready; while :; do sleep 1; done"])
    await read_until(handle, b"ready")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(handle.kill(), 0.05)
    await until(lambda: handle.closed)
    assert handle.exit_status == -signal.SIGKILL


async def test_killing_drains_a_child_that_is_stuck_on_a_full_terminal() -> None:
    code = (
        "import os, signal, sys\n"
        "def end(*_):\n    sys.stdout.write('y' * 500_000 + 'END'); sys.stdout.flush(); sys.exit(4)\n"
        "signal.signal(signal.SIGTERM, end)\nos.write(1, b'ready\\n')\nsignal.pause()"
    )
    async with PtyPool(1, grace_s=60) as pool:  # it writes half a megabyte in that time, however busy the machine is
        handle = await pool.spawn(sys.executable, ["-c", code])
        await read_until(handle, b"ready")
        assert await handle.kill() == 4
        left = await read_all(handle)
        assert left.endswith(b"END")


async def test_a_reader_that_waits_sees_the_end_when_the_child_is_killed(pool: PtyPool) -> None:
    handle = await pool.spawn("sleep", ["1000"])
    reader = asyncio.create_task(handle.read())
    await asyncio.sleep(0)
    await handle.kill()
    assert await reader == b""


async def test_a_signal_goes_to_the_process_group(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "trap 'echo got it' USR1; echo ready; while :; do sleep 0.01; done"])
    await read_until(handle, b"ready")
    handle.signal(signal.SIGUSR1)
    await until(lambda: not handle.is_alive() or b"got it" in handle.read_all_available())


async def test_a_background_grandchild_keeps_the_output_open_and_goes_with_kill(pool: PtyPool) -> None:
    handle = await pool.spawn("sh", ["-c", "trap '' HUP; sleep 1000 & echo $! end"])
    grandchild = int((await read_until(handle, b"end")).split()[0])
    assert await handle.wait() == 0
    assert not handle.closed and process_exists(grandchild)
    await handle.kill()
    await until(lambda: not process_exists(grandchild))


async def test_a_handle_is_its_own_context_manager(pool: PtyPool) -> None:
    async with await pool.spawn("sleep", ["1000"]) as handle:
        assert handle.is_alive()
    assert handle.exit_status == -signal.SIGTERM
    assert pool.active_count == 0
