"""Dialogs about nasty text, drawn and read again: `python -m tests.torture shown_is_asked [--cases N] [--seed N]`.

Random commands and questions in each known tool's kind of dialog, at widths from 40 to 200, through screen, recogniser,
redactor, codec and each channel's words; and single cells that change before the answer comes.  Case by case from
`--seed` on: a run that was ended goes on with the seed that it said last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.support.shown_is_asked import compared, one_case

REPORT_EVERY = 1_000


def main(
    cases: int = 100_000,
    changes: int = 10_000,  # how many single cells are changed
    seed: int = 1,  # of the first case
) -> int:
    shown, wrong = _tried("dialogs", one_case, range(seed, seed + cases))
    changed, missed = _tried("changes", compared, range(seed, seed + changes))
    if wrong or missed:
        print(f"shown_is_asked: FAILED: {wrong} dialogs, {missed} changes of one cell")
        return 1
    unchanged = changed.pop("", 0)
    print(f"shown_is_asked: {cases} dialogs, all shown as they were drawn or said to be cut: {dict(shown)}")
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
