"""A whole path: a tool asks, somebody elsewhere answers, the keys are typed once.  Client, host and hub are real."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.operator import Operator
from tests.support.sessions import end_sessions, host_pids, wait_no_session
from tests.support.terminal import ATLASBRIDGE, Terminal, run_in
from tests.support.tier import first_of
from tests.support.waiting import wait_for, written

pytestmark = pytest.mark.zygote
ASK = 'read -p "Continue? (y/n) " a; echo got=$a; sleep 0.3'

# An editor of lines that takes digits alone: what it does not take it keeps, with the cursor back at its beginning.
PICKY = r"""
import os, tty
tty.setraw(0)
text, at = "", 0
while True:
    os.write(1, f"\x1b[2K\rNumber: {text}\x1b[{9 + at}G".encode())
    key = os.read(0, 4096).decode()
    while key:
        if key.startswith("\x1b[3~"):
            text, key = text[:at] + text[at + 1 :], key[4:]
            continue
        one, key = key[0], key[1:]
        if one == "\r" and text.isdigit():
            os.write(1, f"\r\ngot={text}\r\n".encode())
            raise SystemExit
        if one == "\r":
            at = 0
            os.write(1, b"\x1b[s\r\n\x1b[2Kdigits only\x1b[1A")
        elif one == "\x7f":
            text, at = text[: max(0, at - 1)] + text[at:], max(0, at - 1)
        else:
            text, at = text[:at] + one + text[at:], at + 1
"""


# Takes one key for each question, and shows which ones it got.
ONE_KEY = r"""
import os, tty
tty.setraw(0)
for name in ("first", "second", "third"):
    os.write(1, f"Remove the {name} folder? (yes/no) ".encode())
    key = os.read(0, 1).decode()
    os.write(1, f"\r\n{name}={key}.\r\n".encode())
"""

# Two editors that need Enter and draw more than the keys: a field with a caret of its own, a hidden cursor and a hint
# below it; and a letter that is explained in the line below while the cursor stays behind the letter.
FIELD = r"""
import os, tty
tty.setraw(0)
text = ""
os.write(1, b"\x1b[?25lName of the host\r\n")
while True:
    os.write(1, f"\x1b[2K> {text}\x1b[7m \x1b[0m\r\n\r\n(enter to confirm)".encode())
    key = os.read(0, 1).decode()
    if key == "\r":
        break
    text = text[:-1] if key in "\x7f\x15" else text + key
    os.write(1, b"\r\x1b[2K\x1b[2A")
os.write(1, f"\x1b[?25h\r\ngot={text}.\r\n".encode())
"""
EXPLAINED = r"""
import os, time, tty
tty.setraw(0)
text, names = "", {"y": "Overwrite", "a": "Overwrite all", "x": "Abort"}
while True:
    os.write(1, b"\x1b[2K\r")
    time.sleep(0.02)  # the line is empty for a moment
    os.write(1, f"? Conflict on file.js (yaxH) {text}".encode())
    if text:
        os.write(1, f"\r\n\x1b[2K>> {names.get(text, '?')}\x1b[1A\x1b[{len(text) + 30}G".encode())
    key = os.read(0, 1).decode()
    if key == "\r":
        break
    text = text[:-1] if key in "\x7f\x15" else text + key
