"""What the document calls O(1): the work of a call does not grow with the number of PTYs in the pool."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from ptypool.pty_pool import PtyPool

SMALL, LARGE = 2, 24


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions of this thread are called, in Python or below; time would depend on the machine."""
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def least(work: Callable[[PtyPool], Callable[[], Any]], ptys: int) -> int:
    """The least of three: waiting for another thread takes a call more now and then."""
    pool = PtyPool.new(ptys + 3)
    handles = [pool.spawn("sleep", ["60"], []) for _ in range(ptys)]
    try:
        return min(calls_of(work(pool)) for _ in range(3))
    finally:
        for handle in handles:
            pool.kill(handle.id)


def release_one(pool: PtyPool) -> Callable[[], Any]:
    handle = pool.spawn("sleep", ["60"], [])
    return lambda: (handle.kill(), pool.release(handle.id))


@pytest.mark.parametrize(
    "work",
    [
        lambda pool: pool.active_count,
        lambda pool: pool.available,
        release_one,
        lambda pool: lambda: pool.kill(pool.spawn("true", [], []).id),
    ],
    ids=["active_count", "available", "release", "spawn and kill"],
)
def test_a_call_does_as_much_in_a_full_pool_as_in_an_empty_one(
    work: Callable[[PtyPool], Callable[[], Any]],
) -> None:
    small, large = least(work, SMALL), least(work, LARGE)
    assert large <= small * 1.5 + 20, f"{small} calls with {SMALL} PTYs, {large} with {LARGE}"
