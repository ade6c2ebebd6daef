"""Dialogs about nasty text, drawn and read again: `python -m tests.torture shown_is_asked [--cases N] [--seed N]`.

Random commands and questions in each known tool's kind of dialog, at widths from 40 to 200, through screen, recogniser,
redactor, codec and each channel's words; and single cells that change before the answer comes.  Case by case from
`--seed` on: a run that was ended goes on with the seed that it said last.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

from tests.support.shown_is_asked import compared, one_case

REPORT_EVERY = 1_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="shown_is_asked")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=10_000, help="how many single cells are changed")
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    given = parser.parse_args(arguments)
    shown, wrong = _tried("dialogs", one_case, range(given.seed, given.seed + given.cases))
    changed, missed = _tried("changes", compared, range(given.seed, given.seed + given.changes))
    if wrong or missed:
        print(f"shown_is_asked: FAILED: {wrong} dialogs, {missed} changes of one cell")
        return 1
    unchanged = changed.pop("", 0)
    print(f"shown_is_asked: {given.cases} dialogs, all shown as they were drawn or said to be cut: {dict(shown)}")
    print(f"shown_is_asked: {changed.total()} changed cells, all noticed: {dict(changed)} ({unchanged} had none)")
    return 0


def _tried(what: str, case: Callable[[int], str], seeds: range) -> tuple[Counter[str], int]:
    seen: Counter[str] = Counter()
    faults = 0
    for number, seed in enumerate(seeds, 1):
        try:
            seen[case(seed)] += 1
        except AssertionError as error:
            faults += 1
            print(f"shown_is_asked: FAILED: {error}", flush=True)
        if number % REPORT_EVERY == 0:
            print(f"shown_is_asked: {number} {what}, next seed {seed + 1}, {faults} wrong: {dict(seen)}", flush=True)
    return seen, faults
