"""`setup` for Matrix and for services that only tell: from nothing to a tap that arrives, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.channels.test_setup import environ
from tests.support.fake_matrix import ROOM, TOKEN, FakeMatrix

ADA = "@ada:fake"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def table(home: Path, channel: str) -> dict[str, Any]:
    return dict(tomllib.loads((home / "config.toml").read_text())["channels"][channel])


def setup(home: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "atlasbridge", "setup", "--non-interactive", *words]
    return subprocess.Popen(
        command, env={**environ(home), **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def matrix(home: Path, server: FakeMatrix, *more: str, token: str = TOKEN) -> subprocess.Popen[str]:
    words = ("--channel", "matrix", "--api-url", server.url, "--token-env", "MX", "--user", ADA)
    return setup(home, *words, *more, MX=token)


def test_matrix_gets_a_room_of_its_own_and_a_tap_that_arrives(home: Path) -> None:
    with FakeMatrix() as server:
        process = matrix(home, server, "--timeout", "60")
        server.wait_for(lambda: [e for e in server.events if "do you see this" in str(e["content"])], "the test")
        asked = next(e for e in server.events if "do you see this" in str(e["content"]))
        server.react("@eve:fake", asked["event_id"], "✅")
        server.react(ADA, asked["event_id"], "✅")
        said, _ = process.communicate()
        assert process.returncode == 0 and "your tap arrived" in said, said
        (made,) = [call.params for call in server.calls if call.method == "createRoom"]
        assert made["invite"] == [ADA] and made["preset"] == "private_chat"
        written = table(home, "matrix")
        assert (written["room"], written["allowed_users"], written["access_token"]) == (ROOM, [ADA], "env:MX")
        assert written["homeserver"] == server.url and TOKEN not in (home / "config.toml").read_text()


def test_an_encrypted_room_and_a_bad_token_are_refused_and_nothing_is_written(home: Path) -> None:
    with FakeMatrix() as server:
        server.encrypted = True
        said, _ = matrix(home, server, "--room", ROOM, "--no-test").communicate()
        assert "this room is encrypted" in said and "without encryption" in said
        server.encrypted = False
        said, _ = matrix(home, server, "--room", ROOM, "--no-test", token="wrong").communicate()
        assert "M_UNKNOWN_TOKEN" in said
        assert not (home / "config.toml").exists() or "matrix" not in (home / "config.toml").read_text()


def test_a_room_that_is_there_already_is_used(home: Path) -> None:
    with FakeMatrix() as server:
        process = matrix(home, server, "--room", ROOM, "--no-test")
        said, _ = process.communicate()
        assert process.returncode == 0, said
        assert not [call for call in server.calls if call.method == "createRoom"]
        assert table(home, "matrix")["room"] == ROOM


def test_an_address_that_only_tells_is_tried_and_written_by_its_place(home: Path) -> None:
    process = setup(home, "--channel", "tell", "--token-env", "TELL", "--no-test", TELL="json://127.0.0.1:1/x")
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert table(home, "tell")["urls"] == ["env:TELL"]
    refused = setup(home, "--channel", "tell", "--token-env", "TELL", TELL="json://127.0.0.1:1/x")
    said, _ = refused.communicate()
    assert refused.returncode != 0 and "did not take a test message" in said
    unknown = setup(home, "--channel", "tell", "--token-env", "TELL", TELL="nothing://x")
    said, _ = unknown.communicate()
    assert unknown.returncode == 2 and "Apprise does not know" in said
