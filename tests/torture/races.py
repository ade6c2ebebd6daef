"""Keyboard against a remote answer, and two remote answers: `python -m tests.torture races [--rounds N]`."""

from __future__ import annotations

import argparse
from random import Random

from tests.support.arena import arena
from tests.support.races import race_keyboard, race_two_people


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="races")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with arena() as place:
        place.start_hub()
        try:
            hub_api = race_keyboard(place, given.rounds, Random(given.seed))
            two = race_two_people(place, place.start_session(name="two"), given.rounds)
        except AssertionError as error:
            print(f"races: FAILED: {error}")
            return 1
    print(f"races: {given.rounds} times a keyboard against a remote answer: {dict(hub_api)}; no keys were mixed")
    print(f"races: {given.rounds} times two at once: one won, the other was told who: {dict(two)}")
    return 0
