"""A session on a Windows console from other consoles, and what its tool's hooks say: over the session's line.

As in `test_console_session`, Unix plays Windows, and no process of ours finds what Python lacks there.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.like_windows import OperatorLikeWindows, environ_like_windows, run_on_console
from tests.support.terminal import ATLASBRIDGE, SCRIPT, Terminal
from tests.support.waiting import wait_for
from tests.trust.test_compared_exactly import drawn

from atlasbridge.core.peer import MARK

pytestmark = pytest.mark.landing

ASK = """
import os, sys
print("size", *os.get_terminal_size(), flush=True)
a = input("Overwrite the file? [y/N] ")
print("got=" + a, *os.get_terminal_size(), flush=True)
b = input("Your name: ")
print("then=" + b, flush=True)
sys.exit(7)
"""
TOOL = (
    SCRIPT
    + """import json, subprocess, sys
settings = json.loads(sys.argv[sys.argv.index("--settings") + 1])
hook = settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]
asked = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /tmp/x"}, "cwd": "/home/me"}
subprocess.run(hook, shell=True, input=json.dumps(asked).encode())
sys.stdout.write(open(sys.argv[-1], newline="").read()); sys.stdout.flush()
sys.stdin.readline()
"""
)


@pytest.fixture
def operator(home: Path) -> Iterator[OperatorLikeWindows]:
    (home / "config.toml").write_text("[channels.web]\nenabled = false\n")
    (home / "config.toml").chmod(0o600)
    person = OperatorLikeWindows(home)
    yield person
    person.command("hub", "stop")


def attach(home: Path, *words: str, **more: Any) -> Terminal:
    return Terminal((*ATLASBRIDGE, "attach", *words), home, env=environ_like_windows(), **more)


def test_another_console_shows_a_session_types_into_it_and_leaves_it(home: Path) -> None:
    with run_on_console(home, sys.executable, "-c", ASK, options=("--no-hub",)) as first:
        first.wait_for("Overwrite the file?")
        with attach(home) as second:
            second.wait_for("Overwrite the file?")
            second.type("y\r")
            second.wait_for("got=y")
            first.wait_for("got=y")
            first.wait_for("Your name:")
            second.type("\x1dd")
            assert second.wait_exit() == 120
            assert "detached; the session continues" in second.text()
        first.type("Ada\r")
        first.wait_for("then=Ada")
        assert first.wait_exit() == 7
    assert not list((home / "sessions").glob("*.tcp"))


def test_a_session_without_a_console_is_answered_from_elsewhere_and_shown_to_who_comes(
    home: Path, operator: OperatorLikeWindows
) -> None:
    words = ("run", "--backend", "conpty", "--detach", "--name", "job", "--", sys.executable, "-c", ASK)
    started = operator.command(*words)
    assert started.returncode == 0, started
    (session,) = operator.sessions()
    assert (started.stdout.strip(), session["label"], session["attached"]) == (session["session_id"], "job", False)
    prompt = operator.open_prompt()
    with attach(home, "job", rows=30, cols=100) as console:
        console.wait_for("Overwrite the file?")
        wait_for(lambda: operator.sessions()[0]["attached"], "the hub to know")
        assert operator.reply(prompt["prompt_id"], "y")[0] == 0
        console.wait_for("got=y 100 30")  # the console's own size
        console.type("Ada\r")
        console.wait_for("then=Ada")
        assert console.wait_exit() == 7
    wait_for(lambda: not operator.sessions(), "its end")


def test_a_session_outlives_the_console_that_showed_it(home: Path) -> None:
    with Terminal(
        (*ATLASBRIDGE, "run", "--backend", "conpty", "--detach", "--no-hub", "--", sys.executable, "-c", ASK),
        home,
        env=environ_like_windows(),
    ) as starter:
        assert starter.wait_exit() == 0
    with attach(home) as first:
        first.wait_for("Overwrite the file?")
        os.kill(first.pid, signal.SIGKILL)
    with attach(home) as second:
        second.wait_for("Overwrite the file?")
        second.type("n\rBob\r")
        second.wait_for("then=Bob")
        assert second.wait_exit() == 7


def test_what_cannot_start_without_a_console_is_said_to_who_asked_for_it(home: Path) -> None:
    done = OperatorLikeWindows(home).command("run", "--backend", "conpty", "--detach", "--", "no-such-program")
    assert done.returncode == 127 and "no-such-program could not be started" in done.stderr


def test_a_program_in_a_session_does_not_attach_to_one(home: Path) -> None:
    """Else a tool would type its own answers."""
    program = """if True:
        import os, subprocess, sys
        environ = {**os.environ, "ATLASBRIDGE_HOME": sys.argv[1]}
        words = [sys.executable, "-m", "atlasbridge", "attach", sys.argv[2] or os.environ[sys.argv[3]]]
        print(subprocess.run(words, env=environ, capture_output=True, text=True).stderr)
    """
    with run_on_console(home, sys.executable, "-c", ASK, options=("--no-hub", "--name", "other")) as other:
        other.wait_for("Overwrite the file?")
        (attach_socket,) = (home / "sessions").glob("*.tcp")
        for meant in (attach_socket.stem, ""):  # another session, and its own
            words = (sys.executable, "-c", program, str(home), meant, MARK)
            with run_on_console(home, *words, options=("--no-hub",)) as terminal:
                assert terminal.wait_exit() == 0
                assert "only a person types into one" in " ".join(terminal.text().split())


def test_an_attach_socket_that_a_killed_session_left_is_no_session(home: Path) -> None:
    with run_on_console(home, sys.executable, "-c", ASK, options=("--no-hub",)) as terminal:
        terminal.wait_for("Overwrite the file?")
        with attach(home) as console:
            console.wait_for("Overwrite the file?")
            os.kill(terminal.pid, signal.SIGKILL)
            assert console.wait_exit() == 1
            assert "the session host died" in console.text()
    with attach(home) as console:
        assert console.wait_exit() == 1
        assert "no session is running" in console.text()
    assert not list((home / "sessions").glob("*.tcp"))


def test_a_tools_hook_tells_in_full_what_is_asked(home: Path, operator: OperatorLikeWindows, tmp_path: Path) -> None:
    """It ends when the session has heard it; then the dialog is drawn."""
    tool, dialog = tmp_path / "claude", tmp_path / "dialog"
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    dialog.write_text(drawn("rm -rf /tmp/x"), newline="")
    with run_on_console(home, str(tool), str(dialog), rows=40):
        subject = wait_for(lambda: next((item["subject"] for item in operator.approvals()), None), "the dialog")
        assert (subject["text"], subject["source"], subject["complete"]) == ("rm -rf /tmp/x", "hook", True)
