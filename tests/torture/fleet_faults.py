"""Lines are cut, held and reordered, disks full, servers, hubs and PostgreSQL killed: `fleet_faults [--faults N]`.

`python -m tests.torture fleet_faults --faults 10000` is the whole attack, an hour on two cores.  Every decision that
was
accepted is typed exactly once, every other is refused with its reason, and every row ends.
"""

from __future__ import annotations

import argparse
import asyncio

from tests.support.server_rounds import fault_rounds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_faults")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        found = asyncio.run(fault_rounds(given.faults, given.machines, given.sessions, given.seed))
    except AssertionError as error:
        print(f"fleet_faults: FAILED: {error}")
        return 1
    print(f"fleet_faults: {given.faults} faults: {found}")
    return 0
