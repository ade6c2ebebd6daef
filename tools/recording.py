"""Records the first minute, `atlasbridge demo --tour`, on a real terminal and draws it as an animated SVG.

    .venv/bin/python tools/recording.py            writes docs/images/first-minute.svg

Rows that stand in several frames are drawn once.  The picture needs no script: it moves by CSS.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path

from atlasbridge.core.process import own_python
from atlasbridge.core.screen.screen import Screen
from ptypool.process import spawn_process

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "first-minute.svg"
ROWS, COLS = 24, 80
CELL, LINE, EDGE = 8.4, 18, 14
GAP_S = 0.15  # frames are at least so far apart
END_S = 4.0  # the last one stays
LONGEST_S = 120.0
COLOURS = ["#1b1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#cdd3dc"]
BOLD, DIM, REVERSE = 1, 2, 32
Row = tuple[tuple[str, int, str, int], ...]  # text, column, colour, flags


def record() -> list[tuple[float, tuple[Row, ...]]]:
    """(second, rows) of every picture that stood for a moment."""
    with tempfile.TemporaryDirectory(prefix="ab-") as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
        environ = {**kept, "ATLASBRIDGE_HOME": f"{home}/h", "TERM": "xterm-256color", "PATH": _path()}
        words = [
            "bash",
            "--norc",
            "-c",
            'printf "\\033[1m$ atlasbridge demo --tour\\033[m\\n\\n"; atlasbridge demo --tour',
        ]
        child = spawn_process(words, env=environ, cwd=str(ROOT), size=(ROWS, COLS))
        frames = _watch(child.master_fd)
        os.close(child.master_fd)
        os.waitpid(child.pid, 0)
        _stop_hub(environ)
    return frames


def _path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _stop_hub(environ: dict[str, str]) -> None:
    child = os.spawnve(os.P_NOWAIT, sys.executable, own_python("atlasbridge", "hub", "stop"), environ)
    os.waitpid(child, 0)


def _watch(master: int) -> list[tuple[float, tuple[Row, ...]]]:
    screen, began = Screen(ROWS, COLS), time.monotonic()
    frames: list[tuple[float, tuple[Row, ...]]] = []
    next_at = 0.0
    while (now := time.monotonic() - began) < LONGEST_S:
        if select.select([master], [], [], GAP_S)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            screen.feed(data)
            if answers := screen.take_queries():
                os.write(master, b"".join(answers))
        if now >= next_at:
            rows = tuple(_row(runs) for runs in screen.styled())
            if not frames or frames[-1][1] != rows:
                frames.append((now, rows))
                next_at = now + GAP_S
    frames.append((time.monotonic() - began, tuple(_row(runs) for runs in screen.styled())))
    return frames


def _row(runs: Sequence[Sequence[object]]) -> Row:
    out, column = [], 0
    for text, colour, _, flags in runs:
        words = str(text)
        if words.strip():
            lead = len(words) - len(words.lstrip(" "))
            known = isinstance(colour, int) and colour < 8
            out.append((words.strip(" "), column + lead, COLOURS[int(str(colour))] if known else "", int(str(flags))))
        column += len(words)
    return tuple(out)


def render(frames: list[tuple[float, tuple[Row, ...]]]) -> str:
    """Frames side by side on a strip that jumps to the left."""
    width, height = COLS * CELL + 2 * EDGE, ROWS * LINE + 2 * EDGE + 28
    whole = frames[-1][0] + END_S
    known: dict[Row, int] = {}
    strip, steps = [], []
    for place, (second, rows) in enumerate(frames):
        steps.append(f"{second / whole * 100:.2f}%{{transform:translateX({-place * width:.0f}px)}}")
        for number, row in enumerate(rows):
            if row:
                name = known.setdefault(row, len(known))
                strip.append(f'<use href="#r{name}" x="{place * width + EDGE:.0f}" y="{EDGE + 42 + number * LINE}"/>')
    symbols = "".join(f'<g id="r{name}">{"".join(map(_text, row))}</g>' for row, name in known.items())
    style = (
        f".strip{{animation:play {whole:.1f}s steps(1,end) infinite}}@keyframes play{{{''.join(steps)}}}"
        "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d5dae1;white-space:pre}"
        ".b{font-weight:700}.d{fill:#8a93a0}"
    )
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="18" r="5.5" fill="{c}"/>' for n, c in enumerate(COLOURS[1:4]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="atlasbridge demo: a sample agent asks six times and is answered from elsewhere">'
        f"<style>{style}</style><defs>{symbols}</defs>"
        f'<rect width="100%" height="100%" rx="10" fill="#0e1217"/>{dots}'
        f'<svg width="{width:.0f}" height="{height:.0f}"><g class="strip">{"".join(strip)}</g></svg></svg>\n'
    )


def _text(piece: tuple[str, int, str, int]) -> str:
    words, column, colour, flags = piece
    look = " ".join(name for name, bit in (("b", BOLD), ("d", DIM)) if flags & bit)
    looks = (f' class="{look}"' if look else "") + (f' style="fill:{colour}"' if colour else "")
    wide = f' textLength="{len(words) * CELL:.0f}"' if len(words) > 3 else ""
    return f'<text x="{column * CELL:.1f}"{wide}{looks} xml:space="preserve">{escape(words)}</text>'


if __name__ == "__main__":
    drawn = render(record())
    TARGET.write_text(drawn)
    print(f"{TARGET.relative_to(ROOT)}: {len(drawn) // 1024} KB")
