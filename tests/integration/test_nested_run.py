"""A run inside a session: what waits there is raised once."""

from __future__ import annotations

import shlex
import sys

from tests.support.hubs import hub_process
from tests.support.sessions import wait_no_session
from tests.support.terminal import run_in
from tests.support.waiting import wait_for

ASKING = """
import sys
answer = input("Delete everything? (y/n) ")
print("got", answer)
"""


def test_what_a_nested_run_asks_is_raised_once_and_the_answer_arrives() -> None:
    with hub_process() as hub:
        # A tool does not inherit the home; most people have but one.
        same_home = f"ATLASBRIDGE_HOME={shlex.quote(str(hub.home.root))}"
        inner = (
            sys.executable,
            "-P",
            "-m",
            "atlasbridge",
            "run",
            "--name",
            "inner",
            "--",
            sys.executable,
            "-c",
            ASKING,
        )
        script = f"{same_home} {shlex.join(inner)}; true"
        with run_in(hub.home.root, "sh", "-c", script, options=("--name", "outer")) as terminal:
            terminal.wait_for("Delete everything? (y/n)")
            wait_for(hub.is_asked)
            (prompt,) = hub.ask("prompts")["prompts"]
            assert prompt["label"] == "outer"
            assert [item["label"] for item in hub.ask("sessions")["sessions"]] == ["outer"]
            assert hub.cli("reply", "outer", "y").returncode == 0
            terminal.wait_for("got y")
            assert terminal.wait_exit() == 0
        raised = [entry for entry in hub.json("audit", "show", "-n", "100") if entry["event"] == "PROMPT_DETECTED"]
        assert len(raised) == 1
        wait_no_session(hub.home.root)
