"""Lines are cut, held and reordered, disks full, servers, hubs and PostgreSQL killed: `fleet_faults [--faults N]`.

`python -m tests.torture fleet_faults --faults 10000` is the whole attack, an hour on two cores.  Every decision that
was accepted is typed exactly once, every other is refused with its reason, and every row ends.

`fleet_faults --back N` puts stores back in time instead: see `tests/support/back_rounds.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import deque

import uvloop

from tests.support.back_rounds import back_rounds
from tests.support.server_rounds import fault_rounds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fleet_faults")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--back", type=int, default=0, help="so many stores go back in time instead")
    parser.add_argument("--fleets", type=int, default=6, help="with --back: so many at once")
    given = parser.parse_args(arguments)
    if given.back:
        attack = back_rounds(given.back, given.fleets, min(given.machines, 2), min(given.sessions, 2), given.seed)
    else:
        attack = fault_rounds(given.faults, given.machines, given.sessions, given.seed)
    last = LastWords()
    logging.basicConfig(handlers=[last], level=logging.WARNING)  # thousands of refusals that were asked for
    failed: list[BaseException] = []
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the server has it
            found = runner.run(attack)
    except* AssertionError as group:
        failed = list(group.exceptions)
    if failed:
        print("\n".join(last.lines), *(f"fleet_faults: FAILED: {error}" for error in failed), sep="\n")
        return 1
    print(f"fleet_faults: {given.back or given.faults} faults: {found}")
    return 0


class LastWords(logging.Handler):
    """Of all that is inside this process, for the message about a round that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.lines: deque[str] = deque(maxlen=300)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
