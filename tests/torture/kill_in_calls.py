"""SIGKILL of the hub at system calls, by strace: `python -m tests.torture kill_in_calls [--deaths N --minutes M]`."""

from __future__ import annotations

from random import Random

from tests.support.arena import arena
from tests.support.traced_hub import available
from tests.support.traced_rounds import attack


def main(
    deaths: int = 500,
    minutes: float = 20.0,  # at most
    seed: int = 1,
) -> int:
    if not available():
        print("kill_in_calls: strace is not installed; not run")
        return 0
    with arena() as place:
        places, deaths, at = attack(place, deaths, Random(seed), minutes * 60, _tell)
    print(f"kill_in_calls: {deaths} deaths at {places} system calls of a life {dict(at)}, nothing lost or doubled")
    return 0


def _tell(line: str) -> None:
    print(f"kill_in_calls: {line}", flush=True)
