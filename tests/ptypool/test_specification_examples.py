"""Each example of the at-session specification, in its order, translated only where Python demands.

`Duration::from_secs(1)` is `timedelta(seconds=1)`, `?` is an exception, `match` on an error is `except`. Inside a loop
`.await` is `await`; without one the calls wait by themselves. What an example prints is asserted.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.specification.documents import example

from ptypool.cli_adapter import CliAdapter, CliType, adapter_for
from ptypool.pty_pool import PtyError, PtyHandle, PtyPool


def output_until(handle: PtyHandle, wanted: str) -> str:
    output = ""
    while wanted not in output and (chunk := handle.read_timeout(timedelta(seconds=1))) != b"":
        output += (chunk or b"").decode(errors="replace")
    return output


@example("at-session", 3)
@example("at-session", 4)
@example("at-session", 5)
def test_the_life_of_a_pty_in_its_three_phases() -> None:
    pool = PtyPool.new(10)
    handle = pool.spawn("bash", [], [("TERM", "xterm")])

    handle.send_line("echo hello")
    assert "\rhello\r\n" in output_until(handle, "\rhello\r\n")

    handle.kill()
    pool.release(handle.id)
    del handle
    assert pool.active_count() == 0


@example("at-session", 8)
def test_basic_pty_spawn(tmp_path: Path) -> None:
    (tmp_path / "a-file-to-be-seen").touch()
    pool = PtyPool(10)

    handle = pool.spawn("bash", [], [("PS1", "$ ")], tmp_path)

    handle.send_line("ls -la")
    handle.send_line("pwd")

    output = output_until(handle, f"{tmp_path}\r\n")
    assert "a-file-to-be-seen" in output

    handle.kill()
    pool.release(handle.id)


@example("at-session", 9)
def test_using_cli_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text("""#!/bin/sh
echo "the task is: $*"
echo '{"type": "result", "is_error": false}'
sleep 60
""")
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", f"{claude.parent}:/usr/bin:/bin")

    pool = PtyPool(5)
    adapter = adapter_for(CliType.Claude)

    handle = adapter.spawn(pool, "Add error handling to the main function", str(tmp_path))

    output_str = ""
    status: str | None = None
    while True:
        if output := handle.read_timeout(timedelta(seconds=1)):
            output_str += output.decode(errors="replace")
            status = adapter.parse_status_output(output_str)
            if status == "completed" or status == "error":
                break

        if not handle.is_alive():
            break

    pool.kill(handle.id)
    assert status == "completed"
    assert "Add error handling to the main function" in output_str


@example("at-session", 10)
def test_capacity_management() -> None:
    pool = PtyPool(2)

    h1 = pool.spawn("bash", [], [])
    h2 = pool.spawn("bash", [], [])
    assert f"Active: {pool.active_count()}/2" == "Active: 2/2"

    with pytest.raises(PtyError.AtCapacity) as full:
        pool.spawn("bash", [], [])
    assert full.value.max == 2

    pool.release(h1.id)

    h3 = pool.spawn("bash", [], [])
    assert h3.id not in (h1.id, h2.id)

    pool.kill(h2.id)
    pool.kill(h3.id)
    assert (pool.active_count(), pool.available()) == (0, 2)
    pool.close()
    assert not h1.is_alive()


@example("at-session", 1)
def test_a_clone_is_the_same_pool_and_outlives_the_name_it_was_made_from() -> None:
    pool = PtyPool(2)
    other, copied = pool.clone(), copy.copy(pool)
    handle = pool.spawn("cat", [], []).clone()
    del pool
    gc.collect()
    assert handle.is_alive()
    assert (other.available(), copied.available()) == (1, 1)
    other.close()
    assert not handle.is_alive()


@example("at-session", 6)
def test_an_adapter_written_from_the_specification_alone_is_one() -> None:
    class Mine:
        def cli_type(self) -> CliType:
            return CliType.Claude

        def binary_name(self) -> str:
            return "cat"

        def default_args(self) -> list[str]:
            return []

        def spawn(self, pool: PtyPool, task: str, workdir: str) -> PtyHandle:
            return pool.spawn(self.binary_name(), self.default_args(), [], workdir)

        def parse_status_output(self, output: str) -> str | None:
            return None

    assert isinstance(Mine(), CliAdapter) and isinstance(adapter_for(CliType.Codex), CliAdapter)
    with PtyPool(1) as pool:
        assert Mine().spawn(pool, "a task", "/").is_alive()


@example("at-session", 11)
def test_resizing_a_pty() -> None:
    pool = PtyPool(5)
    handle = pool.spawn("sh", [], [("PS1", "")])

    handle.resize(120, 40)
    handle.send_line("stty size")
    assert "40 120" in output_until(handle, "40 120")
    handle.master.resize(100, 30)
    assert handle.master.size == (30, 100)

    handle.kill()
    pool.release(handle.id)


def spawn_with_retry(pool: PtyPool, name: str, waiting: threading.Event) -> str:
    try:
        handle = pool.spawn(name, [], [])
        return f"Spawned: {handle.id}"
    except PtyError.AtCapacity as full:
        waiting.set()
        assert full.max == 1
        time.sleep(0.05)
        return spawn_with_retry(pool, name, waiting)
    except PtyError.SpawnFailed as failure:
        return f"Spawn failed: {failure}"


@example("at-session", 12)
def test_error_handling() -> None:
    pool = PtyPool(1)
    assert "my-cli was not found" in spawn_with_retry(pool, "my-cli", threading.Event())

    holder = pool.spawn("bash", [], [])
    waiting = threading.Event()
    with ThreadPoolExecutor(1) as other:
        retried = other.submit(spawn_with_retry, pool, "bash", waiting)
        assert waiting.wait()
        pool.kill(holder.id)
        assert retried.result().startswith("Spawned: ")
    pool.close()


@example("at-session", 12)
def test_an_error_is_matched_by_its_variant() -> None:
    match PtyError.AtCapacity(3):
        case PtyError.AtCapacity(max=maximum):
            assert maximum == 3
        case _:
            pytest.fail("the variant was not matched")
    assert issubclass(PtyError.Io, PtyError)
    assert issubclass(PtyError.Internal, PtyError)
    with PtyPool(1) as pool:
        handle = pool.spawn("true")
        pool.release(handle.id)
        with pytest.raises(PtyError.HandleNotFound):
            pool.release(handle.id)


@example("at-session", 1)
def test_the_fields_of_a_handle_do_what_their_names_say() -> None:
    with PtyPool(1) as pool:
        handle = pool.spawn("sh", ["-c", "read line; echo got $line"])
        assert handle.reader.try_recv() is None
        handle.writer.send(b"word\n")
        output = b""
        while chunk := handle.reader.recv():
            output += chunk
        assert b"got word" in output
        assert handle.reader.try_recv() == b""
        assert handle.child.wait() == 0
        assert not handle.child.is_alive()
        assert handle.child.pid == handle.pid


@pytest.mark.parametrize("cli_type", list(CliType))
def test_an_adapter_answers_calls_and_attributes_alike(cli_type: CliType) -> None:
    from ptypool import cli

    plain: cli.CliAdapter = cli.adapter_for(cli_type)
    for adapter in (plain, adapter_for(cli_type)):
        assert adapter.cli_type() is adapter.cli_type is cli_type
        called: Any = adapter.binary_name  # both a string and a function: the specification writes it either way
        assert called() == adapter.binary_name == cli_type.value
        assert adapter.default_args() == list(adapter.default_args)


def test_the_names_of_the_tools_are_those_of_the_specification() -> None:
    assert [CliType.Claude, CliType.Codex, CliType.Gemini, CliType.OpenCode] == list(CliType)


@example("at-session", 5)
def test_a_pool_that_is_dropped_leaves_no_child_behind() -> None:
    from ptypool.sync import call

    pool = PtyPool(1)
    handle = pool.spawn("cat")
    inner = handle._handle
    del pool, handle
    assert not call(inner.is_alive)


@example("at-session", 2)
def test_backpressure_stops_the_sender_and_nobody_else() -> None:
    """A child that does not read: the 257th message waits, other handles go on."""
    with PtyPool(2) as pool:
        deaf = pool.spawn("sh", ["-c", "stty raw -echo; echo ready; sleep 60"])
        assert "ready" in output_until(deaf, "ready")
        sent = 0

        def flood() -> None:
            nonlocal sent
            while True:
                deaf.send(b"x" * 4000)
                sent += 1

        sender = threading.Thread(target=lambda: _until_error(flood), daemon=True)
        sender.start()
        lively = pool.spawn("echo", ["still here"])
        assert "still here" in output_until(lively, "still here")
        deaf.kill()
        sender.join()
        assert not sender.is_alive()
        assert sent < 600


def _until_error(work: object) -> None:
    assert callable(work)
    with pytest.raises(PtyError):
        work()


@example("at-session", 8)
async def test_basic_pty_spawn_with_await_as_it_is_written(tmp_path: Path) -> None:
    pool = PtyPool.new(10)
    handle = pool.spawn("bash", [], [("PS1", "$ ")], tmp_path)
    handle.send_line("echo one$((1 + 1))")
    handle.send_line("pwd")
    text = ""
    while f"{tmp_path}\r\n" not in text:
        output = await handle.read_timeout(timedelta(seconds=2))
        text += (output or b"").decode(errors="replace")
    assert "one2" in text
    await handle.kill()
    pool.release(handle.id)
    assert pool.active_count() == 0


@example("at-session", 9)
async def test_a_cli_adapter_is_spawned_with_await_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "claude"
    tool.write_text("#!/bin/sh\necho working; echo done\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    pool = PtyPool.new(5)
    adapter = adapter_for(CliType.Claude)
    handle = await adapter.spawn(pool, "Add error handling to the main function", tmp_path)
    text = ""
    while "done" not in text:
        text += (await handle.read_timeout(timedelta(seconds=1)) or b"").decode(errors="replace")
    assert isinstance(handle, PtyHandle)
    await handle.wait()


async def test_no_call_that_waits_stops_the_loop() -> None:
    pool = PtyPool.new(1)
    handle = pool.spawn("cat", [], [])
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.01)

    beating = asyncio.create_task(beat())
    assert await handle.read_timeout(timedelta(seconds=0.5)) is None
    beating.cancel()
    assert beats > 5
    await handle.kill()


async def test_a_pool_that_is_dropped_inside_a_loop_cleans_up_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    pool = PtyPool.new(1)
    handle = pool.spawn("cat", [], [])
    pid = handle.pid
    del pool, handle
    gc.collect()
    while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC240 - no disk is asked
        await asyncio.sleep(0.02)
    assert capfd.readouterr() == ("", "")


def test_the_pool_for_asyncio_has_the_constructor_of_the_specification() -> None:
    import ptypool

    assert ptypool.PtyPool.new(3).max_ptys == 3
