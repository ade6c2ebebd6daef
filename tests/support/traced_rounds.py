"""Rounds of a prompt's life in which the hub is killed at a system call; judged as in `kill_rounds`."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.arena import Arena
from tests.support.kill_rounds import Rounds
from tests.support.traced_hub import count_calls, first_of_home, start_traced


class TracedRounds(Rounds):
    def record_calls(self) -> list[tuple[str, int]]:
        """Every (name, number) from the moment that the hub takes its lock to the end of one life."""
        told = Path(self.place.home.root / "strace.out")
        process = start_traced(self.place, told)
        self._live()
        self.place.kill_hub()
        process.wait(30)
        begin, all_calls = first_of_home(told, self.place.home.root), count_calls(told)
        told.unlink()
        return [(name, number) for name in all_calls for number in range(begin[name] + 1, all_calls[name] + 1)]

    def die_in_call(self, name: str, number: int) -> bool:
        process = start_traced(self.place, kill=(name, number))
        self._live()
        died = process.poll() == -signal.SIGKILL
        self.died_at[f"{name}#{number}"] += died
        self._take_over(died)
        self._judge()
        self.place.kill_hub()
        process.wait(30)
        return died


def attack(place: Arena, wanted: int, random: Random) -> tuple[int, int, Counter[str]]:
    """Places there are, deaths there were, and at which calls."""
    rounds = TracedRounds.begin(place)
    calls = rounds.record_calls()
    random.shuffle(calls)
    turn: Counter[str] = Counter()
    order = {call: (turn.update([call[0]]), turn[call[0]])[1] for call in calls}
    chosen = sorted(calls, key=lambda call: order[call])[:wanted]  # of every name the same share
    died: Counter[str] = Counter()
    for name, number in chosen:
        try:
            died[name] += rounds.die_in_call(name, number)
        except AssertionError as error:
            raise AssertionError(f"killed at {name} number {number}: {error}") from error
    rounds.judge_all()
    return len(calls), died.total(), died
