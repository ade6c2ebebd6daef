"""`atlasbridge run`: exit statuses, arguments, environment, size and signals are the tool's own business."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.support.sessions import terminal_is_lent
from tests.support.terminal import ATLASBRIDGE, PYTHON, Terminal, run_in
from tests.support.waiting import wait_for


@pytest.mark.parametrize("status", [0, 1, 7, 126, 255])
def test_exit_status_is_passed_on(home: Path, status: int) -> None:
    with run_in(home, "sh", "-c", f"exit {status}") as terminal:
        assert terminal.wait_exit() == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_death_by_a_signal_is_128_and_its_number(home: Path, number: int) -> None:
    with run_in(home, "sh", "-c", f"kill -{int(number)} $$") as terminal:
        assert terminal.wait_exit() == 128 + number


def test_a_missing_program_is_said_in_one_line_with_127(home: Path) -> None:
    with run_in(home, "no-such-program-here") as terminal:
        assert terminal.wait_exit() == 127
        assert "no-such-program-here was not found" in terminal.text()
        assert terminal.settings() == terminal.settings_before


def test_a_file_that_may_not_be_executed_gives_126(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    with run_in(home, str(script)) as terminal:
        assert terminal.wait_exit() == 126


def test_a_script_with_a_missing_interpreter_gives_126(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with run_in(home, str(script)) as terminal:
        assert terminal.wait_exit() == 126
        assert "interpreter" in terminal.text()


@pytest.mark.parametrize("words", [[], ["--"], ["--ttl", "soon", "true"], ["--no-such-option", "true"], ["--ttl"]])
def test_a_command_line_that_makes_no_sense_gives_usage_and_2(home: Path, words: list[str]) -> None:
    done = subprocess.run(
        [*ATLASBRIDGE, "run", *words], env={**os.environ, "ATLASBRIDGE_HOME": str(home)}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "usage: atlasbridge run" in done.stderr


def test_help_is_printed_without_starting_anything(home: Path) -> None:
    before = sorted((home / "sessions").glob("*"))
    done = subprocess.run(
        [*ATLASBRIDGE, "run", "--help"],
        env={**os.environ, "ATLASBRIDGE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "--detach" in done.stdout
    assert sorted((home / "sessions").glob("*")) == before


def test_arguments_arrive_as_they_were_given(home: Path) -> None:
    words = ["a b", "", "--name", "$HOME", "*", "é\n", "--"]
    with Terminal(
        (*ATLASBRIDGE, "run", "--no-hub", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words),
        home,
        cols=200,
    ) as terminal:
        terminal.wait_exit()
        assert terminal.text() == repr(words)


def test_the_tool_has_a_controlling_terminal_with_the_right_size_at_once(home: Path) -> None:
    with run_in(
        home,
        "sh",
        "-c",
        "stty size </dev/tty; tty; ps -o tpgid= -p $$ | grep -q '[1-9]' && echo ctty",
        rows=37,
        cols=119,
    ) as terminal:
        assert terminal.wait_exit() == 0
        assert "37 119" in terminal.text()
        assert "/dev/pts/" in terminal.text()
        assert "ctty" in terminal.text()


def test_line_settings_are_those_of_the_persons_terminal(home: Path, tmp_path: Path) -> None:
    script = f"stty erase ^H -ixon; {PYTHON} -m atlasbridge run --no-hub -- stty -a"
    with Terminal(("sh", "-c", script), home) as terminal:
        terminal.wait_exit()
        assert "erase = ^H" in terminal.text()
        assert "-ixon" in terminal.text()


def test_a_new_size_reaches_the_tool(home: Path) -> None:
    script = """
import os, signal
# `print` may be at work when the signal comes
signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b"now %d %d\\n" % os.get_terminal_size()))
print("ready", flush=True)
while True:
    signal.pause()
