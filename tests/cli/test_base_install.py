"""What `make run` and a plain `pip install .` bring is enough: a hub, its page and a question, without any extra."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.base_install.sitecustomize import EXTRAS
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
STAND_IN = ROOT / "tests" / "support" / "base_install"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="starts a detached session of Unix")


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(prefix="ab-") as folder:
        yield Path(folder)


def call(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home), "PYTHONPATH": str(STAND_IN)}
    command = [sys.executable, "-m", "atlasbridge", *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True)


def test_a_question_is_asked_and_answered_without_any_extra(home: Path) -> None:
    started = call(home, "hub", "start")
    try:
        assert started.returncode == 0, started.stderr + (home / "hub.log").read_text("utf-8")
        made = call(home, "run", "--detach", "--name", "base", "--", "sh", "-c", "printf 'Go on? (y/n) '; read a")
        assert made.returncode == 0, made.stderr
        wait_for(lambda: "Go on?" in call(home, "approvals", "--json").stdout, "the question")
        answered = call(home, "reply", "base", "y")
        assert answered.returncode == 0, answered.stderr
        assert "http://localhost:" in call(home, "hub", "status").stdout, "the page is there"
        for _ in range(3):
            assert call(home, "hub", "reload").returncode == 0
            linked = call(home, "web", "--no-open", "--no-qr")
            assert linked.returncode == 0, f"after a reload: {linked.stderr}"
    finally:
        call(home, "hub", "stop")


def test_the_stand_in_hides_what_the_extras_bring_and_nothing_that_is_always_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    always = {line.split(">")[0].split("[")[0] for line in project["dependencies"]}
    assert not EXTRAS & always
