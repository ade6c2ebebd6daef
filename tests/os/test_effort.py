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

from atlasbridge.os.tty.effort import Share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


SPAN_S = 2.0
COMPUTES = "while True: pass"
DRAWS = "import time\nwhile True: sum(range(50000)); time.sleep(0.01)"  # some of ten milliseconds


@contextmanager
def crowded(code: str) -> Iterator[int]:
    """A program on one processor with three that compute."""
    place = min(os.sched_getaffinity(0))
    begin = f"import os; os.sched_setaffinity(0, [{place}])\n"
    running = [subprocess.Popen((sys.executable, "-S", "-c", begin + what)) for what in (code, *3 * [COMPUTES])]
    try:
        wait_for(lambda: all(os.sched_getaffinity(one.pid) == {place} for one in running), "all on one processor")
        yield running[0].pid
    finally:
        for one in running:
            one.kill()
            one.wait()


def share_of(pid: int) -> float:
    """Over as long as a detector looks at a program that has come to rest."""
    share = Share()
    assert share.of(pid, [pid]) == 0.0  # there is nothing to compare with yet
    until = time.monotonic() + SPAN_S
    wait_for(lambda: time.monotonic() >= until, "some time to pass")
    return share.of(pid, [pid])


def test_the_time_that_a_program_waits_for_a_processor_is_not_its_use_of_one() -> None:
    with crowded(DRAWS) as pid:
        assert 0.0 < share_of(pid) < 0.4


def test_a_program_that_computes_whenever_it_may_uses_all_that_it_is_given() -> None:
    with crowded(COMPUTES) as pid:
        assert share_of(pid) > 0.6
