"""Leaving a session and coming back to it, from this terminal or another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.hubs import hub_process
from tests.support.sessions import host_pids, wait_no_session
from tests.support.terminal import ATLASBRIDGE, PYTHON, Terminal, run_in
from tests.support.waiting import wait_for

PAINTED = """
import os, signal, sys, tty
def put(text):  # a new size can come in the midst of it, which `print` does not bear
    os.write(1, text.encode())
def draw(*_):
    cols, rows = os.get_terminal_size()
    put("\\x1b[?1049h\\x1b[?2004h\\x1b[?1000h\\x1b[?1h\\x1b[2J\\x1b[1;1H\\x1b[1;31m"
        "title %dx%d\\x1b[0m\\x1b[5;10Hfield: " % (cols, rows))
tty.setraw(0)
signal.signal(signal.SIGWINCH, draw)
draw()
while True:
    key = os.read(0, 100)
    if key == b"q":
        put("\\x1b[?1049l\\x1b[?2004l\\x1b[?1000l\\x1b[?1lbye\\r\\n")
        sys.exit(9)
    put(key.decode())
"""


def attach(home: Path, name: str = "", rows: int = 24, cols: int = 80) -> Terminal:
    return Terminal((*ATLASBRIDGE, "attach", *([name] if name else [])), home, rows, cols)


def session_name(home: Path) -> str:
    wait_for(lambda: list((home / "sessions").glob("*.sock")), "the session's socket")
    return next((home / "sessions").glob("*.sock")).stem


def test_a_tool_that_hides_what_does_not_fit_is_tall_while_no_terminal_is_attached(home: Path, tmp_path: Path) -> None:
    """Gemini CLI hides the lines of a command that its window has no room for."""
    gemini, told = tmp_path / "gemini", tmp_path / "told"
    # Not in a trap: bash forgets a signal that comes while its trap runs.
    tell = f'stty size > "{told}.new"; mv "{told}.new" "{told}"'
    gemini.write_text(f"#!/bin/bash\n{tell}; echo ready\nwhile :; do {tell}; sleep 0.05; done\n")
    gemini.chmod(0o755)

    def size() -> list[str]:
        return told.read_text().split() if told.exists() else []

    with run_in(home, str(gemini)) as first:
        first.wait_for("ready")
        assert size() == ["24", "80"]
        first.type(b"\x1dd")
        assert first.wait_exit() == 120
    wait_for(lambda: size() == ["240", "80"], "the height that it needs")
    with attach(home, session_name(home), rows=30, cols=100):
        wait_for(lambda: size() == ["30", "100"], "the terminal's size")
    wait_for(
        lambda: size() == ["240", "100"], "the height that it needs, and the width of the terminal that was closed"
    )


def test_the_detach_key_leaves_and_attach_comes_back_redrawn(home: Path) -> None:
    with run_in(home, sys.executable, "-c", PAINTED) as first:
        first.wait_for("field:")
        first.type(b"abc")
        first.wait_for("field: abc")
        first.type(b"\x1dd")
        assert first.wait_exit() == 120
        assert "detached" in first.text()
        assert first.settings() == first.settings_before
        assert not first.screen.alternate
        assert not {2004, 1000, 1} & set(first.screen.modes)
    with attach(home, session_name(home)) as second:
        second.wait_for("field: abc")
        assert second.screen.alternate
        assert {2004, 1000, 1} <= set(second.screen.modes)
        assert second.screen.lines()[0].startswith("title 80x24")
        assert second.screen.cursor == (4, 19)
        assert second.screen.style(0, 0) & 1, "bold is kept"
        second.type(b"d")
        second.wait_for("field: abcd")
        second.type(b"q")
        assert second.wait_exit() == 9
        assert second.settings() == second.settings_before
    wait_no_session(home)


def test_the_words_after_a_detach_are_below_what_was_on_the_terminal_before(home: Path) -> None:
    """`run` begins where the terminal's cursor is, not in its first row."""
    run = (*ATLASBRIDGE, "run", "--no-hub", "sh", "-c", "printf 'asks: '; exec sleep 1000")
    with Terminal(("sh", "-c", 'seq 8; "$@"', "sh", *run), home) as terminal:
        terminal.wait_for("asks:")
        terminal.type(b"\x1dd")
        assert terminal.wait_exit() == 120
        lines = [line.rstrip() for line in terminal.screen.lines()]
        assert lines[:9] == [*map(str, range(1, 9)), "asks:"]
        assert lines[9].startswith("atlasbridge: detached")


