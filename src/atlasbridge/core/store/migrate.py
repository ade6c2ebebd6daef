"""Migrates a database to the newest schema: forward only, one transaction per step, with a backup before the first.

The steps are the numbered files in `migrations/`; `atlasbridge debug bundle` contains the resulting schema.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from atlasbridge.core.errors import StoreError
from atlasbridge.core.store.database import Database, store_error
from atlasbridge.core.system import OWN_FILE, sync_folder
from atlasbridge.core.values import frozen

FOLDER = Path(__file__).with_name("migrations")


@frozen
class Migration:
    version: int
    name: str
    sql: str


def load_migrations(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """Loads the files `NNN_name.sql` in order. A gap or a duplicate is a bug of ours and raises an error."""
    found = tuple(_load(path) for path in sorted(folder.glob("*.sql")))
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise StoreError("the migrations are not numbered 1, 2, 3, …", "Install AtlasBridge again.")
    return found


def _load(path: Path) -> Migration:
    number, _, name = path.stem.partition("_")
    return Migration(int(number), name, path.read_text(encoding="utf-8"))


def schema_version(database: Database) -> int:
    """Returns 0 for a new file. Refuses a file with tables that are not ours."""
    tables = {row[0] for row in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return 0
    if "schema_version" not in tables:
        raise StoreError(f"{database.path} is not a database of AtlasBridge", "Move it away and start again.")
    return int(database.rows("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])


def migrate(database: Database, at: str, migrations: Sequence[Migration] | None = None) -> int:
    """Applies the missing steps and returns the new version. `at` is stored with each step."""
    steps = load_migrations() if migrations is None else tuple(migrations)
    current, newest = schema_version(database), len(steps)
    if current > newest:
        raise StoreError(
            f"{database.path} has schema {current}, this AtlasBridge knows {newest} at most",
            "Install the newer AtlasBridge again, or put atlasbridge.db.bak in its place.",
        )
    if 0 < current < newest:
        back_up(database, database.path.with_name(database.path.name + ".bak"))
    for step in steps[current:]:
        _apply(database, step, at)
    return newest


def _apply(database: Database, step: Migration, at: str) -> None:
    """Foreign keys are off while tables are rebuilt (as SQLite recommends) and checked as a whole before the commit."""
    with database.reading() as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
    try:
        with database.transaction() as connection:
            for statement in statements(step.sql):
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version VALUES (?, ?, ?)", (step.version, step.name, at))
            if connection.execute("PRAGMA foreign_key_check").fetchone():
                raise StoreError(
                    f"migration {step.version} breaks references", "Nothing was changed; please report it."
                )
    finally:
        with database.reading() as connection:
            connection.execute("PRAGMA foreign_keys = ON")


def statements(sql: str) -> Iterator[str]:
    """Splits a script into statements, because `executescript` would commit the transaction."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise StoreError("a migration ends in the middle of a statement", "Install AtlasBridge again.")


def back_up(database: Database, target: Path) -> None:
    """Makes a consistent copy, which replaces `target` only when it is complete and on disk."""
    draft = target.with_name(target.name + ".new")
    try:
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600))
        copy = sqlite3.connect(draft, isolation_level=None)
        try:
            database.connection.backup(copy)
        finally:
            copy.close()
        _sync_file(draft)
        os.replace(draft, target)
        sync_folder(target.parent)
    except sqlite3.Error as error:
        raise store_error(error) from error
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written ({error.strerror})", "Free some space, then try again."
        ) from error


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | OWN_FILE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
