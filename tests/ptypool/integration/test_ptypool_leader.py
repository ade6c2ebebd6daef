"""A leader that waits on its terminal before its program is known becomes what `spawn_process` would start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ptypool.waiting import drain_fd, open_descriptors
from tests.support.waiting import DEADLINE_S, wait_for

from ptypool import SpawnFailed, spawn_process
from ptypool.leader import Leader, LeaderGone
from ptypool.process import SpawnedProcess

REPORT = """
import os, signal, sys, termios
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(os.getsid(0) == os.getpid() == os.getpgrp() == os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)))
print(sorted(os.environ.items()), os.getcwd(), oct(os.umask(0)), sys.argv[1:])
print([status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt")])
print(os.get_terminal_size(0), termios.tcgetattr(0)[:4])
print([(fd, os.readlink(f"/proc/self/fd/{fd}")) for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}")])
"""


def output_of(process: SpawnedProcess) -> str:
    try:
        return drain_fd(process.master_fd).decode()
    finally:
        os.close(process.master_fd)
        os.waitpid(process.pid, 0)


@contextmanager
def opened_at(path: str, *numbers: int) -> Iterator[None]:
    """The file, inheritable, at numbers that no earlier test of the process has in use."""
    with open(path, "rb") as file:
        placed = [os.dup2(file.fileno(), number, inheritable=True) for number in numbers]
    try:
        yield
    finally:
        for fd in placed:
            os.close(fd)


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Leader:
    monkeypatch.setattr("ptypool.leader._PATIENCE_S", DEADLINE_S)  # a crowded machine may let it wait longer than 2 s
    return Leader()


@pytest.fixture
def things_to_inherit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder, a umask and files at numbers where the leader has its own."""
    monkeypatch.chdir(tmp_path)
    umask = os.umask(0o027)
    with opened_at("/etc/passwd", 200, 203):
        yield
    os.umask(umask)


@pytest.mark.usefixtures("things_to_inherit")
@pytest.mark.parametrize("options", [{}, {"size": (43, 132), "cwd": "/"}, {"env": {"A": "1", "PATH": os.defpath}}])
def test_it_becomes_what_a_new_process_would(leader: Leader, options: dict[str, object]) -> None:
    words = [sys.executable, "-c", REPORT, "a word", "", "ü"]
    plain = output_of(spawn_process(words, close_fds=False, **options))  # type: ignore[arg-type]
    assert output_of(leader.start(words, **options)) == plain  # type: ignore[arg-type]
    assert plain.startswith("True") and "/etc/passwd" in plain


def test_where_nothing_arrives_closed_on_exec_a_program_has_nothing_open_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ptypool.leader._CLOEXEC", 0)  # as on macOS
    monkeypatch.setattr("ptypool.leader._inheritable", list)
    assert output_of(Leader().start([sys.executable, "-c", REPORT])).splitlines()[-1] == "[(3, '/dev/tty')]"  # its own


def test_what_is_open_at_its_own_numbers_is_not_lost(leader: Leader) -> None:
    leader.move_above(240)
    words = [sys.executable, "-c", "import os; print([os.readlink(f'/proc/self/fd/{fd}') for fd in (220, 225)])"]
    with opened_at(os.devnull, 220, 225):
        assert output_of(leader.start(words)) == f"{['/dev/null'] * 2}\r\n"


def test_an_environment_larger_than_any_buffer_arrives_whole(leader: Leader) -> None:
    env = {f"NAME{number}": "x" * 100_000 for number in range(12)}
    words = [sys.executable, "-c", "import os; print(sum(len(v) for k, v in os.environ.items() if k[:4] == 'NAME'))"]
    assert output_of(leader.start(words, env=env)) == "1200000\r\n"


@pytest.mark.parametrize(
    ("words", "options"),
    [(["no-such-program"], {}), (["/etc/passwd"], {}), (["true"], {"cwd": "/no/such/folder"}), ([""], {})],
)
def test_what_cannot_be_run_is_said_in_the_same_words(
    leader: Leader, words: list[str], options: dict[str, str]
) -> None:
    with pytest.raises(SpawnFailed) as plain:
        spawn_process(words, cwd=options.get("cwd"))
    with pytest.raises(SpawnFailed) as told:
        leader.start(words, cwd=options.get("cwd"))
    assert (told.value.what(), told.value.stage) == (plain.value.what(), plain.value.stage)


def test_one_that_was_killed_says_so_and_nothing_starts(leader: Leader, tmp_path: Path) -> None:
    os.kill(leader.pid, signal.SIGKILL)
    with pytest.raises(LeaderGone):
        leader.start(["touch", str(tmp_path / "made")])
    assert not (tmp_path / "made").exists()


def test_one_that_was_stopped_starts_nothing_later(
    leader: Leader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptypool.leader._PATIENCE_S", 0.1)
    os.kill(leader.pid, signal.SIGSTOP)
    with pytest.raises(LeaderGone):
        leader.start(["touch", str(tmp_path / "made")])
    with pytest.raises(ProcessLookupError):
        os.kill(leader.pid, signal.SIGCONT)
    assert not (tmp_path / "made").exists()


def test_nothing_is_left_of_one_that_nobody_needed() -> None:
    before = open_descriptors()
    leader = Leader()
    leader.close()
    assert open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(leader.pid, 0)


def test_it_ends_with_whoever_made_it() -> None:
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.write(writer, b"%d" % Leader().pid)
        os._exit(0)
    os.waitpid(middle, 0)
    pid = int(os.read(reader, 20))
    os.close(reader)
    os.close(writer)
    wait_for(lambda: not _is_there(pid), "the leader's end")


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