def test_the_prefix_twice_sends_it_once_and_other_keys_follow_it(home: Path) -> None:
    script = """
import os, tty
tty.setraw(0)
os.write(1, b"ready")
data = b""
while len(data) < 4:
    data += os.read(0, 9)
os.write(1, data.hex().encode())
"""
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_for("ready")
        terminal.type(b"\x1d\x1d")
        terminal.type(b"\x1dx")
        terminal.type(b"y")
        terminal.wait_exit()
        assert "1d1d7879" in terminal.text()


def test_a_terminal_of_another_size_makes_the_tool_draw_again(home: Path) -> None:
    with run_in(home, sys.executable, "-c", PAINTED) as first:
        first.wait_for("field:")
        first.type(b"\x1dd")
        first.wait_exit()
    with attach(home, rows=30, cols=100) as second:
        second.wait_for("title 100x30")
        second.type(b"q")
        assert second.wait_exit() == 9


def test_the_newest_terminal_takes_over_and_the_older_one_is_told(home: Path) -> None:
    with run_in(home, sys.executable, "-c", PAINTED) as first:
        first.wait_for("field:")
        with attach(home) as second:
            assert first.wait_exit() == 120
            assert "taken over" in first.text()
            assert first.settings() == first.settings_before
            assert not first.screen.alternate
            second.wait_for("field:")
            second.type(b"z")
            second.wait_for("field: z")
            second.type(b"q")
            assert second.wait_exit() == 9


def test_a_session_whose_client_was_killed_can_be_attached_again(home: Path) -> None:
    first = run_in(home, sys.executable, "-c", PAINTED)
    first.wait_for("field:")
    first.kill(signal.SIGKILL)
    first.wait_until(lambda: first.settings() == first.settings_before, "the old settings")
    first.close()
    with attach(home) as second:
        second.wait_for("field:")
        second.type(b"q")
        assert second.wait_exit() == 9


