"""How much the processes of a Linux terminal's foreground group run: their share of a processor, and since when none
of them has run at all.

Between two looks a program that reads the terminal in short turns of sleep has run; one that sleeps has not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from atlasbridge.os.tty import procfs

_SHORTEST_SPAN_S = 0.05
_MOST_GROUPS = 16


class Share:
    """How much of the time in which it could have a processor a group of late has used one.  The time that it waits for
    one, because others have them, is neither use nor rest."""

    def __init__(self) -> None:
        self._spent = (0, 0.0, dict[int, tuple[float, float]]())  # group, when, by process: used, waited
        self._share = 0.0

    def of(self, group: int, pids: Iterable[int]) -> float:
        """0 until there are two looks to compare."""
        now = time.monotonic()
        last_group, then, before = self._spent
        if group == last_group and now - then < _SHORTEST_SPAN_S:
            return self._share
        spent = {pid: _processor_seconds(pid) for pid in pids}
        known = [pid for pid in spent if group == last_group and pid in before]
        self._share = sum(_part(before[pid], spent[pid], now - then) for pid in known)
        self._spent = (group, now, spent)
        return self._share


def _part(before: tuple[float, float], after: tuple[float, float], span_s: float) -> float:
    used, waited = after[0] - before[0], after[1] - before[1]
    return used / max(span_s - waited, used) if used > 0 else 0.0


class Stillness:
    """Since when no thread of a group was given a processor."""

    def __init__(self) -> None:
        self._ran: dict[int, tuple[tuple[tuple[int, int], ...], float]] = {}  # by group: turns per thread, since when

    def of(self, group: int, pids: Iterable[int]) -> float:
        """Seconds, as far as these looks can tell."""
        now, turns = time.monotonic(), tuple(turn for pid in pids for turn in _turns(pid))
        before, since = self._ran.pop(group, ((), now))
        if turns != before:
            since = now
        self._ran[group] = (turns, since)
        while len(self._ran) > _MOST_GROUPS:
            del self._ran[next(iter(self._ran))]
        return now - since


def _processor_seconds(pid: int) -> tuple[float, float]:
    """Processor time that a process has used, and that its main thread has waited for, if the kernel tells.

    The kernel gives every process a clock of its own, with a number that can be computed.
    """
    try:
        used = time.clock_gettime((~pid << 3) | 2)
    except (OSError, OverflowError, ValueError):
        return 0.0, 0.0
    try:
        return used, sum(map(int, procfs.read_bytes(f"/proc/{pid}/schedstat").split()[1:2])) / 1e9
    except (OSError, ValueError):
        return used, 0.0


def _turns(pid: int) -> list[tuple[int, int]]:
    """How often each thread was given a processor; a kernel that does not count gives nothing."""
    found = []
    for tid in procfs.threads(pid):
        try:
            fields = procfs.read_bytes(f"/proc/{pid}/task/{tid}/schedstat").split()
        except OSError:
            continue
        found += [(tid, int(fields[2]))] if len(fields) > 2 else []
    return found
