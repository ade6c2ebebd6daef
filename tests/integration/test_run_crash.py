"""kill -9 of any of our processes: the person's terminal comes back, the tool goes on where it can."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.support.sessions import host_pids, wait_no_session
from tests.support.terminal import ATLASBRIDGE, Terminal, run_in
from tests.support.waiting import wait_for, written

FULL_SCREEN = "printf '\\033[?1049h\\033[?1003h\\033[?1006h\\033[?2004h\\033[?25l\\033[>1uready'; sleep 100"
MODES = {1003, 1006, 2004}


def plain(terminal: Terminal) -> bool:
    screen = terminal.screen
    return not (screen.alternate or MODES & set(screen.modes) or screen.kitty_flags) and screen.cursor_visible


def in_shell(home: Path, *command: str) -> Terminal:
    """Under a shell that stays, so that the terminal lives on after the client."""
    script = '"$@"; echo status=$?; exec sleep 1000'
    return Terminal(("bash", "-c", script, "bash", *ATLASBRIDGE, "run", "--no-hub", "--", *command), home)


def client_pid(shell_pid: int) -> int:
    children = Path(f"/proc/{shell_pid}/task/{shell_pid}/children")
    wait_for(lambda: children.read_text().split(), "the client")
    return int(children.read_text().split()[0])


def test_a_killed_client_gets_its_terminal_back_from_terminal_restorer_and_host(home: Path) -> None:
    with in_shell(home, "sh", "-c", FULL_SCREEN) as terminal:
        terminal.wait_for("ready")
        assert terminal.is_raw()
        os.kill(client_pid(terminal.pid), signal.SIGKILL)
        terminal.wait_until(lambda: terminal.settings() == terminal.settings_before, "the old settings")
        terminal.wait_until(lambda: plain(terminal), "a plain terminal")
        assert len(host_pids(home)) == 1, "the session goes on without a terminal"


def test_a_killed_terminal_restorer_costs_nobody_the_tools_status(home: Path) -> None:
    with in_shell(home, "sh", "-c", "echo ready; read -r word; exit 3") as terminal:
        terminal.wait_for("ready")
        client = client_pid(terminal.pid)
        terminal_restorer = int(Path(f"/proc/{client}/task/{client}/children").read_text().split()[0])
        assert b"atlasbridge-terminal restorer" in Path(f"/proc/{terminal_restorer}/cmdline").read_bytes()
        os.kill(terminal_restorer, signal.SIGKILL)
        terminal.type("go on\r")
        terminal.wait_for("status=")
        assert "status=3" in terminal.text() and "Traceback" not in terminal.text()
        assert terminal.settings() == terminal.settings_before


def test_a_client_that_is_told_to_end_restores_and_leaves_the_session_running(home: Path) -> None:
    with in_shell(home, "sh", "-c", FULL_SCREEN) as terminal:
        terminal.wait_for("ready")
        os.kill(client_pid(terminal.pid), signal.SIGTERM)
        terminal.wait_for("status=143")
        assert terminal.settings() == terminal.settings_before
        assert plain(terminal)
        assert len(host_pids(home)) == 1


def test_a_killed_host_ends_the_session_with_a_restored_terminal(home: Path) -> None:
    with in_shell(home, "sh", "-c", FULL_SCREEN) as terminal:
        terminal.wait_for("ready")
        os.kill(host_pids(home)[0], signal.SIGKILL)
        terminal.wait_for("status=1")
        assert "the session host died" in terminal.text()
        assert terminal.settings() == terminal.settings_before
        assert plain(terminal)


def test_the_reset_after_a_dead_host_leaves_the_cursor_where_it_was(home: Path) -> None:
    with in_shell(home, "sh", "-c", "printf 'one\\ntwo\\nready'; sleep 100") as terminal:
        terminal.wait_for("ready")
        os.kill(host_pids(home)[0], signal.SIGKILL)
        terminal.wait_for("status=1")
        lines = terminal.screen.lines()
        assert lines[:2] == ["one", "two"]
        assert lines[2].startswith("ready")


def test_a_closed_terminal_does_not_end_the_session(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"trap 'echo hup >>\"{mark}\"' HUP; echo ready; sleep 2; echo alive >>'{mark}'; sleep 100"
    terminal = run_in(home, "sh", "-c", script)
    terminal.wait_for("ready")
    terminal.close()
    assert written(mark, "a word of the tool that goes on") == "alive\n"
    assert len(host_pids(home)) == 1


def test_a_headless_tool_gets_answers_to_its_queries(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "answers"
    script = f"""
import os, sys, tty, termios
tty.setraw(0)
os.write(1, b"\\x1b[c\\x1b[6n\\x1b]7501;?\\x07")
data = b""
while data.count(b"\\x1b") < 4:
    data += os.read(0, 100)
open({str(mark)!r}, "wb").write(data)
"""
    with Terminal((*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", sys.executable, "-c", script), home) as terminal:
        assert terminal.wait_exit() == 0
    data = written(mark, "the answers")
    assert "\x1b]7501;?\x1b\\" in data
    assert data.index("c") < data.index("R"), "in the order asked"


def test_with_a_terminal_attached_only_the_status_query_is_answered_by_the_host(home: Path) -> None:
    script = """
import os, select, tty
tty.setraw(0)
os.write(1, b"\\x1b[c\\x1b]75")
os.write(1, b"01;?\\x1b\\\\")
data = os.read(0, 100)
while select.select([0], [], [], 0.5)[0]:
    data += os.read(0, 100)
os.write(1, b"<" + data.hex().encode() + b">")
"""
    with run_in(home, sys.executable, "-c", script) as terminal:
        terminal.wait_exit()
        answer = b"\x1b]7501;?\x1b\\".hex()
        assert f"<{answer}>" in terminal.text()


def test_detach_prints_the_id_and_the_session_runs_alone(home: Path, tmp_path: Path) -> None:
    with Terminal(
        (*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", "sh", "-c", f"sleep 1; tty >'{tmp_path}/m'"), home
    ) as terminal:
        assert terminal.wait_exit() == 0
        session_id = terminal.text().strip()
    assert len(session_id) == 36
    assert written(tmp_path / "m", "the tool's work").startswith("/dev/pts/")
    wait_no_session(home)


def test_ended_sessions_leave_no_process_and_no_socket(home: Path) -> None:
    with run_in(home, "true") as terminal:
        terminal.wait_exit()
    wait_for(lambda: not list((home / "sessions").glob("*.sock")), "the socket to go")
