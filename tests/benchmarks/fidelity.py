"""Real full-screen programs, driven with the same keys directly and under AtlasBridge; bytes and screens compared."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.peers import install
from tests.benchmarks.product import ATLAS, Product
from tests.support.sessions import end_sessions
from tests.support.terminal import Terminal

_CURSES = "import curses; curses.wrapper(lambda s: [s.addstr(2, 2, chr(s.getch())) for _ in range(5)])"
_MENU = ["--menu", "Which?", "15", "50", "5", "a", "first", "b", "second", "c", "third"]
PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "vi": (["vi", "text"], ["ihello world\x1b", "yyp", ":s/hello/bye/\r", "/world\r", ":set number\r"]),
    "less": (["less", "text"], [" ", "/line 50\r", "G", "g"]),
    "nano": (["nano", "-R", "text"], ["typed text", "\x0b", "\x1bu"]),
    "mc": (["mc", "-b", "-u", "."], ["\x1b[B", "\t", "\x1bOQ"]),
    "dialog": (["dialog", *_MENU], ["\x1b[B", "\t"]),
    "whiptail": (["whiptail", *_MENU], ["\x1b[B", "\t"]),
    "fzf": (["fzf", "--height=100%"], ["te", "\x7f"]),
    "bash": (["bash", "--norc", "-i"], ["echo one\r", "sleep 30\r", "\x1a", "bg\r", "kill %1; wait\r", "stty -a\r"]),
    "python": ([sys.executable, "-q"], ["print('x' * 20)\r", "for i in range(3): print(i)\r\r", "\x1b[A"]),
    "python curses": ([sys.executable, "-c", _CURSES], ["a", "b"]),
    "tmux": (["tmux", "-S", "socket", "-f", "/dev/null", "new-session", "sh"], ["echo inside\r"]),
    "htop": (["htop", "-d", "100", "-p", "1"], ["\x1b[B"]),
}
PACKAGES = {"vi": "vim-tiny", "less": "less", "nano": "nano", "mc": "mc", "dialog": "dialog", "whiptail": "whiptail"}
PACKAGES |= {"fzf": "fzf", "tmux": "tmux", "htop": "htop"}
_QUIET_S = (0.7, 2.5)  # a screen that came to rest; where something differs, once more with more patience
CHANGING = {"htop", "mc", "bash"}  # they show process numbers, loads, free space: rows are compared but for digits


def fidelity_rows() -> list[str]:
    install(PACKAGES)
    with Product() as product:
        rows = [_row(name, argv, keys, product.home) for name, (argv, keys) in PROGRAMS.items()]
    return ["| program | final screen | bytes |", "|---|---|---|", *rows]


def _row(name: str, argv: list[str], keys: list[str], home: Path) -> str:
    if not shutil.which(argv[0]):
        return f"| {name} | could not be had | |"
    for quiet_s in _QUIET_S:
        direct = drive(argv, keys, quiet_s, home)
        wrapped = drive([ATLAS, "run", "--", *argv], keys, quiet_s, home)
        end_sessions(home)
        if direct == wrapped:
            break
    bytes_ = _bytes(direct[1], wrapped[1])
    if bytes_ != "equal":
        bytes_ += f"; directly once more: {len(drive(argv, keys, quiet_s, home)[1])}"
    return f"| {name} | {_screens(name, direct[0], wrapped[0])} | {bytes_} |"


def _screens(name: str, direct: list[str], wrapped: list[str]) -> str:
    if direct == wrapped:
        return "equal"
    pairs = zip(direct, wrapped, strict=True)
    if name not in CHANGING:
        return f"**differs** in {sum(a != b for a, b in pairs)} rows"
    apart = sum(_still(a) != _still(b) for a, b in pairs)
    return f"differs by its own figures{f', and in {apart} rows' if apart else ''}"


def _still(row: str) -> str:
    return re.sub(r"[\d.,|:%KMG ]+", " ", row)


def _bytes(direct: bytes, wrapped: bytes) -> str:
    return "equal" if direct == wrapped else f"{len(direct)} and {len(wrapped)}"


def drive(argv: list[str], keys: list[str], quiet_s: float, home: Path) -> tuple[list[str], bytes]:
    """The last screen and all bytes after typing the keys one text at a time, each when the screen has come to rest."""
    folder = Path(tempfile.gettempdir()) / f"ab-fidelity-{os.getpid()}"  # always the same: some programs show it
    folder.mkdir()
    (folder / "text").write_text("".join(f"line {i} of the text\n" for i in range(200)))
    try:
        with Terminal(argv, home=home, rows=30, cols=90, cwd=folder) as terminal:
            rest(terminal, quiet_s)
            for text in keys:
                terminal.type(text)
                rest(terminal, quiet_s)
            return terminal.screen.lines(), bytes(terminal.output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rest(terminal: Terminal, quiet_s: float) -> None:
    """Until nothing was written for a while."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s:
        terminal.pump(0.05)
        if len(terminal.output) != size:
            size, since = len(terminal.output), time.monotonic()
