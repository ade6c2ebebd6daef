"""Writes docs/weights.md: what changes without each finder, rule, word group and number of recognition.

Looks at every picture that the recordings and the tests of recognition show.  Of each test the last one counts on which
something was found, or the last of all where nothing was.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.core.detection import screen_history
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.view import View
from tests.figures.ablate import Picture, pictures_of, render_page, weigh

ROOT = Path(__file__).parents[2]
DRAWS = ("Playbook", "recognise(", "Detector(")  # a test without any of them shows no picture
FOLDERS = ("tests/core/recognition", "tests/core/detection", "tests/trust", "tests/core/prompt")
LONG = "test_linear_cost.py"  # looks at rows that nobody ever drew


class Watcher:
    """Keeps the picture that counts, test by test."""

    def __init__(self) -> None:
        self.case = ""
        self.found: dict[str, Picture] = {}
        self.silent: dict[str, Picture] = {}

    @property
    def pictures(self) -> list[Picture]:
        return list({**self.silent, **self.found}.values())

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.case = item.nodeid.rpartition("/")[2]

    def recognise(self, view: View, facts: Facts, dialect: Dialect) -> Finding:
        found = recognise(view, facts, dialect)
        if dialect == load_dialect(dialect.name):
            kept = self.silent if found.type is PromptType.TYPE_UNKNOWN else self.found
            kept[self.case] = Picture(self.case, dialect.name, view, facts)
        return found


def proofs() -> list[str]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("test_*.py")) if path.name != LONG]
    return [str(path) for path in paths if any(word in path.read_text("utf-8") for word in DRAWS)]


def write_page(corpus: Path, page: Path) -> int:
    watcher = Watcher()
    screen_history.recognise = watcher.recognise  # type: ignore[attr-defined]
    failed = pytest.main(["-q", "-p", "no:cacheprovider", *proofs()], plugins=[watcher])
    if failed:
        return int(failed)
    pictures = [*pictures_of(corpus), *watcher.pictures]
    unweighed = set(available()) - {picture.tool for picture in pictures}
    page.write_text(render_page(list(weigh(pictures)), len(pictures), unweighed), "utf-8")
    return 0
