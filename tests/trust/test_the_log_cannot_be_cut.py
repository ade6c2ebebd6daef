"""Database, log and the head that is written down beside them: what is taken from one of them is seen by the others."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.hubs import NO_WEB, short_home
from tests.support.ledgers import ME, YES, ask, open_ledger
from tests.support.operator import Operator

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.audit.log import HEAD_NAME, Anchor, read_anchor, read_lines
from atlasbridge.core.errors import StoreError
from atlasbridge.core.home import Home
from atlasbridge.core.operations import AuditVerdict
from atlasbridge.core.store.verify import verify_home

HOSTILE = "/tmp/\x9b31m\u202egnp.exe\u2066"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose hub was stopped in good order: 9 entries."""
    ledger = open_ledger(tmp_path)
    for _ in range(2):
        record = ask(ledger)
    ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
    ledger.close()
    verdict = verify_home(tmp_path)
    assert verdict.ok and verdict.incidents == () and verdict.count == 9
    yield tmp_path


def cut(home: Path, left: int) -> None:
    lines = list(read_lines(home / "audit.log"))[:left]
    (home / "audit.log").write_text("".join(line + "\n" for line in lines))


def lose_store(home: Path) -> None:
    for path in home.glob("atlasbridge.db*"):
        path.unlink()


def opened(home: Path) -> AuditVerdict:
    """What `verify` says after a hub has started and stopped."""
    ledger = open_ledger(home)
    said = ledger.prepare_verify()()
    ledger.close()
    assert verify_home(home) == said
    return said


@pytest.mark.parametrize("left", [0, 1, 5, 8])
def test_a_cut_log_without_its_database_is_named_after_a_start(home: Path, left: int) -> None:
    lose_store(home)
    cut(home, left)
    verdict = opened(home)
    assert not verdict.ok and verdict.bad_entry == left + 1
    assert "9 entries" in verdict.problem and any("shortened" in sentence for sentence in verdict.incidents)
    assert not opened(home).ok, "nor is it forgotten at the next start"


def test_a_whole_log_without_its_database_is_whole_and_the_loss_is_named(home: Path) -> None:
    lose_store(home)
    verdict = opened(home)
    assert verdict.ok and "database was lost" in verdict.incidents[0]


def test_a_database_without_its_log_is_whole_and_the_loss_is_named(home: Path) -> None:
    (home / "audit.log").unlink()
    verdict = opened(home)
    assert verdict.ok and verdict.repairs == 1 and "9 entries were restored" in verdict.incidents[0]


def test_who_takes_the_written_head_along_has_taken_the_proof(home: Path) -> None:
    lose_store(home)
    cut(home, 4)
    (home / HEAD_NAME).unlink()
    verdict = opened(home)
    assert not verdict.ok and verdict.bad_entry == 5 and "may have been cut off" in verdict.problem


