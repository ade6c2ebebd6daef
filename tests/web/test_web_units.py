"""The page's own unit tests in Node, where Node is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from atlasbridge.web import page_files

UNITS = Path(__file__).parent / "units"
STATIC = Path(page_files.__file__).parent / "static"


@pytest.mark.skipif(shutil.which("node") is None, reason="these tests run in Node")
def test_what_decides_on_the_page_holds_in_node() -> None:
    command = ["node", "--import", str(UNITS / "page.mjs"), "--test", str(UNITS / "deciding.test.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ATLAS_PAGE": str(STATIC)})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "# pass 15" in done.stdout, done.stdout[-400:]
