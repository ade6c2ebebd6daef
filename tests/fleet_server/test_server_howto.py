"""The commands of docs/howto/fleet.md, as they stand there: from nothing to two machines on one page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.support.postgres import Postgres, programs
from tests.support.sessions import end_all
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "fleet.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```sh (\w+)\n(.*?)```", PAGE, re.DOTALL))

(FILE,) = re.findall(r"```toml fleet.toml\n(.*?)```", PAGE, re.DOTALL)


class Story:
    """Shells on three computers: the server's and two machines'."""

    def __init__(self, root: Path, server: Postgres) -> None:
        self.root = root
        self.server = server
        self.url = "http://127.0.0.1:0"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
        path = f"{root / 'bin'}:{programs()}:{kept['PATH']}"
        self.environ = {**kept, "PATH": path, "PGHOST": str(server.folder), "PGUSER": "owner"}
        (root / "bin").mkdir()
        shim = root / "bin" / "atlasbridge"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m atlasbridge "$@"\n')
        shim.chmod(0o755)
        for name in ("bot", "app"):
            (root / f"slack-{name}").write_text(f"x{name[0]}-secret\n")
            (root / f"slack-{name}").chmod(0o600)
        (root / "fleet.toml").write_text(FILE.replace("/run/secrets", str(root)))
        (root / "team-policy.toml").write_text('[[rule]]\nname = "r"\nverdict = "deny"\ncommand = ["rm", "**"]\n')

    def sh(self, text: str, home: str = "server", **more: str) -> str:
        folder = self.root / home
        folder.mkdir(exist_ok=True)
        environ = {**self.environ, "ATLASBRIDGE_HOME": str(folder), "ATLASBRIDGE_FLEET_URL": self.url, **more}
        words = re.sub(r"^pip install .*\n", "", text, flags=re.MULTILINE)  # it is installed already
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", words],
            cwd=self.root,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def story(server: Postgres) -> Iterator[Story]:
    root = Path(tempfile.mkdtemp(prefix="ab-"))
    made = Story(root, server)
    yield made
    for home in ("one", "two"):
        if (root / home).exists():
            end_all(root / home)
    shutil.rmtree(root, ignore_errors=True)


def test_from_nothing_to_two_machines_on_one_page(story: Story) -> None:
    story.sh(BLOCKS["server"].replace("atlasbridge fleet serve &\n", ""))
    database = {"ATLASBRIDGE_FLEET_DATABASE": "postgresql:///atlasbridge"}
    words = ["atlasbridge", "fleet", "serve", "--port", "0"]
    environ = {**story.environ, **database}
    serving = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True, cwd=story.root)
    try:
        assert serving.stdout is not None
        story.url = serving.stdout.readline().split()[-1]
        link, first, second = story.sh(BLOCKS["people"], **database).splitlines()
        for home, command in (("one", first), ("two", second)):
            wanted = BLOCKS["machine"].replace(
                "atlasbridge fleet join 'http://127.0.0.1:8460/#TOKEN'", f"{command} --name {home}"
            )
            assert wanted != BLOCKS["machine"]
            story.sh(wanted, home)
            story.sh(BLOCKS["ask"].replace("> deployed", f"> {home}/deployed"), home)
        with httpx.Client(base_url=story.url, timeout=60) as alice:
            token = link.partition("#login=")[2]
            assert alice.post("/api/v1/login", json={"link": token}).status_code == 200
            wait_for(lambda: alice.get("/api/v1/prompts").json()["total"] == 2)
            shown = alice.get("/api/v1/prompts").json()["prompts"]
            named = {(one["session"]["machine"], one["session"]["label"]) for one in shown}
            assert named == {("one", "first"), ("two", "first")}
            for prompt in shown:
                told = alice.post(f"/api/v1/prompts/{prompt['prompt_id']}/reply", json={"value": "y"}).json()
                assert told["stage"] == "typed", told
        for home in ("one", "two"):
            answer = story.root / home / "deployed"
            wait_for(answer.exists)
            wait_for(partial(_says, answer, "y\n"))
        again = story.sh(
            "atlasbridge fleet people add alice 2>&1; atlasbridge fleet people add alice --admin", **database
        )
        assert "alice was an administrator, and is a member now." in again
        looked = story.sh(BLOCKS["look"].replace("atlasbridge hub status\n", ""), **database)
        assert looked.count("connected") == 2
        assert "server" in story.sh("atlasbridge hub status", "one")
        assert "bert" in story.sh(BLOCKS["rights"], **database)
        listed, token = story.sh(BLOCKS["logins"], **database).rsplit("\n", 2)[:2]
        assert "browser" in listed and token.startswith("abf_")
        read = httpx.get(f"{story.url}/api/v1/machines", headers={"authorization": f"Bearer {token}"}).json()
        assert {one["name"] for one in read["machines"]} == {"one", "two"}
        assert "Saved to fleet.dump" in story.sh(BLOCKS["backup"], **database)
        story.sh(BLOCKS["identities"], **database)
        told = story.sh(BLOCKS["chats"], FLEET_BOT_TOKEN="1:token", **database)
        assert "telegram" in told and "alice" in told and "each is told what they can see" in told
        story.sh(BLOCKS["rules"], **database)
        assert story.sh(BLOCKS["audit"], **database).count("whole, followed entry by entry") == 2
        assert "atlasbridge fleet join" in story.sh(BLOCKS["ephemeral"], **database)
        story.sh("atlasbridge leave", "one")
        story.sh("atlasbridge fleet revoke two", **database)
        assert "no machine" in story.sh("atlasbridge fleet machines", **database)
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait() == 0
        if serving.stdout is not None:
            serving.stdout.close()


def _says(path: Path, text: str) -> bool:
    return path.read_text() == text


def test_every_tested_block_of_the_page_is_known() -> None:
    known = {
        "server",
        "people",
        "machine",
        "ask",
        "look",
        "rights",
        "logins",
        "backup",
        "rules",
        "audit",
        "ephemeral",
        "identities",
        "chats",
    }
    assert set(BLOCKS) == known


def test_the_extras_that_the_page_names_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"install '\.\[([\w-]+)\]", PAGE)) == {"fleet-server", "fleet"} <= set(extras)
    assert set(extras["fleet"]) <= set(extras["fleet-server"])
