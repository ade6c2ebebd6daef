"""A secret that is typed, shown, or handed over in the environment is found nowhere afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.arena import Arena, arena
from tests.support.waiting import wait_for

TYPED = "canary-typed-7f3a9c2e51"
SHOWN = "ghp_canaryShownOnScreen0123456789abcdef"
GIVEN = "canary-environment-5d1b8e"
CANARIES = (TYPED, SHOWN, GIVEN)

TOOL = """
import getpass, os, sys
secret = getpass.getpass("Password for the vault: ")
print("export GITHUB_TOKEN=" + {shown!r})
print("the environment has " + os.environ["VAULT_PASSWORD"])
answer = input("Proceed with the deployment? (y/n) ")
open({done!r}, "w").write(f"{{len(secret)}} {{answer}}")
input("Anything else? ")
"""


@pytest.fixture
def place() -> Iterator[Arena]:
    with arena('[channels.web]\nenabled = false\n[hub]\nlog_level = "debug"\n') as made:
        made.start_hub()
        yield made


def everything_on_disk(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a home; what is inside a bundle counts too."""
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.suffix != ".py":
            data = path.read_bytes()
            yield str(path), data
            if path.suffix == ".gz":
                with tarfile.open(path) as bundle:
                    for member in bundle.getmembers():
                        content = bundle.extractfile(member)
                        yield f"{path}!{member.name}", content.read() if content else b""


def command_lines() -> Iterator[tuple[str, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield str(entry), (entry / "cmdline").read_bytes()
            except OSError:
                continue


def test_a_canary_is_found_nowhere(place: Arena, tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = tmp_path / "tool.py"
    script.write_text(TOOL.format(shown=SHOWN, done=str(done)))
    fighter = place.start_session((sys.executable, str(script)), environ={"VAULT_PASSWORD": GIVEN})
    secret = wait_for(fighter.open_prompt, "the password prompt")
    assert secret["constraints"]["secret"]
    told: list[str] = []
    answer = place.reply(secret["prompt_id"], TYPED)
    assert answer is not None and answer["ok"], answer
    question = wait_for(lambda: _other(fighter.open_prompt(), secret["prompt_id"]), "the question")
    told.append(str(question))
    answer = place.reply(question["prompt_id"], "y")
    assert answer is not None and answer["ok"], answer
    last = wait_for(lambda: _other(fighter.open_prompt(), question["prompt_id"]), "the last question")
    assert done.read_text() == f"{len(TYPED)} y", "the secret itself must have arrived"
    told += [str(last), str(place.ask("history")), str(place.entries()), str(place.ask("status"))]
    told += _commands(place)
    for canary in CANARIES:
        for place_told in told:
            assert canary not in place_told, f"{canary} in {place_told[:300]}"
        for name, data in (*everything_on_disk(place.home.root), *command_lines()):
            assert canary.encode() not in data, f"{canary} is in {name}"
    place.ask("kill", session_id=fighter.session_id, force=True)


def _other(prompt: dict[str, Any] | None, old: str) -> dict[str, Any] | None:
    return prompt if prompt and prompt["prompt_id"] != old else None


def _commands(place: Arena) -> list[str]:
    """What the commands print, and the bundle that people attach to a bug report."""
    told = []
    for words in (
        ["events", "--json"],
        ["ps", "--json"],
        ["logs"],
        ["audit", "show"],
        ["approvals", "--json"],
        ["debug", "bundle", "--output", str(place.home.root / "bundle.tar.gz")],
    ):
        command = [sys.executable, "-m", "atlasbridge", *words]
        done = subprocess.run(command, env=place.environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
        told.append(done.stdout + done.stderr)
    return told