def test_an_older_copy_of_database_and_log_is_told_from_the_newest(tmp_path: Path, home: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for name in ("atlasbridge.db", "audit.log"):
        shutil.copy(home / name, old / name)
    ledger = open_ledger(home)
    ask(ledger)
    count = ledger.audit_head().entries
    ledger.close()
    lose_store(home)
    for name in ("atlasbridge.db", "audit.log"):
        shutil.copy(old / name, home / name)
    assert verify_home(home).bad_entry == 10, "also while no hub runs"
    verdict = opened(home)
    assert not verdict.ok and verdict.bad_entry == 10 and f"{count} entries" in verdict.problem


def test_another_log_of_the_same_length_is_not_taken_for_it(tmp_path: Path, home: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ledger = open_ledger(other)
    for number in range(20):
        ledger.note("HUB_START", reason=str(number))
    ledger.close()
    lose_store(home)
    shutil.copy(other / "audit.log", home / "audit.log")
    verdict = opened(home)
    assert not verdict.ok and verdict.bad_entry == 9 and "not the one" in verdict.problem


def test_another_database_and_log_that_agree_are_not_taken_for_them(tmp_path: Path, home: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ledger = open_ledger(other)
    for number in range(20):
        ledger.note("HUB_START", reason=str(number))
    ledger.close()
    lose_store(home)
    for name in ("atlasbridge.db", "audit.log"):
        shutil.copy(other / name, home / name)
    assert verify_home(home).bad_entry == 9, "also while no hub runs"
    verdict = opened(home)
    assert not verdict.ok and verdict.bad_entry == 9 and "not the one" in verdict.problem


class Killed(BaseException):
    """What a process does not live to see."""


@pytest.mark.parametrize("old", [9, 20], ids="{} entries before".format)
@pytest.mark.parametrize("written", [0, 1, 3, 64, 100, 128])
def test_a_hub_killed_in_the_middle_of_writing_the_head_raises_no_false_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: int, written: int
) -> None:
    ledger = open_ledger(tmp_path)
    while ledger.audit_head().entries < old:
        ledger.note("HUB_START")
    pwrite = os.pwrite

    def dies(descriptor: int, data: bytes, offset: int) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(HEAD_NAME):
            pwrite(descriptor, bytes(data)[:written], offset)
            raise Killed
        return pwrite(descriptor, data, offset)

    for _ in range(3):  # also one after the other: each dies over its first entry
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(os, "pwrite", dies)
            ledger.note("HUB_START")
        ledger.abandon()
        seen = read_anchor(tmp_path / HEAD_NAME)
        assert seen is not None and old <= seen.entries <= old + 3, "what was known before is not forgotten"
        assert verify_home(tmp_path).ok
        ledger = open_ledger(tmp_path)
        assert (ledger.prepare_verify()().ok, ledger.prepare_verify()().incidents) == (True, ())
    ledger.note("HUB_START")
    assert read_anchor(tmp_path / HEAD_NAME) == ledger.audit_head()
    ledger.close()


def test_an_installation_from_before_the_written_head_is_whole(home: Path) -> None:
    (home / HEAD_NAME).unlink()
    verdict = opened(home)
    assert verdict.ok and verdict.incidents == ()
    ledger = open_ledger(home)
    ledger.note("HUB_START")
    assert read_anchor(home / HEAD_NAME) == ledger.audit_head()
    ledger.close()


@pytest.mark.parametrize("change", ["count = count - 1", "count = count + 5", "count = 0", "hash = 'sha256:00'"])
def test_a_changed_head_stops_the_hub_and_says_what_to_do(home: Path, change: str) -> None:
    connection = sqlite3.connect(home / "atlasbridge.db")
    connection.execute(f"UPDATE audit_head SET {change}")
    connection.commit()
    connection.close()
    assert not verify_home(home).ok
    with pytest.raises(StoreError) as refused:
        open_ledger(home)
    assert "head was changed" in str(refused.value) and "fault of AtlasBridge" not in refused.value.hint
    assert "move atlasbridge.db away" in refused.value.hint
    lose_store(home)
    assert opened(home).ok, "what the hint says must help"


def test_a_head_as_older_versions_wrote_it_is_understood_and_stays_until_the_next_stands_beside_it(home: Path) -> None:
    newest = read_anchor(home / HEAD_NAME)
    assert newest is not None
    (home / HEAD_NAME).write_bytes(f"{newest.entries} {newest.hash}".ljust(127).encode() + b"\n")
    assert read_anchor(home / HEAD_NAME) == newest and opened(home).ok
    ledger = open_ledger(home)
    ledger.note("HUB_START")
    assert read_anchor(home / HEAD_NAME) == ledger.audit_head()
    assert (home / HEAD_NAME).read_bytes().startswith(f"{newest.entries} {newest.hash}".encode())
    ledger.close()


def test_the_written_head_is_private_and_survives_nonsense(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / HEAD_NAME)
    anchor.write(Head(12345678, "sha256:" + "0" * 64))
    anchor.write(Head(7, "sha256:" + "1" * 64))
    anchor.close()
    assert read_anchor(tmp_path / HEAD_NAME) == Head(7, "sha256:" + "1" * 64)
    assert stat.S_IMODE((tmp_path / HEAD_NAME).stat().st_mode) == 0o600
    half_new = (tmp_path / HEAD_NAME).read_bytes()[:-60] + b"0" * 59 + b"\n"
    for nonsense in (b"", b"x y", b"12", b"\xff\xfe 1 2", b"-1 sha256:0", half_new[128:]):
        (tmp_path / HEAD_NAME).write_bytes(nonsense)
        assert read_anchor(tmp_path / HEAD_NAME) is None


@pytest.fixture
def place() -> Iterator[Home]:
    with short_home() as home:
        home.prepare()
        home.config.write_text(NO_WEB)
        home.config.chmod(0o600)
        yield home
        command(home, "hub", "stop")


def command(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return Operator(home.root).command(*words)


def test_the_commands_tell_a_cut_log_and_a_changed_head(place: Home) -> None:
    for _ in range(3):
        assert command(place, "hub", "start").returncode == 0
        assert command(place, "hub", "stop").returncode == 0
    lose_store(place.root)
    cut(place.root, 2)
    assert command(place, "hub", "start").returncode == 0
    told = command(place, "audit", "verify")
    assert told.returncode == 1 and "entry 3 of audit.log was cut off" in told.stderr
    assert json.loads(command(place, "audit", "verify", "--json").stdout)["ok"] is False
    assert command(place, "hub", "stop").returncode == 0
    connection = sqlite3.connect(place.database)
    connection.execute("UPDATE audit_head SET count = count - 1")
    connection.commit()
    connection.close()
    told = command(place, "hub", "start")
    assert told.returncode == 1 and "head was changed" in told.stderr and "move atlasbridge.db away" in told.stderr


def test_no_exported_or_shown_entry_steers_a_terminal_or_deceives_a_reader(place: Home) -> None:
    ledger = open_ledger(place.root)
    ledger.note("HUB_START", reason="plain ä漢")
    ledger.close()
    entry = json.loads((place.root / "audit.log").read_text().splitlines()[-1])
    forged = {**entry, "cwd": HOSTILE, "event": f"X{HOSTILE}"}  # as an older version may have written it
    with place.audit.open("a") as file:
        file.write(json.dumps(forged) + "\n")
    for words in (
        ("export",),
        ("export", "--format", "json"),
        ("export", "--format", "csv"),
        ("show",),
        ("show", "--json"),
    ):
        out = command(place, "audit", *words).stdout
        assert out and not set(out) & set("\x9b\u202e\u2066\x1b"), words
        assert "漢" in out
    lines = command(place, "audit", "export").stdout.splitlines()
    assert json.loads(lines[-1])["cwd"] == HOSTILE, "to a program it is the same"
    rows = list(csv.reader(io.StringIO(command(place, "audit", "export", "--format", "csv").stdout)))
    assert len(rows) == len(lines) + 1
