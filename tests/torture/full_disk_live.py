"""A small disk, filled and freed under the running product: `python -m tests.torture full_disk_live` (root only)."""

from __future__ import annotations

import argparse

from tests.support.disk_rounds import fill_and_free
from tests.support.small_disk import arena_on_small_disk, may_mount


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="full_disk_live")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args(arguments)
    if not may_mount():
        print("full_disk_live: no mount allowed here; not run")
        return 0
    with arena_on_small_disk() as (place, disk):
        place.start_hub()
        try:
            found = fill_and_free(place, disk, given.rounds)
        except AssertionError as error:
            print(f"full_disk_live: FAILED: {error}")
            return 1
    print(
        f"full_disk_live: filled and freed {given.rounds} times: {dict(found)}; nothing was typed that is not recorded"
    )
    return 0
