"""Steps of a hostile world against gate and ledger: `python -m tests.torture gate_machine [--steps N]`.

People × sessions × clocks × restarts × reboots × duplicates × reordering × forgeries, compared after every step with a
model of its own; see tests/support/gate_world.py.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.gate_world import GateWorld

ROUND = 5_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gate_machine")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default=None, help="where the stores are made; memory (/dev/shm) is much faster")
    given = parser.parse_args(arguments)
    seen: Counter[str] = Counter()
    for done in range(0, given.steps, ROUND):
        seed = given.seed + done // ROUND
        steps = min(ROUND, given.steps - done)
        try:
            seen += _one_round(seed, steps, given.folder)
        except AssertionError as error:
            print(f"gate_machine: seed {seed} FAILED: {error}")
            return 1
        if (done // ROUND) % 20 == 0:
            print(f"gate_machine: {done + steps} steps so far: {dict(seen)}", flush=True)
    print(f"gate_machine: {given.steps} steps, nothing wrong was typed, nothing twice: {dict(seen)}")
    return 0


def _one_round(seed: int, steps: int, parent: str | None) -> Counter[str]:
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        world = GateWorld(Path(folder), Random(seed))
        for _ in range(steps):
            world.step()
            world.check()
        world.check_records()
        world.close()
        return world.seen
