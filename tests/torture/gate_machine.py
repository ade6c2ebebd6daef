"""Steps of a hostile world against gate and ledger: `python -m tests.torture gate_machine [--steps N]`.

People × sessions × clocks × restarts × reboots × duplicates × reordering × forgeries, compared after every step with a
model of its own; see tests/support/gate_world.py.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.gate_world import GateWorld

ROUND = 5_000


def main(
    steps: int = 1_000_000,
    seed: int = 1,
    folder: str = "",  # where the stores are made; memory (/dev/shm) is much faster
) -> int:
    seen: Counter[str] = Counter()
    for done in range(0, steps, ROUND):
        number = done // ROUND
        try:
            seen += _one_round(seed + number, min(ROUND, steps - done), folder)
        except AssertionError as error:
            raise AssertionError(f"seed {seed + number}: {error}") from error
        if number % 20 == 0:
            print(f"gate_machine: {min(done + ROUND, steps)} steps so far: {dict(seen)}", flush=True)
    print(f"gate_machine: {steps} steps, nothing wrong was typed, nothing twice: {dict(seen)}")
    return 0


def _one_round(seed: int, steps: int, parent: str) -> Counter[str]:
    with tempfile.TemporaryDirectory(dir=parent or None) as folder:
        world = GateWorld(Path(folder), Random(seed))
        for _ in range(steps):
            world.step()
            world.check()
        world.check_records()
        world.close()
        return world.seen
