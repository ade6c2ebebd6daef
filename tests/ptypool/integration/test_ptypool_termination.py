"""terminate_group on real process trees: polite first, then not, and nobody of the session is left."""

from __future__ import annotations

import os
import signal
import sys
import textwrap

import pytest
from tests.ptypool.waiting import process_exists
from tests.support.waiting import wait_for

from ptypool import SpawnedProcess, spawn_process, terminate_group


def started(*argv: str) -> tuple[SpawnedProcess, list[int]]:
    """A child that has printed `ready` and the pids of its tree."""
    process = spawn_process(argv)
    said = b""
    while b"ready" not in said:
        said += os.read(process.master_fd, 4096)
    return process, [int(word) for word in said.split() if word.isdigit()]


def gone(pids: list[int]) -> bool:
    return not any(process_exists(pid) for pid in pids)


def python_child(code: str) -> tuple[SpawnedProcess, list[int]]:
    return started(sys.executable, "-c", textwrap.dedent(code))


def test_a_plain_child_ends_by_sigterm_and_is_reaped() -> None:
    process, _ = started("sh", "-c", "echo ready; exec sleep 1000")
    assert terminate_group(process.pid) == -signal.SIGTERM
    os.close(process.master_fd)
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


def test_a_child_may_clean_up_on_sigterm() -> None:
    process, _ = started("sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    assert terminate_group(process.pid) == 7
    os.close(process.master_fd)


def test_a_child_that_ignores_both_signals_is_killed_after_its_grace() -> None:
    process, _ = started("sh", "-c", "trap '' TERM HUP; echo ready; while :; do sleep 1; done")
    assert terminate_group(process.pid, grace_s=0.1) == -signal.SIGKILL
    os.close(process.master_fd)


def test_an_interactive_shell_which_ignores_sigterm_hangs_up_at_once() -> None:
    process, _ = started("bash", "--norc", "-i", "-c", "echo ready; while :; do sleep 0.01; done")
    assert terminate_group(process.pid, grace_s=20) in (-signal.SIGHUP, -signal.SIGTERM)
    os.close(process.master_fd)


def test_a_shell_that_catches_sigterm_for_a_moment_and_ignores_it_then_hangs_up_too() -> None:
    process, _ = python_child(
        """
        import signal
        signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_IGN))
        print("ready", flush=True)
        while True:
            signal.pause()
        """
    )
    assert terminate_group(process.pid, grace_s=20) == -signal.SIGHUP
    os.close(process.master_fd)


def test_grandchildren_in_groups_of_their_own_end_too() -> None:
    process, pids = started("bash", "-c", "set -m; sleep 1000 & sleep 1001 & echo $! $(jobs -p) ready; wait")
    assert len(pids) == 3
    terminate_group(process.pid)
    os.close(process.master_fd)
    wait_for(lambda: gone(pids))


def test_a_stubborn_grandchild_is_killed_although_the_leader_went_at_once() -> None:
    process, pids = python_child(
        """
        import os, signal, time
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            print(os.getpid(), "ready", flush=True)
        time.sleep(1000)
        """
    )
    assert terminate_group(process.pid, grace_s=0.2) == -signal.SIGTERM
    os.close(process.master_fd)
    wait_for(lambda: gone(pids))


def test_a_stopped_child_takes_its_sigterm() -> None:
    process, _ = started("sh", "-c", "trap 'exit 9' TERM; echo ready; kill -STOP $$; sleep 1000")
    wait_for(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None)
    assert terminate_group(process.pid, grace_s=20) in (9, -signal.SIGTERM)
    os.close(process.master_fd)


def test_what_a_dead_leader_left_behind_ends_too() -> None:
    process, pids = started("sh", "-c", "trap '' HUP; sleep 1000 & echo $! ready; exit 4")
    wait_for(lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
    assert process_exists(pids[0])
    assert terminate_group(process.pid) == 4
    os.close(process.master_fd)
    wait_for(lambda: gone(pids))


def test_a_daemon_that_has_left_the_session_is_let_go() -> None:
    process, pids = python_child(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            print(os.getpid(), "ready", flush=True)
        time.sleep(1000)
        """
    )
    terminate_group(process.pid)
    os.close(process.master_fd)
    assert process_exists(pids[0])
    os.kill(pids[0], signal.SIGKILL)


def test_the_caller_can_read_on_while_the_child_says_goodbye() -> None:
    code = """
        import os, signal, sys, time
        def goodbye(*_):
            left = b"x" * 200_000
            while left:  # the signal can come while `print` is at work, so not by `sys.stdout`
                left = left[os.write(1, left):]
            sys.exit(5)
        signal.signal(signal.SIGTERM, goodbye)
        print("ready", flush=True)
        time.sleep(1000)
        """
    process, _ = python_child(code)
    os.set_blocking(process.master_fd, False)
    seen = []

    def drain() -> None:
        try:
            while chunk := os.read(process.master_fd, 65536):
                seen.append(len(chunk))
        except OSError:
            return

    assert terminate_group(process.pid, grace_s=20, while_waiting=drain) == 5
    drain()
    os.close(process.master_fd)
    assert sum(seen) >= 200_000


def test_a_process_that_is_not_our_child_has_no_status() -> None:
    process, _ = started("sh", "-c", "echo ready; exec sleep 1000")
    os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)
    os.close(process.master_fd)
    assert terminate_group(process.pid) is None
