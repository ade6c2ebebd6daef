"""A session on a Windows console, as far as it runs without Windows: pywinpty, keys and locks are played by Unix, and
no process of ours finds anything that Python lacks on Windows.  Everything else is the product."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.like_windows import OperatorLikeWindows, environ_like_windows, run_on_console
from tests.support.page_client import API, enter_now
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for

pytestmark = pytest.mark.landing

NO_WEB = "[channels.web]\nenabled = false\n"
ASK = """
import sys
a = input("Overwrite the file? [y/N] ")
print("got=" + a, flush=True)
b = input("Your name: ")
print("then=" + b, flush=True)
sys.exit(7)
"""
CHANGING = """
import os, sys, time
sys.stdout.write("Delete a.txt? [y/N] "); sys.stdout.flush()
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
sys.stdout.write("\\x1b[2J\\x1b[HDelete everything? [y/N] "); sys.stdout.flush()
open(sys.argv[2], "w").close()
print("got=" + sys.stdin.readline(), flush=True)
"""


@pytest.fixture
def operator(home: Path) -> Iterator[OperatorLikeWindows]:
    (home / "config.toml").write_text(NO_WEB)
    (home / "config.toml").chmod(0o600)
    person = OperatorLikeWindows(home)
    yield person
    person.command("hub", "stop")


def test_a_question_on_a_console_is_raised_answered_elsewhere_and_typed_once(
    home: Path, operator: OperatorLikeWindows
) -> None:
    with run_on_console(home, sys.executable, "-c", ASK, options=("--name", "job")) as terminal:
        prompt = operator.open_prompt()
        assert (prompt["type"], prompt["label"]) == ("yes_no", "job")
        assert "Overwrite the file?" in prompt["excerpt"]
        assert operator.reply(prompt["prompt_id"], "y")[0] == 0
        terminal.wait_for("got=y")
        status, answer = operator.reply(prompt["prompt_id"], "y")
        assert (status, answer["reason"]) == (3, "not_open")
        wait_for(lambda: any("Your name" in item["excerpt"] for item in operator.approvals()), "the next question")
        terminal.type("Ada\r")
        terminal.wait_for("then=Ada")
        assert terminal.wait_exit() == 7
        assert terminal.text().count("got=y") == 1
    assert not (home / "hub.sock").exists() and (home / "hub.tcp").exists()
    audit = (home / "audit.log").read_text()
    assert audit.count('"REPLY_INJECTED"') == 1 and "PROMPT_RESOLVED" in audit


@pytest.mark.parametrize(
    "words", [("doctor",), ("doctor", "--json"), ("audit", "verify"), ("status", "--all"), ("ps",)]
)
def test_commands_do_without_what_windows_lacks(operator: OperatorLikeWindows, words: tuple[str, ...]) -> None:
    assert operator.command("hub", "start").returncode == 0
    done = operator.command(*words)
    assert done.returncode in (0, 1) and done.stdout and "internal error" not in done.stderr, done


def test_a_hub_in_the_foreground_is_waited_for(home: Path, operator: OperatorLikeWindows) -> None:
    with Terminal((*ATLASBRIDGE, "hub", "start", "--foreground"), home, env=environ_like_windows()) as terminal:
        wait_for((home / "hub.tcp").exists, "the hub")
        assert operator.command("hub", "stop").returncode == 0
        assert terminal.wait_exit() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("demo",),
        ("hub", "install"),
        ("shim", "add", "claude"),
        ("lab", "record", "--", "true"),
        ("attach", "--watch", "x"),
    ],
)
def test_what_is_there_on_unix_alone_says_so(operator: OperatorLikeWindows, words: tuple[str, ...]) -> None:
    done = operator.command(*words)
    assert done.returncode == 1 and done.stdout == ""
    assert "works on Unix only" in done.stderr and len(done.stderr.splitlines()) <= 2, done


def test_a_script_asks_there_as_anywhere(operator: OperatorLikeWindows) -> None:
    done = operator.command("ask", "--ttl", "1", "Deploy?")
    assert done.returncode == 4 and "internal error" not in done.stderr, done


def test_the_page_shows_the_console_and_answers_it(home: Path) -> None:
    (home / "config.toml").write_text("[channels.web]\nport = 0\n")
    (home / "config.toml").chmod(0o600)
    operator = OperatorLikeWindows(home)
    with run_on_console(home, sys.executable, "-c", ASK) as terminal:
        prompt = operator.open_prompt()
        wait_for((home / "web.json").exists, "the page")
        link = json.loads(operator.command("web", "--no-open", "--json").stdout)["links"]["local"]
        with httpx.Client(base_url=link.split("/#")[0], timeout=30) as page:
            enter_now(page, link)
            screen = page.get(f"{API}/sessions/{prompt['session_id']}/screen").json()
            assert "Overwrite the file?" in json.dumps(screen)
            answer = page.post(f"{API}/prompts/{prompt['prompt_id']}/reply", json={"value": "y"})
            assert answer.status_code == 200, answer.text
        terminal.wait_for("got=y")
        terminal.type("Ada\r")
        assert terminal.wait_exit() == 7
        assert terminal.text().count("got=y") == 1
    operator.command("hub", "stop")


def test_what_was_typed_at_the_console_withdraws_the_question(home: Path, operator: OperatorLikeWindows) -> None:
    with run_on_console(home, sys.executable, "-c", ASK + "\nimport time; time.sleep(60)") as terminal:
        prompt = operator.open_prompt()
        terminal.type("n\r")
        terminal.wait_for("got=n")
        status, answer = operator.reply(prompt["prompt_id"], "y")
        assert status == 3 and answer["reason"] in ("not_open", "stale")
        assert "got=y" not in terminal.text()


def test_an_answer_to_what_is_no_longer_on_the_screen_is_not_typed(
    home: Path, operator: OperatorLikeWindows, tmp_path: Path
) -> None:
    change, changed = tmp_path / "change", tmp_path / "changed"
    words = (sys.executable, "-c", CHANGING, str(change), str(changed))
    with run_on_console(home, *words) as terminal:
        prompt = operator.open_prompt()
        terminal.wait_for("Delete a.txt?")
        change.touch()
        wait_for(changed.exists, "the other question")
        status, answer = operator.reply(prompt["prompt_id"], "y")
        assert status == 3 and answer["reason"] in ("stale", "not_open"), answer
        terminal.wait_for("Delete everything?")
        assert "got=" not in terminal.text()
        other = wait_for(
            lambda: next((item for item in operator.approvals() if "everything" in item["excerpt"]), None), "it"
        )
        assert operator.reply(other["prompt_id"], "n")[0] == 0
        terminal.wait_for("got=n")


def test_after_kill_9_of_the_hub_the_session_starts_the_next_and_says_what_is_open(
    home: Path, operator: OperatorLikeWindows
) -> None:
    with run_on_console(home, sys.executable, "-c", ASK) as terminal:
        before = operator.open_prompt()
        pid = operator.hub_pid()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: [item for item in operator.approvals() if operator.hub_pid() != pid], "the next hub")
        (after,) = operator.approvals()
        assert after["prompt_id"] == before["prompt_id"]
        assert operator.reply(after["prompt_id"], "n")[0] == 0
        terminal.wait_for("got=n")


def test_a_hub_ends_the_program_and_the_console_has_its_status(home: Path, operator: OperatorLikeWindows) -> None:
    program = "import time; print('up', flush=True); time.sleep(600)"
    with run_on_console(home, sys.executable, "-c", program) as terminal:
        terminal.wait_for("up")
        (session,) = wait_for(operator.sessions, "the session")
        assert operator.command("kill", session["session_id"]).returncode == 0
        assert terminal.wait_exit() != 0
    wait_for(lambda: not operator.sessions(), "its end to be known")


def test_the_console_has_its_size_and_every_byte(home: Path) -> None:
    program = """if True:
        import os, time
        print(os.get_terminal_size(), flush=True)
        while os.get_terminal_size().columns == 100: time.sleep(0.02)
        print(os.get_terminal_size(), input(), flush=True)
    """
    with run_on_console(home, sys.executable, "-c", program, options=("--no-hub",), rows=30, cols=100) as terminal:
        terminal.wait_for("columns=100, lines=30")
        terminal.resize(20, 60)
        terminal.type("ü€😀\r")
        terminal.wait_for("columns=60, lines=20) ü€😀")
        assert terminal.wait_exit() == 0


def test_nobody_is_asked_without_a_hub(home: Path) -> None:
    program = "print('done:' + input('Go on? [y/n] '))"
    with run_on_console(home, sys.executable, "-c", program, options=("--no-hub",)) as terminal:
        terminal.wait_for("Go on?")
        terminal.type("yes\r")
        terminal.wait_for("done:yes")
        assert terminal.wait_exit() == 0
    assert not (home / "hub.tcp").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--channel", "nonsense"], "nonsense"), (["--dialect", "nonsense"], "nonsense")],
)
def test_what_cannot_be_had_is_said_before_anything_starts(home: Path, options: list[str], words: str) -> None:
    with run_on_console(home, "true", options=options) as terminal:
        assert terminal.wait_exit() != 0
        assert words in terminal.text()


def test_a_program_that_is_not_there_is_named(home: Path) -> None:
    with run_on_console(home, "no-such-program", options=("--no-hub",)) as terminal:
        assert terminal.wait_exit() == 127
        assert "no-such-program could not be started" in terminal.text()
