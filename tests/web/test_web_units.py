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


pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="these tests run in Node")
NO_PROOF = """
const reply = () => {};
const device = async () => ({ name: "", scope: "answer", key: "" });
const greet = async () => ({ epoch: "" });
const send = (...words) => globalThis.send(...words);
globalThis.AtlasProof = { Fault: Error, device, greet, random: () => "k1", reply, send };
"""


def test_what_decides_on_the_page_holds_in_node() -> None:
    assert "# pass 16" in run_units("deciding", STATIC)


@pytest.mark.parametrize("more", [(), ("atlasbridge.fleet.server",)], ids=["a hub's page", "a fleet's page"])
def test_what_is_not_known_is_told_as_that_and_asked_about_again(more: tuple[str, ...], tmp_path: Path) -> None:
    for name, content in page_files.read_page(*more).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "proof.js").write_text(NO_PROOF)
    assert "# pass 14" in run_units("lost", tmp_path)


def run_units(name: str, page: Path) -> str:
    command = ["node", "--import", str(UNITS / "page.mjs"), "--test", str(UNITS / f"{name}.test.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ATLAS_PAGE": str(page)})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout
