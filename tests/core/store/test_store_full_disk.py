"""The disk is full, read-only or failing at any write: nothing is typed that is not recorded, and it recovers."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sqlite3
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.support.crash_disk import CrashDisk, Op
from tests.support.ledgers import ME, YES, ask, open_ledger
from tests.support.recorded_vfs import available
from tests.support.store_life import examine, live

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import PromptRecord

hidden = pytest.mark.skipif(not available(), reason="this Python hides the functions of its own SQLite")

FAULTS: dict[str, tuple[int, int]] = {  # what SQLite is told, what audit.log is told
    "full": (sqlite3.SQLITE_FULL, errno.ENOSPC),
    "write error": (sqlite3.SQLITE_IOERR_WRITE, errno.EIO),
    "sync error": (sqlite3.SQLITE_IOERR_FSYNC, errno.EIO),
}


def fail_from(first: int, last: int, fault: str) -> Callable[[Op], int]:
    """The operations number `first` to `last` fail."""
    counter = iter(range(1, 10**9))
    for_sqlite, for_log = FAULTS[fault]
    kinds = ("sync",) if fault == "sync error" else ("write", "truncate")

    def decide(op: Op) -> int:
        if op.kind not in kinds or not first <= next(counter) <= last:
            return 0
        return for_log if op.name == "audit.log" else for_sqlite

    return decide


@hidden
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("length", [1, 40])
def test_a_fault_at_any_moment_types_nothing_unrecorded_and_heals(tmp_path: Path, fault: str, length: int) -> None:
    troubles = 0
    for first in range(1, 90, 13) if fault == "sync error" else range(1, 260, 43):
        home = tmp_path / f"{first}"
        home.mkdir()
        disk = CrashDisk(home)
        disk.fault = fail_from(first, first + length - 1, fault)
        life = live(disk, prompts=3)
        troubles += sum(life.errors.values())
        assert examine(disk, len(disk.ops), Random(first), "least") == ""
        ledger = open_ledger(home)
        recorded = {entry["prompt_id"] for entry in ledger.audit_entries(event="REPLY_RECEIVED")}
        assert set(life.typed) <= recorded
        assert ledger.alarm == "" and ledger.prepare_verify()().ok and ledger.check() == []
        assert isinstance(
            ledger.claim((record := ask(ledger)).prompt_id, record.session_id, None, YES, ME), PromptRecord
        )
        ledger.close()
    assert troubles > 0


def test_a_real_limit_of_the_file_size_is_a_clear_error_and_heals(tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes the kernel refuse a write, without root and without a special disk."""
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = os.path.getsize(tmp_path / "atlasbridge.db-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(StoreError) as caught:
            ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert caught.value.hint
    assert ledger.prompt(record.prompt_id) == record and ledger.unsettled() == []
    assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, ME), PromptRecord)
    assert ledger.prepare_verify()().ok
    ledger.close()


def test_a_read_only_home_is_named() -> None:
    """In a child without privileges, since root may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        open_ledger(home).close()
        for path in (*home.iterdir(), home):
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert _outcome_without_privileges(home) == "the database cannot be"
        home.chmod(0o700)


def _outcome_without_privileges(home: Path) -> str:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            open_ledger(home)
            os.write(writer, b"it was opened")
        except StoreError as error:
            os.write(writer, str(error)[:22].encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text
