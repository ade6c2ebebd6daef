"""What a look at a window of 200x60 costs: every recorded screen, and the lists that are hardest to read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeAnswered, ProbeState
from tests.figures.ablate import Picture, forget_rows
from tests.figures.accuracy import BEGIN_LOOKS, END_LOOKS
from tests.figures.mutants import drawn

ROWS, COLS, TRIES = 60, 200, 5
TOOLS = ("generic", "claude")
LIMIT_MS = 5.0


def hard_pages() -> dict[str, bytes]:
    """Screens that many finders read to their end: long lists, frames in frames, rows of keys, wrapped lines."""
    wide = "and a few more words " * 8
    framed = [f"│ {'❯' if row == 30 else ' '} choice {row:02} {wide[: 150 - row]:<150} │ │" for row in range(57)]
    pages = {
        "a pointed list of 57": [f"{'❯' if row == 3 else ' '} choice {row} {wide}" for row in range(57)],
        "a numbered list of 57": [f"{'>' if row == 3 else ' '} {row + 1}. choice {wide}" for row in range(57)],
        "marks in each row": [f"  {'◉' if row % 2 else '◯'} choice {row} {wide}" for row in range(57)],
        "bullets in each row": [f"{'*-+•'[row % 4]} {row} of them {wide}" for row in range(57)],
        "a frame in a frame": [f"╭{'─' * 190}╮", *framed, f"╰{'─' * 190}╯"],
        "frames in each row": ["╭──────╮ " * 20 if row % 3 == 0 else "│ word │ " * 20 for row in range(57)],
        "keys in each row": ["[y] Approve  [n] Deny  (a)lways <Yes> <No> " * 4 for row in range(57)],
        "fields in each row": [f"  Name {row}: {wide[:120]}" for row in range(57)],
        "pointers in each row": [f"❯ command {row} {wide}" for row in range(57)],
    }
    return {name: f"\x1b[?1049h{chr(13)}{f'{chr(13)}{chr(10)}'.join(rows)}".encode() for name, rows in pages.items()}


def look_ms(page: bytes, tool: str) -> float:
    """The processor time of a look at a page that was never seen before: the quickest of some tries, because what
    else the machine does slows each of them."""
    took = []
    for _ in range(TRIES):
        detector = Detector(load_dialect(tool), ROWS, COLS)
        forget_rows()
        detector.handle(OutputReceived(page), 0.0)
        begun = time.thread_time()
        detector.handle(ProbeAnswered(ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False)), 0.1)
        took.append(time.thread_time() - begun)
    return 1e3 * min(took)


def measure_looks(pictures: Sequence[Picture]) -> Iterator[tuple[str, float]]:
    for name, page in hard_pages().items():
        for tool in TOOLS:
            yield f"{name} ({tool})", look_ms(page, tool)
    for picture in pictures:
        yield f"{picture.case} ({picture.tool})", look_ms(drawn(picture.view), picture.tool)


def render_looks(took: Sequence[tuple[str, float]]) -> str:
    """The section of docs/detection.md."""
    hard = len(hard_pages()) * len(TOOLS)
    made, recorded = took[:hard], took[hard:]
    hardest, slowest = (max(some, key=lambda one: one[1]) for some in (made, recorded))
    return f"""\
{BEGIN_LOOKS}
## What a look costs

The processor time of the first look at a new screen, in a window of {COLS}x{ROWS} (the quickest of {TRIES} tries; the
limit on a quiet machine is {LIMIT_MS:.0f} ms):

| screens | looks | median | slowest | which |
|---|---|---|---|---|
| recorded | {len(recorded)} | {median(ms for _, ms in recorded):.1f} ms | {slowest[1]:.1f} ms | {slowest[0]} |
| made to be hard | {len(made)} | {median(ms for _, ms in made):.1f} ms | {hardest[1]:.1f} ms | {hardest[0]} |
{END_LOOKS}"""


def put_looks_into(page: str, took: Sequence[tuple[str, float]]) -> str:
    before, _, rest = page.partition(BEGIN_LOOKS)
    behind = rest.partition(END_LOOKS)[2]
    return before + render_looks(took) + behind
