"""SIGKILL of session hosts and of clients at every place of their life: `python -m tests.torture kill_host`."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.arena import arena
from tests.support.client_rounds import ClientRounds
from tests.support.deadly_calls import available, build
from tests.support.host_rounds import HostRounds
from tests.support.kill_rounds import choose

LONGEST_LIFE = 900  # places in the life of a host with two questions


def main(
    hosts: int = 400,  # at most so many places in the host's life
    clients: int = 60,
    random: int = 500,  # hosts that die at a random call
    seed: int = 1,
) -> int:
    chance = Random(seed)
    faults = _hosts(hosts, chance)
    faults += sum(_clients(clients // 2, chance, zygote) for zygote in (True, False))
    if available():
        faults += _hosts_by_count(random, chance)
    return 1 if faults else 0


def _hosts_by_count(wanted: int, random: Random) -> int:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, arena(preload=build(Path(folder))) as place:
        rounds = HostRounds(place)
        for number in range(wanted):
            at = random.randrange(1, LONGEST_LIFE)
            try:
                found[rounds.die_at_call(at, f"n{number}") or "not reached"] += 1
            except AssertionError as error:
                print(f"kill_host: FAILED when killed at call {at}: {error}", flush=True)
                found["faults"] += 1
    print(f"kill_host: {wanted} hosts killed at random calls: {dict(found.most_common())}")
    return found["faults"]


def _hosts(wanted: int, random: Random) -> int:
    found: Counter[str] = Counter()
    with arena() as place:
        rounds = HostRounds(place)
        life = rounds.record_life()
        for number, where in enumerate(choose(life, wanted, random)):
            try:
                found["died" if rounds.die_at(where, f"h{number}") else "not reached"] += 1
            except AssertionError as error:
                print(f"kill_host: FAILED when killed {where}: {error}", flush=True)
                found["faults"] += 1
    print(f"kill_host: {len(life)} places in a host's life, {dict(found)}; the session beside it never noticed")
    return found["faults"]


def _clients(wanted: int, random: Random, zygote: bool) -> int:
    found: Counter[str] = Counter()
    with arena() as place:
        rounds = ClientRounds(place, zygote)
        life = rounds.record_life()
        for number, where in enumerate(choose(life, wanted, random)):
            try:
                found[rounds.die_at(where, f"c{number}")] += 1
            except AssertionError as error:
                print(f"kill_host: FAILED when the client was killed {where}: {error}", flush=True)
                found["faults"] += 1
    print(f"kill_host: {len(life)} places in a client's life, what was left: {dict(found)}; terminals were restored")
    return found["faults"]
