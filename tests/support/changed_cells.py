"""The dialogs of the recorded tools with one cell changed, between the moment they were shown and the answer's."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, RaisePrompt
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.screen.width import is_narrow
from atlasbridge.lab.replay import Player, event_of, read_recording, simulated_probe

Cell = tuple[int, int]
SIGNS = " ax|/\\-1"
DIGITS = "0123456789 a"  # what looks like a count is one of the command's own numbers


def dialogs(case: Path) -> Iterator[tuple[Detector, Prompt]]:
    """The detector at each moment at which this recording's tool has come to ask something, with what it asks."""
    tool, recording = case.parts[-3], read_recording(case / "session.cast")
    detector = Detector(load_dialect(tool), recording.rows, recording.cols)
    player = Player(detector, simulated_probe(tool))
    end = recording.ends_at + 3.0
    for at, kind, data in [*recording.events, (end, "", "")]:
        heard = [*player.pass_time(at)]
        prompt = detector.open_prompt
        if prompt is not None and not prompt.idle and any(isinstance(command, RaisePrompt) for _, command in heard):
            yield detector, prompt
        [*player.tell(event_of(kind, data), at)]


def unnoticed(detector: Detector, prompt: Prompt, rng: Random, tries: int) -> tuple[dict[str, int], list[str]]:
    """How many cells of each part were changed, and after which of the changes an answer would still be typed."""
    if not detector.still_shows(prompt.digest):
        return {}, []  # the tool has drawn on; it is raised again or withdrawn at the next look
    lines = detector.screen.lines()
    counted: dict[str, int] = {}
    missed: list[str] = []
    for part, cells in cells_of(prompt, lines).items():
        for at, col in rng.sample(cells, min(tries, len(cells))):
            old = lines[at][col]
            new = rng.choice([sign for sign in (DIGITS if old.isdigit() else SIGNS) if sign != old])
            counted[part] = counted.get(part, 0) + 1
            if _changed(detector, at, col, new).still_shows(prompt.digest):
                missed.append(f"{part}: {old!r} became {new!r} at {col} in {lines[at]!r}")
    return counted, missed


def _changed(detector: Detector, at: int, col: int, new: str) -> Detector:
    other = deepcopy(detector)
    row, column = other.screen.cursor
    other.handle(OutputReceived(f"\x1b7\x1b[{at + 1};{col + 1}H{new}\x1b8".encode()), 1e9)
    assert other.screen.cursor == (row, column)
    return other


def cells_of(prompt: Prompt, lines: list[str]) -> dict[str, list[Cell]]:
    """Where question, subject and choices stand, blanks between their words included."""
    parts = {"question": prompt.question.split("\n"), "choice": [choice.label for choice in prompt.choices]}
    if prompt.subject is not None:
        parts["subject"] = prompt.subject.shown.split("\n")
    return {
        part: [*dict.fromkeys(cell for text in texts for cell in _places(text, lines))] for part, texts in parts.items()
    }


def _places(text: str, lines: list[str]) -> list[Cell]:
    """The lowest place; a text that stands in no line as it is (the tool has wrapped it) has none.  Nor has a row of
    a frame and blanks: it stands in other places, too, which are nobody's."""
    text = text.strip()
    for at in range(len(lines) - 1, -1, -1) if len(text) > 1 and any(map(str.isalnum, text)) else ():
        if text in lines[at] and is_narrow(lines[at]):
            begin = lines[at].index(text)
            return [(at, col) for col in range(begin, begin + len(text))]
    return []
