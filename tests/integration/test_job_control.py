"""Ctrl-Z under `run` as without it: the tool stops, the shell has its terminal back, `fg` goes on with both."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.sessions import terminal_is_lent, tool_pid, wait_no_session
from tests.support.terminal import ATLASBRIDGE, PYTHON, Terminal, run_in
from tests.support.waiting import wait_for

from atlasbridge.core.client.client import RawTerminal
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.home import Home
from atlasbridge.os.tty.posix import PosixPTY
from ptypool.process import open_terminal

RUN = f"{PYTHON} -m atlasbridge run --no-hub -- "
LISTENS = """
import os, select, signal, sys
heard, rings = os.pipe()
os.set_blocking(rings, False)
signal.set_wakeup_fd(rings)  # a signal that comes just before the read would else be handled after it
signal.signal(signal.SIGTSTP, lambda *_: os.write(1, b"kept going\\n"))
print("ready", flush=True)
while True:
    if 0 in select.select([0, heard], [], [])[0]:
        print("got", sys.stdin.readline().strip(), flush=True)
    else:
        os.read(heard, 1)
"""
ALONE = """
import os, sys
try:
    os.wait()
except ChildProcessError:
    print("no child of another's", os.getpid() == os.getsid(0) == os.tcgetpgrp(0), flush=True)
input("more? ")
"""


def shell(home: Path) -> Terminal:
    terminal = Terminal(("bash", "--norc", "--noprofile", "-i"), home, env={"PS1": "shell$ ", "HISTFILE": ""})
    terminal.wait_for("shell$")
    return terminal


def suspend(terminal: Terminal, job: str = "1") -> None:
    terminal.type(b"\x1a")
    terminal.wait_for(f"[{job}]+  Stopped")
    terminal.wait_until(lambda: terminal.text().rstrip().endswith("shell$"), "the shell's prompt")


def start(terminal: Terminal, *words: str) -> None:
    terminal.type(RUN + shlex.join(words) + "\r")


def python(home: Path, script: str) -> tuple[str, ...]:
    """From a file: what the shell echoes must not look like what the program says."""
    path = home / "program.py"
    path.write_text(script)
    return sys.executable, str(path)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def names_of_children(pid: int) -> list[str]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/comm").read_text().strip() for child in children]


def test_a_plain_program_stops_at_ctrl_z_and_goes_on_with_fg(home: Path) -> None:
    with shell(home) as terminal:
        start(terminal, "cat")
        terminal.wait_raw()
        terminal.type(b"word-1\r")
        terminal.wait_until(lambda: terminal.text().count("word-1") == 2, "cat's echo")
        suspend(terminal)
        assert state_of(tool_pid(home)) == "T"
        terminal.type(b"echo $((40 + 2)); fg\r")
        terminal.wait_raw()
        terminal.wait_for("42")  # what the shell showed meanwhile is not drawn over
        terminal.type(b"word-2\r")
        terminal.wait_until(lambda: terminal.text().count("word-2") == 2, "cat's echo")
        suspend(terminal)
        terminal.type(b"fg\r")
        terminal.wait_raw()
        terminal.type(b"\x04")
        terminal.wait_until(lambda: terminal.text().rstrip().endswith("shell$"), "the shell's prompt")


@pytest.mark.parametrize(
    ("program", "shown", "leave"),
    [(("less", "text"), "line 3", b"q"), (("vim", "-u", "NONE", "text"), "line 3", b":q\r")],
)
def test_a_full_screen_program_that_stops_itself_at_ctrl_z_is_drawn_again_by_fg(
    home: Path, tmp_path: Path, program: Sequence[str], shown: str, leave: bytes
) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not installed here")
    (tmp_path / "text").write_text("".join(f"line {number}\n" for number in range(100)))
    with shell(home) as terminal:
        terminal.type(f"cd '{tmp_path}'; clear\r")
        start(terminal, *program)
        terminal.wait_for(shown)
        suspend(terminal)
        assert not terminal.screen.alternate
        terminal.type(b"fg\r")
        terminal.wait_until(lambda: terminal.screen.alternate and shown in terminal.text(), "the program's screen")
        terminal.type(leave)
        terminal.wait_until(lambda: not terminal.screen.alternate and "shell$" in terminal.text(), "the shell")


def test_a_tool_that_handles_ctrl_z_itself_keeps_the_terminal(home: Path) -> None:
    with shell(home) as terminal:
        start(terminal, *python(home, LISTENS))
        terminal.wait_for("ready")
        terminal.type(b"\x1a")
        terminal.wait_for("kept going")
        terminal.type(b"still here\r")
        terminal.wait_for("got still here")
        assert "Stopped" not in terminal.text()


def test_a_shell_in_a_session_has_job_control_of_its_own(home: Path) -> None:
    with shell(home) as terminal:
        terminal.type(f"PS1='inner$ ' {RUN} bash --norc --noprofile -i\r")
        terminal.wait_until(lambda: terminal.text().endswith("\ninner$"), "the inner prompt")
        terminal.type(b"sleep 99\r")
        terminal.wait_for("sleep 99")
        wait_for(lambda: names_of_children(tool_pid(home)) == ["sleep"] and terminal_is_lent(home))
        terminal.type(b"\x1a")
        terminal.wait_until(lambda: "Stopped sleep 99" in " ".join(terminal.text().split()), "the inner shell's word")
        terminal.wait_until(lambda: terminal.text().rstrip().endswith("inner$"), "the inner prompt")
        wait_for(lambda: state_of(tool_pid(home)) == "S", "the inner shell at rest")


def test_a_script_around_the_client_stops_with_it(home: Path) -> None:
    with shell(home) as terminal:
        terminal.type(f"sh -c {shlex.quote(RUN + ' cat; echo around')}\r")
        terminal.wait_raw()
        terminal.type(b"word-1\r")
        terminal.wait_until(lambda: terminal.text().count("word-1") == 2, "cat's echo")
        suspend(terminal)
        terminal.type(b"fg\r")
        terminal.wait_raw()
        terminal.type(b"\x04")
        terminal.wait_for("around\n")


def test_a_program_that_ends_as_soon_as_it_is_continued_has_not_stopped_again() -> None:
    pty = PosixPTY.spawn(("sh", "-c", "kill -STOP $$"))
    wait_for(lambda: pty.poll() is None and pty.stopped(), "the program to stop")
    pty.signal(signal.SIGCONT)
    assert not pty.stopped()
    assert wait_for(lambda: pty.poll() is not None, "its end")
    pty.close()


def test_keys_typed_as_soon_as_the_terminal_is_raw_are_not_taken_for_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The earlier ones have been shown by the terminal: the tool's does not show them again."""
    master, slave = open_terminal((24, 80), None)
    set_terminal = termios.tcsetattr

    def type_when_raw(fd: int, when: int, attributes: list[Any]) -> None:
        set_terminal(fd, when, attributes)
        if not attributes[3] & (termios.ICANON | termios.ECHO | termios.ISIG):
            os.write(master, b"late")
            wait_for(lambda: len("early" + "late") == fcntl.ioctl(slave, termios.FIONREAD, bytes(4))[0], "the keys")

    os.write(master, b"early")
    assert os.read(master, 99) == b"early", "shown by the terminal"
    monkeypatch.setattr(termios, "tcsetattr", type_when_raw)
    terminal = RawTerminal(slave)
    assert terminal.enter() == len("early")
    assert os.read(slave, 99) == b"earlylate"
    terminal.close()
    os.close(master)
    os.close(slave)


