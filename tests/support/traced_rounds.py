"""Rounds of a prompt's life in which the hub is killed at a system call; judged as in `kill_rounds`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.support.arena import Arena
from tests.support.kill_rounds import Rounds
from tests.support.traced_hub import count_calls, start_traced

TELL_EVERY = 20


class TracedRounds(Rounds):
    def record_calls(self) -> list[tuple[str, int]]:
        """Every (name, number) from the hub's first step to the end of one life."""
        told = Path(self.place.home.root / "strace.out")
        traced = start_traced(self.place, told)
        self._live()
        self.place.kill_hub()
        traced.end()
        calls = count_calls(told)
        told.unlink()
        return [(name, number) for name in calls for number in range(1, calls[name] + 1)]

    def die_in_call(self, name: str, number: int) -> bool:
        traced = start_traced(self.place, kill=(name, number))
        self._live()
        died = traced.died
        self.died_at[f"{name}#{number}"] += died
        self._take_over(died)
        self._judge()
        self.place.kill_hub()
        traced.end()
        return died


def attack(
    place: Arena,
    wanted: int,
    random: Random,
    most_s: float = float("inf"),
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[int, int, Counter[str]]:
    """Places there are, deaths there were, and at which calls; `tell` hears how far it is, `most_s` ends it in time."""
    began = time.monotonic()
    rounds = TracedRounds.begin(place)
    calls = rounds.record_calls()
    chosen = _share(calls, wanted, random)
    tell(f"{len(calls)} system calls in a life, {len(chosen)} of them are tried")
    died: Counter[str] = Counter()
    for done, (name, number) in enumerate(chosen, 1):
        try:
            died[name] += rounds.die_in_call(name, number)
        except AssertionError as error:
            raise AssertionError(f"killed at {name} number {number}: {error}") from error
        if done % TELL_EVERY == 0:
            tell(f"{done} of {len(chosen)} tried, {died.total()} deaths, {time.monotonic() - began:.0f} s")
        if time.monotonic() - began > most_s:
            tell(f"the time is over after {done} of {len(chosen)}")
            break
    rounds.judge_all()
    return len(calls), died.total(), died


def _share(calls: list[tuple[str, int]], wanted: int, random: Random) -> list[tuple[str, int]]:
    """Of every name the same share, as far as there are so many."""
    random.shuffle(calls)
    turn: Counter[str] = Counter()
    order = {call: (turn.update([call[0]]), turn[call[0]])[1] for call in calls}
    return sorted(calls, key=lambda call: order[call])[:wanted]
