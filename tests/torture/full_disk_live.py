"""A small disk, filled and freed under the running product: `python -m tests.torture full_disk_live` (root only)."""

from __future__ import annotations

from tests.support.disk_rounds import fill_and_free
from tests.support.small_disk import arena_on_small_disk, may_mount


def main(rounds: int = 100) -> int:
    if not may_mount():
        print("full_disk_live: no mount allowed here; not run")
        return 0
    with arena_on_small_disk() as (place, disk):
        place.start_hub()
        found = fill_and_free(place, disk, rounds)
    print(f"full_disk_live: filled and freed {rounds} times: {dict(found)}; nothing was typed that is not recorded")
    return 0
