"""kill -9 of a session host at any operation of its life: its tool ends with it, and nobody else gets its answer."""

from __future__ import annotations

from random import Random

from tests.support.arena import arena
from tests.support.host_rounds import HostRounds
from tests.support.kill_rounds import choose
from tests.support.tier import times

WANTED = times(24, quickly=3)


def test_a_host_killed_anywhere_takes_its_session_along_and_nothing_else() -> None:
    with arena() as place:
        rounds = HostRounds(place)
        life = rounds.record_life()
        reached = 0
        for number, where in enumerate(choose(life, WANTED, Random(7))):
            try:
                reached += rounds.die_at(where, f"h{number}")
            except AssertionError as error:
                raise AssertionError(f"killed {where}: {error}") from error
        assert reached >= WANTED * 3 // 4, f"only {reached} of {WANTED} places were reached"
        place.answer(rounds.bystander, 0, "still here")
        assert rounds.bystander.received() == ["0\tstill here"]
