"""Questions without a terminal while everything dies: `python -m tests.torture integrations [--rounds N]`."""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random

from tests.support.acp_lines import pass_lines
from tests.support.hubs import hub_process, with_page
from tests.support.integration_rounds import ask_many, kill_rounds

AT_A_TIME = 50


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="integrations")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    chance = Random(given.seed)
    ended: Counter[str] = Counter()
    try:
        with hub_process(with_page()) as hub:
            passed = pass_lines(hub, given.lines, chance)
            print(
                f"integrations: {given.lines} protocol messages, {passed:,} bytes, passed unchanged both ways",
                flush=True,
            )
            ask_many(hub, given.at_once)
            print(f"integrations: {given.at_once} at once, each got its own answer", flush=True)
            while ended.total() < given.rounds:
                ended += kill_rounds(hub, min(AT_A_TIME, given.rounds - ended.total()), chance)
                print(f"integrations: {ended.total()} rounds: {dict(sorted(ended.items()))}", flush=True)
            verdict = hub.json("audit", "verify")
    except AssertionError as error:
        print(f"integrations: FAILED after {ended.total()} rounds: {error}")
        return 1
    print(f"integrations: {given.rounds} times something died; no answer was lost, doubled or given to another")
    print(f"integrations: the audit log is whole: {verdict}")
    return 0
