"""The screen beside xterm.js (`@xterm/headless`): the same bytes and sizes, the same text at every rest.

Recordings of real programs, and streams made by chance of what programs send.  Where terminals knowingly differ (widths
of young emoji, C1 in UTF-8, titles of TERM=screen) the streams say nothing: those have tests of their own.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.core.screen.screen import Screen
from atlasbridge.lab.replay import Recording, read_recording

ROOT = Path(__file__).resolve().parents[3]
JUDGE = ROOT / "tests" / "support" / "xterm_judge.js"
XTERM = Path(os.environ.get("ATLASBRIDGE_TOOLS", ROOT / ".venv" / "tools")) / "xterm"
REST_S = 0.25
STREAMS = int(os.environ.get("XTERM_STREAMS", "300"))
pytestmark = pytest.mark.heavy

Job = dict[str, Any]
State = dict[str, Any]

WORDS = ("word", "a", "日本語", "e\u0301", "long" * 12, "x", "│", "[y/N]", "한글", "─" * 7)
# Where a line is full and its wrap is due, erasing differs from terminal to terminal: these begin inside the line.
ERASING = ("K", "1K", "2K", "J", "1J", "2J", "3P", "2@", "4X", "?K", "?1K", "?J", "?2J")
DRAWING = (
    *("\r\n", "\r\n", "\n", "\r", "\b", "\t", "\x1b[m", "\x1b[31m", "\x1b[7m", "\x1bM", "\x1bD", "\x1bE", "\x1b[H"),
    *("\x1b[3L", "\x1b[2M", "\x1b[S", "\x1b[T", "\x1b[?7l\x1b[?7h", "\r\x1b[?7l" + "long" * 12 + "\x1b[?7h", "\x1b[4h"),
    *(
        "\x1b[4l",
        "\x1b[5b",
        "\x1b[5G\x1b[9Z",
        "\x1b[2I",
        "\x1b[2e",
        "\x1b[3a",
        "\x1b[9d",
        "\x1b[9G",
        "\x1b[A",
        "\x1b[2B",
    ),
    *("\x1b[3C", "\x1b[2D", "\x1b[E", "\x1b[F", '\x1b[1"qkept\x1b[0"q', *(f"\x1b[3G\x1b[{erase}" for erase in ERASING)),
)
LEAVING = ("\x1b[H", "\x1b[9d", "\x1b[2e")  # go anywhere, margins or not
TALKING = ("\r\n", "\r\n", "\r\n", "\x1b[31m", "\x1b[m", " and so", ";")


def output(text: str) -> list[Any]:
    return ["o", base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()]


def job_of(recording: Recording) -> Job:
    """A recording, looked at whenever it comes to rest."""
    steps: list[Any] = []
    last = 0.0
    for at, kind, data in recording.events:
        if kind not in ("o", "r"):
            continue
        if at - last > REST_S:
            steps.append(["s"])
        last = at
        cols, _, rows = data.partition("x")
        steps.append(output(data) if kind == "o" else ["r", int(rows), int(cols)])
    return {"rows": recording.rows, "cols": recording.cols, "steps": [*steps, ["s"]]}


def drawn(seed: int) -> Job:
    """What full-screen programs send, in any order; some scroll only a part of the screen, and stay in it."""
    rng = random.Random(seed)
    rows, cols = rng.randint(5, 10), rng.randint(8, 30)
    steps = [output("\x1b[?1049h")] if rng.random() < 0.3 else []
    top, bottom = (2, 4) if rng.random() < 0.3 else (0, rows + 2)
    steps += [output("\x1b[2;4r\x1b[3;1H")] if top else []
    drawing = [piece for piece in DRAWING if not top or piece not in LEAVING]
    for _ in range(rng.randint(5, 60)):
        kind = rng.random()
        place = f"\x1b[{rng.randint(top, bottom)};{rng.randint(0, cols + 2)}H"
        steps.append(output(rng.choice(WORDS if kind < 0.45 else drawing) if kind < 0.85 else place))
        if rng.random() < 0.2:
            steps.append(["s"])
    return {"rows": rows, "cols": cols, "steps": [*steps, ["s"]]}


def talked(seed: int) -> Job:
    """What line by line programs send, in a window that changes its size."""
    rng = random.Random(seed)
    rows, cols = rng.randint(4, 12), rng.randint(10, 40)
    job: Job = {"rows": rows, "cols": cols, "steps": []}
    for _ in range(rng.randint(5, 50)):
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))
        job["steps"].append(output(rng.choice((words, words, rng.choice(TALKING)))))
        if rng.random() < 0.1:
            # xterm.js wraps the cursor's line again, but leaves the cursor in its column: its line is a short one here.
            size = (rng.randint(4, 12), rng.randint(10, 40))
            job["steps"] += [output("\r\n$ x"), ["r", *size], ["s"], output("\r\n")]
    job["steps"] += [output("\r\n$ x"), ["s"]]
    return job


def our_states(job: Job) -> list[State]:
    screen, states = Screen(job["rows"], job["cols"]), []
    for step in job["steps"]:
        if step[0] == "o":
            screen.feed(base64.b64decode(step[1]))
        elif step[0] == "r":
            screen.resize(step[1], step[2])
        else:
            states.append({"lines": screen.lines(), "cursor": list(screen.cursor), "alternate": screen.alternate})
    return states


BLANK = " \u200b"  # an invisible mark on an empty cell behind a line is kept here, and cut there


def xterm_states(jobs: list[Job]) -> list[list[State]]:
    assert (XTERM / "node_modules").is_dir(), "tools/install-extras installs xterm.js"
    command = ["node", str(JUDGE), str(XTERM)]
    told = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(jobs: list[Job], names: list[str], cursor: bool = True) -> list[str]:
    found = []
    for name, job, theirs in zip(names, jobs, xterm_states(jobs), strict=True):
        for number, (our, their) in enumerate(zip(our_states(job), theirs, strict=True)):
            lines = [line.rstrip(BLANK) for line in their["lines"]]
            same = [line.rstrip(BLANK) for line in our["lines"]] == lines and (
                not cursor or our["cursor"] == their["cursor"]
            )
            if not same or our["alternate"] != their["alternate"]:
                found.append(f"{name}, state {number}:\n{our['lines']} {our['cursor']}\n{lines} {their['cursor']}")
                break
    return found


def test_recordings_of_real_programs_show_the_same() -> None:
    paths = sorted((ROOT / "tests" / "corpus").rglob("*.cast"))
    assert len(paths) > 50
    jobs = [job_of(read_recording(path)) for path in paths]
    assert differences(jobs, [str(path.parent.relative_to(ROOT)) for path in paths]) == []


def test_streams_of_chance_show_the_same() -> None:
    jobs = [drawn(seed) for seed in range(STREAMS)]
    assert differences(jobs, [f"seed {seed}" for seed in range(STREAMS)]) == []


def test_lines_in_a_window_that_changes_its_size_show_the_same() -> None:
    jobs = [talked(seed) for seed in range(STREAMS)]
    assert differences(jobs, [f"seed {seed}" for seed in range(STREAMS)], cursor=False) == []
