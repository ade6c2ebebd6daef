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
    """Processors used by one group of late, or used and `queued` for: on a loaded machine the two go together."""

    def __init__(self, queued: bool) -> None:
        self._queued = queued
        self._used = (0, 0.0, 0.0)  # group, its processor seconds, when
        self._share = 0.0

    def of(self, group: int, pids: Iterable[int]) -> float:
        """0 until there are two looks to compare."""
        now, used = time.monotonic(), sum(_processor_seconds(pid, self._queued) for pid in pids)
        last_group, last_used, then = self._used
        if group == last_group and now - then < _SHORTEST_SPAN_S:
            return self._share
        known = group == last_group and used >= last_used
        self._share = (used - last_used) / (now - then) if known else 0.0
        self._used = (group, used, now)
        return self._share


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


def _processor_seconds(pid: int, queued: bool) -> float:
    """Processor time a process has used, and that its main thread has queued for.

    The kernel gives every process a clock of its own, with a number that can be computed.
    """
    try:
        waited = procfs.read_bytes(f"/proc/{pid}/schedstat").split()[1:2] if queued else []
        return time.clock_gettime((~pid << 3) | 2) + sum(map(int, waited)) / 1e9
    except (OSError, OverflowError, ValueError):
        return 0.0


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
