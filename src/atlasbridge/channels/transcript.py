"""Extracts a tool's text from the rows of its screen and scrollback: since the last instruction, or its last answer
alone. Pure. Full-screen tools have no scrollback; then the screen is all there is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MOST_ROWS = 2000
BOX_ROWS = 10  # counted from the end: the tool's input box and its footer
LEAST_GIVEN = 8  # an instruction must be this long to be found reliably
_BOX = re.compile(r"\s{0,2}[│┃|▌]?\s{0,2}[>❯›](\s|$)")
_ASKED = re.compile(r"\s{0,2}[│┃|▌]?\s{0,2}[>❯›]\s+(?!\d+[.)]\s)\S")
_FRAME = re.compile(r"[\s─━═╌┄▀▄╭╮╰╯┌┐└┘│┃|]*")
_SPOKEN = re.compile(r" ?[●⏺•✦◆⬤]\s+\S")
_WORK_BELOW = re.compile(r"\s*[⎿└│├]")


def rows_of(screen: dict[str, Any]) -> list[str]:
    """The rows of a capture with its scrollback; runs become text."""
    if screen.get("lines") is not None:
        return [str(row) for row in screen["lines"]]
    runs = [*(screen.get("past") or []), *(screen.get("styled") or [])]
    return ["".join(str(run[0]) for run in row).rstrip() for row in runs][-MOST_ROWS:]


def since_instruction(rows: Sequence[str], given: Iterable[str] = ()) -> list[str]:
    """Return the rows since the last instruction, without the input box, or all rows if there is none. `given` are
    instructions that went through the hub; they are found anywhere in the rows."""
    kept = _without_box(rows)
    known = [line for line in (_first_line(text) for text in given) if len(line) >= LEAST_GIVEN]
    for place in range(len(kept) - 1, -1, -1):
        if _ASKED.match(kept[place]) or any(line in kept[place] for line in known):
            return kept[place:]
    return _trimmed(kept)


def last_answer(rows: Sequence[str], given: Iterable[str] = ()) -> list[str]:
    """Return the last text of the tool. If the tool marks no answers, return everything after the instruction."""
    return marked_answer(rows, given) or since_instruction(rows, given)


def marked_answer(rows: Sequence[str], given: Iterable[str] = ()) -> list[str]:
    """The last answer, if the screen tells what that is: the tool marks its words, or an instruction is above them."""
    said = since_instruction(rows, given)
    for place in range(len(said) - 1, -1, -1):
        if _SPOKEN.match(said[place]) and not _is_work(said, place):
            return _trimmed(_until_its_end(said[place:]))
    asked = bool(said) and (bool(_ASKED.match(said[0])) or len(said) < len(_trimmed(_without_box(rows))))
    return _trimmed(said[1:]) if asked else []


def split_rows(rows: Sequence[str], limit: int, size: Callable[[str], int]) -> list[str]:
    """Split into pieces of whole rows, each at most `limit`. A row that is longer is split, too."""
    pieces, piece = [], ""
    for part in (part for row in rows for part in _cut_row(row, limit, size)):
        joined = f"{piece}\n{part}" if piece else part
        if size(joined) > limit:
            pieces.append(piece)
            joined = part
        piece = joined
    return [*pieces, piece] if piece else pieces


def _cut_row(row: str, limit: int, size: Callable[[str], int]) -> list[str]:
    parts = []
    while size(row) > limit:
        parts.append(row[: limit // 2])
        row = row[limit // 2 :]
    return [*parts, row]


def _without_box(rows: Sequence[str]) -> list[str]:
    """The rows above the input box, if there is one at the end."""
    kept = _trimmed(rows)
    for place in range(len(kept) - 1, max(-1, len(kept) - 1 - BOX_ROWS), -1):
        if _BOX.match(kept[place]) and not any(_SPOKEN.match(row) for row in kept[place:]):
            kept = kept[:place]
            break
    while kept and _FRAME.fullmatch(kept[-1]):
        kept = kept[:-1]
    return kept


def _is_work(rows: Sequence[str], place: int) -> bool:
    """Whether the row is a tool call or a command; its output follows below."""
    below = next((row for row in rows[place + 1 :] if row.strip()), "")
    return bool(_WORK_BELOW.match(below)) and not _FRAME.fullmatch(below)


def _until_its_end(rows: Sequence[str]) -> Sequence[str]:
    """A marked answer hangs below its first word. It ends at a line of the tool's own further left, which begins with
    a sign behind an empty row (how long it took), and where the output of a command is drawn below it, with the row
    above that names the command."""
    column = len(rows[0]) - len(rows[0].lstrip(" ●⏺•✦◆⬤"))
    for place, row in enumerate(rows):
        sign = row.lstrip()[:1]
        left = bool(sign) and len(row) - len(row.lstrip()) < column
        if place and left and not rows[place - 1].strip() and unicodedata.category(sign) == "So":
            return rows[:place]
        if place and row.lstrip().startswith("⎿"):
            return rows[: place - 1 if rows[place - 1].strip() and place > 1 else place]
    return rows


def _trimmed(rows: Sequence[str]) -> list[str]:
    """Remove empty rows at both ends."""
    kept = list(rows)
    while kept and not kept[-1].strip():
        kept.pop()
    while kept and not kept[0].strip():
        kept.pop(0)
    return kept


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()[:60]