def test_where_nobody_could_continue_it_the_client_does_not_stop(home: Path) -> None:
    """No shell above: the kernel lets nothing stop there, so that it would not hang for ever."""
    with run_in(home, "cat") as terminal:
        terminal.wait_raw()
        terminal.type(b"word-1\r")
        terminal.wait_until(lambda: terminal.text().count("word-1") == 2, "cat's echo")
        terminal.type(b"\x1a")
        terminal.wait_for("^Z")
        terminal.type(b"word-2\r")  # it may be echoed by either terminal just then
        terminal.wait_until(lambda: terminal.text().count("word-2") >= 2, "cat's echo")


def test_in_the_background_the_tool_works_and_its_screen_comes_with_fg(home: Path) -> None:
    work = "import time\nfor n in range(1000):\n    print('step', n, flush=True); time.sleep(0.05)"
    with shell(home) as terminal:
        start(terminal, *python(home, work))
        terminal.wait_for("step 3")
        suspend(terminal)
        terminal.type(b"bg\r")
        wait_for(lambda: state_of(tool_pid(home)) == "S")
        terminal.type(b"echo $((40 + 2))\r")
        terminal.wait_for("42")
        terminal.type(b"fg\r")
        terminal.wait_raw()
        terminal.wait_for("step 30")
        terminal.type(b"\x03")
        terminal.wait_until(lambda: terminal.text().rstrip().endswith("shell$"), "the shell's prompt")


