"""Dialogs about nasty text, drawn and read again: `python -m tests.torture shown_is_asked [--cases N] [--seed N]`.

Random commands and questions in each known tool's kind of dialog, at widths from 40 to 200, through screen, recogniser,
redactor, codec and each channel's words; and single cells that change before the answer comes.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tests.support.shown_is_asked import compared, one_case

REPORT_EVERY = 10_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="shown_is_asked")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=10_000, help="how many single cells are changed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    seen: Counter[str] = Counter()
    try:
        for number in range(given.cases):
            seen[one_case(given.seed + number)] += 1
            if (number + 1) % REPORT_EVERY == 0:
                print(f"shown_is_asked: {number + 1} cases so far: {dict(seen)}", flush=True)
        for number in range(given.changes):
            seen["changed" if compared(given.seed + number) else "nothing to change"] += 1
    except AssertionError as error:
        print(f"shown_is_asked: FAILED: {error}")
        return 1
    print(f"shown_is_asked: {given.cases} dialogs, all shown as they were drawn or said to be cut: {dict(seen)}")
    return 0