def test_a_detached_session_is_shown_as_it_stands(home: Path) -> None:
    with Terminal(
        (*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", "sh", "-c", "echo hello; read a; exit 4"), home
    ) as starter:
        assert starter.wait_exit() == 0
    with attach(home) as terminal:
        terminal.wait_for("hello")
        terminal.type(b"\r")
        assert terminal.wait_exit() == 4


def test_attaching_to_nothing_says_so(home: Path) -> None:
    with attach(home, "12345678") as terminal:
        assert terminal.wait_exit() == 1
        assert "there is no session '12345678'" in terminal.text()


def test_a_socket_without_a_host_is_swept_away(home: Path) -> None:
    with run_in(home, "sleep", "100") as terminal:
        terminal.wait_raw()
        os.kill(host_pids(home)[0], signal.SIGKILL)
        terminal.wait_exit()
    with attach(home) as terminal:
        assert terminal.wait_exit() == 1
    assert not list((home / "sessions").glob("*.sock"))


def test_several_sessions_need_a_name(home: Path) -> None:
    for _ in range(2):
        with Terminal((*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", "sleep", "100"), home) as starter:
            starter.wait_exit()
    with attach(home) as terminal:
        assert terminal.wait_exit() == 1
        assert "several sessions are running" in terminal.text()


def test_a_tool_that_stops_itself_gives_the_terminal_back_until_it_continues(home: Path) -> None:
    script = "echo before; kill -STOP $$; echo after; exit 6"
    with Terminal(("bash", "--norc", "-i"), home, env={"PS1": "$ "}) as terminal:
        terminal.wait_for("$")
        terminal.type(f"{PYTHON} -m atlasbridge run --no-hub -- sh -c '{script}'\r")
        terminal.wait_for("Stopped")
        terminal.type(b"fg; echo status=$?\r")
        terminal.wait_for("status=6")
        assert "after" in terminal.text()
        terminal.type(b"exit\r")
        terminal.wait_exit()


def test_a_session_is_not_shown_inside_itself(home: Path) -> None:
    with run_in(home, "bash", "--norc", "-i", env={"PS1": "$ ", "INNER_HOME": str(home)}) as terminal:
        terminal.wait_for("$")
        terminal.type(f"ATLASBRIDGE_HOME=$INNER_HOME {PYTHON} -m atlasbridge attach; echo status=$?\r")
        terminal.wait_for("status=1")
        assert "only a person types" in terminal.text()
        terminal.type(b"exit\r")
        assert terminal.wait_exit() == 0


LONG = """
for n in range(60):
    print("line %02d" % n)
input("what next? ")
"""


def test_a_terminal_that_attaches_gets_what_scrolled_off_and_leaving_says_so_on_a_line_of_its_own(home: Path) -> None:
    with run_in(home, sys.executable, "-c", LONG) as first:
        first.wait_for("what next?")
        first.type(b"\x1dd")
        assert first.wait_exit() == 120
        lines = [line for line in first.text().splitlines() if line.strip()]
        said = next(number for number, line in enumerate(lines) if line.startswith("atlasbridge: detached"))
        assert lines[said - 1].rstrip() == "what next?"
    with attach(home) as second:
        second.wait_for("what next?")
        past = [line for line in second.screen.history if line.startswith("line ")]
        assert past == [f"line {n:02}" for n in range(60 - 23)], (
            "once, in order, and what is on the screen is not in it"
        )
        assert "line 59" in second.text() and "line 36" not in second.text()
        second.type(b"\r")
        assert second.wait_exit() == 0


def test_a_message_below_a_cursor_that_stands_higher_up_overwrites_nothing(home: Path) -> None:
    script = "import sys; sys.stdout.write('one\\r\\ntwo\\r\\nthree\\x1b[1;4H'); sys.stdout.flush(); input()"
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_for("three")
        terminal.type(b"\x1dd")
        assert terminal.wait_exit() == 120
        assert terminal.text().splitlines()[:3] == ["one", "two", "three"]
        assert terminal.text().splitlines()[3].startswith("atlasbridge: detached")
    with attach(home) as again:
        again.wait_for("three")
        again.type(b"\r")
        assert again.wait_exit() == 0


def test_an_onlooker_sees_the_session_and_no_key_of_theirs_reaches_it() -> None:
    with hub_process() as hub:
        script = "printf '\\033[31mred\\033[0m Name: '; read a; echo got $a; read b"
        command = ("sh", "-c", script)
        with run_in(hub.home.root, *command, options=("--name", "shown", "--channel", "none")) as first:
            first.wait_for("Name:")
            first.wait_until(lambda: hub.ask("sessions")["sessions"], "the hub to know the session")
            with Terminal((*ATLASBRIDGE, "attach", "--watch", "shown"), hub.home.root, 12, 60) as screen_viewer:
                screen_viewer.wait_for("red Name:")
                screen_viewer.wait_for("watching")
                screen_viewer.type(b"mallory\r")
                first.type(b"alice\r")
                screen_viewer.wait_for("got alice")
                screen_viewer.type(b"\x03")
                assert screen_viewer.wait_exit() == 0
                assert screen_viewer.settings() == screen_viewer.settings_before and not screen_viewer.screen.alternate
            first.wait_for("got alice")
            assert "mallory" not in first.text()
            first.type(b"\r")
            assert first.wait_exit() == 0
        wait_no_session(hub.home.root)


def test_what_fills_the_window_asks_the_window_for_its_size_and_not_the_environment() -> None:
    elsewhere = {"LINES": "24", "COLUMNS": "80"}
    with hub_process() as hub:
        command = ("sh", "-c", "echo at the top; read a")
        with run_in(hub.home.root, *command, options=("--name", "shown", "--channel", "none")) as first:
            first.wait_for("at the top")
            first.wait_until(hub.is_asked, "the question")
            for words, foot in ((("attach", "--watch", "shown"), "watching"), (("approvals",), "choose")):
                with Terminal((*ATLASBRIDGE, *words), hub.home.root, 12, 60, elsewhere) as screen_viewer:
                    screen_viewer.wait_for(foot)
                    assert screen_viewer.screen.lines()[0].strip(), f"{words}: its first row has scrolled away"
                    screen_viewer.type(b"\x03")
                    assert screen_viewer.wait_exit() == 0
            first.type(b"\r")
            assert first.wait_exit() == 0
        wait_no_session(hub.home.root)


def test_attach_without_a_terminal_is_refused_and_the_session_does_not_notice(home: Path) -> None:
    with run_in(home, "sh", "-c", "echo ready; read line; echo got=$line") as terminal:
        terminal.wait_for("ready")
        words = [*ATLASBRIDGE, "attach", session_name(home)]
        environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
        done = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 2
        assert "needs a terminal" in done.stderr and "ssh -t" in done.stderr
        terminal.type(b"me\r")
        terminal.wait_for("got=me")
        assert terminal.wait_exit() == 0


def test_two_terminals_share_a_session_and_enter_takes_the_keyboard() -> None:
    with hub_process() as hub, run_in(hub.home.root, sys.executable, "-c", PAINTED, options=("--name", "x")) as first:
        first.wait_for("field:")
        wait_for(lambda: len(hub.ask("sessions")["sessions"]) == 1)
        with attach(hub.home.root, "x", 20, 70) as second:
            first.wait_for("another terminal has the keyboard")
            second.wait_for("title 70x20")
            second.type(b"z")
            second.wait_for("field: z")
            first.wait_for("field: z")
            first.type(b"k")  # no key of this terminal reaches the tool
            first.type(b"\r")
            first.wait_for("title 80x24")
            second.wait_for("another terminal has the keyboard")
            first.type(b"w")
            first.wait_for("field: w")
            second.wait_for("field: w")
            first.type(b"q")
            assert first.wait_exit() == 9 and second.wait_exit() == 9, "both exit as the tool did"
            assert second.settings() == second.settings_before and not second.screen.alternate


def test_stealing_a_session_detaches_the_other_terminal() -> None:
    with hub_process() as hub, run_in(hub.home.root, sys.executable, "-c", PAINTED, options=("--name", "x")) as first:
        first.wait_for("field:")
        wait_for(lambda: len(hub.ask("sessions")["sessions"]) == 1)
        with Terminal((*ATLASBRIDGE, "attach", "--steal", "x"), hub.home.root) as second:
            assert first.wait_exit() == 120 and "taken over" in first.text()
            second.wait_for("field:")
            second.type(b"q")
            assert second.wait_exit() == 9


def test_stealing_a_session_also_detaches_a_terminal_that_only_shows_it() -> None:
    with hub_process() as hub, run_in(hub.home.root, sys.executable, "-c", PAINTED, options=("--name", "x")) as first:
        first.wait_for("field:")
        wait_for(lambda: len(hub.ask("sessions")["sessions"]) == 1)
        with attach(hub.home.root, "x") as second:
            first.wait_for("another terminal has the keyboard")
            with Terminal((*ATLASBRIDGE, "attach", "--steal", "x"), hub.home.root) as third:
                assert second.wait_exit() == 120 and first.wait_exit() == 120
                assert "taken over" in first.text() and "taken over" in second.text()
                assert first.settings() == first.settings_before and not first.screen.alternate
                third.wait_for("field:")
                third.type(b"q")
                assert third.wait_exit() == 9
