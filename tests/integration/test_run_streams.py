"""Standard input and output that are no terminals, and bytes that must arrive exactly as they were written."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.terminal import ATLASBRIDGE, PYTHON, Terminal, run_in
from tests.support.waiting import wait_for

RUN = (*ATLASBRIDGE, "run", "--no-hub", "--")


def piped(home: Path, *command: str, stdin: bytes = b"", timeout_s: float = 60) -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    return subprocess.run([*RUN, *command], input=stdin, env=environ, capture_output=True, timeout=timeout_s)


def test_output_into_a_pipe_has_no_returns_of_ours(home: Path) -> None:
    done = piped(home, "printf", "one\\ntwo\\r\\nthree")
    assert done.stdout == b"one\ntwo\r\nthree"
    assert done.returncode == 0


def test_input_from_a_pipe_is_read_to_its_end(home: Path) -> None:
    done = piped(home, "sh", "-c", "stty -echo; cat", stdin=b"alpha\nbeta\n")
    assert done.stdout.replace(b"alpha\nbeta\n", b"", 1) in (b"", b"alpha\nbeta\n")
    assert done.returncode == 0


def test_a_last_line_without_newline_arrives(home: Path) -> None:
    done = piped(home, "sh", "-c", "cat | od -c", stdin=b"no newline")
    assert b"n   o       n   e   w   l   i   n   e" in done.stdout


def test_input_from_a_file_works(home: Path, tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(20000))
    (tmp_path / "input").write_bytes(lines)
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    with open(tmp_path / "input", "rb") as source:
        done = subprocess.run([*RUN, "sha256sum"], stdin=source, env=environ, capture_output=True)
    assert hashlib.sha256(lines).hexdigest().encode() in done.stdout


def test_a_tool_that_wants_more_than_there_is_sees_the_end_again(home: Path) -> None:
    done = piped(home, "sh", "-c", "cat >/dev/null; cat >/dev/null; cat; echo over")
    assert done.stdout.endswith(b"over\n")


def test_a_shell_that_reads_keys_ends_with_its_piped_input(home: Path) -> None:
    done = piped(home, "bash", "--norc", "-i", stdin=b"echo a$((40+2))\n")
    assert b"a42" in done.stdout
    assert done.returncode == 0


def test_only_input_may_be_a_terminal(home: Path, tmp_path: Path) -> None:
    command = f"{PYTHON} -m atlasbridge run --no-hub -- sh -c 'read a; echo got=$a' >'{tmp_path}/out'"
    with Terminal(("sh", "-c", command), home) as terminal:
        terminal.type(b"hello\n")
        assert terminal.wait_exit() == 0
        assert terminal.settings() == terminal.settings_before
    assert b"got=hello\n" in (tmp_path / "out").read_bytes()


def test_only_output_may_be_a_terminal(home: Path) -> None:
    command = f"echo hello | {PYTHON} -m atlasbridge run --no-hub -- sh -c 'read a; echo got=$a'"
    with Terminal(("sh", "-c", command), home) as terminal:
        assert terminal.wait_exit() == 0
        assert "got=hello" in terminal.text()


def test_a_reader_that_goes_away_ends_the_tool(home: Path) -> None:
    command = f"{PYTHON} -m atlasbridge run --no-hub -- yes | head -n 1"
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stdout == b"y\n"
    wait_for(lambda: not list((home / "sessions").glob("*.sock")), "the session to end")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_terminal_signals_are_passed_to_the_tool(home: Path, number: signal.Signals) -> None:
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    command = [*RUN, "sh", "-c", "echo ready; exec sleep 100"]
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait() == 128 + number


def _direct(command: tuple[str, ...], keys: bytes = b"") -> bytes:
    with Terminal(command) as terminal:
        terminal.type(keys)
        terminal.wait_exit()
        return bytes(terminal.output)


def _wrapped(home: Path, command: tuple[str, ...], keys: bytes = b"") -> bytes:
    with run_in(home, *command) as terminal:
        if keys:
            terminal.wait_raw()
            terminal.type(keys)
        terminal.wait_exit()
        return bytes(terminal.output)


FLOOD = """
import random, sys
random.seed(7)
out = sys.stdout.buffer
for number in range(4000):
    colour = random.randrange(256)
    out.write(b"\\x1b[38;5;%dm%06d %s\\x1b[0m\\n" % (colour, number, bytes(random.choices(range(32, 127), k=200))))
out.write(b"tail")
"""


def test_a_flood_arrives_whole_with_its_tail(home: Path) -> None:
    command = (sys.executable, "-c", FLOOD)
    expected = _direct(command)
    assert len(expected) > 800_000
    assert hashlib.sha256(_wrapped(home, command)).hexdigest() == hashlib.sha256(expected).hexdigest()


def test_every_byte_value_passes_both_ways(home: Path) -> None:
    script = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
data = b""
while len(data) < 256:
    data += os.read(0, 256)
os.write(1, bytes(range(256)) + (b"same" if data == bytes(range(256)) else b"differs: " + data.hex().encode()))
"""
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_until(lambda: b"ready" in terminal.output, "the tool")
        terminal.type(bytes(range(256)))
        assert terminal.wait_exit() == 0
        assert bytes(range(256)) + b"same" in bytes(terminal.output)


def test_a_tool_that_does_not_read_never_hangs_the_session(home: Path) -> None:
    script = "import time, tty; tty.setraw(0); print('ready', flush=True); time.sleep(1); print('done', flush=True)"
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_for("ready")
        for _ in range(40):
            terminal.type(b"x" * 1000)
            terminal.pump(0.01)
        assert terminal.wait_exit() == 0
        assert "done" in terminal.text()


def test_lines_from_a_pipe_are_not_echoed(home: Path) -> None:
    lines = b"".join(b"%d\n" % number for number in range(5000))
    assert piped(home, "wc", "-l", stdin=lines).stdout.split() == [b"5000"]
    assert piped(home, "cat", stdin=b"one\ntwo\n").stdout.split() == [b"one", b"two"]


BOTH = ("sh", "-c", "echo to output; echo to errors >&2")


def test_errors_stay_apart_where_they_are_no_terminal(home: Path) -> None:
    done = piped(home, *BOTH)
    assert (done.stdout, done.stderr) == (b"to output\n", b"to errors\n")


def test_errors_and_output_in_one_file_keep_their_order(home: Path, tmp_path: Path) -> None:
    many = "for n in 1 2 3 4 5 6 7 8 9; do echo $n; echo $n >&2; done"
    with (tmp_path / "log").open("wb") as log:
        environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
        subprocess.run([*RUN, "sh", "-c", many], env=environ, stdout=log, stderr=log)
    assert (tmp_path / "log").read_text().split() == [str(n) for n in range(1, 10) for _ in (1, 2)]


def test_no_further_descriptor_reaches_a_tool_whose_errors_are_apart(home: Path) -> None:
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4])"
    done = piped(home, sys.executable, "-c", script)
    assert done.stdout.split(b"\n")[0].strip() == b"[0, 1, 2, 3]", "3 is the listing itself"


@pytest.mark.parametrize("keys", [b"one\n\x04", b"\x04", b"two\nthree\n\x04"])
def test_an_end_of_file_typed_before_the_tool_runs_is_one(home: Path, keys: bytes) -> None:
    with run_in(home, "cat") as terminal:
        terminal.type(keys)  # while the terminal still edits lines
        assert terminal.wait_exit() == 0
        assert "^@" not in terminal.text() and b"\0" not in bytes(terminal.output)
