"""audit.log: JSON Lines, mode 0600, appended and synced to disk. It handles only bytes and files; `chain.py` defines
the chain.

After a failed write or fsync, the file is truncated to what is known to be on disk, and the same lines are written
again: the kernel can have dropped the pages of a failed fsync, so a second fsync alone would prove nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from atlasbridge.core.audit.chain import Fault, Head, check_chain, parse_entry, seal_entry
from atlasbridge.core.clock import Clock, SystemClock, iso
from atlasbridge.core.system import OWN_FILE, keep_private, read_at, sync_folder, write_at

# audit.head: a second copy of the log's head, outside the database and outside the log.
#
# It can only lag behind them, so a store or a log with fewer entries was truncated. It is written in place without a
# sync, because a delay does no harm. It has two alternating slots, each with a checksum: a process that is killed while
# it writes leaves the other slot intact, and a torn slot is never mistaken for a head.

HEAD_NAME = "audit.head"
_SIZE = 128  # bytes of a padded slot, so that every write has the same size
_SLOTS = 2
_HASH = len("sha256:") + 64


class _Note(NamedTuple):
    number: int  # how many were written before it
    head: Head


class Anchor:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._number = 0
        self._slot = 0

    def write(self, head: Head) -> None:
        if self._descriptor is None:
            self._open()
        assert self._descriptor is not None
        said = f"{head.entries} {head.hash} {self._number}"
        line = f"{said} {_check(said)}".ljust(_SIZE - 1) + "\n"
        write_at(self._descriptor, line.encode("ascii"), self._slot * _SIZE)
        self._number += 1
        self._slot = 1 - self._slot

    def _open(self) -> None:
        """Keeps the newest note until the next one is written beside it."""
        notes = _read_notes(self.path)
        kept = max(notes, key=lambda slot: notes[slot].number) if notes else 1
        self._slot, self._number = 1 - kept, notes[kept].number + 1 if notes else 0
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | OWN_FILE, 0o600)
        keep_private(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def read_anchor(path: Path) -> Head | None:
    """Returns None if the file is missing or invalid."""
    notes = _read_notes(path)
    return max(notes.values(), key=lambda note: note.number).head if notes else None


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


_CHUNK = 4096


class Line(NamedTuple):
    """A line and its position; without its line feed it is torn."""

    start: int
    end: int
    text: str
    whole: bool


class AuditFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._size: int | None = None  # bytes written; None before `start`
        self._certain = 0  # bytes known to be on disk

    def start(self, size: int) -> None:
        """Appends after `size` bytes from now on; anything after them is cut off."""
        self.close()
        fresh = not self.path.exists()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if fresh:
            sync_folder(self.path.parent)
        keep_private(self._descriptor)
        if os.fstat(self._descriptor).st_size > size:
            os.ftruncate(self._descriptor, size)
            os.fsync(self._descriptor)
        self._size = self._certain = size

    def append(self, lines: Sequence[str], sync: bool = True) -> None:
        """Writes the lines. On OSError, nothing since the last sync counts as written. With `sync=False`, a later
        append syncs them."""
        size = self._size or 0
        if self._descriptor is None:
            self.start(size)
        assert self._descriptor is not None
        data = "".join(line + "\n" for line in lines).encode("ascii")
        try:
            _write_all(self._descriptor, data, size)
            if sync:
                os.fsync(self._descriptor)
        except OSError:
            self.close()
            self._size = self._certain
            raise
        self._size = size + len(data)
        self._certain = self._size if sync else self._certain

    def untouched(self) -> bool:
        """Whether the file is still as we wrote it. After a failed write it can be longer: the rest is cut off
        again."""
        if self._size is None:
            return False
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        if self._descriptor is None:
            return named.st_size >= self._size
        ours = os.fstat(self._descriptor)
        return (named.st_ino, named.st_dev, named.st_size) == (ours.st_ino, ours.st_dev, self._size)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


class AuditWriter:
    """A separate log in the same format, without a store; `verify_chain` checks it. Only the hub writes the hub's
    log."""

    def __init__(self, path: Path | str, clock: Clock | None = None) -> None:
        """Continues an existing log. Raises ValueError with the first bad entry."""
        self.path = Path(path)
        self._clock = clock or SystemClock()
        self._file = AuditFile(self.path)
        head = check_chain(read_lines(self.path))
        if isinstance(head, Fault):
            raise ValueError(f"{self.path}: entry {head.seq} {head.problem}")
        self.head: Head = head
        self._file.start(self.path.stat().st_size if self.path.exists() else 0)

    def write(self, event: str, **fields: Any) -> dict[str, Any]:
        """Appends one entry and syncs it to disk. Returns it with its number and hashes."""
        line, head = seal_entry(self.head, iso(self._clock.wall()), event, fields)
        self._file.append([line])
        self.head = head
        return parse_entry(line) or {}

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path, size: int | None = None) -> Iterator[str]:
    """Yields every line, even a torn last one, of the first `size` bytes. A byte that is not ASCII is replaced, so that
    no hash matches."""
    try:
        with open(path, encoding="ascii", errors="replace", newline="\n") as file:
            for line in file:
                if size is not None:
                    line = line[:size]
                    size -= len(line)
                    if not line:
                        return
                yield line.removesuffix("\n")
    except FileNotFoundError:
        return


def verify_chain(entries: Path | str | Iterable[str]) -> tuple[bool, int]:
    """Recomputes the chain of a file or of lines. Returns whether it is valid, and its length or the first bad
    entry."""
    lines = read_lines(Path(entries)) if isinstance(entries, Path | str) else entries
    verdict = check_chain(lines)
    return (False, verdict.seq) if isinstance(verdict, Fault) else (True, verdict.entries)


def lines_back(path: Path) -> Iterator[Line]:
    """Yields the lines from the end of the file to its beginning; the first one can be torn."""
    try:
        descriptor = os.open(path, os.O_RDONLY | OWN_FILE)
    except FileNotFoundError:
        return
    try:
        end = os.fstat(descriptor).st_size
        while end > 0:
            last = read_at(descriptor, 1, end - 1) == b"\n"
            start = _find_back(descriptor, end - last) + 1
            text = read_at(descriptor, end - last - start, start).decode("ascii", "replace")
            yield Line(start, end, text, whole=last)
            end = start
    finally:
        os.close(descriptor)


def _find_back(descriptor: int, before: int) -> int:
    """The position of the last line feed before `before`, or -1."""
    while before > 0:
        start = max(0, before - _CHUNK)
        found = read_at(descriptor, before - start, start).rfind(b"\n")
        if found >= 0:
            return start + found
        before = start
    return -1


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = write_at(descriptor, view, offset)
        view, offset = view[written:], offset + written
