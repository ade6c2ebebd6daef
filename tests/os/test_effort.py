"""How much a program uses a processor: what it was given, not what it waited for beside others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.waiting import wait_for

from atlasbridge.os.tty import linux
from atlasbridge.os.tty.linux import Share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


USED_S = 0.4  # of a processor: with less, a program that computes and one that draws look alike
COMPUTES = "while True: pass"
DRAWS = "import time\nwhile True: sum(range(50000)); time.sleep(0.01)"  # some of ten milliseconds


@contextmanager
def crowded(*programs: str) -> Iterator[list[int]]:
    """Programs on one processor, with two more that compute."""
    place = min(os.sched_getaffinity(0))
    begin = f"import os; os.sched_setaffinity(0, [{place}])\n"
    running = [subprocess.Popen((sys.executable, "-S", "-c", begin + what)) for what in (*programs, *2 * [COMPUTES])]
    try:
        wait_for(lambda: all(os.sched_getaffinity(one.pid) == {place} for one in running), "all on one processor")
        yield [one.pid for one in running[: len(programs)]]
    finally:
        for one in running:
            one.kill()
            one.wait()


def test_what_a_program_waits_for_a_processor_counts_neither_as_use_nor_as_rest() -> None:
    """One that draws now and then and one that always computes get about as little of a crowded processor."""
    with crowded(DRAWS, COMPUTES) as pids:
        shares = [Share(), Share()]
        first = [share.of(pid, [pid]) for share, pid in zip(shares, pids, strict=True)]
        assert first == [0.0, 0.0]  # there is nothing to compare with yet
        its_processor_time = (~pids[1] << 3) | 2  # as clock_getcpuclockid(3) makes the number of such a clock
        until = time.clock_gettime(its_processor_time) + USED_S
        wait_for(lambda: time.clock_gettime(its_processor_time) >= until, "the program that computes to have computed")
        draws, computes = [share.of(pid, [pid]) for share, pid in zip(shares, pids, strict=True)]
        assert 0.0 < 1.5 * draws < computes <= 1.0


def test_where_the_kernel_does_not_tell_how_long_a_program_waits_its_use_counts_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def untold(path: str, size: int = 4096) -> bytes:
        raise FileNotFoundError(path)  # a kernel without the statistics of its scheduler

    monkeypatch.setattr(linux, "read_bytes", untold)
    share, pid = Share(), os.getpid()
    assert share.of(pid, [pid]) == 0.0
    until = time.process_time() + 0.2
    while time.process_time() < until:  # this very process computes
        pass
    assert share.of(pid, [pid]) > 0.0
