"""What is wrong with an adapter is found before a session needs it, and one that is broken hides no other."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.support.hubs import hub_process
from tests.support.sessions import stop_process
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for

from atlasbridge.adapters.dialect_files import dialect_for
from atlasbridge.adapters.listing import describe_adapters, find_faults
from atlasbridge.cli.doctor import check_adapters
from atlasbridge.core.home import Home

WHOLE = """
from atlasbridge.adapters.pty import PtyAdapter as GenericAdapter


class Own(GenericAdapter):
    TOOL_NAME = "whole"
"""
LACKING = """
from atlasbridge.adapters.base import BaseAdapter


class Own(BaseAdapter):
    pass
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "ab")
    found.prepare()
    for name in ("adapters", "dialects"):
        (found.root / name).mkdir(mode=0o700, exist_ok=True)
    return found


def keep(home: Home, place: str, text: str) -> None:
    path = home.root / place
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)


def test_what_is_packaged_and_what_is_whole_has_no_fault(home: Home) -> None:
    keep(home, "adapters/whole.py", WHOLE)
    assert find_faults(home.root) == {}
    listed = {item["name"]: item for item in describe_adapters(home.root)}
    assert (listed["whole"]["from"], listed["whole"]["health"]) == (str(home.root / "adapters/whole.py"), "ok")
    assert (listed["claude"]["from"], listed["claude"]["health"]) == ("built-in", "ok")


@pytest.mark.parametrize(
    ("place", "text", "says"),
    [
        ("adapters/bad.py", "def (", "SyntaxError"),
        ("adapters/bad.py", "import no_such_module", "No module named"),
        ("adapters/bad.py", "x = 1", "defines no class"),
        ("adapters/bad.py", "import sys; sys.exit(0)", "ends the program"),
        ("adapters/bad.py", LACKING, "lacks await_input_state, detect_prompt"),
        ("adapters/bad/prepare.py", "x = 1", "no function called prepare"),
        ("adapters/bad/dialect.toml", "nonsense = [", "Invalid value"),
        ("dialects/bad.toml", 'name = "other"', "other"),
    ],
)
def test_each_fault_is_told_and_hides_no_other_adapter(home: Home, place: str, text: str, says: str) -> None:
    keep(home, place, text)
    (found,) = find_faults(home.root).items()
    assert found[0] == "bad" and says in found[1]
    listed = {item["name"]: item["health"] for item in describe_adapters(home.root)}
    assert listed["bad"] == found[1]
    assert listed["claude"] == "ok"
    broken, summary = check_adapters(home)
    assert (broken.name, broken.state, broken.detail) == ("adapter bad", "fault", found[1])
    assert str(home.root) in broken.hint
    assert summary.state == "ok"


def test_a_file_of_rules_that_is_no_text_keeps_no_tool_from_starting(home: Home) -> None:
    (home.root / "dialects" / "odd.toml").write_bytes(b"\xff\xfe\x00")
    assert dialect_for("claude", home.root / "dialects") == "claude"
    assert "cannot be read" in find_faults(home.root)["odd"]


def test_status_tells_how_a_session_is_doing_and_which_adapter_is_broken() -> None:
    with hub_process() as hub:
        folder = hub.home.root / "adapters"
        folder.mkdir(mode=0o700)
        (folder / "bad.py").write_text("def (")
        with Terminal((*ATLASBRIDGE, "run", "--", "cat"), hub.home.root, env=hub.environ):
            wait_for(lambda: len(hub.ask("sessions")["sessions"]) == 1)
            (session,) = hub.ask("sessions")["sessions"]
            wait_for(lambda: hub.ask("health")["sessions"] == {session["session_id"]: "ok"}, "a healthy session")
            told = hub.cli("status")
            assert "SyntaxError" in told.stdout and "host does not answer" not in told.stdout, told.stderr
            stop_process(session["host_pid"])
            try:
                assert hub.ask("health")["sessions"] == {session["session_id"]: "its host does not answer"}
                assert "its host does not answer" in hub.cli("status").stdout
            finally:
                os.kill(session["host_pid"], signal.SIGCONT)
            wait_for(lambda: hub.ask("health")["sessions"] == {session["session_id"]: "ok"}, "a healthy session")
