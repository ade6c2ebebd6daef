"""spawn_process on real programs: the terminal is the child's own, its start is clean, a failed one is told at once."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import termios
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ptypool.waiting import children, drain_fd, open_descriptors

from ptypool import SpawnFailed, spawn_process
from ptypool.process import Program, explain


def output_of(*argv: str, **options: object) -> bytes:
    """Run to the end; returns all the output."""
    process = spawn_process(argv, **options)  # type: ignore[arg-type]
    try:
        return drain_fd(process.master_fd)
    finally:
        os.close(process.master_fd)
        os.waitpid(process.pid, 0)


def python(code: str, **options: object) -> str:
    return output_of(sys.executable, "-c", textwrap.dedent(code), **options).decode().replace("\r\n", "\n")


@pytest.fixture
def ignored_signals() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGPIPE, signal.SIGHUP, signal.SIGQUIT, signal.SIGXFSZ, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGWINCH, signal.SIGTERM})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_child_leads_a_session_on_a_controlling_terminal_of_its_own() -> None:
    said = python(
        """
        import os
        tty = os.open("/dev/tty", os.O_RDWR)
        print(os.getsid(0) == os.getpid() == os.getpgrp() == os.tcgetpgrp(tty))
        print(os.ttyname(0) == os.ttyname(1) == os.ttyname(2))
        """
    )
    assert said == "True\nTrue\n"


def test_the_size_is_right_from_the_first_instruction() -> None:
    assert output_of("stty", "size", size=(43, 132)) == b"43 132\r\n"


def test_the_default_size_is_24_by_80() -> None:
    assert output_of("stty", "size") == b"24 80\r\n"


def test_an_impossible_size_is_refused() -> None:
    before = open_descriptors()
    with pytest.raises(ValueError, match="70000"):
        spawn_process(["true"], size=(70000, 80))
    assert open_descriptors() <= before


@pytest.mark.usefixtures("ignored_signals")
def test_signals_are_default_and_unblocked_in_the_child() -> None:
    said = python(
        """
        import signal
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
        blocked, ignored = int(status["SigBlk"], 16), int(status["SigIgn"], 16)
        ours = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)  # Python itself ignores these two at its start
        libc = 3 << 31  # 32 and 33 are the C library's own: anyone who was started by posix_spawn inherits them ignored
        print(blocked, ignored & ~ours & ~libc)
        """
    )
    assert said == "0 0\n"


@pytest.mark.usefixtures("ignored_signals")
@pytest.mark.parametrize("name", ["PIPE", "XFSZ", "INT", "TERM"])
def test_an_ignored_signal_of_ours_ends_the_child(name: str) -> None:
    process = spawn_process(["sh", "-c", f"kill -{name} $$; echo survived"])
    assert b"survived" not in drain_fd(process.master_fd)
    os.close(process.master_fd)
    assert os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1]) == -signal.Signals[f"SIG{name}"]


@pytest.mark.usefixtures("ignored_signals")
def test_our_own_signal_mask_is_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    output_of("true")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_no_descriptor_leaks_into_the_child() -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    os.dup2(write_end, 200, inheritable=True)
    try:
        said = python("import os; print(sorted(fd for fd in os.listdir('/dev/fd')))")
    finally:
        for fd in (read_end, write_end, 200):
            os.close(fd)
    assert said == "['0', '1', '2', '3']\n"  # 3 is the listing itself


def test_inheritable_descriptors_stay_when_they_are_asked_for() -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    python(f"import os; os.write({write_end}, b'through')", close_fds=False)
    os.close(write_end)
    assert os.read(read_end, 100) == b"through"
    os.close(read_end)


def test_nothing_leaks_in_the_parent_whether_the_start_works_or_not() -> None:
    before, others = open_descriptors(), children()
    for _ in range(20):
        output_of("true")
        with pytest.raises(SpawnFailed):
            spawn_process(["no-such-program-anywhere"])
        with pytest.raises(SpawnFailed):
            spawn_process(["true"], cwd="/no/such/folder")
    assert open_descriptors() <= before
    assert children() <= others  # another test of this process has its own


def test_given_terminal_attributes_are_there_from_the_start() -> None:
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    os.close(master)
    os.close(slave)
    said = output_of("stty", "-a", termios_attrs=attributes).split()
    assert b"-echo" in said and b"-icanon" in said


def test_erase_takes_a_whole_character_by_default() -> None:
    assert b"iutf8" in output_of("stty", "-a").split()


def test_the_environment_is_exactly_the_given_one() -> None:
    said = output_of("/usr/bin/env", env={"ONLY": "this", "LATIN": os.fsdecode(b"\xe9")})
    assert sorted(said.split()) == [b"LATIN=\xe9", b"ONLY=this"]


def test_the_program_is_looked_up_in_the_path_of_the_child(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found $0\n")
    program.chmod(0o755)
    assert output_of("only-here", env={"PATH": f"/nonexistent:{tmp_path}"}) == f"found {program}\r\n".encode()


def test_a_relative_program_is_relative_to_the_new_working_directory(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tool").chmod(0o755)
    assert output_of("./tool", cwd=tmp_path) == f"{tmp_path}\r\n".encode()


def test_a_script_without_an_interpreter_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "script").write_text('echo "$1"\n')
    (tmp_path / "script").chmod(0o755)
    assert output_of(str(tmp_path / "script"), "an argument") == b"an argument\r\n"


def failure_of(*argv: str, **options: object) -> SpawnFailed:
    with pytest.raises(SpawnFailed) as caught:
        spawn_process(argv, **options)  # type: ignore[arg-type]
    return caught.value


def test_a_missing_program_is_reported() -> None:
    failure = failure_of("no-such-program-anywhere")
    assert (failure.errno, failure.stage) == (errno.ENOENT, "program")
    assert "no-such-program-anywhere was not found" in failure.reason


def test_a_folder_of_path_that_may_not_be_entered_does_not_make_a_missing_program_one_that_cannot_run() -> None:
    """exec says so, and a shell says 127."""
    program = Program((b"/of-another-user/no-such-program",), (b"no-such-program",), {}, None)
    assert explain(program, "program", errno.EACCES).errno == errno.ENOENT


def test_a_program_that_may_not_be_executed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    failure = failure_of(str(tmp_path / "plain"))
    assert (failure.errno, failure.stage) == (errno.EACCES, "program")
    assert failure_of("plain", env={"PATH": f"{tmp_path}:/nonexistent"}).errno == errno.EACCES


def test_a_missing_interpreter_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    failure = failure_of(str(tmp_path / "script"))
    assert (failure.errno, failure.stage) == (errno.ENOENT, "program")
    assert "interpreter" in failure.reason


def test_a_binary_of_no_known_kind_is_reported(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fNOT\0\1\2" * 50)
    (tmp_path / "binary").chmod(0o755)
    assert failure_of(str(tmp_path / "binary")).errno == errno.ENOEXEC


@pytest.mark.parametrize(("make", "number"), [(False, errno.ENOENT), (True, errno.ENOTDIR)])
def test_a_bad_working_directory_is_told_from_a_bad_program(tmp_path: Path, make: bool, number: int) -> None:
    if make:
        (tmp_path / "folder").write_text("a file")
    failure = failure_of("true", cwd=tmp_path / "folder")
    assert (failure.errno, failure.stage) == (number, "cwd")
    assert str(tmp_path / "folder") in failure.reason


def test_arguments_that_no_program_can_get_are_reported() -> None:
    assert failure_of("echo", "a\0b").errno == errno.EINVAL
    assert failure_of("echo", env={"A=B": "c"}).errno == errno.EINVAL
    assert failure_of("true", cwd="a\0b").stage == "cwd"
    assert failure_of().errno == errno.EINVAL
    assert failure_of("").errno == errno.EINVAL
    assert failure_of("echo", "x" * 10_000_000).errno == errno.E2BIG


def test_a_lack_of_descriptors_is_reported() -> None:
    code = """
        import resource
        from ptypool import SpawnFailed, spawn_process
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
        for _ in range(5):
            try:
                spawn_process(["true"])
            except SpawnFailed as error:
                print(error.stage, error.errno)
                break
        """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert said.stdout == f"terminal {errno.EMFILE}\n"


def test_a_daemon_without_standard_streams_can_spawn() -> None:
    code = """
        import os, sys
        result = os.dup(1)
        os.closerange(0, 3)
        from ptypool import spawn_process
        process = spawn_process(["sh", "-c", "echo out; echo err >&2; test -t 0 && echo tty"])
        said = b""
        try:
            while chunk := os.read(process.master_fd, 1000):
                said += chunk
        except OSError:
            pass
        os.write(result, said)
        """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=True).stdout
    assert said == b"out\r\nerr\r\ntty\r\n"


def test_spawning_from_many_threads_at_once_works() -> None:
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda n=n: results.append(output_of("echo", str(n)))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(b"%d\r\n" % n for n in range(12))


@pytest.mark.parametrize("module", ["ptypool", "ptypool.process", "ptypool.termination", "ptypool.errors"])
def test_the_synchronous_parts_do_not_import_asyncio(module: str) -> None:
    code = f"import sys, {module}; print('asyncio' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"


def test_the_asyncio_parts_are_there_when_asked_for() -> None:
    code = "import sys, ptypool; ptypool.PtyPool(1); ptypool.Session; print('asyncio' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "True\n"
