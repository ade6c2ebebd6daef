"""Failing disks at every write: `python -m tests.torture full_disk`.  As root also a real full and a read-only disk.

A fault begins at operation N and lasts for a while, for every N; nothing may be typed that is not recorded, and
afterwards the store must be whole and go on.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import PromptRecord
from tests.support.crash_disk import CrashDisk, Op
from tests.support.ledgers import ME, YES, ask, open_ledger
from tests.support.recorded_vfs import available
from tests.support.store_life import examine, live

FAULTS = {
    "full": (("write", "truncate"), sqlite3.SQLITE_FULL, errno.ENOSPC),
    "write error": (("write", "truncate"), sqlite3.SQLITE_IOERR_WRITE, errno.EIO),
    "sync error": (("sync", "folder"), sqlite3.SQLITE_IOERR_FSYNC, errno.EIO),
    "read-only": (("write", "truncate"), sqlite3.SQLITE_READONLY, errno.EROFS),
}


def main(
    step: int = 1,  # try every STEP-th operation
) -> int:
    wrong = _simulated(step) if available() else 0
    if os.geteuid() == 0:
        wrong += _real_tmpfs()
    return 1 if wrong else 0


def _simulated(step: int) -> int:
    wrong: Counter[str] = Counter()
    for fault, (kinds, *_) in FAULTS.items():
        for length in (1, 3, 10_000):
            tried, refused, total = 0, 0, _count(kinds)
            for first in range(1, total + 1, step):
                errors, problem = _one_fault(fault, first, length)
                tried, refused = tried + 1, refused + errors
                if problem:
                    wrong[f"{fault} at {first} for {length}: {problem}"] += 1
            print(f"full_disk: {fault}, {length} operations long: begun at {tried} places, {refused} calls refused")
    print(f"full_disk: {sum(wrong.values())} faults {dict(wrong)}")
    return sum(wrong.values())


def _count(kinds: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        disk = CrashDisk(Path(folder))
        live(disk, prompts=3)
    return sum(1 for op in disk.ops if op.kind in kinds)


def _one_fault(fault: str, first: int, length: int) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        disk = CrashDisk(Path(folder))
        disk.fault = _failing(fault, first, first + length)
        life = live(disk, prompts=3)
        random = Random(first)
        problem = examine(disk, len(disk.ops), random, "least") or examine(disk, len(disk.ops), random, "any")
        disk.fault = lambda op: 0
        return sum(life.errors.values()), problem or _heal(Path(folder), set(life.typed))


def _failing(fault: str, first: int, end: int) -> Callable[[Op], int]:
    kinds, for_sqlite, for_log = FAULTS[fault]
    seen = 0

    def decide(op: Op) -> int:
        nonlocal seen
        seen += op.kind in kinds
        if op.kind not in kinds or not first <= seen < end:
            return 0
        return for_log if op.name in ("audit.log", ".") else for_sqlite

    return decide


def _heal(home: Path, typed: set[str]) -> str:
    """The disk is well again: is all there that was typed, and does the store go on?"""
    ledger = open_ledger(home)
    try:
        recorded = {entry["prompt_id"] for entry in ledger.audit_entries(event="REPLY_RECEIVED", limit=10**6)}
        if not typed <= recorded:
            return "something was typed that is not recorded"
        if ledger.alarm or not ledger.prepare_verify()().ok or ledger.check():
            return f"not healed: {ledger.alarm} {ledger.prepare_verify()().sentence} {ledger.check()}"
        record = ask(ledger)
        won = ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
        return "" if isinstance(won, PromptRecord) else f"the next claim is refused: {won}"
    finally:
        ledger.close()


def _real_tmpfs() -> int:
    """A real disk of 12 MB: filled, emptied, made read-only, made writable again."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", folder], check=False)
        if mounted.returncode:
            print("full_disk: no mount allowed here; the real disk was not tried")
            return 0
        try:
            return _fill_and_free(Path(folder)) + _read_only(Path(folder))
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def _fill_and_free(home: Path) -> int:
    ledger, wrong, refused = open_ledger(home), 0, 0
    for _ in range(20):
        record = ask(ledger)
        filler = home / "filler"
        _fill(filler)
        try:
            ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
        except StoreError:
            refused += 1
            wrong += ledger.prompt(record.prompt_id) != record
        filler.unlink()
        ledger.flush()
        wrong += bool(ledger.alarm) or not ledger.prepare_verify()().ok
        ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
        wrong += [item.prompt_id for item, _ in ledger.unsettled()] != [record.prompt_id]
        ledger.inject(record.prompt_id)
        ledger.resolve(record.prompt_id)
    ledger.close()
    print(f"full_disk: a real full disk, 20 times: {refused} claims refused, {wrong} faults")
    return wrong


def _fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def _read_only(home: Path) -> int:
    ledger = open_ledger(home)
    record = ask(ledger)
    ledger.close()
    subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
    try:
        open_ledger(home).close()
        wrong = 1
    except StoreError as error:
        print(f"full_disk: a read-only disk: {error} — {error.hint}")
        wrong = 0
    subprocess.run(["mount", "-o", "remount,rw", str(home)], check=True)
    ledger = open_ledger(home)
    wrong += ledger.prompt(record.prompt_id) != record
    ledger.close()
    return wrong
