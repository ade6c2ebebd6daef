"""The classes and calls that the documents name, used as they use them: on real terminals, files and stores."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.specification.documents import example
from tests.support.ledgers import ask, open_ledger
from tests.support.waiting import stays

from atlasbridge import specification
from atlasbridge.core.prompt.model import PromptState
from atlasbridge.core.tty import Size
from atlasbridge.specification import SupervisorState

QUESTION = "print('got', repr(input('Continue? (y/n) ')), flush=True)"


@asynccontextmanager
async def running(supervisor: specification.PTYSupervisor) -> AsyncIterator[asyncio.Task[int]]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@example("reliability", 1)
async def test_the_supervisor_brings_a_prompt_and_types_the_response(tmp_path: Path) -> None:
    shown, log = io.BytesIO(), tmp_path / "own.log"
    audit = specification.AuditWriter(log)
    command = [sys.executable, "-c", QUESTION]
    supervisor = specification.PTYSupervisor(command, terminal=shown, audit=audit)
    async with running(supervisor) as task:
        event = await supervisor.prompts.get()
        assert (event.prompt_type, event.session_id) == ("yes_no", supervisor.session_id)
        assert supervisor.state is SupervisorState.AWAITING_RESPONSE
        assert b"Continue? (y/n)" in shown.getvalue(), "the terminal shows a question before anybody is asked"
        await supervisor.responses.put((event.prompt_id, "y"))
        await supervisor.responses.put((event.prompt_id, "n"))  # the second tap of the same button
        assert await task == 0
        assert asyncio.all_tasks() - {asyncio.current_task()} == set(), "the tool's end ends the four tasks"
    assert b"got 'y'" in shown.getvalue() and str(supervisor.state) == "done"
    audit.close()
    assert specification.verify_chain(log) == (True, 4)
    assert "REPLY_INJECTED" in log.read_text()


async def test_a_response_that_ends_the_tool_is_recorded_before_the_end(tmp_path: Path) -> None:
    log = tmp_path / "own.log"
    audit = specification.AuditWriter(log)
    supervisor = specification.PTYSupervisor([sys.executable, "-c", QUESTION], audit=audit)
    inject, ended = supervisor.adapter.inject_reply, asyncio.Event()

    async def slowly(reply: specification.Reply) -> None:
        await inject(reply)
        await ended.wait()  # as on a crowded machine: the tool has answered and ended by now

    supervisor.adapter.inject_reply = slowly  # type: ignore[method-assign]
    read = supervisor.pty_reader

    async def read_and_tell() -> None:
        await read()
        asyncio.get_running_loop().call_soon(ended.set)

    supervisor.pty_reader = read_and_tell  # type: ignore[method-assign]
    async with running(supervisor) as task:
        event = await supervisor.prompts.get()
        await supervisor.responses.put((event.prompt_id, "y"))
        assert await task == 0
    audit.close()
    said = log.read_text()
    assert said.index("REPLY_INJECTED") < said.index("SESSION_END")


async def test_a_response_at_the_moment_of_the_end_does_not_keep_its_task_alive() -> None:
    """`asyncio.wait_for` of Python 3.11 forgets a cancellation that comes together with the result."""
    supervisor = specification.PTYSupervisor(["true"])
    for turns in range(4):
        task = asyncio.create_task(supervisor.response_consumer())
        for _ in range(3):  # it waits for a response now
            await asyncio.sleep(0)
        supervisor.responses.put_nowait((f"nothing {turns}", "y"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=0.2)
        assert task.cancelled(), f"after {turns} turns"


@example("reliability", 1)
async def test_the_supervisor_refuses_a_second_response_and_one_for_nothing() -> None:
    supervisor = specification.PTYSupervisor([sys.executable, "-c", QUESTION + "; input()"])
    async with running(supervisor):
        event = await supervisor.prompts.get()
        for prompt_id in (event.prompt_id, event.prompt_id, "nothing"):
            await supervisor.responses.put((prompt_id, "y"))
        while len(supervisor.refused) < 2:
            await asyncio.sleep(0.02)
        assert [prompt_id for prompt_id, _ in supervisor.refused] == [event.prompt_id, "nothing"]


@example("reliability", 1)
@example("reliability", 2)
async def test_keys_wait_while_the_gate_is_held_and_an_injection_gives_up_after_its_time() -> None:
    keyboard, person = os.pipe()
    shown = io.BytesIO()
    supervisor = specification.PTYSupervisor(
        [sys.executable, "-c", QUESTION], terminal=shown, keyboard=keyboard, injection_timeout_seconds=0.2
    )
    async with running(supervisor) as task:
        event = await supervisor.prompts.get()
        async with supervisor._injection_gate:
            os.write(person, b"n\r")
            await supervisor.responses.put((event.prompt_id, "y"))
            while not supervisor.refused:
                await asyncio.sleep(0.02)
            assert supervisor.refused == [(event.prompt_id, "another response is still being typed")]
            assert b"got" not in shown.getvalue() and not task.done()
        assert await task == 0
    os.close(person)
    assert b"got 'n'" in shown.getvalue()


@example("reliability", 1)
async def test_the_watchdog_tells_one_stall_once() -> None:
    silent = [sys.executable, "-c", "print('working', flush=True); import sys; sys.stdin.readline()"]
    supervisor = specification.PTYSupervisor(silent, stuck_timeout_seconds=0.5, stuck_poll_interval_seconds=0.1)
    async with running(supervisor):
        event = await supervisor.prompts.get()
        assert "working" in event.excerpt
        await stays(supervisor.prompts.empty, "one stall told once", for_s=1.5)


@example("reliability", 1)
async def test_the_supervisor_relays_the_keyboard_and_returns_the_exit_status() -> None:
    keyboard, person = os.pipe()
    shown = io.BytesIO()
    code = "import sys; print('read', sys.stdin.readline(), flush=True); sys.exit(7)"
    supervisor = specification.PTYSupervisor([sys.executable, "-c", code], terminal=shown, keyboard=keyboard)
    async with running(supervisor) as task:
        os.write(person, b"by hand\r")
        assert await task == 7
    os.close(person)
    assert b"read by hand" in shown.getvalue()


def test_a_terminal_is_spawned_read_written_resized_and_terminated() -> None:
    pty: specification.BasePTY = specification.PosixPTYBackend.spawn(
        ["sh", "-c", "read line; stty size; echo done; read more"],  # no shell that writes the size it has just read
        size=Size(24, 80),
    )
    pty.resize(Size(40, 120))
    pty.write(b"\r")
    seen = b""
    while b"done" not in seen:
        seen += pty.read()
    assert b"40 120" in seen
    assert pty.terminate() is not None
    while rest := pty.read():
        assert b"40 120" not in rest
    with pytest.raises(OSError, match="ended"):
        pty.write(b"more")
    pty.close()


def test_a_read_returns_no_more_than_was_asked_for() -> None:
    pty = specification.PosixPTYBackend.spawn(["sh", "-c", "printf 0123456789; sleep 30"])
    assert pty.read(4) == b"0123"
    pty.terminate()
    pty.close()


def test_every_backend_offers_what_the_document_lists() -> None:
    for backend in (specification.PosixPTYBackend, specification.ConPTYBackend):
        assert issubclass(backend, specification.BasePTY) and not backend.__abstractmethods__
    assert {"spawn", "read", "write", "resize"} <= specification.BasePTY.__abstractmethods__


def test_a_log_of_ones_own_goes_on_where_it_ended_and_shows_a_change(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    for number in (1, 2):
        writer = specification.AuditWriter(log)
        entry = writer.write("REPLY_INJECTED", prompt_id=f"p{number}", value="y")
        assert entry["seq"] == number
        writer.close()
    assert specification.verify_chain(log) == (True, 2)
    log.write_text(log.read_text().replace('"p1"', '"p9"'))
    assert specification.verify_chain(log) == (False, 1)
    with pytest.raises(ValueError, match="entry 1"):
        specification.AuditWriter(log)


def test_decide_prompt_changes_one_row_once(tmp_path: Path) -> None:
    database = open_ledger(tmp_path)
    p1 = ask(database)
    other = ask(database)
    nonce = p1.nonce
    assert database.decide_prompt(p1.prompt_id, other.session_id, nonce, "y") == 0  # another session's
    assert database.decide_prompt(p1.prompt_id, p1.session_id, "0" * 32, "y") == 0  # not its nonce
    assert database.decide_prompt(p1.prompt_id, p1.session_id, nonce, "perhaps") == 0  # no answer to a yes/no question
    assert specification.decide_prompt(database, p1.prompt_id, p1.session_id, nonce, "y") == 1
    assert database.decide_prompt(p1.prompt_id, p1.session_id, nonce, "y") == 0  # the double tap
    decided = database.prompt(p1.prompt_id)
    assert decided is not None and decided.state is PromptState.REPLY_RECEIVED
    database.close()


async def test_the_claude_adapter_has_the_names_of_the_architecture_document(tmp_path: Path) -> None:
    adapter = specification.ClaudeAdapter()
    assert adapter.tool_name == "claude" and isinstance(adapter.supported_versions, list)
    await adapter.start_session(["sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"])
    async for chunk in adapter.read_stream():
        if b"ready" in chunk:
            break
    await adapter.terminate()
    assert await adapter.wait() == 5
    await adapter.start_session(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
    async for chunk in adapter.read_stream():
        if b"ready" in chunk:
            break
    await adapter.terminate(force=True)
    assert await adapter.wait() == -9


async def test_the_channels_for_tests_take_a_prompt_and_never_answer(tmp_path: Path) -> None:
    for channel in (specification.NullChannel(), specification.LocalChannel()):
        await channel.notify("hello")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.receive_reply(), 0.05)
        await channel.close()
