"""kill -9 of the hub in the middle of a grant's last use: it allows once, whatever is started again."""

from __future__ import annotations

from random import Random

from tests.support.arena import arena
from tests.support.grant_rounds import GrantRounds
from tests.support.tier import times

WANTED = times(8, quickly=2)


def test_a_hub_killed_at_the_last_use_of_a_grant_never_lets_it_be_used_twice() -> None:
    with arena() as place:
        rounds = GrantRounds(place)
        life = rounds.record_life()
        assert len(life) >= WANTED, f"a life has only {len(life)} places"
        for where in [life[at] for at in sorted(Random(7).sample(range(len(life)), WANTED))]:
            try:
                rounds.die_at(where)
            except AssertionError as error:
                raise AssertionError(f"killed {where}: {error}") from error
        assert rounds.deaths >= WANTED - 1, f"only {rounds.deaths} of {WANTED} died"
