"""audit.log beside the store: torn, cut, lost, forged, full; and what `verify` says of each."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.ledgers import ME, YES, ask, open_ledger

from atlasbridge.core import system
from atlasbridge.core.audit import log
from atlasbridge.core.audit.chain import START, seal_entry
from atlasbridge.core.audit.log import lines_back, read_lines
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.store import verify
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.verify import verify_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose hub was stopped in good order: 9 entries."""
    ledger = open_ledger(tmp_path)
    for _ in range(2):
        record = ask(ledger)
    ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
    ledger.close()
    assert verify_home(tmp_path).ok
    yield tmp_path


def lines_of(home: Path) -> list[str]:
    return list(read_lines(home / "audit.log"))


def write_lines(home: Path, lines: list[str]) -> None:
    (home / "audit.log").write_text("".join(line + "\n" for line in lines))


def tamper(home: Path, *statements: str) -> None:
    """As somebody with a shell would: the triggers are gone first."""
    connection = sqlite3.connect(home / "atlasbridge.db")
    for name in ("audit_events_are_never_changed", "audit_events_are_never_deleted"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_the_file_holds_the_very_entries_of_the_table(home: Path) -> None:
    ledger = open_ledger(home)
    assert [entry["seq"] for entry in ledger.audit_entries()] == list(range(1, 10))
    assert lines_of(home) == list(read_table(home))
    assert (ledger.audit_head().entries, ledger.alarm) == (9, "")
    ledger.close()


def read_table(home: Path) -> list[str]:
    connection = sqlite3.connect(home / "atlasbridge.db")
    rows = connection.execute("SELECT entry FROM audit_events ORDER BY seq").fetchall()
    connection.close()
    return [row[0] for row in rows]


def forged(line: str) -> str:
    return line.replace('"telegram:1"', '"telegram:2"').replace('"memory"', '"forged"').replace('"bash"', '"zsh"')


FILE_ATTACKS: dict[str, Any] = {
    "edit": (lambda lines: [*lines[:3], forged(lines[3]), *lines[4:]], 4),
    "edit of the last entry": (lambda lines: [*lines[:-1], forged(lines[-1])], 9),
    "deletion": (lambda lines: [*lines[:4], *lines[5:]], 5),
    "insertion": (lambda lines: [*lines[:2], lines[7], *lines[2:]], 3),
    "repetition": (lambda lines: [*lines[:2], *lines[1:]], 3),
    "reordering": (lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]], 6),
    "truncation": (lambda lines: lines[:6], 7),
    "deletion of everything": (lambda lines: [], 1),
    "addition": (lambda lines: [*lines, lines[-1]], 10),
    "rubbish in the middle": (lambda lines: [*lines[:3], "hello", *lines[3:]], 4),
}


@pytest.mark.parametrize("name", FILE_ATTACKS)
def test_a_change_of_the_file_is_found_and_named(home: Path, name: str) -> None:
    attack, bad = FILE_ATTACKS[name]
    write_lines(home, attack(lines_of(home)))
    verdict = verify_home(home)
    assert (verdict.ok, verdict.where, verdict.bad_entry) == (False, "audit.log", bad)
    assert f"Entry {bad} of the audit.log" in verdict.sentence


def test_a_file_rewritten_as_a_whole_chain_is_found(home: Path) -> None:
    head, lines = START, []
    for line in lines_of(home):
        entry, head = seal_entry(head, "2026-01-01T00:00:00.000000+00:00", "FORGED", {"was": len(line)})
        lines.append(entry)
    write_lines(home, lines)
    verdict = verify_home(home)
    assert not verdict.ok and verdict.where == "audit.log" and verdict.bad_entry == 9
    assert "head" in verdict.problem