"""
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_for("ready")
        terminal.resize(50, 132)
        terminal.wait_for("now 132 50")
        terminal.resize(20, 40)
        terminal.wait_for("now 40 20")
        terminal.type(b"\x03")
        assert terminal.wait_exit() != 0


def test_atlasbridge_variables_do_not_reach_the_tool_and_others_do(home: Path) -> None:
    env = {"ATLASBRIDGE_SECRET": "x", "LC_ALL": "C.UTF-8", "MINE": "kept", "TERM": "xterm-kitty"}
    with run_in(home, "env", env=env, rows=60, cols=200) as terminal:
        terminal.wait_exit()
        ours = [line for line in terminal.text().splitlines() if line.startswith("ATLASBRIDGE")]
        assert len(ours) == 1 and ours[0].startswith("ATLASBRIDGE_SESSION="), "which session it is, and nothing else"
        for line in ("LC_ALL=C.UTF-8", "MINE=kept", "TERM=xterm-kitty"):
            assert line in terminal.text()


def test_the_tool_runs_in_the_same_folder(home: Path, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho here: $(pwd -P)\n")
    (tmp_path / "tool").chmod(0o755)
    with run_in(home, "./tool", cwd=tmp_path, cols=200) as terminal:
        assert terminal.wait_exit() == 0
        assert f"here: {tmp_path.resolve()}" in terminal.text()


def test_signal_handlers_and_mask_are_the_default_ones(home: Path) -> None:
    script = "trap '' PIPE INT; exec \"$@\""
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    with Terminal(
        ("sh", "-c", script, "sh", *ATLASBRIDGE, "run", "--no-hub", "--", "sh", "-c", show), home
    ) as terminal:
        terminal.wait_exit()
    masks = [int(word, 16) for word in re.findall(r"[0-9a-f]{16}", terminal.text())]
    libc = 3 << 31  # 32 and 33 are the C library's own: anyone who was started by posix_spawn inherits them ignored
    assert [mask & ~libc for mask in masks] == [0, 0]


def test_ctrl_c_ctrl_backslash_and_ctrl_d_reach_the_tool(home: Path) -> None:
    script = "trap 'echo int' INT; trap 'echo quit' QUIT; echo ready; cat; echo eof; exit 3"
    with run_in(home, "bash", "-c", script) as terminal:
        terminal.wait_for("ready")
        terminal.type(b"\x03")
        terminal.wait_for("int")
        assert terminal.wait_exit() in (3, 130)


def test_the_end_of_file_key_ends_a_reading_tool(home: Path) -> None:
    with run_in(home, "cat") as terminal:
        terminal.wait_raw()
        terminal.type(b"line\r")
        terminal.wait_until(lambda: terminal.text().count("line") == 2, "the line twice")
        terminal.type(b"\x04")
        assert terminal.wait_exit() == 0


def test_a_shell_has_job_control(home: Path) -> None:
    with run_in(home, "bash", "--norc", "-i", env={"PS1": "ready> "}) as terminal:
        terminal.wait_for("ready>")
        terminal.type(b"sh -c 'echo u''p; exec sleep 100'\r")
        # said by the job itself: the shell no longer has the terminal
        terminal.wait_until(lambda: terminal.text().endswith("\nup"), "the job")
        terminal.type(b"\x1a")
        terminal.wait_for("Stopped")
        shown = terminal.text().count("exec sleep 100")
        terminal.type(b"fg\r")
        terminal.wait_until(lambda: terminal.text().count("exec sleep 100") > shown, "the job's name")
        wait_for(lambda: terminal_is_lent(home), "the job in the foreground")  # named before it has the terminal
        terminal.type(b"\x03")
        terminal.wait_until(lambda: terminal.text().rstrip().endswith("ready>"), "the shell")
        terminal.type(b"exit 5\r")
        assert terminal.wait_exit() == 5


def test_the_terminal_is_restored_after_every_end(home: Path) -> None:
    for command in ("true", "kill -9 $$", "stty raw -echo; exit 4"):
        with run_in(home, "sh", "-c", command) as terminal:
            terminal.wait_exit()
            assert terminal.settings() == terminal.settings_before


def test_a_crashed_full_screen_tool_leaves_a_usable_terminal(home: Path) -> None:
    script = "printf '\\033[?1049h\\033[?1003h\\033[?1006h\\033[?2004h\\033[?25l\\033[>1u full'; kill -9 $$"
    with run_in(home, "sh", "-c", script) as terminal:
        assert terminal.wait_exit() == 137
        assert not terminal.screen.alternate
        assert terminal.screen.cursor_visible
        assert not {1003, 1006, 2004} & set(terminal.screen.modes)
        assert terminal.screen.kitty_flags == 0


def test_output_of_a_background_child_does_not_hold_the_end_up(home: Path, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    with run_in(home, "sh", "-c", f"(trap '' HUP; until [ -e '{ended}' ]; do sleep 0.1; done) & echo done") as terminal:
        assert terminal.wait_exit() == 0
        assert "done" in terminal.text()
    ended.touch()


def test_raw_mode_is_complete(home: Path) -> None:
    with run_in(home, "cat") as terminal:
        terminal.wait_raw()
        iflag, oflag, _, lflag, *_ = terminal.settings()
        assert not iflag & (termios.ICRNL | termios.IXON | termios.ISTRIP | termios.BRKINT)
        assert not oflag & termios.OPOST
        assert not lflag & termios.IEXTEN
        terminal.type(b"\x04")
        terminal.wait_exit()


def test_umask_and_open_files_are_the_persons_own(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from nine\n")
    inner = f"{PYTHON} -m atlasbridge run --no-hub -- sh -c 'umask; cat <&9'"
    with Terminal(("sh", "-c", f"umask 027; exec 9<'{tmp_path}/file'; {inner}"), home) as terminal:
        assert terminal.wait_exit() == 0
        assert terminal.text() == "0027\nfrom nine"


def test_the_tool_gets_no_descriptor_of_ours(home: Path) -> None:
    with run_in(home, "sh", "-c", "ls -l /proc/self/fd | grep -c -e socket -e pipe -e ptmx") as terminal:
        terminal.wait_exit()
        assert terminal.text() == "1", "its own pipe into grep"


def test_closed_standard_streams_are_no_obstacle(home: Path) -> None:
    command = f"{PYTHON} -m atlasbridge run --no-hub -- sh -c 'echo hi' <&-"
    with Terminal(("sh", "-c", command), home) as terminal:
        assert terminal.wait_exit() == 0
        assert "hi" in terminal.text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dialect", "no-such", "true"], "no dialect called 'no-such'"),
        (["--backend", "conpty", "true"], "Windows only"),
        (["--backend", "telex", "true"], "no backend 'telex'"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_before_anything_starts(home: Path, words: list[str], said: str) -> None:
    with Terminal((*ATLASBRIDGE, "run", "--no-hub", *words), home) as terminal:
        assert terminal.wait_exit() == 2
        assert said in terminal.text()
    assert not list((home / "sessions").glob("*.sock")) if (home / "sessions").exists() else True


def test_pixels_reach_the_tool(home: Path) -> None:
    script = "import fcntl, struct, termios; print(struct.unpack('HHHH', fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))))"
    with Terminal(
        (
            "sh",
            "-c",
            f'read go; exec {PYTHON} -m atlasbridge run --no-hub -- "$@"',
            "sh",
            sys.executable,
            "-c",
            script,
        ),
        home,
    ) as terminal:
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 900, 600))
        terminal.type("\r")
        terminal.wait_exit()
        assert "(30, 90, 900, 600)" in terminal.text()
