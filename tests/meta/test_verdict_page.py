"""The page about detection shows the verdict's table as it is."""

from __future__ import annotations

import pytest
from tests.figures.__main__ import DETECTION_PAGE
from tests.figures.accuracy import put_into, render_verdict


def test_the_page_shows_the_table() -> None:
    assert render_verdict() in DETECTION_PAGE.read_text("utf-8"), "run: python -m tests.figures verdict"


def test_a_page_without_its_place_is_not_written() -> None:
    with pytest.raises(ValueError, match="no section"):
        put_into("# Nothing here\n")
