"""The host that a zygote has ready before anybody asks: its client gets what it would have had without it, and
nobody loses a start when it is killed, stopped or too late."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sessions import host_pids
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for
from tests.support.zygotes import (
    SWITCH,
    environ_with_zygote,
    parent_of,
    start_zygote,
    wait_spare,
    zygotes,
)

pytestmark = pytest.mark.landing

RUN = [*ATLASBRIDGE, "run", "--no-hub", "--"]


@pytest.fixture(autouse=True)
def zygotes_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


@pytest.fixture
def zygote(home: Path) -> Iterator[int]:
    yield start_zygote(home)


def said_by(home: Path, *words: str) -> str:
    done = subprocess.run([*RUN, *words], env=environ_with_zygote(home), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_session_gets_the_host_that_waited(home: Path, zygote: int) -> None:
    spare = wait_spare(zygote)
    with Terminal([*RUN, "sh", "-c", "echo I am here; cat"], home, env=environ_with_zygote(home)) as terminal:
        terminal.wait_for("I am here")
        assert host_pids(home) == [spare]
        assert wait_spare(zygote, spare) != spare, "the next one waits already"
        terminal.type(b"\x04")
        assert terminal.wait_exit() == 0


def test_one_that_was_killed_costs_nobody_a_start(home: Path, zygote: int) -> None:
    first = wait_spare(zygote)
    os.kill(first, signal.SIGKILL)
    assert said_by(home, "echo", "all is well") == "all is well"
    assert wait_spare(zygote, first) != first
    assert said_by(home, "echo", "still") == "still"
    assert zygotes(home) == [zygote]


def test_a_caller_of_one_that_hangs_is_started_once_whatever_becomes_of_it(
    home: Path, zygote: int, tmp_path: Path
) -> None:
    spare = wait_spare(zygote)
    os.kill(spare, signal.SIGSTOP)
    words = [*RUN, "sh", "-c", f"echo ran >>'{tmp_path}/runs'"]
    with subprocess.Popen(words, env=environ_with_zygote(home)) as caller:
        assert caller.wait() == 0
    os.kill(spare, signal.SIGKILL)
    wait_spare(zygote, spare)
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_many_at_once_are_started_once_each_with_what_is_their_own(home: Path, zygote: int, tmp_path: Path) -> None:
    wait_spare(zygote)
    script = f'echo "$OWN $(pwd) $(umask)" >>{tmp_path}/runs-$OWN'
    callers = []
    for number in range(6):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        words = ["sh", "-c", f'umask 0{number}7; exec "$@"', "sh", *RUN, "sh", "-c", script]
        callers.append(subprocess.Popen(words, env=environ_with_zygote(home, OWN=str(number)), cwd=folder))
    assert [caller.wait() for caller in callers] == [0] * 6
    for number in range(6):
        said = (tmp_path / f"runs-{number}").read_text()
        assert said == f"{number} {tmp_path}/folder {number} 00{number}7\n"
    assert zygotes(home) == [zygote]


def test_it_ends_with_its_zygote_and_leaves_nothing_behind(home: Path, zygote: int) -> None:
    spare = wait_spare(zygote)
    os.kill(zygote, signal.SIGKILL)
    wait_for(lambda: not _is_there(spare), "the end of the spare")


def test_it_has_nothing_open_that_is_the_zygotes_or_anybodys(home: Path, zygote: int) -> None:
    spare = wait_spare(zygote)
    assert parent_of(spare) == zygote
    opened = [os.readlink(path) for path in Path(f"/proc/{spare}/fd").iterdir()]
    assert not [name for name in opened if name.startswith(str(home))], "neither its lock nor its log"
    assert os.readlink(f"/proc/{spare}/cwd") == "/"


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
