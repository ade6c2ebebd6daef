"""Power loss at every write of many lives of the store: `python -m tests.torture power_loss [--lives N] [--images N]`.

Each life is recorded write by write; for every place between two writes disks are built as they may be found after the
power went (nothing, everything, or any torn part of what was not synced), opened, repaired and examined.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.crash_disk import CrashDisk
from tests.support.recorded_vfs import available
from tests.support.store_life import examine, live


def main(
    lives: int = 4,
    images: int = 3000,  # disks to build and examine for each life
    seed: int = 1,
) -> int:
    if not available():
        print("power_loss: this Python hides the functions of its own SQLite; not run")
        return 0
    faults: Counter[str] = Counter()
    for number in range(lives):
        faults += _one_life(seed + number, images)
    weaker = _weaker_setting(seed)
    print(f"power_loss: the same attack on synchronous=NORMAL finds {weaker} losses (it must find some)")
    return 1 if faults or not weaker else 0


def _one_life(seed: int, images: int) -> Counter[str]:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        disk = CrashDisk(Path(folder))
        life = live(disk, prompts=random.randint(4, 10))
    found: Counter[str] = Counter()
    styles: Counter[str] = Counter()
    for _ in range(images):
        style = random.choice(("least", "most", "any", "any", "any"))
        styles[style] += 1
        fault = examine(disk, random.randrange(len(disk.ops) + 1), random, style)
        if fault:
            found[fault] += 1
    writes = Counter(f"{op.kind} {op.name}".strip() for op in disk.ops)
    print(f"power_loss: seed {seed}, {len(life.typed)} prompts, {len(disk.ops)} operations {dict(writes)}")
    print(f"power_loss: {images} disks {dict(styles)}: {sum(found.values())} faults {dict(found)}")
    return found


def _weaker_setting(seed: int) -> int:
    """An attack that finds nothing where there is something to find would prove nothing."""
    with tempfile.TemporaryDirectory() as folder:
        disk = CrashDisk(Path(folder))
        live(disk, prompts=4, synchronous="NORMAL")
    cuts = [number + 1 for number, op in enumerate(disk.ops) if op.kind == "ack"]
    return sum(1 for cut in cuts if examine(disk, cut, Random(seed), "least"))
