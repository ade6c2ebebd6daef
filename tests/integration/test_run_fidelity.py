"""Full-screen programs look and behave under `run` as without it: the same keys give the same screens and bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.sessions import host_pids
from tests.support.terminal import PYTHON, Terminal, run_in

Script = list[tuple[str, bytes]]
ENV = {"LC_ALL": "C.UTF-8", "LESS": "", "LESSOPEN": "", "PAGER": "less", "HISTFILE": "", "PS1": "$ ", "ENV": ""}


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed here")


def look(terminal: Terminal) -> dict[str, Any]:
    screen = terminal.screen
    return {
        "lines": screen.lines(),
        "styles": [screen.spans(row) for row in range(screen.rows)],
        "cursor": screen.cursor,
        "visible": screen.cursor_visible,
        "modes": sorted(screen.modes),
        "keypad": screen.application_keypad,
        "alternate": screen.alternate,
        "title": screen.title,
    }


def settle(terminal: Terminal, quiet_s: float = 0.4) -> None:
    """Until the program has written nothing for a while."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s:
        terminal.pump(0.05)
        if len(terminal.output) != size:
            size, since = len(terminal.output), time.monotonic()


def play(terminal: Terminal, script: Script) -> tuple[list[dict[str, Any]], bytes, int]:
    looks = []
    with terminal:
        for text, keys in script:
            if text:
                terminal.wait_for(text)
            settle(terminal)
            looks.append(look(terminal))
            terminal.type(keys)
        status = terminal.wait_exit()
        looks.append(look(terminal))
        return looks, bytes(terminal.output), status


def same(
    home: Path, command: list[str], script: Script, cwd: Path, rows: int = 24, cols: int = 80
) -> tuple[bytes, bytes]:
    direct_looks, direct_bytes, direct_status = play(Terminal(command, None, rows, cols, ENV, cwd), script)
    looks, output, status = play(run_in(home, *command, rows=rows, cols=cols, env=ENV, cwd=cwd), script)
    assert looks == direct_looks
    assert status == direct_status
    return output, direct_bytes


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("".join(f"line {number} of the text, with ünïcode 世界\n" for number in range(200)))
    return path


@needs("less")
def test_less_shows_the_same_bytes_and_screens(home: Path, tmp_path: Path, text_file: Path) -> None:
    script = [("line 0", b" "), ("line 30", b"/line 150\r"), ("line 150", b"G"), ("(END)", b"q")]
    output, direct = same(home, ["less", str(text_file)], script, tmp_path)
    assert output == direct


@needs("less")
def test_a_pipeline_into_a_pager_works(home: Path, tmp_path: Path) -> None:
    script = [("Beautiful", b" "), ("", b"q")]
    same(home, ["sh", "-c", f"{PYTHON} -m this | less"], script, tmp_path, rows=10)


@needs("vim")
def test_vim_edits_a_file_with_the_same_screens(home: Path, tmp_path: Path) -> None:
    command = ["vim", "-u", "NONE", "-i", "NONE", "-n", "-N", "edited"]
    script = [("edited", b"ihello world\r"), ("hello world", b"second line\x1b"), ("second", b":wq\r")]
    (tmp_path / "edited").write_text("")
    with Terminal(command, None, env=ENV, cwd=tmp_path) as probe:
        probe.wait_for("edited")
        probe.type(b":q!\r")
        probe.wait_exit()
    direct, _, _ = play(Terminal(command, None, env=ENV, cwd=tmp_path), script)
    written = (tmp_path / "edited").read_text()
    (tmp_path / "edited").write_text("")
    looks, _, status = play(run_in(home, *command, env=ENV, cwd=tmp_path), script)
    assert status == 0
    assert (tmp_path / "edited").read_text() == written == "hello world\nsecond line\n"
    assert looks == direct


CURSES = """
import curses
def main(screen):
    curses.start_color(); curses.use_default_colors(); curses.curs_set(0)
    curses.init_pair(1, curses.COLOR_RED, -1)
    curses.mousemask(curses.ALL_MOUSE_EVENTS)
    screen.keypad(True); screen.border()
    screen.addstr(2, 4, "press keys", curses.color_pair(1) | curses.A_BOLD)
    row = 4
    while True:
        screen.addstr(row, 4, f"key {screen.getch()}", curses.A_REVERSE); row += 1
        screen.refresh()
        if row == 9: return
curses.wrapper(main)
"""


