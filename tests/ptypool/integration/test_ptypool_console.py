"""The pool on consoles of Windows: the same calls, the same promises.  pywinpty is played by a terminal of Unix."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from tests.ptypool.waiting import read_until
from tests.support import fake_winpty

from ptypool import AtCapacity, PtyIoError, PtyPool, SpawnFailed
from ptypool.backend import MESSAGE_LIMIT
from ptypool.console import Console


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setitem(sys.modules, "winpty", fake_winpty)
    return Console()


async def test_a_line_goes_in_and_its_answer_comes_out(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        handle = await pool.spawn("sh", ["-c", 'read line; echo "got $line"; exit 3'])
        await handle.send_line("größer ✓")
        assert "got größer ✓" in (await read_until(handle, "✓\r\ngot größer ✓".encode())).decode()
        assert await handle.wait() == 3
        assert not handle.is_alive()


async def test_a_character_may_be_sent_in_two_messages(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        handle = await pool.spawn("cat")
        whole = "€\n".encode()
        await handle.send(whole[:1])
        await handle.send(whole[1:])
        assert await read_until(handle, "€\r\n".encode())


async def test_all_output_is_read_to_its_end_although_nobody_hurries(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        handle = await pool.spawn("seq", ["200000"])
        output, most = b"", 0
        async for chunk in handle:
            most = max(most, handle.backlog)
            output += chunk
        assert output.split() == [str(number).encode() for number in range(1, 200001)]
        assert most <= MESSAGE_LIMIT


async def test_a_child_that_ignores_an_interrupt_is_ended_by_force(console: Console) -> None:
    async with PtyPool(1, backend=console, grace_s=0.1) as pool:
        handle = await pool.spawn("sh", ["-c", "trap '' INT; echo ready; sleep 100 & wait; wait"])
        await read_until(handle, b"ready")
        await pool.kill(handle.id)
        assert handle.exit_status is not None
        assert handle.killed
        assert pool.available == 1
        with pytest.raises(PtyIoError, match="ended"):
            await handle.send("late")


async def test_the_limit_holds_and_a_missing_program_gives_its_slot_back(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        with pytest.raises(SpawnFailed, match="no-such-program"):
            await pool.spawn("no-such-program")
        await pool.spawn("cat")
        with pytest.raises(AtCapacity):
            await pool.spawn("cat")


async def test_the_size_reaches_the_child(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        handle = await pool.spawn("sh", ["-c", "stty size; read x; stty size"], size=(30, 90))
        await read_until(handle, b"30 90")
        handle.resize(100, 40)
        assert handle.size == (40, 100)
        await handle.send_line("")
        await read_until(handle, b"40 100")


async def test_what_a_console_has_not_is_said(console: Console) -> None:
    async with PtyPool(1, backend=console) as pool:
        with pytest.raises(SpawnFailed, match="termios"):
            await pool.spawn("cat", termios_attrs=[0])


async def test_without_pywinpty_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winpty", None)
    async with PtyPool(1, backend=Console()) as pool:
        with pytest.raises(SpawnFailed, match="pywinpty"):
            await pool.spawn("cmd")


def test_the_library_is_imported_where_unix_is_missing() -> None:
    program = """
        import asyncio, os, sys, tempfile, uuid  # Python's own parts are those of this system
        sys.platform = "win32"
        for name in ("fcntl", "termios", "pty", "tty", "resource", "grp", "pwd"):
            sys.modules[name] = None
        del os.register_at_fork
        import ptypool, ptypool.sync
        from ptypool import PtyPool, PtyHandle, AtCapacity
        print(PtyPool(2).available)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2\n", "")
