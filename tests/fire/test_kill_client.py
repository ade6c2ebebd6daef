"""kill -9 of the client at any operation: the person's terminal is as it was before, and the session goes on."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.support.arena import arena
from tests.support.client_rounds import ClientRounds
from tests.support.kill_rounds import choose
from tests.support.tier import times

WANTED = times(10, quickly=6)


def test_a_client_killed_anywhere_leaves_its_terminal_as_it_was_and_the_session_running() -> None:
    with arena() as place:
        rounds = ClientRounds(place)
        life = rounds.record_life()
        left: Counter[str] = Counter()
        for number, where in enumerate(choose(life, WANTED, Random(11))):
            left[rounds.die_at(where, f"c{number}")] += 1
        assert left["session"] >= 2 and left["not reached"] <= 2, left
