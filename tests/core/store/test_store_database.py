"""The connection: its settings, its transactions, its words when the disk fails."""

from __future__ import annotations

import os
import sqlite3
import stat
import warnings
from pathlib import Path

import pytest
from tests.support.ledgers import ask, open_ledger

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import OPEN, PromptMoved, PromptState, sources
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.store import prompts
from atlasbridge.core.store.database import Database, sqlite_warning, store_error


def test_the_connection_has_the_settings_our_promises_need(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "a.db")
    names = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
    assert [database.rows(f"PRAGMA {name}")[0][0] for name in names] == ["wal", 2, 1, 0]
    database.close()


def test_every_file_of_the_store_is_private(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        ledger = open_ledger(tmp_path)
        ask(ledger)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        ledger.close()
    finally:
        os.umask(previous)
    assert set(modes) >= {"atlasbridge.db", "atlasbridge.db-wal", "audit.log"}
    assert set(modes.values()) == {0o600}


def test_a_transaction_whose_body_fails_changes_nothing(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "a.db")
    with database.transaction() as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(KeyError), database.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        raise KeyError
    assert database.rows("SELECT count(*) FROM t") == [(0,)]
    database.close()


def test_a_transaction_holds_the_database_from_its_first_moment(tmp_path: Path) -> None:
    """A writer that only begins to write later could find that what it has read is no longer true."""
    database = Database.open(tmp_path / "a.db")
    other = sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)
    with database.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    database.close()


def test_a_connection_is_refused_in_a_forked_child(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "a.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        child = os.fork()
    if child == 0:
        try:
            database.rows("SELECT 1")
        except StoreError:
            database.close()
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert database.rows("SELECT 1") == [(1,)]
    database.close()


def test_a_file_that_is_no_database_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "atlasbridge.db").write_bytes(b"this is certainly not a database " * 200)
    with pytest.raises(StoreError, match="not a database") as caught:
        open_ledger(tmp_path)
    assert "Move the file away" in caught.value.hint


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "atlasbridge.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (x)")
    connection.close()
    with pytest.raises(StoreError, match="not a database of AtlasBridge"):
        open_ledger(tmp_path)


def test_a_missing_home_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be created") as caught:
        open_ledger(tmp_path / "nowhere")
    assert caught.value.hint


def test_another_writer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlasbridge.core.store.database.BUSY_TIMEOUT_S", 0.0)
    ledger = open_ledger(tmp_path)
    other = sqlite3.connect(tmp_path / "atlasbridge.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process"):
        ledger.remember("a", "b")
    other.execute("ROLLBACK")
    other.close()
    ledger.remember("a", "b")
    assert ledger.recall("a") == "b"
    ledger.close()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("SQLITE_FULL", "full"),
        ("SQLITE_IOERR_FSYNC", "disk reports"),
        ("SQLITE_READONLY_DBMOVED", "cannot be written"),
        ("SQLITE_CORRUPT_VTAB", "damaged"),
        ("SQLITE_MISUSE", "failed"),
    ],
)
def test_a_fault_of_sqlite_becomes_words_and_a_hint(name: str, word: str) -> None:
    error = sqlite3.OperationalError("the cause")
    error.sqlite_errorcode = getattr(sqlite3, name)
    ours = store_error(error)
    assert word in str(ours) and "the cause" in str(ours) and ours.hint


def test_reading_only_creates_and_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Database.open_read_only(tmp_path / "none.db").rows("SELECT 1")
    assert list(tmp_path.iterdir()) == []
    ledger = open_ledger(tmp_path)
    reader = Database.open_read_only(tmp_path / "atlasbridge.db")
    assert reader.rows("SELECT count(*) FROM sessions") == [(0,)]
    with pytest.raises(StoreError, match="cannot be written"), reader.transaction() as connection:
        connection.execute("DELETE FROM notes")
    reader.close()
    ledger.close()


def test_the_guard_of_every_move_is_the_table_of_the_machine() -> None:
    for event in PromptMoved:
        quoted = ", ".join(f"'{state.value}'" for state in sources(event))
        assert prompts.guard(event) == f"status IN ({quoted})"


def test_the_states_of_the_schema_are_the_states_of_the_model(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    connection = sqlite3.connect(tmp_path / "atlasbridge.db")
    shapes = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    connection.close()
    ledger.close()
    assert _quoted_words(shapes["prompts"].partition("CHECK")[2]) == {state.value for state in PromptState}
    assert _quoted_words(shapes["sessions"].partition("CHECK")[2]) == {state.value for state in SessionState}
    assert _quoted_words(shapes["one_open_prompt_per_session"].partition("WHERE")[2]) == {state.value for state in OPEN}


def _quoted_words(sql: str) -> set[str]:
    return {word for word in sql.partition(")")[0].split("'")[1::2] if word}


@pytest.mark.parametrize(
    ("version", "warned"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_a_version_of_sqlite_with_a_known_fault_is_named(version: tuple[int, int, int], warned: bool) -> None:
    warning = sqlite_warning(version)
    assert bool(warning) is warned
    assert not warned or ".".join(map(str, version)) in warning
