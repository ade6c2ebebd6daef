"""kill -9 of the hub at every kind of operation on a file, a lock, a socket or the store within a prompt's life.

Whatever the place: the tool gets each accepted answer exactly once, and the store and the audit log agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TypeVar

from tests.support.arena import arena
from tests.support.kill_rounds import Rounds, choose
from tests.support.tier import times

T = TypeVar("T")
U = TypeVar("U")

WANTED = times(80, quickly=4)
SIDE_BY_SIDE = 3  # a round mostly waits


def test_a_hub_killed_anywhere_loses_nothing_and_types_nothing_twice() -> None:
    with arena() as one, arena() as two, arena() as three:
        places = [one, two, three]
        fights = list(_side_by_side(Rounds.begin, places))
        life = fights[0].record_life()
        chosen = choose(life, WANTED, Random(5))
        assert len(chosen) == WANTED, f"a life has only {len(life)} places"
        shares = [chosen[number::SIDE_BY_SIDE] for number in range(SIDE_BY_SIDE)]
        list(_side_by_side(_fight, list(zip(fights, shares, strict=True))))
        died = {place for fight in fights for place in fight.died_at if fight.died_at[place]}
        for fight in fights:
            fight.judge_all()
        assert len(died) >= WANTED * 7 // 8, f"only {len(died)} of {WANTED} places were reached"


def _fight(task: tuple[Rounds, list[str]]) -> None:
    rounds, places = task
    for place in places:
        try:
            rounds.die_at(place)
        except AssertionError as error:
            raise AssertionError(f"killed {place}: {error}") from error


def _side_by_side(function: Callable[[T], U], tasks: list[T]) -> Iterator[U]:
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield from pool.map(function, tasks)
