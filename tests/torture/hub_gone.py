"""The hub is killed and started over and over while sessions live: `python -m tests.torture hub_gone [--rounds N]`."""

from __future__ import annotations

from tests.support.arena import arena
from tests.support.crowd import percentiles
from tests.support.hub_rounds import kill_and_restart


def main(rounds: int = 500, sessions: int = 5) -> int:
    with arena() as place:
        place.start_hub()
        back_s = kill_and_restart(place, sessions, rounds)
    print(f"hub_gone: {rounds} deaths beside {sessions} sessions, nothing lost or doubled")
    print(f"hub_gone: all prompts were there again after the hub's start: {percentiles(back_s)}")
    return 0
