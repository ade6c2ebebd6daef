"""Questions without a terminal while callers and hubs die: `python -m tests.torture doors [--rounds N]`."""

from __future__ import annotations

import argparse
from random import Random

from tests.support.door_rounds import ask_many, kill_rounds
from tests.support.hubs import hub_process


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="doors")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        with hub_process() as hub:
            ask_many(hub, given.at_once)
            ended = kill_rounds(hub, given.rounds, Random(given.seed))
            verdict = hub.json("audit", "verify")
    except AssertionError as error:
        print(f"doors: FAILED: {error}")
        return 1
    print(f"doors: {given.at_once} at once, each got its own answer")
    print(f"doors: {given.rounds} times something died: {dict(ended)}; no answer was lost, doubled or given to another")
    print(f"doors: the audit log is whole: {verdict}")
    return 0
