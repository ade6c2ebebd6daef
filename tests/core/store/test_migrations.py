"""Migrations: whole or not at all, backed up first, forward only, and equal to the schema."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.support.ledgers import ask, open_ledger

from atlasbridge.core.errors import StoreError
from atlasbridge.core.store.database import Database, Migration, load_migrations, migrate, schema_version, statements

AT = "2026-01-01T00:00:00.000000+00:00"
NEXT = len(load_migrations()) + 1
ADD_COLUMN = Migration(NEXT, "colour", "ALTER TABLE notes ADD COLUMN colour TEXT;\nCREATE TABLE extra (x);\n")
BROKEN = Migration(NEXT, "broken", "CREATE TABLE extra (x);\nINSERT INTO nowhere VALUES (1);\n")
ORPHANING = Migration(NEXT, "orphans", "DELETE FROM sessions;\n")


def shape(path: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    connection.close()
    return rows


@pytest.fixture
def used_home(tmp_path: Path) -> Path:
    ledger = open_ledger(tmp_path)
    ask(ledger)
    ledger.close()
    return tmp_path


def test_a_new_database_records_every_step_and_needs_no_backup(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "a.db")
    assert schema_version(database) == 0
    assert migrate(database, AT) == schema_version(database) == len(load_migrations())
    assert database.rows("SELECT version, applied_at FROM schema_version") == [(n, AT) for n in range(1, NEXT)]
    migrate(database, AT)
    assert not (tmp_path / "a.db.bak").exists()
    database.close()


def test_a_step_keeps_the_data_and_leaves_a_backup_of_before(used_home: Path) -> None:
    path = used_home / "atlasbridge.db"
    before = shape(path)
    database = Database.open(path)
    migrate(database, AT, [*load_migrations(), ADD_COLUMN])
    assert schema_version(database) == NEXT
    assert database.rows("SELECT count(*) FROM prompts") == [(1,)]
    assert database.rows("PRAGMA foreign_keys") == [(1,)]
    database.close()
    backup = used_home / "atlasbridge.db.bak"
    assert shape(backup) == before and backup.stat().st_mode & 0o777 == 0o600
    shutil.move(backup, path)
    ledger = open_ledger(used_home)
    assert len(ledger.history()) == 1
    ledger.close()


@pytest.mark.parametrize("step", [BROKEN, ORPHANING])
def test_a_step_that_fails_leaves_everything_as_it_was(used_home: Path, step: Migration) -> None:
    path = used_home / "atlasbridge.db"
    before = shape(path)
    database = Database.open(path)
    with pytest.raises(StoreError):
        migrate(database, AT, [*load_migrations(), step])
    assert schema_version(database) == NEXT - 1
    assert database.rows("SELECT count(*) FROM sessions") == [(1,)]
    assert database.rows("PRAGMA foreign_keys") == [(1,)]
    database.close()
    assert shape(path) == before


def test_a_newer_schema_is_refused_and_not_touched(used_home: Path) -> None:
    path = used_home / "atlasbridge.db"
    database = Database.open(path)
    migrate(database, AT, [*load_migrations(), ADD_COLUMN])
    database.close()
    content = path.read_bytes()
    with pytest.raises(StoreError, match=f"has schema {NEXT}") as caught:
        open_ledger(used_home)
    assert "newer AtlasBridge" in caught.value.hint
    assert path.read_bytes() == content


def test_a_backup_that_cannot_be_written_stops_the_migration(used_home: Path) -> None:
    (used_home / "atlasbridge.db.bak.new").mkdir()
    database = Database.open(used_home / "atlasbridge.db")
    with pytest.raises(StoreError, match="cannot be written"):
        migrate(database, AT, [*load_migrations(), ADD_COLUMN])
    assert schema_version(database) == NEXT - 1
    database.close()


def test_gaps_in_the_numbering_are_a_fault(tmp_path: Path) -> None:
    for name in ("001_a.sql", "003_c.sql"):
        (tmp_path / name).write_text("CREATE TABLE t (x);\n")
    with pytest.raises(StoreError, match="numbered"):
        load_migrations(tmp_path)


def test_a_script_is_cut_into_statements_with_triggers_whole() -> None:
    script = (
        "CREATE TABLE t (x); -- one; two\n"
        "CREATE TRIGGER g BEFORE DELETE ON t\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nSELECT ';';\n"
    )
    assert [statement.split()[1] for statement in statements(script)] == ["TABLE", "TRIGGER", "';';"]
    with pytest.raises(StoreError, match="middle of a statement"):
        list(statements("CREATE TABLE t (x)"))


def test_a_store_of_before_finds_processes_without_looking_at_every_session(used_home: Path) -> None:
    before = Database.open(used_home / "atlasbridge.db")
    with before.transaction() as connection:
        connection.execute("DROP INDEX sessions_by_host")
        connection.execute("DROP INDEX sessions_by_tool")
        connection.execute("DROP TABLE last_output")
        connection.execute("DELETE FROM schema_version WHERE version >= 7")
    before.close()
    ledger = open_ledger(used_home)
    database = ledger.journal.database
    (session_id, host_pid, pid) = ledger.processes()[0]
    assert ledger.processes([host_pid]) == [(session_id, host_pid, pid)]
    assert ledger.processes([pid], []) == ledger.processes([], [session_id])
    assert ledger.processes([host_pid + pid + 1]) == []
    seen: list[str] = []
    database.connection.set_trace_callback(seen.append)
    ledger.processes([host_pid], [session_id])
    database.connection.set_trace_callback(None)
    plan = database.rows(f"EXPLAIN QUERY PLAN {seen[0]}")
    assert not [row for row in plan if "sessions_by_status" in row[3] or "SCAN sessions" in row[3]]
    ledger.close()