def test_a_signal_to_a_client_without_a_terminal_of_its_own_stops_the_tool_too(home: Path) -> None:
    with shell(home) as terminal:
        terminal.type(f"{RUN} sh -c 'echo on; sleep 77; echo off' </dev/null | cat\r")
        terminal.wait_until(lambda: terminal.text().endswith("\non"), "its output")
        suspend(terminal)
        wait_for(lambda: state_of(tool_pid(home)) == "T")
        terminal.type(b"fg\r")
        wait_for(lambda: state_of(tool_pid(home)) == "S")
        terminal.type(b"\x03")
        wait_no_session(home)


def test_the_tool_has_no_strange_child_and_leads_its_session(home: Path) -> None:
    with run_in(home, *python(home, ALONE)) as terminal:
        terminal.wait_for("more?")
        assert "no child of another's True" in terminal.text()
        terminal.type(b"\r")
        assert terminal.wait_exit() == 0


def test_nothing_stays_of_what_holds_the_tools_job_and_no_open_file_is_held(home: Path) -> None:
    """A pipe that the person's shell gave to the tool ends with the tool: anyone who reads it must see the end."""
    with shell(home) as terminal:
        terminal.type(f"{RUN} sh -c 'read word' 9> >(cat; echo pipe $((40 + 2)))\r")
        terminal.wait_raw()
        wait_for(lambda: len(members(tool_pid(home))) == 3, "the tool and the two that hold its job")
        found = members(tool_pid(home))
        terminal.type(b"\r")
        terminal.wait_for("pipe 42")
    wait_no_session(home)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found), "all of them to end")


def members(session: int) -> list[int]:
    found = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in found if Path(f"/proc/{pid}").exists() and os.getsid(pid) == session]


def test_a_stopped_session_that_nobody_holds_says_so_and_goes_on_when_somebody_comes(home: Path) -> None:
    with Terminal((*ATLASBRIDGE, "run", "--detach", "--label", "work", "--", "cat"), home) as starter:
        assert starter.wait_exit() == 0
    pid = tool_pid(home)
    os.killpg(pid, signal.SIGTSTP)
    wait_for(lambda: listed(home).get("stopped"), "the hub to know")
    assert state_of(pid) == "T"
    with Terminal((*ATLASBRIDGE, "ps"), home, cols=200) as shown:
        shown.wait_exit()
        assert "stopped" in shown.text()
    with Terminal((*ATLASBRIDGE, "attach", "work"), home) as terminal:
        terminal.wait_raw()
        terminal.type(b"word-1\r")
        terminal.wait_until(lambda: terminal.text().count("word-1") == 2, "cat's echo")
    wait_for(lambda: listed(home).get("stopped") is False, "the hub to know")
    os.killpg(pid, signal.SIGTSTP)
    wait_for(lambda: listed(home).get("stopped"), "the hub to know")
    with Terminal((*ATLASBRIDGE, "resume", "work"), home) as again:
        assert again.wait_exit() == 0
        assert "was resumed" in again.text()
    wait_for(lambda: state_of(pid) == "S")


def test_a_client_that_is_killed_while_it_is_stopped_leaves_a_session_to_attach_to(home: Path) -> None:
    with shell(home) as terminal:
        start(terminal, "cat")
        terminal.wait_raw()
        terminal.type(b"word-1\r")
        terminal.wait_until(lambda: terminal.text().count("word-1") == 2, "cat's echo")
        suspend(terminal)
        terminal.type(b"kill -9 %1; wait; echo $((40 + 2))\r")
        terminal.wait_for("42")
        terminal.type(f"clear; {PYTHON} -m atlasbridge attach\r")
        terminal.wait_raw()
        terminal.type(b"word-2\r")
        terminal.wait_until(lambda: terminal.text().count("word-2") == 2, "cat's echo")
        terminal.type(b"\x04")


def test_a_question_of_a_stopped_tool_is_taken_back_and_asked_again_when_it_goes_on(home: Path) -> None:
    ask = "read -p 'Go on? [y/n] ' word; echo got $word; sleep 99"
    with Terminal((*ATLASBRIDGE, "run", "--detach", "--channel", "none", "--", "bash", "-c", ask), home) as starter:
        assert starter.wait_exit() == 0
    first = wait_for(lambda: listed(home).get("open_prompt"), "the question")
    os.killpg(tool_pid(home), signal.SIGTSTP)
    wait_for(lambda: listed(home).get("open_prompt", "") is None, "the question to be taken back")
    os.killpg(tool_pid(home), signal.SIGCONT)
    assert wait_for(lambda: listed(home).get("open_prompt"), "the question again") != first


def listed(home: Path) -> dict[str, object]:
    with HubClient(Home(home)) as hub:
        sessions = hub.ask("sessions")["sessions"]
    assert len(sessions) <= 1
    return dict(sessions[0]) if sessions else {}  # on a busy machine the hub may not know it yet
