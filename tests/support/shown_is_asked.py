"""One case of "shown is asked": a dialog is drawn, and what arrives at the far end is compared with what was drawn."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

from tests.support.drawn import ABOVE, DRAWERS, Drawn, draw, folded, nasty_text
from tests.support.far_end import agreed_by_a_tap, recorded, shown_by_each
from tests.support.playbook import POLLING, READING, Playbook

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.prompt_builder import prompt_of
from atlasbridge.core.detection.structured import ShownDialog, fits
from atlasbridge.core.prompt.model import Prompt, Subject, SubjectKind, SubjectSource
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.screen.width import is_narrow

CUT_SIGNS = ("…", "⚠", "incomplete")  # how a channel says that something is missing


def one_case(seed: int) -> str:
    """What became of it: "whole", "cut" or "told"; an AssertionError says what was shown wrongly."""
    rng = Random(seed)
    tool = rng.choice(sorted(DRAWERS))
    drawn = draw(tool, nasty_text(rng), rng.randint(40, 200), rng)
    view, found = look(drawn)
    assert found is not None, f"seed {seed}: {tool}: nothing was recognised\n{view.text()}"
    where = f"seed {seed}: {tool}, {drawn.cols} columns, {drawn.screen_rows} rows\n{view.text()}\n---\n"
    if drawn.labels:
        labels = [choice.label for choice in found.choices if choice.value != "cancel"]
        assert labels == drawn.labels, f"{where}choices: {labels}"
    told = hooked(drawn, found, view) if rng.random() < 0.3 else None
    record = recorded(prompt_of(found, view, [], b"", (), told, "/home/me"))
    prompt = record.prompt
    if told is not None:
        assert prompt.subject is not None and prompt.subject.shown == drawn.command, f"{where}{prompt.subject}"
        assert drawn.command in prompt.asked, f"{where}{prompt.asked}"
    whole = stands_in(drawn.rows, prompt.asked) or (told is not None and drawn.command in prompt.asked)
    assert whole or not prompt.asked_whole, f"{where}{prompt.asked}\nrows: {drawn.rows}"
    check_certainty(drawn, prompt, where)
    for channel, text in shown_by_each(record):
        if not any(sign in text for sign in CUT_SIGNS):
            assert stands_in(drawn.rows, text) or (told is not None and drawn.command in text), (
                f"{where}{channel}:\n{text}"
            )
    taps = dict(agreed_by_a_tap(record))
    assert not taps or prompt.asked_whole, f"{where}a tap agrees with what is not whole: {taps}"
    for channel, text in shown_by_each(record):
        assert channel not in taps or prompt.asked in text, (
            f"{where}{channel} agrees with what it does not show:\n{text}"
        )
    return "told" if told is not None else "whole" if whole else "cut"


def look(drawn: Drawn) -> tuple[View, Finding | None]:
    screen = Screen(drawn.screen_rows, drawn.cols)
    screen.feed(drawn.data)
    view = View.of(screen)
    return view, recognise(view, drawn.facts, dialect_of(drawn.dialect))


@cache
def dialect_of(name: str) -> Dialect:
    return load_dialect(name)


def hooked(drawn: Drawn, found: Finding, view: View) -> Subject | None:
    """What a hook says of it, if it is believed."""
    told = Subject(SubjectKind.COMMAND, drawn.command, "/home/me", SubjectSource.HOOK, complete=True)
    return told if fits(told, ShownDialog(found.question if found.own and found.whole else view.text())) else None


def stands_in(rows: list[str], text: str) -> bool:
    """Row below row, each to the last character; only the margin that all have in common may be gone."""
    have = [row.rstrip() for row in text.split("\n")]
    want = [row.rstrip() for row in rows]
    while want and not want[-1]:
        want.pop()
    while want and not want[0]:
        want.pop(0)
    for at in range(len(have) - len(want) + 1):
        offsets = {_offset(have[at + place], row) for place, row in enumerate(want) if row}
        if (
            len(offsets) <= 2
            and None not in offsets
            and all(have[at + p] == "" for p, row in enumerate(want) if not row)
        ):
            return True
    return False


def _offset(have: str, want: str) -> str | None:
    """What stands in front of it: a margin, or the mark of a first row."""
    if not have.endswith(want):
        return _cut_margin(have, want)
    front = have[: len(have) - len(want)]
    return front if front.strip() in ("", "$") else None


def _cut_margin(have: str, want: str) -> str | None:
    lost = len(want) - len(have)
    return f"-{lost}" if lost > 0 and want.endswith(have) and not want[:lost].strip() else None


def check_certainty(drawn: Drawn, prompt: Prompt, where: str) -> None:
    """A subject that a rule may look at is the command, the whole command and nothing but the command."""
    subject = prompt.subject
    if subject is not None and subject.complete and subject.kind is SubjectKind.COMMAND:
        assert subject.shown == drawn.command, f"{where}complete: {subject.shown!r}\nis not {drawn.command!r}"


def compared(seed: int) -> str:
    """One cell of what was shown changes before the answer comes: nothing may be typed.  Which part it was of: the
    subject, the question or a choice; "": there was nothing to compare."""
    rng = Random(seed)
    tool = rng.choice(sorted(DRAWERS))
    drawn = draw(tool, nasty_text(rng, 400), rng.randint(60, 140), rng)
    probe = READING if drawn.facts.canonical else POLLING
    play = Playbook(probe, drawn.dialect, drawn.screen_rows, drawn.cols) >> drawn.data >> 2.0
    detector = play.detector
    prompt = detector.open_prompt
    if prompt is None or not prompt.whole:
        return ""
    assert detector.still_shows(prompt.digest)
    lines = detector.screen.lines()
    part = rng.choice(("subject", "question", "choice"))
    places = {"subject": _subject_cells, "question": _question_cells, "choice": _choice_cells}[part](drawn, lines)
    places = [(at, col) for at, col in places if is_narrow(lines[at])]
    if not places:
        return ""
    at, col = rng.choice(places)
    old = lines[at][col]
    new = rng.choice([char for char in " ax|/\\-1" if char != old])
    row, column = detector.screen.cursor
    play >> f"\x1b[{at + 1};{col + 1}H{new}\x1b[{row + 1};{column + 1}H".encode()
    changed = f"seed {seed}: {tool}, {part}: {old!r} became {new!r} in row {at}\n" + "\n".join(detector.screen.lines())
    assert not detector.still_shows(prompt.digest), changed
    return part


Cell = tuple[int, int]


def _cells(at: int, line: str, text: str) -> list[Cell]:
    """Of a text that stands in a line, its blanks included."""
    begin = line.rindex(text) if text in line else -1
    return [(at, col) for col in range(begin, begin + len(text))] if begin >= 0 else []


def _subject_cells(drawn: Drawn, lines: list[str]) -> list[Cell]:
    """Where its rows stand one below the other, each alone in its line: a rule of the same dashes is not it."""
    rows = [_bare(piece) for row in drawn.rows for piece in folded(row, drawn.cols)]
    bare = [_bare(line) for line in lines]
    for at in range(len(lines) - len(rows) + 1):
        if bare[at : at + len(rows)] == rows:
            return [cell for n, row in enumerate(rows) if row for cell in _cells(at + n, lines[at + n], row)]
    return []


def _bare(line: str) -> str:
    return line.strip(" │┃$")


def _question_cells(drawn: Drawn, lines: list[str]) -> list[Cell]:
    """Above what it is about, or below it: what it is about may well say the same."""
    places = [at for at, line in enumerate(lines) if drawn.question and drawn.question in line]
    if not places or (len(places) > 1 and drawn.tool in ABOVE and places[0] > 2):
        return []
    at = places[0] if drawn.tool in ABOVE else places[-1]
    return _cells(at, lines[at], drawn.question)


def _choice_cells(drawn: Drawn, lines: list[str]) -> list[Cell]:
    """The menu stands below what it is about."""
    found = [[at for at, line in enumerate(lines) if label in line][-1:] for label in drawn.labels]
    return [
        cell for label, places in zip(drawn.labels, found, strict=True) for at in places
        for cell in _cells(at, lines[at], label)
    ]  # fmt: skip


def many(seeds: range) -> Counter[str]:
    return Counter(one_case(seed) for seed in seeds)
