"""A program that ends at once: its exit status and its end reach the hub, attached or not, and nobody waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.tier import first_of
from tests.support.waiting import wait_for

PROGRAMS = {"true": (["true"], 0), "false": (["false"], 1), "exit 3": (["sh", "-c", "exit 3"], 3)}
ROUNDS = int(os.environ.get("SHORT_SESSIONS", "3"))  # 200 were right


def ended(home: Path) -> list[tuple[str, int | None]]:
    done = subprocess.run(
        [*ATLASBRIDGE, "ps", "--all", "--json"],
        env={**os.environ, "ATLASBRIDGE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(session["state"], session["exit_code"]) for session in json.loads(done.stdout)]


@pytest.mark.parametrize("name", first_of(PROGRAMS))
def test_the_end_of_a_program_that_ends_at_once_is_known(home: Path, name: str) -> None:
    words, status = PROGRAMS[name]
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    subprocess.run([*ATLASBRIDGE, "hub", "start"], env=environ, check=True, stdout=subprocess.DEVNULL)
    try:
        for _ in range(ROUNDS):
            with Terminal([*ATLASBRIDGE, "run", *words], home) as terminal:
                assert terminal.wait_exit() == status
            begun = time.monotonic()
            run = [*ATLASBRIDGE, "run", "--detach", *words]
            subprocess.run(run, env=environ, check=True, stdout=subprocess.DEVNULL)
            assert time.monotonic() - begun < 8, "it waited for a session that had ended"
        wait_for(lambda: not [state for state, _ in ended(home) if state == "active"], "the end of all sessions")
        assert ended(home) == [("completed", status)] * (2 * ROUNDS)
    finally:
        subprocess.run([*ATLASBRIDGE, "hub", "stop"], env=environ, stdout=subprocess.DEVNULL)
