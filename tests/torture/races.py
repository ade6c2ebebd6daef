"""Keyboard against a remote answer, and two remote answers: `python -m tests.torture races [--rounds N]`."""

from __future__ import annotations

from random import Random

from tests.support.arena import arena
from tests.support.races import race_keyboard, race_two_people


def main(rounds: int = 500, seed: int = 1) -> int:
    with arena() as place:
        place.start_hub()
        hub_api = race_keyboard(place, rounds, Random(seed))
        two = race_two_people(place, place.start_session(name="two"), rounds)
    print(f"races: {rounds} times a keyboard against a remote answer: {dict(hub_api)}; no keys were mixed")
    print(f"races: {rounds} times two at once: one won, the other was told who: {dict(two)}")
    return 0
