"""What a person is shown is what the tool asks, or it says that something is missing; and what changed is not answered.

The long form, with a hundred thousand cases, is `python -m tests.torture shown_is_asked`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.drawn import RAW
from tests.support.shown_is_asked import compared, dialect_of, many
from tests.support.tier import first_of

from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View

ROUNDS = 6
CASES = 50


@pytest.mark.parametrize("number", first_of(range(ROUNDS)))
def test_what_arrives_at_the_far_end_is_what_was_drawn_or_says_that_it_is_cut(number: int) -> None:
    seen = many(range(number * CASES, (number + 1) * CASES))
    assert seen["whole"] + seen["told"] > CASES // 2, seen


@pytest.mark.parametrize("number", range(3))
def test_one_changed_cell_between_showing_and_typing_means_that_nothing_is_typed(number: int) -> None:
    changed = Counter(compared(seed) for seed in range(number * 60, (number + 1) * 60))
    assert min(changed[part] for part in ("subject", "question", "choice")) > 3, changed


@pytest.mark.parametrize(("yes", "no"), [("Yes", "No"), ("Ja", "Nein"), ("Sí", "No")])
@pytest.mark.parametrize("text", ["Change the root password?", "Password", "Delete the API key and the token?"])
def test_a_box_that_says_yes_or_no_takes_no_secret_whatever_it_is_about(text: str, yes: str, no: str) -> None:
    screen = Screen(24, 60)
    screen.feed(f"┌{'─' * 40}┐\r\n│ {text:<38} │\r\n│{' ' * 40}│\r\n".encode())
    screen.feed(f"│ \x1b[7m<{yes}>\x1b[m   <{no}>{' ' * (32 - len(yes + no))} │\r\n└{'─' * 40}┘\x1b[?25l".encode())
    found = recognise(View.of(screen), RAW, dialect_of("generic"))
    assert found is not None and not found.constraints.get("secret")
    assert [choice.label for choice in found.choices] == [yes, no]
