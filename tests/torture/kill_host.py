"""SIGKILL of session hosts and of clients at every place of their life: `python -m tests.torture kill_host`."""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random

from tests.support.arena import arena
from tests.support.client_rounds import ClientRounds
from tests.support.host_rounds import HostRounds
from tests.support.kill_rounds import choose


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="kill_host")
    parser.add_argument("--hosts", type=int, default=400, help="at most so many places in the host's life")
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    random = Random(given.seed)
    return 1 if _hosts(given.hosts, random) + _clients(given.clients, random) else 0


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


def _clients(wanted: int, random: Random) -> int:
    found: Counter[str] = Counter()
    with arena() as place:
        rounds = ClientRounds(place)
        life = rounds.record_life()
        for number, where in enumerate(choose(life, wanted, random)):
            try:
                found[rounds.die_at(where, f"c{number}")] += 1
            except AssertionError as error:
                print(f"kill_host: FAILED when the client was killed {where}: {error}", flush=True)
                found["faults"] += 1
    print(f"kill_host: {len(life)} places in a client's life, what was left: {dict(found)}; terminals were restored")
    return found["faults"]
