"""SIGKILL of the hub at chosen and random places of a prompt's life: `python -m tests.torture kill_hub [--deaths N]`.

First every place of the life once (before and after each operation on a file, a lock, a socket or the store), then
places by chance and moments by chance, until there were so many deaths.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

from tests.support.arena import arena
from tests.support.kill_rounds import Rounds

ROUNDS_PER_HOME = 50  # then a new home, so that the judgement stays quick


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="kill_hub")
    parser.add_argument("--deaths", type=int, default=10_000)
    parser.add_argument("--side-by-side", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    began = time.monotonic()
    with arena() as place:
        life = Rounds.begin(place).record_life()
    print(f"kill_hub: one life has {len(life)} places", flush=True)
    shares = list(range(0, given.deaths, ROUNDS_PER_HOME))
    with ThreadPoolExecutor(given.side_by_side) as pool:
        tasks = [pool.submit(_fight, life, first, given.deaths, given.seed) for first in shares]
        found: Counter[str] = Counter()
        for task in tasks:
            found += task.result()
            print(
                f"kill_hub: {found['deaths']} deaths, {found['questions']} answers so far, {_faults(found)}", flush=True
            )
    took_s = time.monotonic() - began
    print(f"kill_hub: {found['deaths']} deaths in {took_s:.0f} s at {len(life)} places and at random moments,")
    print(f"kill_hub: {found['questions']} answers each typed exactly once and recorded before; {_faults(found)}")
    return 1 if found["faults"] else 0


def _faults(found: Counter[str]) -> str:
    return f"{found['faults']} faults"


def _fight(life: list[str], first: int, last: int, seed: int) -> Counter[str]:
    random = Random(seed + first)
    found: Counter[str] = Counter()
    with arena() as place:
        rounds = Rounds.begin(place)
        where = ""
        try:
            for number in range(first, min(first + ROUNDS_PER_HOME, last)):
                if number < len(life) or random.random() < 0.5:
                    where = life[number] if number < len(life) else random.choice(life)
                    rounds.die_at(where)
                else:
                    where = "at any moment"
                    rounds.die_after(random.uniform(0, 0.6), random)
            found.update(rounds.judge_all())
        except AssertionError as error:
            print(f"kill_hub: FAILED when killed {where}: {error}", flush=True)
            found["faults"] += 1
    return found
