"""The typist looks at the highlight before Enter: it has to see the same choice there as recognition does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.figures.ablate import pictures_of

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.view import View

CORPUS = Path(__file__).parents[2] / "corpus"


def test_of_each_recorded_list_the_choice_that_is_read_as_lit_is_the_one_that_is_seen_as_lit() -> None:
    judged = 0
    for picture in pictures_of(CORPUS):
        found = recognise(picture.view, picture.facts, load_dialect(picture.tool))
        labels = tuple(choice.label for choice in found.choices if choice.value != "cancel")
        lit = [choice.label for choice in found.choices if choice.default]
        if found.line_mode or found.constraints.get("multi_select") or len(lit) != 1 or not found.structural:
            continue
        assert [label for label in labels if is_highlighted(picture.view, label, labels)] == lit, picture.case
        judged += 1
    assert judged > 100


BUTTONS = """\
┌──────────────────────────┐
│ Delete the build folder? │
│                          │
│   <  OK  >    <Cancel>   │
└──────────────────────────┘"""
BOXES = """\
┌──────────┤ Pizza ├───────────┐
│ Choose toppings:             │
│                              │
│    [*] cheese  Cheese      ↑ │
│    [ ] ham     Ham         ▮ │
│    [*] olive   Olive       ↓ │
│                              │
│     <Ok>         <Cancel>    │
└──────────────────────────────┘"""


@pytest.mark.parametrize(
    ("drawn", "place", "lit"),
    [
        (BUTTONS, (3, 7), "OK"),
        (BUTTONS, (3, 15), "Cancel"),
        (BOXES, (3, 6), "cheese  Cheese"),
        (BOXES, (4, 6), "ham     Ham"),
    ],
)
def test_in_a_frame_the_cursor_says_which_choice_is_lit(drawn: str, place: tuple[int, int], lit: str) -> None:
    view = View.from_text(drawn, row=place[0], col=place[1], alternate=True, cols=80)
    found = recognise(view, Facts(canonical=False, echo=False), load_dialect("generic"))
    labels = tuple(choice.label for choice in found.choices)
    assert [label for label in labels if is_highlighted(view, label, labels)] == [lit]
