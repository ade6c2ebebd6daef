"""The power goes at any write: what was acknowledged is there, whole.  See also tests/torture/power_loss.py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from tests.support.crash_disk import CrashDisk, Op, Wreck, _sectors
from tests.support.recorded_vfs import RecordedVfs, available
from tests.support.store_life import examine, live

from atlasbridge.core.store.database import Database, Migration, load_migrations, migrate, schema_version

pytestmark = pytest.mark.skipif(not available(), reason="this Python hides the functions of its own SQLite")


def test_no_acknowledged_decision_is_lost_and_nothing_is_half_done(tmp_path: Path) -> None:
    disk, random = CrashDisk(tmp_path), Random(7)
    life = live(disk, prompts=4)
    assert not life.errors and len(life.typed) == 4
    cuts = random.sample(range(len(disk.ops)), 40)
    found = {(cut, style): examine(disk, cut, random, style) for cut in cuts for style in ("least", "most", "any")}
    assert {where: fault for where, fault in found.items() if fault} == {}


def test_the_same_attack_finds_what_a_weaker_setting_loses(tmp_path: Path) -> None:
    """synchronous=NORMAL acknowledges before the disk has it; an attack that cannot see that proves nothing."""
    disk = CrashDisk(tmp_path)
    live(disk, prompts=3, synchronous="NORMAL")
    cuts = [number + 1 for number, op in enumerate(disk.ops) if op.kind == "ack"]
    assert any(examine(disk, cut, Random(7), "least") for cut in cuts)


def test_a_migration_cut_off_by_the_power_is_done_or_not_begun(tmp_path: Path) -> None:
    steps = load_migrations()
    last = Migration(
        len(steps) + 1, "next", "ALTER TABLE notes ADD COLUMN colour TEXT;\nUPDATE notes SET colour = 'red';\n"
    )
    disk = CrashDisk(tmp_path)
    with RecordedVfs(disk):
        database = Database.open(tmp_path / "atlasbridge.db")
        migrate(database, "t", steps)
        with database.transaction() as connection:
            connection.executemany("INSERT INTO notes VALUES (?, 'value', 't')", [(str(n),) for n in range(200)])
        begin = len(disk.ops)
        migrate(database, "t", [*steps, last])
        end = len(disk.ops)
        database.close()
    versions = set()
    for cut in range(begin, end + 1):
        versions.add(_version_after(disk, cut, Random(cut), last.version))
    assert versions == {last.version - 1, last.version}
    assert _version_after(disk, end, Random(0), last.version, "least") == last.version


def _version_after(disk: CrashDisk, cut: int, random: Random, newest: int, style: str = "any") -> int:
    with tempfile.TemporaryDirectory() as folder:
        Wreck(disk.ops[:cut]).build(Path(folder), random, style)
        database = Database.open(Path(folder) / "atlasbridge.db")
        version = schema_version(database)
        columns = [row[1] for row in database.rows("PRAGMA table_info(notes)")]
        assert ("colour" in columns) == (version == newest)
        assert database.rows("SELECT count(*) FROM notes") == [(200,)]
        assert database.check() == []
        database.close()
    return version


def test_the_wreck_of_a_disk_keeps_what_was_synced_and_may_lose_the_rest(tmp_path: Path) -> None:
    ops = [Op("open", "f"), Op("write", "f", 0, b"abc"), Op("sync", "f"), Op("write", "f", 3, b"def")]
    for style, content in (("least", b"abc"), ("most", b"abcdef")):
        Wreck(ops).build(tmp_path, Random(1), style)
        assert (tmp_path / "f").read_bytes() == content
    (tmp_path / "f").unlink()
    Wreck(ops[:2]).build(tmp_path, Random(1), "least")
    assert not (tmp_path / "f").exists()
    torn = _sectors(Op("write", "f", 500, bytes(1000)))
    assert [(part.offset, len(part.data)) for part in torn] == [(500, 12), (512, 512), (1024, 476)]
