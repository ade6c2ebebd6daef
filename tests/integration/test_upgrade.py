"""A newer command beside an older hub, and a newer hub for an older one's sessions: with the real older program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import wait_for, written

ROOT = Path(__file__).parents[2]
OLDER = "0e778ee"  # the last one whose hub did not say its number
ASK = 'read -p "Go on? [y/N] " word; echo "got=$word" > "$0"; sleep 100'


class Program:
    """`atlasbridge` of one version, in one home."""

    def __init__(self, source: Path, home: Path) -> None:
        self.environ = {**os.environ, "PYTHONPATH": str(source), "ATLASBRIDGE_HOME": str(home)}
        self.environ.pop("PYTHONWARNINGS", None)
        self.environ.pop("ATLASBRIDGE_SESSION_ZYGOTE", None)  # the older one knows no such setting

    def __call__(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "atlasbridge", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environ, cwd="/")
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def sessions(self) -> dict[str, Any]:
        return {session["session_id"]: session for session in json.loads(self("ps", "--json").stdout)}

    def open_prompt(self, session_id: str) -> str:
        asks = wait_for(
            lambda: self.sessions().get(session_id, {}).get("open_prompt"), f"a question of {session_id}", 60
        )
        return str(asks)


@pytest.fixture
def older_source(tmp_path: Path) -> Path:
    archive = subprocess.run(["git", "archive", OLDER, "src"], cwd=ROOT, capture_output=True)
    assert archive.returncode == 0, "needs the repository with its history"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(tmp_path / "older", filter="data")
    return tmp_path / "older" / "src"


@pytest.fixture
def versions(older_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Program]]:
    home = tmp_path_factory.mktemp("ab")
    older, newer = Program(older_source, home), Program(ROOT / "src", home)
    yield older, newer
    for session_id in newer.sessions():
        newer("kill", session_id)
    newer("hub", "stop")


@pytest.mark.heavy
def test_sessions_with_open_prompts_live_through_an_upgrade_and_back(
    versions: tuple[Program, Program], tmp_path: Path
) -> None:
    older, newer = versions
    older("hub", "start")
    got = tmp_path / "got"
    first = older("run", "--detach", "--", "bash", "-c", ASK, str(got)).stdout.strip()
    prompt = older.open_prompt(first)

    said = newer("hub", "status").stderr
    assert "is of an older version than this command" in said
    assert "atlasbridge hub restart" in said
    assert "older version" in newer("hub", "start").stderr
    checks = json.loads(newer("doctor", "--json").stdout)
    assert next(check["state"] for check in checks if check["name"] == "hub") == "warning"

    newer("hub", "restart")
    assert newer("hub", "status").stderr == ""
    assert newer.open_prompt(first) == prompt, "the older host's question is the same to the newer hub"
    newer("reply", prompt, "y")
    assert written(got) == "got=y\n"

    second = newer("run", "--detach", "--", "bash", "-c", ASK, str(tmp_path / "second")).stdout.strip()
    asked = newer.open_prompt(second)
    refused = older("hub", "restart", status=1).stderr
    assert "Install the newer AtlasBridge again" in refused, "an older hub does not touch a newer store"
    newer("hub", "start")
    assert newer.open_prompt(second) == asked, "and the sessions have lived through that, too"
    newer("reply", asked, "n")
    assert written(tmp_path / "second") == "got=n\n"
