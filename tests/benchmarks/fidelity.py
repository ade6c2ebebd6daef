"""Real full-screen programs, driven with the same keys directly and under AtlasBridge; bytes and screens compared."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.product import ATLAS
from tests.support.terminal import Terminal

PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "vi": (["vi", "text"], ["ihello world\x1b", "yyp", ":s/hello/bye/\r", "/world\r", ":set number\r"]),
    "less": (["less", "text"], [" ", "/line 50\r", "G", "g"]),
    "nano": (["nano", "-R", "text"], ["typed text", "\x0b", "\x1bu"]),
    "bash": (
        ["bash", "--norc", "-i"],
        ["echo one\r", "sleep 30\r", "\x1a", "bg\r", "kill %1\r", "stty -a | head -n 1\r"],
    ),
    "python": ([sys.executable, "-q"], ["print('x' * 20)\r", "for i in range(3): print(i)\r\r", "\x1b[A"]),
    "python curses": (
        [
            sys.executable,
            "-c",
            "import curses; curses.wrapper(lambda s: [s.addstr(2, 2, chr(s.getch())) for _ in range(5)])",
        ],
        ["a", "b"],
    ),
    "top": (["top", "-b", "-n", "1", "-p", "1"], []),
    "tmux": (["tmux", "-S", "socket", "-f", "/dev/null", "new-session", "sh"], ["echo inside\r"]),
}
ANIMATED = {"top", "tmux"}  # they show pids and times: only that they work is compared


def fidelity_rows() -> list[str]:
    rows = ["| program | final screen | bytes |", "|---|---|---|"]
    for name, (argv, keys) in PROGRAMS.items():
        if not shutil.which(argv[0]):
            rows.append(f"| {name} | not installed | |")
            continue
        direct, wrapped = drive(argv, keys), drive([ATLAS, "run", "--", *argv], keys)
        same_screen = "equal" if direct[0] == wrapped[0] else "differs"
        same_bytes = "equal" if direct[1] == wrapped[1] else f"{len(direct[1])} and {len(wrapped[1])}"
        rows.append(f"| {name} | {'shown' if name in ANIMATED and wrapped[0] else same_screen} | {same_bytes} |")
    return rows


def drive(argv: list[str], keys: list[str]) -> tuple[list[str], bytes]:
    """The last screen and all bytes after typing the keys one text at a time, each when the screen has come to rest."""
    folder = Path(tempfile.mkdtemp(prefix="ab"))
    (folder / "text").write_text("".join(f"line {i} of the text\n" for i in range(200)))
    try:
        with Terminal(argv, home=folder / "h", rows=30, cols=90, cwd=folder) as terminal:
            rest(terminal)
            for text in keys:
                terminal.type(text)
                rest(terminal)
            return terminal.screen.lines(), bytes(terminal.output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rest(terminal: Terminal, quiet_s: float = 0.7) -> None:
    """Until nothing was written for a while."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s:
        terminal.pump(0.05)
        if len(terminal.output) != size:
            size, since = len(terminal.output), time.monotonic()
