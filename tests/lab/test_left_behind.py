"""A walk ends what its tool leaves behind, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.real_tools.stage import end_left_behind, find_left_behind
from tests.support.waiting import wait_for, written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LEAVES_A_DAEMON = """
import os, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
with open(sys.argv[1] + ".new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


def daemon_of(home: Path) -> int:
    home.mkdir()
    command = (sys.executable, "-S", "-c", LEAVES_A_DAEMON, str(home / "pid"))
    subprocess.run(command, env={**os.environ, "HOME": str(home)}, check=True)
    pid = int(written(home / "pid"))
    wait_for(lambda: find_left_behind(home) == [pid], "the end of those that started it")
    return pid


def test_a_daemon_is_ended_by_the_home_it_was_started_with(tmp_path: Path) -> None:
    ours, neighbour = tmp_path / "home", tmp_path / "home2"
    left, other = daemon_of(ours), daemon_of(neighbour)
    assert left in find_left_behind(ours) and other not in find_left_behind(ours)
    assert end_left_behind(ours) == [left]
    wait_for(lambda: not Path(f"/proc/{left}/cmdline").exists() or not Path(f"/proc/{left}/cmdline").read_bytes())
    assert find_left_behind(neighbour) == [other]
    assert end_left_behind(neighbour) == [other]
    assert end_left_behind(ours) == []
