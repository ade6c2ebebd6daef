"""One SQLite connection with the settings that our guarantees need, transactions that commit completely or not at all,
and the migrations to the newest schema.

It knows nothing about prompts. The hub is the only writer; other processes open the database read-only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from atlasbridge.core.errors import StoreError
from atlasbridge.core.system import OWN_FILE, sync_file, sync_folder
from atlasbridge.core.values import frozen

# SQLite errors as messages that tell a person what to do, and a warning about versions with a known bug.

_WORDS: Final[dict[int, tuple[str, str]]] = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space; nothing was recorded and nothing was typed."),
    sqlite3.SQLITE_READONLY: ("the database cannot be written", "Make the home folder and its files writable for you."),
    sqlite3.SQLITE_CANTOPEN: ("the database cannot be opened", "Check that the home folder can be written."),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", "Check the disk and its free space, then try again."),
    sqlite3.SQLITE_CORRUPT: ("the database is damaged", "Stop the hub and put atlasbridge.db.bak in its place."),
    sqlite3.SQLITE_NOTADB: ("this is not a database", "Move the file away; AtlasBridge makes a new one."),
    sqlite3.SQLITE_BUSY: ("another process holds the database", "Only the hub may write it: `atlasbridge hub status`."),
    sqlite3.SQLITE_LOCKED: ("the database is locked", "Only the hub may write it: `atlasbridge hub status`."),
    sqlite3.SQLITE_CONSTRAINT: ("the database refused a record", "This is a fault of AtlasBridge; please report it."),
}
_OTHER: Final = ("the database failed", "See hub.log for details.")


def store_error(error: sqlite3.Error) -> StoreError:
    """Converts an SQLite error to a StoreError; an extended code is reduced to its primary code."""
    what, hint = _WORDS.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF, _OTHER)
    return StoreError(f"{what} ({error})", hint)


def sqlite_warning(version: tuple[int, int, int] = sqlite3.sqlite_version_info) -> str:
    """A warning about this version of SQLite, or an empty string.

    The WAL-reset bug (sqlite.org/wal.html) was fixed in 3.51.3 and in the maintenance releases 3.50.7 and 3.44.6. It
    requires two connections that write or checkpoint at the same time; here the hub is the only one.
    """
    repaired = {50: 7, 44: 6}
    major, minor, patch = version
    if (major, minor, patch) >= (3, 51, 3) or patch >= repaired.get(minor, 1000):
        return ""
    return (
        f"SQLite {major}.{minor}.{patch} has the WAL-reset fault: a database that two programs write at once can be "
        "damaged. AtlasBridge writes with one connection only; do not write its database with other programs."
    )


BUSY_TIMEOUT_S: Final = 5.0
_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL can lose acknowledged decisions in a power failure
    "PRAGMA fullfsync = ON",  # macOS: a plain fsync does not reach the disk
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_size_limit = 4194304",
)


class Database:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._owner = os.getpid()

    @classmethod
    def open(cls, path: Path) -> Database:
        try:
            _create_private(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be created ({error.strerror})", "Check the home folder.") from error
        connection = None
        try:
            connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise store_error(error) from error
        return cls(connection, path)

    @classmethod
    def open_read_only(cls, path: Path, any_thread: bool = False) -> Database:
        """For commands that only read. Never creates, migrates or repairs anything."""
        where = f"{path.absolute().as_uri()}?mode=ro"
        try:
            connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=not any_thread)
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise store_error(error) from error
        return cls(connection, path)

    @property
    def connection(self) -> sqlite3.Connection:
        if os.getpid() != self._owner:
            raise StoreError("a database connection was used after a fork", "This is a fault of AtlasBridge.")
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """BEGIN IMMEDIATE … COMMIT. Any error, including one in the body, rolls everything back."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error) from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self.connection
        except sqlite3.Error as error:
            raise store_error(error) from error

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        with self.reading() as connection:
            return connection.execute(sql, parameters).fetchall()

    def check(self) -> list[str]:
        """Runs SQLite's integrity check; empty if there are no errors."""
        found = [str(row[0]) for row in self.rows("PRAGMA integrity_check")]
        broken = [f"row {row[1]} of {row[0]} refers to nothing" for row in self.rows("PRAGMA foreign_key_check")]
        return [line for line in found if line != "ok"] + broken

    def close(self) -> None:
        """Safe in a forked child: closing there would release the parent's locks, so it does nothing."""
        if os.getpid() == self._owner:
            self._connection.close()


def _create_private(path: Path) -> None:
    """Creates the file before SQLite does: with mode 0600 (which -wal and -shm inherit), and with its name synced to
    disk."""
    if path.exists():
        return
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600))
    sync_folder(path.parent)


def engine_version() -> tuple[int, ...]:
    """The version of the SQLite library in use."""
    return sqlite3.sqlite_version_info


def read_schema(path: Path) -> str:
    """The structure of a database as SQL, without any of its content."""
    database = Database.open_read_only(path)
    try:
        found = database.rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        return "".join(f"{sql};\n" for (sql,) in found)
    finally:
        database.close()


# Migrations go forward only, with one transaction per step and a backup before the first. The steps are the numbered
# files in `migrations/`.

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
        sync_file(draft)
        os.replace(draft, target)
        sync_folder(target.parent)
    except sqlite3.Error as error:
        raise store_error(error) from error
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written ({error.strerror})", "Free some space, then try again."
        ) from error
