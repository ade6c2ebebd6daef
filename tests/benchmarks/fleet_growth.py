"""What a press costs as a fleet grows: `python -m tests.benchmarks.fleet_growth`, up to 12 minutes.

Each row is a storm (`tests/torture/fleet_storm.py`): four servers on one PostgreSQL with fsync, with more machines,
then more sessions, then a million old decisions.  Two machines run real hubs; the others speak the same protocol
without one.  Beside the load of other work only processor time can be compared, so the table has no times by the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time

from tests.support.server_rig import Rig, rig
from tests.torture.fleet_storm import COUNTED, LISTS, add_history, blow, gather, load_pages

HUBS = 2
STAGES = ((5, 20), (50, 20), (50, 100))  # machines, and sessions at each
PAGES = 100


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_growth")
    parser.add_argument("--seconds", type=float, default=30.0, help="of presses, for each row")
    parser.add_argument("--rate", type=float, default=50.0, help="presses a second, at most")
    parser.add_argument("--history", type=int, default=1_000_000, help="old decisions, for the last row")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        rows = asyncio.run(growth(**vars(given)))
    except AssertionError as error:
        print(f"fleet_growth: FAILED: {error}")
        return 1
    print(HEAD, *rows, sep="\n")
    print(f"fleet_growth: nothing lost or doubled; load {os.getloadavg()[0]:.0f}; {time.monotonic() - began:.0f} s")
    return 0


COLUMNS = (
    "machines",
    "sessions that wait",
    "decisions of history",
    "presses (too late), a second",
    "standing: statements, servers, PostgreSQL",
    "a press, besides",
    "a member's page: prompts, history",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


async def growth(seconds: float, rate: float, history: int) -> list[str]:
    rows = []
    for machines, sessions in STAGES:
        async with rig(fleet_servers=4, options=COUNTED) as fleet:
            await gather(fleet, HUBS, machines - HUBS, sessions)
            rows.append(await _row(fleet, machines, sessions, 0, seconds, rate))
            if (machines, sessions) == STAGES[-1] and history:
                await add_history(fleet, history)
                rows.append(await _row(fleet, machines, sessions, history, seconds, rate))
    return rows


async def _row(fleet: Rig, machines: int, sessions: int, history: int, seconds: float, rate: float) -> str:
    found = await blow(fleet, seconds, rate)
    pages = await load_pages(fleet, PAGES)
    presses = f"{found.presses} ({found.presses - found.accepted}), {found.presses / found.took_s:.0f}"
    loaded = ", ".join(f"{pages[path].servers_ms:.0f} + {pages[path].postgresql_ms:.1f} ms" for path in LISTS)
    each = (f"{_costs(cost)}" for cost in (found.idle, found.of_a_press()))
    row = f"| {' | '.join((f'{machines}', f'{machines * sessions:,}', f'{history:,}', presses, *each, loaded))} |"
    print(f"fleet_growth: {row}", flush=True)
    return row


def _costs(cost: dict[str, float]) -> str:
    return f"{cost['statements']:.1f}, {1000 * cost['servers']:.1f} ms, {1000 * cost['postgresql']:.1f} ms"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
