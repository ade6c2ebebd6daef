"""The waiting probe where the terminal is read by somebody the foreground group does not show: a program of another
session, a server with terminals of its own, a loop that sleeps between two glances.  And where nobody reads it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.probe_stage import Start, python, stages

from atlasbridge.core.detection.events import ProbeState
from atlasbridge.os.tty.linux import OutsideReaders, Terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
start = pytest.fixture(stages)

READING, POLLING, BUSY = ProbeState.READING, ProbeState.POLLING, ProbeState.BUSY
_RAW = "import os, select, sys, time, tty; tty.setraw(0); name = os.ttyname(0)\n"
_LEAVE = (
    "if os.fork(): time.sleep(600)\n"
    "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives its test\n"
    "os.setsid(); line = os.open(name, os.O_RDWR | os.O_NOCTTY)\n"
)
_CLOSE = "[os.close(fd) for fd in (0, 1, 2)]\n"
_SERVE = (
    "import pty\npid, master = pty.fork()\nif not pid: os.execvp('bash', ['bash', '-c', sys.argv[1]])\n"
    "import fcntl, termios, struct; fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('4H', 23, 80, 0, 0))\n"
    "while True:\n"
    "    for fd in select.select([line, master], [], [], 5)[0]:\n"
    "        os.write({line: master, master: line}[fd], os.read(fd, 99))"
)
SERVER = _RAW + _LEAVE + _SERVE


def test_a_program_of_another_session_that_took_the_terminal_over_is_reading(start: Start) -> None:
    answer = start(*python(_RAW + _LEAVE + _CLOSE + "select.select([line], [], [])")).until(READING)
    assert answer.canonical is False


def test_a_program_of_another_session_that_only_holds_the_terminal_is_not(start: Start) -> None:
    stage = start(*python(_RAW + _LEAVE + "time.sleep(600)"))
    stage.until(BUSY)
    stage.never(READING, POLLING)


def test_what_runs_inside_a_terminal_of_a_server_is_looked_at(start: Start) -> None:
    answer = start(*python(SERVER), "read x").until(READING)
    assert "inside" in answer.why
    assert (answer.echo, answer.canonical) == (True, True)


def test_a_program_that_sleeps_inside_a_terminal_of_a_server_is_busy_beyond_doubt(start: Start) -> None:
    stage = start(*python(SERVER), "printf 'Continue? [y/N] '; sleep 600")
    stage.until_shown(b"[y/N]")
    answer = stage.until_true(lambda answer: "inside" in answer.why)
    assert answer.state is BUSY
    assert answer.certain
    assert answer.rows == 23
    assert answer.canonical is False  # anyone who asks now is the server itself, and its terminal takes keys
    stage.never(READING, POLLING)


def test_a_program_that_is_driven_by_another_does_not_wait_for_a_person(start: Start) -> None:
    code = (
        "import os, pty\npid, master = pty.fork()\n"
        "if not pid: os.execvp('bash', ['bash', '-c', 'read -p \"Continue? \" x'])\n"
        "while True: os.write(1, os.read(master, 99))"
    )
    stage = start(*python(code))
    stage.until_shown(b"Continue?")
    stage.until(BUSY)
    stage.never(READING, POLLING)


def test_a_sleep_in_a_terminal_of_single_keys_is_busy_beyond_doubt(start: Start) -> None:
    stage = start("sh", "-c", "stty raw -echo; exec sleep 600")
    stage.until_true(lambda answer: answer.state is BUSY and answer.certain)


def test_a_computation_in_a_terminal_of_single_keys_is_busy_beyond_doubt(start: Start) -> None:
    stage = start(*python(_RAW + "while True: sum(range(10000))"))
    stage.until_true(lambda answer: answer.state is BUSY and answer.canonical is False and answer.certain)


def test_a_loop_that_sleeps_between_two_glances_may_be_a_reader(start: Start) -> None:
    code = _RAW + "os.set_blocking(0, False)\nwhile True:\n    sys.stdin.buffer.raw.read(1); time.sleep(0.2)"
    stage = start(*python(code))
    stage.until_true(lambda answer: answer.state is BUSY and answer.sleeps)  # before, Python itself was starting
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        assert not stage.probe.look(1.0, None).certain
        time.sleep(0.1)
    assert stage.probe.look(1.0, None).sleeps


def test_strangers_are_searched_for_at_once_and_again_after_a_pause() -> None:
    master, slave = os.openpty()
    try:
        strangers = OutsideReaders(Terminal.of(int(Path(os.ttyname(slave)).name)))
        assert strangers.look("raw", 0.0) == []
        holder = subprocess.Popen(["sleep", "600"], stdin=slave)
        try:
            assert strangers.look("raw", 0.1) == []
            assert [process.pid for process in strangers.look("no echo", 0.1)] == [holder.pid]
            assert [process.pid for process in strangers.look("no echo", 0.2)] == [holder.pid]
        finally:
            holder.kill()
            holder.wait()
        assert strangers.look("no echo", 0.3) == []
        assert strangers.look("no echo", 9.0) == []
    finally:
        os.close(master)
        os.close(slave)
