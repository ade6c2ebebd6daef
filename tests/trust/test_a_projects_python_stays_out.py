"""A folder with a hostile `socket.py`, `json.py` or `atlasbridge/` runs none of it in a process of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import atlasbridge
from atlasbridge.core.process import own_environ, own_python

SOURCE = Path(atlasbridge.__file__).parent
NAMES = ("socket", "json", "asyncio", "select", "click", "tomllib", "runpy")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Anyone who imports one of these modules from here leaves a file behind."""
    folder = tmp_path / "project"
    (folder / "atlasbridge").mkdir(parents=True)
    trap = f"open({str(tmp_path / 'caught')!r}, 'a').write(__name__ + chr(10)); raise SystemExit(66)\n"
    for name in NAMES:
        (folder / f"{name}.py").write_text(trap)
    for name in ("__init__", "__main__"):
        (folder / "atlasbridge" / f"{name}.py").write_text(trap)
    return folder


def caught(folder: Path) -> str:
    left = folder.parent / "caught"
    return left.read_text() if left.exists() else ""


def run(words: tuple[str, ...], folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", ["", ":", ".:", "::/nowhere", "relative"])
def test_what_we_start_in_a_project_is_ours(hostile: Path, path: str) -> None:
    environ = own_environ({**os.environ, "PYTHONPATH": path} if path else dict(os.environ), ATLASBRIDGE_HOME="/nowhere")
    done = run(own_python("atlasbridge", "version"), hostile, environ)
    assert (done.returncode, caught(hostile)) == (0, "") and done.stdout.startswith("atlasbridge ")


def test_the_whole_way_of_a_session_runs_nothing_of_the_project(hostile: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home))
    try:
        done = run(own_python("atlasbridge", "run", "--", "true"), hostile, environ)
        assert done.returncode == 0, done.stderr
        done = run(own_python("atlasbridge", "status", "--json"), hostile, environ)
        assert done.returncode == 0, done.stderr
    finally:
        run(own_python("atlasbridge", "hub", "stop"), hostile, environ)
    assert caught(hostile) == ""


def test_started_by_hand_from_a_project_it_drops_the_folder_before_it_imports_more(hostile: Path) -> None:
    """`python -m atlasbridge` itself is looked up in the folder: only where that finds ours can we do anything."""
    for name in ("__init__", "__main__"):
        (hostile / "atlasbridge" / f"{name}.py").unlink()
    (hostile / "atlasbridge").rmdir()
    (hostile / "runpy.py").unlink()
    done = run((sys.executable, "-m", "atlasbridge", "adapters", "list"), hostile, dict(os.environ))
    assert caught(hostile) == "" and done.returncode == 0, done.stderr


def test_entries_of_the_search_path_that_mean_the_current_folder_are_dropped() -> None:
    assert own_environ({"PYTHONPATH": "/a::b:./c:/d:"})["PYTHONPATH"] == "/a:/d"
    assert "PYTHONPATH" not in own_environ({"PYTHONPATH": ":."})


def test_no_program_of_the_folder_we_happen_to_be_in_is_started_by_the_hub() -> None:
    """What the hub starts has no session above it: it could answer in a person's place."""
    assert own_environ({"PATH": "/usr/bin:.:node_modules/.bin::/bin"})["PATH"] == "/usr/bin:/bin"


def test_nobody_starts_python_in_another_way() -> None:
    """Every start of a module of ours goes through the one function."""
    starts = re.compile(r"sys\.executable,\s*(?:\*\()?\"-m\"")
    found = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if starts.search(path.read_text("utf-8"))]
    assert found == []
