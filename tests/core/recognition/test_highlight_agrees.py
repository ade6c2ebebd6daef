"""The typist looks at the highlight before Enter: it has to see the same choice there as recognition does."""

from __future__ import annotations

from pathlib import Path

from tests.figures.ablate import pictures_of

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.recognition.recognise import recognise

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
