"""kill -9 of the client at any operation: the person's terminal is as it was before, and the session goes on."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.arena import arena
from tests.support.client_rounds import ClientRounds
from tests.support.tier import times

WANTED = times(20, quickly=5)


@pytest.mark.parametrize("zygote", [True, False])
def test_a_client_killed_anywhere_leaves_its_terminal_as_it_was_and_the_session_running(zygote: bool) -> None:
    with arena() as place:
        rounds = ClientRounds(place, zygote)
        life = rounds.record_life()
        chosen = [life[len(life) * (2 * number + 1) // (2 * WANTED)] for number in range(WANTED)]
        left = Counter(rounds.die_at(where, f"c{number}") for number, where in enumerate(chosen))
        assert left["session"] and left["ended"] and left["not reached"] <= 1, (left, chosen)
