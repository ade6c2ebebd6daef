"""How far audit.log can be trusted after a crash: finds the end from which the table's entries are to be written again.

Entries that were known to be on disk are not judged here: if one of them differs, somebody changed it, and `verify`
must be able to name it.  Only what was written last may be torn, in part or in the wrong order, by a loss of power.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from atlasbridge.core.audit.chain import Fault, check_chain, digest, parse_entry
from atlasbridge.core.audit.log import Line, lines_back, read_lines
from atlasbridge.core.store import audit_events
from atlasbridge.core.values import frozen


@frozen
class SoundEnd:
    size: int  # of the file up to here
    seq: int  # of the last entry before here
    cut_bytes: int  # behind here
    foreign: bool  # whole entries stand behind here that the store does not know


def find_sound_end(connection: sqlite3.Connection, path: Path) -> SoundEnd:
    certain = audit_events.exported(connection)
    doubtful: list[Line] = []
    size = seq = 0
    for line in lines_back(path):
        number = _intact_number(line)
        if number is not None and number <= certain:
            size, seq = line.end, number
            break
        doubtful.append(line)
    doubtful.reverse()
    end = doubtful[-1].end if doubtful else size
    for line, wanted in zip(doubtful, audit_events.lines_after(connection, seq), strict=False):
        if not line.whole or line.text != wanted:
            break
        size, seq = line.end, seq + 1
    foreign = any(_foreign(connection, line) for line in doubtful if line.end > size)
    return SoundEnd(size, seq, end - size, foreign)


def _intact_number(line: Line) -> int | None:
    """The number of a line that is an entry at all, even a changed one."""
    entry = parse_entry(line.text) if line.whole else None
    return entry["seq"] if entry and type(entry["seq"]) is int and entry["seq"] > 0 else None


def _foreign(connection: sqlite3.Connection, line: Line) -> bool:
    """A torn entry does not match its own hash; one that does, and is not ours, was written by somebody else."""
    number = _intact_number(line)
    if number is None:
        return False
    entry = parse_entry(line.text) or {}
    return entry["hash"] == digest(entry) and audit_events.line_of(connection, number) != line.text


def read_adoptable(path: Path) -> list[str]:
    """The entries of a log whose store was lost; empty when there are none or their chain is broken."""
    lines = [line for line in read_lines(path) if parse_entry(line)]
    return [] if isinstance(check_chain(lines), Fault) else lines
