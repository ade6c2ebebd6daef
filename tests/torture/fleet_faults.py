"""Lines are cut, held and reordered, disks full, servers, hubs and PostgreSQL killed: `fleet_faults [--faults N]`.

`python -m tests.torture fleet_faults --faults 10000` is the whole attack, an hour on two cores.  Every decision that
was accepted is typed exactly once, every other is refused with its reason, and every row ends.

`fleet_faults --back N` puts stores back in time instead: see `tests/support/back_rounds.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import uvloop

from tests.support.back_rounds import back_rounds
from tests.support.server_rounds import fault_rounds


def main(
    faults: int = 300,
    machines: int = 8,
    sessions: int = 10,
    seed: int = 1,
    back: int = 0,  # so many stores go back in time instead
    fleets: int = 6,  # with --back: so many at once
) -> int:
    if back:
        attack = back_rounds(back, fleets, min(machines, 2), min(sessions, 2), seed)
    else:
        attack = fault_rounds(faults, machines, sessions, seed)
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
    print(f"fleet_faults: {back or faults} faults: {found}")
    return 0


class LastWords(logging.Handler):
    """Of all that is inside this process, for the message about a round that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.lines: deque[str] = deque(maxlen=300)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
