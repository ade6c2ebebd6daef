"""Questions without a terminal while everything dies: `python -m tests.torture integrations [--rounds N]`."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.support.acp_lines import pass_lines
from tests.support.hubs import hub_process, with_page
from tests.support.integration_rounds import ask_many, kill_rounds

AT_A_TIME = 50


def main(rounds: int = 1000, at_once: int = 200, lines: int = 10_000, seed: int = 1) -> int:
    chance = Random(seed)
    ended: Counter[str] = Counter()
    with hub_process(with_page()) as hub:
        passed = pass_lines(hub, lines, chance)
        print(f"integrations: {lines} protocol messages, {passed:,} bytes, passed unchanged both ways", flush=True)
        ask_many(hub, at_once)
        print(f"integrations: {at_once} at once, each got its own answer", flush=True)
        while ended.total() < rounds:
            ended += kill_rounds(hub, min(AT_A_TIME, rounds - ended.total()), chance)
            print(f"integrations: {ended.total()} rounds: {dict(sorted(ended.items()))}", flush=True)
        verdict = hub.json("audit", "verify")
    print(f"integrations: {rounds} times something died; no answer was lost, doubled or given to another")
    print(f"integrations: the audit log is whole: {verdict}")
    return 0
