"""SIGKILL of the hub at system calls, by strace: `python -m tests.torture kill_in_calls [--deaths N --minutes M]`."""

from __future__ import annotations

import argparse
from random import Random

from tests.support.arena import arena
from tests.support.traced_hub import available
from tests.support.traced_rounds import attack


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="kill_in_calls")
    parser.add_argument("--deaths", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=20.0, help="at most")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if not available():
        print("kill_in_calls: strace is not installed; not run")
        return 0
    with arena() as place:
        try:
            places, deaths, at = attack(place, given.deaths, Random(given.seed), given.minutes * 60, _tell)
        except AssertionError as error:
            print(f"kill_in_calls: FAILED: {error}")
            return 1
    print(f"kill_in_calls: {deaths} deaths at {places} system calls of a life {dict(at)}, nothing lost or doubled")
    return 0


def _tell(line: str) -> None:
    print(f"kill_in_calls: {line}", flush=True)
