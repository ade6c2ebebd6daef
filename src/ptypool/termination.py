"""Ends children that lead a session: SIGTERM, a grace period, SIGKILL, for every process group of the session.

It is synchronous; the pool runs the same steps asynchronously (`termination_steps`). A process that has left the
session on purpose (setsid) is a daemon and is not ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator

DEFAULT_GRACE_S = 3.0
_KILL_WAIT_S = 2.0
_Steps = Generator[float, None, bool]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05


def terminate_group(
    pid: int, *, grace_s: float = DEFAULT_GRACE_S, while_waiting: Callable[[], None] | None = None
) -> int | None:
    """End the session that `pid` leads, reap `pid`, and return its exit status (negative: the signal that ended it).

    `pid` must not have been reaped yet, because its number could belong to another process; None if it is not our
    child. `while_waiting` is called between checks, so that the owner of the terminal can continue to read: a child
    that blocks on a full terminal cannot end by itself.
    """
    for pause_s in termination_steps((pid,), grace_s=grace_s):
        if while_waiting is not None:
            while_waiting()
        time.sleep(pause_s)
    return reap(pid)


def termination_steps(pids: Collection[int], *, grace_s: float = DEFAULT_GRACE_S) -> Iterator[float]:
    """Send the necessary signals and yield how long to wait before the next check, until all these sessions are gone.

    Leaders are not reaped here, so that their pids cannot be reused: the caller reaps them afterwards.
    """
    gone = yield from _signal_until_gone(pids, signal.SIGTERM, grace_s)
    if not gone:
        yield from _signal_until_gone(pids, signal.SIGKILL, _KILL_WAIT_S)


def reap(pid: int, lost: int | None = None) -> int | None:
    """The exit status of an ended child; None if it still runs, `lost` if it is not ours or was reaped elsewhere."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return lost
    return os.waitstatus_to_exitcode(status) if found else None


def session_groups(sessions: Collection[int]) -> set[int]:
    """The process groups that have a living member in one of these sessions."""
    groups = set()
    for pid in _all_pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) in sessions and not _is_zombie(pid):
                groups.add(os.getpgid(pid))
    return groups


def _signal_until_gone(sessions: Collection[int], number: signal.Signals, limit_s: float) -> _Steps:
    """Each group gets SIGTERM once, also a late one; SIGKILL is sent at every check, since a fork can race with it."""
    give_up_at = time.monotonic() + limit_s
    pause_s = _FIRST_PAUSE_S
    told: set[tuple[int, signal.Signals]] = set()
    while groups := session_groups(sessions):
        for group in groups:
            fitting = _fitting(group, number)
            if number == signal.SIGKILL or (group, fitting) not in told:
                _signal_group(group, fitting)
            told.add((group, fitting))
        if time.monotonic() >= give_up_at:
            return False
        yield pause_s
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
    return True


def _fitting(group: int, number: signal.Signals) -> signal.Signals:
    """Interactive shells ignore SIGTERM but end when their terminal hangs up, so they get SIGHUP.

    This is checked every time: while bash starts a command, it briefly catches the signals that it ignores, and drops
    them.
    """
    return signal.SIGHUP if number == signal.SIGTERM and _ignores(group, number) else number


def _signal_group(group: int, number: signal.Signals) -> None:
    """SIGCONT follows, because a stopped process handles SIGTERM only after it continues."""
    for one in (number, signal.SIGCONT):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, one)


if sys.platform == "linux":

    def _all_pids() -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def _is_zombie(pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split(maxsplit=1)[0] in (b"Z", b"X")
        except (FileNotFoundError, ProcessLookupError):
            return True

    def _ignores(pid: int, number: signal.Signals) -> bool:
        try:
            with open(f"/proc/{pid}/status", "rb") as status:
                ignored = next(line for line in status if line.startswith(b"SigIgn:"))
        except (FileNotFoundError, ProcessLookupError):
            return False
        return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)

else:

    def _all_pids() -> list[int]:
        import subprocess  # slow to import, and not needed on Linux

        listing = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
        rows = (line.split() for line in listing.splitlines())
        return [int(pid) for pid, state in rows if not state.startswith("Z")]

    def _is_zombie(pid: int) -> bool:
        return False  # _all_pids has omitted them

    def _ignores(pid: int, number: signal.Signals) -> bool:
        return False  # there is no portable way to check; such a process is killed after the grace period
