"""Cuts one moment out of a recording: the screen as it stood, drawn again in a recording of a few KB.

    .venv/bin/python tools/moment.py LONG.cast 27.5 tests/corpus/TOOL/VERSION/CASE multiple_choice "Allow once" "Reject"

Writes `session.cast` and `expected.json`; the words at the end are the choices that must be offered.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from atlasbridge.core.screen.redraw import render_screen
from atlasbridge.lab.replay import read_recording, screen_at

SHOWN_S, ENDS_S = 0.1, 3.5  # longer than a prompt takes to be raised where there is no process to look at


def main(source: str, second: str, target: str, kind: str, *choices: str) -> int:
    folder = Path(target)
    tool, version = folder.parts[-3:-1]
    screen = screen_at(read_recording(Path(source)), float(second))
    head = {"version": 2, "width": screen.cols, "height": screen.rows, "title": f"{tool}: {folder.name}"}
    events = [[SHOWN_S, "o", render_screen(screen).decode()], [ENDS_S, "o", ""]]
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in (head, *events)]
    (folder / "session.cast").write_text("\n".join(lines) + "\n", "utf-8")
    moment = {"moment": folder.name, "type": kind, "from_s": SHOWN_S, "to_s": ENDS_S - 0.1, "choices": choices}
    expected = {"tool": tool, "version": version, "moments": [moment]}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
