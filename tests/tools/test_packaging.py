"""What packages are made from: man pages, the list of parts, versions that agree, and wheels that come out the same."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from atlasbridge import __version__
from atlasbridge.cli.catalogue import COMMANDS
from tools import gen_man, sbom

ROOT = Path(__file__).parents[2]
LARGEST_WHEEL = 3 * 1024 * 1024


def test_there_is_a_man_page_for_every_command() -> None:
    pages = gen_man.render_all()
    assert set(pages) == {"atlasbridge.1", *(f"atlasbridge-{name}.1" for name in COMMANDS)}
    for name, text in pages.items():
        assert text.startswith(".TH "), name
        assert ".SH NAME" in text and ".SH SYNOPSIS" in text, name
    assert r"\-\-dry\-run" in pages["atlasbridge-uninstall.1"]
    assert "install" in pages["atlasbridge-shim.1"]


def test_roff_takes_every_man_page() -> None:
    groff = shutil.which("groff")
    for name, text in gen_man.render_all().items():
        assert not re.search(r"^\.(?!TH|SH|SS|TP|PP|B |BR|I |RI)", text, re.MULTILINE), name
        if groff:
            done = subprocess.run([groff, "-man", "-Tascii", "-ww", "-z"], input=text, capture_output=True, text=True)
            assert done.stderr == "", name


def test_the_list_of_parts_names_what_is_required_and_its_version() -> None:
    listed = sbom.render()
    assert listed["metadata"]["component"]["name"] == "atlasbridge"
    names = {part["name"].lower() for part in listed["components"]}
    assert {"click", "pydantic", "httpx", "starlette", "uvicorn"} <= names
    assert all(part["purl"].startswith("pkg:pypi/") and part["version"] for part in listed["components"])


def test_the_packages_are_of_this_version() -> None:
    newest = (ROOT / "packages/debian/changelog").read_text("utf-8").splitlines()[0]
    assert newest.startswith(f"atlasbridge ({__version__}-")
    formula = (ROOT / "packages/homebrew/atlasbridge.rb").read_text("utf-8")
    assert "@SDIST_SHA256@" in formula and "hub" in formula


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_wheel_is_built_the_same_twice_and_is_small(tmp_path: Path) -> None:
    digests = []
    for turn in ("first", "second"):
        words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path / turn), str(ROOT)]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(words, check=True, env=environ, timeout=280, cwd=tmp_path)
        (wheel,) = (tmp_path / turn).glob("*.whl")
        digests.append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    assert wheel.stat().st_size < LARGEST_WHEEL