def test_a_curses_program_gets_every_key_and_shows_the_same_bytes(home: Path, tmp_path: Path) -> None:
    script = [
        ("press keys", b"a"),
        ("key 97", b"\x1bOA"),
        ("key 259", b"\x1bOP"),
        ("key 265", b"\x1b[3~"),
        ("key 330", b"\x7f"),
    ]
    output, direct = same(home, [sys.executable, "-c", CURSES], script, tmp_path)
    assert output == direct


@needs("bash")
def test_a_shell_with_line_editing_shows_the_same(home: Path, tmp_path: Path) -> None:
    command = ["bash", "--norc", "--noprofile", "-i"]
    script = [
        ("$", b"echo one two\r"),
        ("one two\n", b"\x1b[A\x1b[D\x1b[D\x1b[DX\r"),
        ("one Xtwo\n", b"\x12ech"),
        ("reverse-i-search", b"\x03"),
        ("", b"exit 3\r"),
    ]
    same(home, command, script, tmp_path)


@needs("top")
def test_top_starts_draws_and_quits(home: Path, tmp_path: Path) -> None:
    with run_in(home, "top", "-d", "60", rows=30, cols=100, env=ENV) as terminal:
        terminal.wait_for("PID USER")
        assert any("load average" in line for line in terminal.screen.lines())
        terminal.resize(20, 70)
        terminal.wait_until(lambda: "PID USER" in terminal.text(), "a redrawn table")
        terminal.type(b"q")
        assert terminal.wait_exit() == 0
        assert terminal.settings() == terminal.settings_before


@pytest.mark.heavy
@needs("htop")
def test_htop_starts_takes_keys_and_quits(home: Path, tmp_path: Path) -> None:
    with run_in(home, "htop", rows=30, cols=100, env=ENV) as terminal:
        terminal.wait_for("F10")
        terminal.type(b"\x1bOP")
        terminal.wait_for("htop")
        terminal.type(b"\x1b")
        settle(terminal)
        terminal.type(b"q")
        assert terminal.wait_exit() == 0
        assert not terminal.screen.alternate


SEQUENCES = b"".join(
    (
        b"\x1b[?1049h\x1b[?1000;1002;1003;1006h\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[=5u\x1b[?2026h",
        b"\x1b[38;2;1;2;3m\x1b[48:2::9:8:7mtrue colour\x1b[m\x1b]8;;http://x\x07link\x1b]8;;\x07",
        b"\x1bPq#0;2;0;0;0\x1b\\\x1b_Gf=24;AAAA\x1b\\\x1b]52;c;eA==\x07\x1b]2;title\x1b\\",
        b"\x1b[?2026l\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?1000;1002;1003;1006l\x1b[?1049l",
    )
)


def test_no_sequence_is_touched(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sequences").write_bytes(SEQUENCES)
    with run_in(home, "cat", str(tmp_path / "sequences")) as terminal:
        terminal.wait_exit()
        assert bytes(terminal.output) == SEQUENCES


HEAVY = (
    *("asyncio", "pydantic", "httpx", "click", "rich", "starlette", "uvicorn", "sqlite3", "ssl", "subprocess"),
    *("dataclasses", "inspect"),
)


def test_neither_client_nor_host_imports_what_it_does_not_need() -> None:
    modules = (
        "atlasbridge.bootstrap, atlasbridge.cli.run, atlasbridge.config.session, "
        "atlasbridge.core.client.client, atlasbridge.core.host.launch, "
        "atlasbridge.core.host.hub_link, atlasbridge.core.host.typist, atlasbridge.core.host.hub_link, "
        "atlasbridge.core.detection.detector, atlasbridge.core.prompt.answer, atlasbridge.adapters.dialect_files, "
        "atlasbridge.os.tty.posix, atlasbridge.os.tty.linux"
    )
    code = f"import sys, {modules}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.skipif(os.getuid() != 0, reason="the host hides its memory; only root sees it")
def test_a_running_host_has_no_such_library_in_its_memory(home: Path) -> None:
    (home / "config.toml").write_text("[session]\nkill_grace_seconds = 2\n")  # what checks it must not stay
    with run_in(home, "cat", options=()) as terminal:
        terminal.wait_raw()
        terminal.type(b"hello\r")
        terminal.wait_until(lambda: terminal.text().count("hello") == 2, "the echo")
        settle(terminal, 1.0)
        maps = Path(f"/proc/{host_pids(home)[0]}/maps").read_text() + Path(f"/proc/{terminal.pid}/maps").read_text()
        for library in ("_ssl", "_asyncio", "pydantic_core", "_sqlite3", "libcrypto"):
            assert library not in maps
        terminal.type(b"\x04")
        terminal.wait_exit()
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
    subprocess.run([sys.executable, "-m", "atlasbridge", "hub", "stop"], env=environ, capture_output=True)
