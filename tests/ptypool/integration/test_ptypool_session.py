"""Session on real shells: state that lasts, exact output, stubborn commands, saving and reopening."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ptypool.waiting import DEADLINE_S, process_exists

from ptypool import CommandResult, CommandTimeout, PtyInternalError, PtyIoError, PtyPool, Session, SpawnFailed

SHELLS = ("bash", "sh")


@pytest.fixture
async def pool() -> AsyncIterator[PtyPool]:
    async with PtyPool(4, grace_s=0.5) as pool:
        yield pool


@pytest.fixture(params=SHELLS)
async def session(pool: PtyPool, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Session]:
    async with await Session.open(pool, shell=request.param, cwd=tmp_path) as session:
        yield session


async def test_a_command_gives_its_output_and_its_status(session: Session) -> None:
    output, status = await session.run("echo out; echo err >&2; (exit 3)")
    assert (output, status) == ("out\nerr\n", 3)


async def test_the_working_directory_lasts_and_is_tracked(session: Session, tmp_path: Path) -> None:
    assert session.cwd == str(tmp_path)
    await session.run("mkdir 'a folder' && cd 'a folder'")
    assert session.cwd == str(tmp_path / "a folder")
    assert (await session.run("pwd")).output == f"{tmp_path}/a folder\n"


async def test_the_environment_lasts_and_is_tracked(session: Session) -> None:
    await session.run("export GREETING='two\nlines'; HIDDEN=1")
    assert session.env["GREETING"] == "two\nlines"
    assert "HIDDEN" not in session.env
    assert (await session.run('echo "$GREETING$HIDDEN"; unset GREETING')).output == "two\nlines1\n"
    assert "GREETING" not in session.env


async def test_functions_and_the_last_status_last(session: Session) -> None:
    await session.run("greet() { echo hello $1; return 4; }")
    assert await session.run("greet you") == ("hello you\n", 4)
    assert (await session.run("echo $?")).output == "4\n"


async def test_the_history_is_kept(session: Session, tmp_path: Path) -> None:
    await session.run("cd /")
    await session.run("false")
    assert [(entry.command, entry.exit_status, entry.cwd) for entry in session.history] == [
        ("cd /", 0, "/"),
        ("false", 1, "/"),
    ]
    assert all(entry.duration_s >= 0 for entry in session.history)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("printf 'no newline'", "no newline"),
        ("printf '\\036E0 0\\036\\036B\\036'", "\x1eE0 0\x1e\x1eB\x1e"),
        ("printf '\\033[2J\\033]0;title\\007\\r\\n'", "\x1b[2J\x1b]0;title\x07\r\n"),
        ("printf '\\377\\376'", os.fsdecode(b"\xff\xfe")),
        ("", ""),
        ("# only a comment", ""),
        ("cat <<END\n$(echo here)\nEND", "here\n"),
        ("echo 'a!b' \"$(echo c)\"", "a!b c\n"),
        ("echo one &&\necho two", "one\ntwo\n"),
    ],
)
async def test_any_output_comes_out_exactly(session: Session, command: str, output: str) -> None:
    assert await session.run(command) == (output, 0)


async def test_every_byte_value_survives(session: Session, tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    (tmp_path / "bytes").write_bytes(data)
    assert os.fsencode((await session.run("cat bytes")).output) == data


async def test_large_output_and_large_commands_pass(session: Session) -> None:
    assert (await session.run("seq 200000")).output.count("\n") == 200_000
    assert (await session.run("echo " + "x" * 100_000)).output == "x" * 100_000 + "\n"


async def test_output_can_be_taken_as_it_comes(session: Session) -> None:
    chunks: list[bytes] = []
    result = await session.run("seq 10000", on_output=chunks.append)
    assert result == ("", 0)
    assert b"".join(chunks).split()[-1] == b"10000"


async def test_a_syntax_error_is_a_status_and_the_shell_goes_on(session: Session) -> None:
    output, status = await session.run("if then fi (")
    assert status != 0 and "yntax error" in output
    assert await session.run("echo fine") == ("fine\n", 0)


@pytest.mark.parametrize(
    "spoiler",
    [
        "stty raw -echo -onlcr",
        "exec >/dev/null 2>&1",
        "PS1='(venv) '; PS2='more '",
        "set -u; set -C",
        "break; continue; return 0",
        "trap 'echo trapped' INT",
        "PATH=/nowhere",
        "PROMPT_COMMAND='echo mine'; PS1='$ '",
        "IFS=x",
    ],
)
async def test_a_command_that_spoils_the_shell_does_not_spoil_the_session(session: Session, spoiler: str) -> None:
    await session.run(spoiler)
    await session.run("exec >/dev/tty 2>&1; cd /")
    assert await session.run("echo fine") == ("fine\n", 0)
    assert session.cwd == "/"


async def started(session: Session, command: str) -> tuple[asyncio.Task[CommandResult], list[bytes]]:
    """A command that has said `ready`, and what it says from then on."""
    chunks: list[bytes] = []
    ready = asyncio.Event()

    def listen(chunk: bytes) -> None:
        chunks.append(chunk)
        if b"ready" in b"".join(chunks):
            ready.set()

    running = asyncio.create_task(session.run(f"echo ready; {command}", on_output=listen))
    async with asyncio.timeout(DEADLINE_S):
        await ready.wait()
    return running, chunks


async def test_a_command_that_reads_gets_what_is_sent_and_not_our_protocol(session: Session) -> None:
    running, chunks = await started(session, 'read line; echo "<$line>"')
    await session.send("an answer\n")
    assert (await running).exit_status == 0
    assert b"".join(chunks) == b"ready\n<an answer>\n"


async def test_unread_input_of_one_command_is_not_the_next_command(session: Session, tmp_path: Path) -> None:
    running, _ = await started(session, "until [ -e go ]; do sleep 0.02; done; rm go")
    await session.send("touch intruder")
    (tmp_path / "go").touch()
    await running
    assert await session.run("ls") == ("", 0)


async def test_commands_wait_their_turn(session: Session) -> None:
    results = await asyncio.gather(*(session.run(f"echo {number}") for number in range(5)))
    assert [result.output for result in results] == [f"{number}\n" for number in range(5)]


async def test_a_command_that_takes_too_long_is_interrupted(session: Session) -> None:
    await session.run("KEPT=yes")
    with pytest.raises(CommandTimeout) as caught:
        await session.run("echo partial; while :; do sleep 0.1; done", timeout_s=2)
    assert caught.value.output.startswith("partial\n")
    assert await session.run("echo $KEPT") == ("yes\n", 0)


async def test_an_interrupt_that_one_program_takes_for_itself_is_sent_again(session: Session) -> None:
    """bash continues with the rest when a program ends well at Ctrl-C, or by itself in the moment of Ctrl-C."""
    await session.run("KEPT=yes")
    command = "sh -c 'trap \"exit 0\" INT; echo ready; while :; do sleep 0.05; done'; sleep 1000"
    running, _ = await started(session, command)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await session.run("echo $KEPT") == ("yes\n", 0)


async def test_a_command_that_ignores_interrupts_costs_the_shell_but_not_the_state(session: Session) -> None:
    await session.run("cd /usr; export KEPT=yes")
    shell = session.handle.pid
    with pytest.raises(CommandTimeout):
        await session.run("trap '' INT; while :; do sleep 0.1; done", timeout_s=0.5)
    assert session.handle.pid != shell and not process_exists(shell)
    assert await session.run("pwd; echo $KEPT") == ("/usr\nyes\n", 0)


async def test_a_cancelled_run_stops_its_command(session: Session) -> None:
    running, _ = await started(session, "sleep 1000")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await session.run("echo next") == ("next\n", 0)


async def test_an_interrupt_ends_the_command_and_not_the_shell(session: Session) -> None:
    ready = asyncio.Event()
    command = "sh -c 'echo ready; exec sleep 1000'"  # said by the command itself: the shell no longer has the terminal
    running = asyncio.create_task(session.run(command, on_output=lambda _: ready.set()))
    async with asyncio.timeout(DEADLINE_S):
        await ready.wait()
        await session.interrupt()
        assert (await running).exit_status == 130
    assert session.is_alive()


async def test_exit_ends_the_session_with_its_status(session: Session) -> None:
    output, status = await session.run("echo bye; exit 6")
    assert status == 6 and output.startswith("bye\n")
    assert not session.is_alive()
    with pytest.raises(PtyIoError, match="ended"):
        await session.run("true")


async def test_a_saved_session_is_reopened_where_it_was(session: Session, pool: PtyPool, tmp_path: Path) -> None:
    await session.run("cd /usr && export KEPT='a b'")
    session.save(tmp_path / "session.json")
    await session.close()
    async with await Session.reopen(pool, tmp_path / "session.json") as again:
        assert await again.run('pwd; echo "$KEPT"') == ("/usr\na b\n", 0)
        assert [entry.command for entry in again.history] == ["cd /usr && export KEPT='a b'", 'pwd; echo "$KEPT"']
        assert again.state.shell == session.state.shell


async def test_a_session_whose_folder_is_gone_says_so(pool: PtyPool, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    async with await Session.open(pool, cwd=tmp_path / "gone") as session:
        session.save(tmp_path / "session.json")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SpawnFailed) as caught:
        await Session.reopen(pool, tmp_path / "session.json")
    assert caught.value.stage == "cwd"
    assert pool.active_count == 0


async def test_closing_ends_the_shell_frees_the_slot_and_removes_its_files(pool: PtyPool) -> None:
    session = await Session.open(pool)
    folder, pid = session._files.folder, session.handle.pid
    await session.run("sleep 1000 &")
    await session.close()
    await session.close()
    assert not process_exists(pid) and not folder.exists()
    assert pool.active_count == 0
    with pytest.raises(PtyIoError, match="closed"):
        await session.run("true")


async def test_an_unknown_shell_is_refused(pool: PtyPool) -> None:
    with pytest.raises(ValueError, match="fish"):
        await Session.open(pool, shell="fish")
    assert pool.active_count == 0


async def test_a_spoiled_state_file_is_refused(pool: PtyPool, tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text("not json")
    with pytest.raises(PtyInternalError):
        await Session.reopen(pool, tmp_path / "session.json")