os.write(1, f"\r\n\r\ngot={text}.\r\n".encode())
"""


@pytest.fixture
def operator(home: Path) -> Iterator[Operator]:
    person = Operator(home)
    person.start_hub()
    yield person
    end_sessions(home)
    person.command("hub", "stop")


def test_a_reply_from_elsewhere_is_typed_once(home: Path, operator: Operator) -> None:
    with run_in(home, "bash", "-c", ASK + "; read b; echo then=$b", options=()) as terminal:
        prompt = operator.open_prompt()
        assert prompt["type"] == "yes_no"
        assert operator.reply(prompt["prompt_id"], "y")[0] == 0
        terminal.wait_for("got=y")
        status, answer = operator.reply(prompt["prompt_id"], "y")
        assert status == 3
        assert answer["reason"] == "not_open"
        terminal.type(b"mine\r")
        terminal.wait_for("then=mine")
        terminal.wait_exit()


@pytest.mark.parametrize("words", first_of(["a   b", "abc"]))
def test_an_answer_that_the_tool_keeps_and_does_not_take_is_still_there_and_goes_before_the_next(
    home: Path, operator: Operator, words: str
) -> None:
    with run_in(home, sys.executable, "-c", PICKY, options=()) as terminal:
        prompt = operator.open_prompt()
        assert operator.reply(prompt["prompt_id"], words, "--text")[0] == 0
        terminal.wait_for("digits only")
        first = [prompt["prompt_id"]]
        wait_for(lambda: [one["prompt_id"] for one in operator.approvals()] not in ([], first), "being asked again")
        assert "still_there" in operator.command("audit", "show").stdout
        assert operator.reply(operator.open_prompt()["prompt_id"], "5", "--text")[0] == 0
        terminal.wait_for("got=5")
        assert f"got=5{words}" not in terminal.text()


def test_a_tool_that_takes_the_first_key_of_a_word_gets_no_more_and_that_is_told(
    home: Path, operator: Operator
) -> None:
    with run_in(home, sys.executable, "-c", ONE_KEY, options=()) as terminal:
        first = operator.open_prompt()
        status, answer = operator.reply(first["prompt_id"], "y")
        assert status == 0
        assert "the first key of" in answer["message"], answer
        terminal.wait_for("first=y.")
        second = operator.open_prompt()
        assert "Remove the second folder?" in second["excerpt"]
        assert "second=" not in terminal.text(), "the rest of the word was not typed"
        assert '"way":"first_key"' in operator.command("audit", "show", "--json").stdout.replace(" ", "")
        assert operator.reply(second["prompt_id"], "n")[0] == 0
        terminal.wait_for("second=n.")
        assert operator.reply(operator.open_prompt()["prompt_id"], "y")[0] == 0
        terminal.wait_for("third=y.")
        assert terminal.wait_exit() == 0


@pytest.mark.parametrize(("tool", "words"), [(FIELD, "alpha"), (EXPLAINED, "x")])
def test_an_answer_that_is_only_drawn_still_gets_its_enter(
    home: Path, operator: Operator, tool: str, words: str
) -> None:
    with run_in(home, sys.executable, "-c", tool, options=()) as terminal:
        status, answer = operator.reply(operator.open_prompt()["prompt_id"], words)
        assert status == 0
        assert "first key" not in answer["message"], answer
        terminal.wait_for(f"got={words}.")
        assert terminal.wait_exit() == 0


def test_the_address_of_the_page_is_shown_once(home: Path, operator: Operator) -> None:
    wait_for((home / "web.json").exists, "the page")
    shown = []
    for _ in range(2):
        with run_in(home, "echo", "hello", options=()) as terminal:
            terminal.wait_exit()
            shown.append("you can also answer at http://localhost:" in terminal.text())
    assert shown == [True, False]


def test_a_reply_after_the_person_typed_is_refused(home: Path, operator: Operator) -> None:
    with run_in(home, "bash", "-c", ASK + "; sleep 100", options=()) as terminal:
        prompt = operator.open_prompt()
        terminal.type(b"n\r")
        terminal.wait_for("got=n")
        wait_for(lambda: not operator.approvals(), "the prompt to be withdrawn")
        status, answer = operator.reply(prompt["prompt_id"], "y")
        assert status == 3
        assert answer["reason"] in ("not_open", "stale")
        assert "got=y" not in terminal.text()


def test_after_its_time_the_safe_default_is_typed(home: Path, operator: Operator) -> None:
    with run_in(home, "bash", "-c", ASK, options=("--ttl", "1")) as terminal:
        terminal.wait_for("got=n")
        assert terminal.wait_exit() == 0


def test_a_session_without_a_terminal_still_asks(home: Path, operator: Operator, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f'read -p "Your name: " a; echo "$a" >"{mark}"'
    with Terminal((*ATLASBRIDGE, "run", "--detach", "--", "bash", "-c", script), home) as starter:
        assert starter.wait_exit() == 0
    prompt = operator.open_prompt()
    assert prompt["type"] == "free_text"
    assert operator.reply(prompt["prompt_id"], "Ada Lovelace", "--text")[0] == 0
    assert written(mark) == "Ada Lovelace\n"
    wait_no_session(home)


def test_a_secret_is_asked_as_one(home: Path, operator: Operator) -> None:
    with run_in(
        home, "bash", "-c", 'read -s -p "Password: " a; echo; echo length=${#a}; sleep 0.3', options=()
    ) as terminal:
        prompt = operator.open_prompt()
        assert prompt["constraints"]["secret"] is True
        status, _ = operator.reply(prompt["prompt_id"], "-", stdin="hunter2")
        assert status == 0
        terminal.wait_for("length=7")
        assert "hunter2" not in terminal.text()
        terminal.wait_exit()
    for path in home.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()


def test_a_tool_that_waits_without_a_word_is_noticed(home: Path, operator: Operator) -> None:
    with run_in(home, "sh", "-c", "echo starting; read a; echo got=$a; sleep 0.3", options=()) as terminal:
        prompt = operator.open_prompt()
        assert operator.reply(prompt["prompt_id"], "hello", "--text")[0] == 0
        terminal.wait_for("got=hello")
        terminal.wait_exit()


def test_a_killed_hub_loses_nothing_and_the_tool_goes_on(home: Path, operator: Operator) -> None:
    with run_in(home, "bash", "-c", ASK, options=()) as terminal:
        prompt = operator.open_prompt()
        os.kill(operator.hub_pid(), signal.SIGKILL)
        assert terminal.is_raw()
        assert operator.command("hub", "start").returncode == 0
        again = operator.open_prompt()
        assert again["prompt_id"] == prompt["prompt_id"]
        assert operator.reply(again["prompt_id"], "y")[0] == 0
        terminal.wait_for("got=y")
        assert terminal.wait_exit() == 0


def test_a_hub_that_is_not_there_disturbs_nobody(home: Path) -> None:
    with run_in(home, "bash", "-c", ASK, options=("--no-hub",)) as terminal:
        terminal.wait_for("Continue?")
        terminal.type(b"y\r")
        terminal.wait_for("got=y")
        assert terminal.wait_exit() == 0


def test_kill_ends_the_whole_process_group(home: Path, operator: Operator, tmp_path: Path) -> None:
    stubborn = f"trap '' TERM; echo $$ >'{tmp_path}/child'; sleep 1000"
    script = f"trap '' TERM; (exec sh -c {shlex.quote(stubborn)}) & echo ready; wait; sleep 1000"
    with run_in(home, "sh", "-c", script, options=()) as terminal:
        terminal.wait_for("ready")
        wait_for(operator.sessions, "the session in the list")
        session = operator.sessions()[0]
        assert session["state"] == "active"
        assert session["attached"] is True
        assert operator.command("kill", session["session_id"][:8]).returncode == 0
        assert terminal.wait_exit() in (128 + signal.SIGKILL, 128 + signal.SIGHUP)
    child = int(written(tmp_path / "child"))
    wait_for(lambda: not Path(f"/proc/{child}").exists(), "the child to be gone")
    wait_no_session(home)


def test_the_list_of_sessions_knows_who_is_attached(home: Path, operator: Operator) -> None:
    with run_in(home, sys.executable, "-c", "input('name: ')", options=("--name", "my work")) as terminal:
        wait_for(operator.sessions, "the session in the list")
        session = operator.sessions()[0]
        assert (session["label"], session["attached"]) == ("my work", True)
        terminal.type(b"\x1dd")
        terminal.wait_exit()
        wait_for(lambda: operator.sessions()[0]["attached"] is False, "the session to be alone")
        assert len(host_pids(home)) == 1
