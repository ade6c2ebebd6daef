"""SECURITY.md promises nothing that no test shows: every line of its tables names tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("|") and not re.match(r"\| *(Attack|-)|\|-", line)]


def test_there_is_a_threat_model() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_line_names_its_set_up_and_tests_that_are_there(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 4 and cells[1] in ("both", "default", "system"), row
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", cells[3])
    assert named, row
    for file, function in named:
        source = (ROOT / "tests" / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {function}\(", source, re.MULTILINE), f"{file} has no {function}"
