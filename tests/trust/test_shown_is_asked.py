"""What a person is shown is what the tool asks, or it says that something is missing; and what changed is not answered.

The long form, with a hundred thousand cases, is `python -m tests.torture shown_is_asked`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.shown_is_asked import compared, many

ROUNDS = 6
CASES = 50


@pytest.mark.parametrize("number", range(ROUNDS))
def test_what_arrives_at_the_far_end_is_what_was_drawn_or_says_that_it_is_cut(number: int) -> None:
    seen = many(range(number * CASES, (number + 1) * CASES))
    assert seen["whole"] + seen["told"] > CASES // 2, seen


@pytest.mark.parametrize("number", range(3))
def test_one_changed_cell_between_showing_and_typing_means_that_nothing_is_typed(number: int) -> None:
    changed = Counter(compared(seed) for seed in range(number * 60, (number + 1) * 60))
    assert min(changed[part] for part in ("subject", "question", "choice")) > 3, changed
