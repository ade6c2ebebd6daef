"""A disk that remembers: what was written, what was synced, and so what may be left after the power goes.

The model: a synced write is there; of everything after a file's last sync any part, cut at any sector, may be there and
any part missing, in any combination.  A new or deleted name is certain only after its folder was synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.support.recorded_vfs import SQLITE_OK, Observer

SECTOR = 512
DATABASE = "atlasbridge.db"  # its name is certain: the store makes the file and syncs the folder before SQLite sees it
AUDIT_LOG = "audit.log"


@dataclass(frozen=True)
class Op:
    kind: str  # "open", "write", "truncate", "sync", "delete", "folder", "ack"
    name: str = ""
    offset: int = 0
    data: bytes = b""
    fact: Any = None


class CrashDisk(Observer):
    """Records; `fault` may turn any operation into an error (a code of SQLite, or an errno for audit.log)."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ops: list[Op] = []
        self.fault: Callable[[Op], int] = lambda op: 0

    def acknowledge(self, fact: Any) -> None:
        """From here on the caller relies on `fact`."""
        self.ops.append(Op("ack", fact=fact))

    def note(self, op: Op) -> int:
        if op.name.endswith("-shm") or not op.name:
            return SQLITE_OK
        code = self.fault(op)
        if not code:
            self.ops.append(op)
        return code

    def _name(self, path: str) -> str:
        return Path(path).name if Path(path).parent == self.home else ""

    # SQLite's files

    def opened(self, path: str) -> None:
        self.note(Op("open", self._name(path)))

    def deleted(self, path: str, folder_synced: bool) -> int:
        return self.note(Op("delete", self._name(path), folder_synced))

    def wrote(self, path: str, offset: int, data: bytes) -> int:
        return self.note(Op("write", self._name(path), offset, data))

    def truncated(self, path: str, size: int) -> int:
        return self.note(Op("truncate", self._name(path), size))

    def synced(self, path: str) -> int:
        return self.note(Op("sync", self._name(path)))


class RecordedOs:
    """The os module as audit.log sees it, on the same disk."""

    def __init__(self, disk: CrashDisk) -> None:
        self._disk = disk
        self._names: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _note(self, op: Op) -> None:
        code = self._disk.note(op)
        if code:
            raise OSError(code, os.strerror(code))

    def open(self, path: str | Path, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        self._names[descriptor] = "." if Path(path) == self._disk.home else Path(path).name
        if flags & os.O_CREAT:
            self._disk.note(Op("open", Path(path).name))
        return descriptor

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        self._note(Op("write", self._names[descriptor], offset, bytes(data)))
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor: int, size: int) -> None:
        self._note(Op("truncate", self._names[descriptor], size))
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        name = self._names[descriptor]
        self._note(Op("folder", name) if name == "." else Op("sync", name))
        os.fsync(descriptor)


@dataclass
class Inode:
    certain: bytearray = field(default_factory=bytearray)
    pending: list[Op] = field(default_factory=list)


class Wreck:
    """The state of a disk after the first operations of a recording."""

    def __init__(self, ops: list[Op]) -> None:
        self._names: dict[str, list[Inode | None]] = {}  # candidates after a crash; the last one is the present
        self.facts: list[Any] = []
        for op in ops:
            self._apply(op)

    def _apply(self, op: Op) -> None:
        candidates = self._names.setdefault(op.name, [None])
        present = candidates[-1]
        match op.kind:
            case "ack":
                self.facts.append(op.fact)
            case "open" if present is None:
                candidates[:] = [Inode()] if op.name == DATABASE else [*candidates, Inode()]
            case "delete":
                candidates[:] = [None] if op.offset else [*candidates, None]
            case "folder":
                self._sync_folder()
            case "sync" if present is not None:
                for pending in present.pending:
                    _write(present.certain, pending)
                present.pending.clear()
                if len(candidates) > 1 and op.name != AUDIT_LOG:
                    self._sync_folder()  # SQLite does that with the first sync of a new journal or WAL
            case "write" | "truncate" if present is not None:
                present.pending.append(op)

    def _sync_folder(self) -> None:
        for candidates in self._names.values():
            del candidates[:-1]

    def build(self, folder: Path, random: Random, style: str) -> None:
        """One of the possible disks: style is "least" (nothing unsynced survived), "most" (all of it), or "any"."""
        for name, candidates in self._names.items():
            inode = random.choice({"least": candidates[:1], "most": candidates[-1:]}.get(style, candidates))
            if inode is None or not name or name == ".":
                continue
            content = bytearray(inode.certain)
            for op in inode.pending:
                for part in _survivors(op, random, style):
                    _write(content, part)
            (folder / name).write_bytes(content)


def _survivors(op: Op, random: Random, style: str) -> list[Op]:
    if style != "any":
        return [op] if style == "most" else []
    luck = random.random()
    if luck < 0.4:
        return [op]
    if luck < 0.7 or op.kind == "truncate":
        return []
    return [part for part in _sectors(op) if random.random() < 0.5]


def _sectors(op: Op) -> list[Op]:
    first = SECTOR - op.offset % SECTOR
    cuts = [0, *range(first, len(op.data), SECTOR), len(op.data)]
    return [Op("write", op.name, op.offset + a, op.data[a:b]) for a, b in pairwise(cuts) if a < b]


def _write(content: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del content[op.offset :]
        content.extend(bytes(op.offset - len(content)))
        return
    if len(content) < op.offset:
        content.extend(bytes(op.offset - len(content)))
    content[op.offset : op.offset + len(op.data)] = op.data
