"""Of Cline and gptme the dialogs that matter most, on the real programs; `make lab-real` walks all of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real_tools.canary import version_of, walk_through
from tests.real_tools.dialogs import WALKS
from tests.real_tools.realtool import find_tool

pytestmark = [pytest.mark.tools, pytest.mark.timeout(600)]
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"
MATTER = ("conversation: a new one", "bash: y", "bash: n", "write: n", "bait: silent")


@pytest.mark.skipif(os.environ.get("ATLASBRIDGE_LAB_REAL") == "1", reason="all of their dialogs are walked")
@pytest.mark.parametrize(("tool", "version"), [("cline", "3.0.65"), ("gptme", "0.35.1")])
def test_the_dialogs_that_matter_most_are_recognised_and_answered(tool: str, version: str) -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))
    assert find_tool(tool) is not None, f"{tool} is missing: run tools/install-extras"
    assert version_of(tool) == version
    main = WALKS[tool][0]
    walk = replace(main, dialogs=tuple(dialog for dialog in main.dialogs if dialog.name in MATTER))
    results = list(walk_through(tool, walk, (80, 24)))
    assert [f"{result.dialog}: {result.detail}" for result in results if not result.ok] == []
    assert len(results) == len(walk.dialogs) >= 4
