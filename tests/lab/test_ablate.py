"""Leaving a piece out tells what needs it, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from tests.figures.ablate import Picture, Weight, pictures_of, render_page, weigh

from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.screen.view import View

CORPUS = Path(__file__).parents[1] / "corpus"
LINE = Facts(canonical=True, echo=True, reading=True)
PICTURES = [
    Picture("rm", "generic", View.from_text("rm: remove regular file 'x'? "), LINE),
    Picture("rm in German", "generic", View.from_text("rm: Datei 'x' entfernen? "), LINE),
    Picture("list", "generic", View.from_text("1) a\n2) b\n\n\n\nYour choice: "), LINE),
]


def test_each_piece_is_weighed_by_what_changes_without_it() -> None:
    weights = {weight.name: weight for weight in weigh(PICTURES)}
    assert weights["remove-what"].changed == ("rm",)
    assert "rm in German" in weights["confirm"].changed
    assert weights[f"GAP_ROWS {numbers.GAP_ROWS} → {numbers.GAP_ROWS // 2}"].changed == ("list",)
    assert weights["find-ok"].changed == ()


def test_nothing_is_left_out_afterwards() -> None:
    before = {name: set(table) for name, table in vocabulary.languages().items()}
    number = numbers.GAP_ROWS
    list(weigh(PICTURES[:1]))
    assert {name: set(table) for name, table in vocabulary.languages().items()} == before
    assert number == numbers.GAP_ROWS
    assert vocabulary.begins("refuse", "Nein")


def test_a_recording_gives_the_picture_of_its_moment() -> None:
    picture = next(one for one in pictures_of(CORPUS) if one.case == "generic/rm-i")
    assert "remove" in picture.view.text()


def test_the_page_names_every_piece() -> None:
    page = render_page([Weight("rule", "yes-no", ("a/b",)), Weight("number", "X", ())], 7)
    assert "| rule | yes-no | 1 | a/b |" in page and "1 of 2 pieces" in page
