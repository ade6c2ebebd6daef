"""audit.log: JSON Lines, mode 0600, appended with fsync.  Only bytes and files: the chain is `chain.py`.

After a failed write or fsync the file is cut back to what is known to be on disk, and the same lines are written again:
the kernel may have dropped the pages of a failed fsync, so a second fsync alone would prove nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_CHUNK = 64 * 1024


class Tail(NamedTuple):
    """The end of the file: the last whole line, how long the file is up to it, and what hangs behind it."""

    line: str | None
    good_size: int
    torn_bytes: int


class AuditFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._size = 0  # what is known to be on disk

    def start(self, size: int) -> None:
        """Append after `size` bytes from now on; what stands behind them is cut off."""
        self.close()
        fresh = not self.path.exists()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if fresh:
            _sync_name(self.path.parent)
        if os.fstat(self._descriptor).st_size > size:
            os.ftruncate(self._descriptor, size)
            os.fsync(self._descriptor)
        self._size = size

    def append(self, lines: Sequence[str]) -> None:
        """All of it on disk, or OSError and nothing counted as written."""
        if self._descriptor is None:
            self.start(self._size)
        assert self._descriptor is not None
        data = "".join(line + "\n" for line in lines).encode("ascii")
        try:
            _write_all(self._descriptor, data, self._size)
            os.fsync(self._descriptor)
        except OSError:
            self.close()
            raise
        self._size += len(data)

    def untouched(self) -> bool:
        """Is the file on disk still the one that was written, and of the size that was written?"""
        if self._descriptor is None:
            return False
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        ours = os.fstat(self._descriptor)
        return (named.st_ino, named.st_dev, named.st_size) == (ours.st_ino, ours.st_dev, self._size)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def read_lines(path: Path) -> Iterator[str]:
    """Every line, also a torn last one.  Bytes that are not ASCII become marks, which no hash matches."""
    try:
        with open(path, encoding="ascii", errors="replace", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")
    except FileNotFoundError:
        return


def read_tail(path: Path, limit: int | None = None) -> Tail:
    """The end of the file, or of its first `limit` bytes."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            end = _find_back(file.fileno(), size if limit is None else limit) + 1  # behind the last line feed
            start = _find_back(file.fileno(), end - 1) + 1 if end else 0
            line = os.pread(file.fileno(), end - 1 - start, start) if end else None
    except FileNotFoundError:
        return Tail(None, 0, 0)
    return Tail(None if line is None else line.decode("ascii", "replace"), end, size - end)


def _find_back(descriptor: int, before: int) -> int:
    """The position of the last line feed below `before`, or -1."""
    while before > 0:
        start = max(0, before - _CHUNK)
        found = os.pread(descriptor, before - start, start).rfind(b"\n")
        if found >= 0:
            return start + found
        before = start
    return -1


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _sync_name(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
