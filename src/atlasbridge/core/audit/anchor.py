"""audit.head: a second copy of the log's head, outside the database and outside the log.

It can only lag behind them, so a store or a log with fewer entries was truncated. It is written in place without a
sync, because a delay does no harm. It has two alternating slots, each with a checksum: a process that is killed during
a write leaves the other slot intact, and a torn slot is never mistaken for a head.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import NamedTuple

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.system import OWN_FILE, keep_private, write_at

NAME = "audit.head"
_SIZE = 128  # bytes of a padded slot, so that every write has the same size
_SLOTS = 2
_HASH = len("sha256:") + 64


class _Note(NamedTuple):
    turn: int  # how many were written before it
    head: Head


class Anchor:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._turn = 0
        self._slot = 0

    def write(self, head: Head) -> None:
        if self._descriptor is None:
            self._open()
        assert self._descriptor is not None
        said = f"{head.entries} {head.hash} {self._turn}"
        line = f"{said} {_check(said)}".ljust(_SIZE - 1) + "\n"
        write_at(self._descriptor, line.encode("ascii"), self._slot * _SIZE)
        self._turn += 1
        self._slot = 1 - self._slot

    def _open(self) -> None:
        """Keeps the newest note until the next one is written beside it."""
        notes = _read_notes(self.path)
        kept = max(notes, key=lambda slot: notes[slot].turn) if notes else 1
        self._slot, self._turn = 1 - kept, notes[kept].turn + 1 if notes else 0
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | OWN_FILE, 0o600)
        keep_private(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def read_anchor(path: Path) -> Head | None:
    """Returns None if the file is missing or invalid."""
    notes = _read_notes(path)
    return max(notes.values(), key=lambda note: note.turn).head if notes else None


def _read_notes(path: Path) -> dict[int, _Note]:
    """The notes of the slots, without torn ones."""
    try:
        data = path.read_bytes()[: _SLOTS * _SIZE]
    except OSError:
        return {}
    found = {slot: _parse(data[slot * _SIZE : (slot + 1) * _SIZE]) for slot in range(_SLOTS)}
    return {slot: note for slot, note in found.items() if note is not None}


def _parse(slot: bytes) -> _Note | None:
    words = slot.decode("ascii", "replace").split()
    if len(words) == 2 and words[0].isdecimal() and len(words[1]) == _HASH:  # the format before there were two slots
        return _Note(-1, Head(int(words[0]), words[1]))
    if len(words) != 4 or not words[0].isdecimal() or not words[2].isdecimal():
        return None
    said = " ".join(words[:3])
    return _Note(int(words[2]), Head(int(words[0]), words[1])) if words[3] == _check(said) else None


def _check(said: str) -> str:
    return f"{zlib.crc32(said.encode('ascii')):08x}"
