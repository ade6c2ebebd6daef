"""SIGKILL of the hub at chosen and random places of a prompt's life: `python -m tests.torture kill_hub [--deaths N]`.

First every place of the life once (before and after each operation on a file, a lock, a socket or the store, see
`support/deadly.py`), each judged by itself.  Then one hub after the other, each killed at a random call on a file, a
lock or a socket, also within SQLite's writes (see `support/chain_rounds.py`), until there were so many deaths.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.support.arena import arena
from tests.support.chain_rounds import chain
from tests.support.deadly_calls import available, build
from tests.support.kill_rounds import Rounds

PLACES_PER_HOME = 50  # then a new home, so that the judgement stays quick
DEATHS_PER_HOME = 100


def main(
    deaths: int = 10_000,
    places: int = 10_000,  # at most so many of the life's places first
    side_by_side: int = 4,  # a round mostly waits
    seed: int = 1,
) -> int:
    began = time.monotonic()
    with arena() as place:
        life = Rounds.begin(place).record_life()
    print(f"kill_hub: one life has {len(life)} places", flush=True)
    life = life[: min(places, deaths)]
    with ThreadPoolExecutor(side_by_side) as pool, tempfile.TemporaryDirectory() as folder:
        tasks = [
            pool.submit(_guard, _every_place, life[at : at + PLACES_PER_HOME])
            for at in _homes(len(life), PLACES_PER_HOME)
        ]
        if available():
            library, rest = build(Path(folder)), deaths - len(life)
            tasks += [
                pool.submit(_guard, _chain, library, min(DEATHS_PER_HOME, rest - at), seed + at)
                for at in _homes(rest, DEATHS_PER_HOME)
            ]
        found: Counter[str] = Counter()
        for number, task in enumerate(as_completed(tasks)):
            found += task.result()
            if number % 5 == 0:
                print(f"kill_hub: so far {found['deaths']} deaths, {found['faults']} faults", flush=True)
    took_s, calls = time.monotonic() - began, {name: n for name, n in found.most_common() if name.startswith("at ")}
    print(f"kill_hub: {found['deaths']} deaths in {took_s:.0f} s, {found['every place']} of them one at each place,")
    print(f"kill_hub: the others at random calls: {calls};")
    print(
        f"kill_hub: {found['questions']} answers each typed exactly once and recorded before; {found['faults']} faults"
    )
    return 1 if found["faults"] else 0


def _homes(total: int, each: int) -> range:
    return range(0, total, each)


def _guard(fight: Callable[..., Counter[str]], *task: object) -> Counter[str]:
    """A fault ends the fight in its home, not those in others."""
    try:
        return fight(*task)
    except AssertionError as error:
        print(f"kill_hub: FAILED: {error}", flush=True)
        return Counter(faults=1)


def _every_place(places: list[str]) -> Counter[str]:
    with arena() as place:
        rounds = Rounds.begin(place)
        for where in places:
            try:
                rounds.die_at(where)
            except AssertionError as error:
                raise AssertionError(f"killed {where}: {error}") from error
        judged = rounds.judge_all()
    return Counter(deaths=judged["deaths"], questions=judged["questions"], **{"every place": judged["deaths"]})


def _chain(library: Path, deaths: int, seed: int) -> Counter[str]:
    with arena(preload=library) as place:
        died, questions = chain(place, deaths, seed)
    return Counter(deaths=died.total(), questions=questions) + Counter({f"at {name}": n for name, n in died.items()})
