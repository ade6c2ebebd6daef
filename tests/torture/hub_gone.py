"""The hub is killed and started over and over while sessions live: `python -m tests.torture hub_gone [--rounds N]`."""

from __future__ import annotations

import argparse

from tests.support.arena import arena
from tests.support.crowd import percentiles
from tests.support.hub_rounds import kill_and_restart


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="hub_gone")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=5)
    given = parser.parse_args(arguments)
    with arena() as place:
        place.start_hub()
        try:
            back_s = kill_and_restart(place, given.sessions, given.rounds)
        except AssertionError as error:
            print(f"hub_gone: FAILED: {error}")
            return 1
    print(f"hub_gone: {given.rounds} deaths beside {given.sessions} sessions, nothing lost or doubled")
    print(f"hub_gone: all prompts were there again after the hub's start: {percentiles(back_s)}")
    return 0