@pytest.mark.parametrize(
    ("statement", "bad"),
    [
        ("UPDATE audit_events SET entry = replace(entry, 'telegram:1', 'telegram:2') WHERE seq = 9", 9),
        ("UPDATE audit_events SET prompt_id = NULL WHERE seq = 6", 6),
        ("UPDATE audit_events SET seq = 40 WHERE seq = 4", 4),
        ("DELETE FROM audit_events WHERE seq = 5", 5),
        ("DELETE FROM audit_events WHERE seq > 7", 8),
        ("DELETE FROM audit_events", 1),
        ("INSERT INTO audit_events SELECT 10, event, session_id, prompt_id, entry FROM audit_events WHERE seq = 9", 10),
    ],
)
def test_a_change_of_the_table_is_found_and_named(home: Path, statement: str, bad: int) -> None:
    tamper(home, statement)
    verdict = verify_home(home)
    assert (verdict.ok, verdict.where, verdict.bad_entry) == (False, "table", bad)


def test_a_head_that_was_set_back_is_found(home: Path) -> None:
    tamper(home, "UPDATE audit_head SET count = 8")
    verdict = verify_home(home)
    assert not verdict.ok and verdict.bad_entry == 9


def test_the_database_refuses_to_change_or_delete_an_entry(home: Path) -> None:
    connection = sqlite3.connect(home / "atlasbridge.db")
    for statement in ("UPDATE audit_events SET event = 'X'", "DELETE FROM audit_events"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("name", ["edit", "edit of the last entry", "deletion", "reordering", "rubbish in the middle"])
def test_a_restart_does_not_hide_a_change(home: Path, name: str) -> None:
    attack, bad = FILE_ATTACKS[name]
    write_lines(home, attack(lines_of(home)))
    ledger = open_ledger(home)
    ledger.note("HUB_START")
    assert ledger.prepare_verify()().bad_entry == bad
    ledger.close()
    assert verify_home(home).bad_entry == bad


@pytest.mark.parametrize("cut", [1, 7, 150, 1000])
def test_a_torn_end_is_repaired_with_a_record_of_its_own(home: Path, cut: int) -> None:
    path = home / "audit.log"
    whole = path.read_bytes()
    os.truncate(path, len(whole) - cut)
    ledger = open_ledger(home)
    verdict = ledger.prepare_verify()()
    assert verdict.ok and verdict.repairs == 1
    (entry,) = ledger.audit_entries(event="AUDIT_REPAIRED")
    assert entry["restored"] == len(lines_of(home)) - 1 - whole[: len(whole) - cut].count(b"\n")
    assert path.read_bytes().startswith(whole)
    ledger.close()


def test_a_batch_torn_in_its_middle_is_repaired_after_a_loss_of_power(home: Path) -> None:
    """Sectors reach the disk in any order: of two entries written together only the second may be whole."""
    ledger = open_ledger(home)
    session_id = ledger.sessions()[0].session_id
    ledger.end_session(session_id, 0, SessionState.COMPLETED)  # ends a prompt as well: two entries at once
    ledger.journal.abandon()
    path = home / "audit.log"
    lines = lines_of(home)
    torn = lines[-2].replace('"PROMPT_', '"\0\0\0\0\0\0\0')
    path.write_bytes("".join(line + "\n" for line in (*lines[:-2], torn, lines[-1])).encode())
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().ok and lines_of(home)[: len(lines)] == lines
    assert ledger.audit_entries(event="AUDIT_REPAIRED")[0]["restored"] == 2
    ledger.close()


def test_zeroes_behind_the_end_are_cut_off(home: Path) -> None:
    with open(home / "audit.log", "ab") as file:
        file.write(b"\0" * 700)
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().ok
    assert ledger.audit_entries(event="AUDIT_REPAIRED")[0]["cut_bytes"] == 700
    ledger.close()


def test_a_lost_file_is_written_again(home: Path) -> None:
    (home / "audit.log").unlink()
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().ok
    assert ledger.audit_entries(event="AUDIT_REPAIRED")[0]["restored"] == 9
    ledger.close()


def test_a_lost_store_goes_on_with_the_chain_of_the_file(home: Path) -> None:
    before = lines_of(home)
    (home / "atlasbridge.db").unlink()
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().ok
    assert lines_of(home)[:9] == before
    assert ledger.audit_entries(event="AUDIT_ADOPTED")[0]["entries"] == 9
    ledger.close()


def test_a_broken_file_without_its_store_is_kept_aside(home: Path) -> None:
    lines = lines_of(home)
    write_lines(home, lines[3:])
    (home / "atlasbridge.db").unlink()
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().bad_entry == 1  # nine had been written, and none of them is left
    assert ledger.audit_entries(event="AUDIT_REPAIRED")[0]["set_aside"] == "audit.log.1"
    assert list(read_lines(home / "audit.log.1")) == lines[3:]
    ledger.close()


def test_entries_that_the_store_never_wrote_are_put_aside_not_believed(home: Path) -> None:
    ledger = open_ledger(home)
    extra, _ = seal_entry(ledger.audit_head(), "2026-01-01T00:00:00.000000+00:00", "REPLY_RECEIVED", {"value": "y"})
    ledger.close()
    write_lines(home, [*lines_of(home), extra])
    assert verify_home(home).bad_entry == 10
    ledger = open_ledger(home)
    assert ledger.prepare_verify()().ok and extra not in lines_of(home)
    assert extra in (home / "audit.log.1").read_text()
    ledger.close()


def test_a_file_removed_while_the_hub_runs_comes_back_whole(home: Path) -> None:
    ledger = open_ledger(home)
    (home / "audit.log").unlink()
    assert ledger.prepare_verify()().bad_entry == 1
    ledger.note("HUB_STOP")
    assert ledger.prepare_verify()().ok
    assert ledger.audit_entries(event="AUDIT_REPAIRED")[0]["restored"] == 9
    ledger.close()


class FailingOs:
    """The os module, but writing to audit.log fails as long as `fault` is set."""

    def __init__(self) -> None:
        self.fault: int | None = None
        self.failing = "pwrite"
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        if self.fault and self.failing == "pwrite":
            os.pwrite(descriptor, bytes(data)[:20], offset)  # the disk took a part of it
            raise OSError(self.fault, os.strerror(self.fault))
        return os.pwrite(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        if self.fault and self.failing == "fsync":
            raise OSError(self.fault, os.strerror(self.fault))
        os.fsync(descriptor)


@pytest.mark.parametrize("failing", ["pwrite", "fsync"])
def test_a_copy_that_fails_raises_an_alarm_and_is_made_later(
    home: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    disk = FailingOs()
    monkeypatch.setattr(log, "os", disk)
    monkeypatch.setattr(system, "os", disk)
    ledger = open_ledger(home)
    disk.fault, disk.failing = errno.ENOSPC, failing
    record = ask(ledger)
    assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, ME), type(record))
    assert "No space left" in ledger.alarm
    assert ledger.flush() is False
    if failing == "pwrite":
        assert ledger.prepare_verify()().bad_entry == 10
    disk.fault = None
    assert ledger.flush() is True
    assert ledger.alarm == "" and ledger.prepare_verify()().ok
    assert ledger.audit_entries(event="AUDIT_REPAIRED") == []
    ledger.close()


def test_reading_backwards_gives_the_lines_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    for text in ("", "\n", "a", "a\n", "\n\na\n\nb", "x" * 5000 + "\n" + "y" * 4095 + "\n" + "z" * 4096):
        path.write_text(text)
        back = [line.text for line in lines_back(path)][::-1]
        assert back == text.removesuffix("\n").split("\n") if text else back == []


def test_an_entry_that_the_hub_writes_meanwhile_is_no_fault(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen beside a hub that had just started: the file was read after the table, and had one entry more."""
    ledger = open_ledger(home)
    reads: list[Path] = []

    def read_after_a_write(path: Path, size: int | None) -> Iterator[str]:
        if not reads:
            ask(ledger)
        reads.append(path)
        return read_lines(path, size)

    monkeypatch.setattr(verify, "read_lines", read_after_a_write)
    verdict = verify_home(home)
    assert (verdict.ok, verdict.count, len(reads)) == (True, ledger.audit_head().entries, 2)
    ledger.close()


def test_the_ledger_names_its_own_verdict(home: Path) -> None:
    ledger: Ledger = open_ledger(home)
    verdict = ledger.prepare_verify()()
    assert verdict.sentence.startswith("The audit log is whole: 9 entries, head sha256:")
    assert verdict.ok is True and verdict.count == 9
    ledger.close()
