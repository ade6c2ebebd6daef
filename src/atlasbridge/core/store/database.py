"""One SQLite connection with the settings our promises need, and transactions that commit whole or not at all.

It knows nothing of prompts.  The hub is the only writer; other processes open read-only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from atlasbridge.core.durable import sync_folder
from atlasbridge.core.errors import StoreError
from atlasbridge.core.store.fault import store_error
from atlasbridge.core.system import OWN_FILE

BUSY_TIMEOUT_S: Final = 5.0
_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL loses acknowledged decisions when the power goes
    "PRAGMA fullfsync = ON",  # macOS: a plain fsync does not reach the disk there
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
        """For commands that only look; never creates, migrates or repairs anything."""
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
        """BEGIN IMMEDIATE … COMMIT.  Any fault, also one of the body, leaves everything as it was."""
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
        """What SQLite's own integrity check finds; empty when all is well."""
        found = [str(row[0]) for row in self.rows("PRAGMA integrity_check")]
        broken = [f"row {row[1]} of {row[0]} refers to nothing" for row in self.rows("PRAGMA foreign_key_check")]
        return [line for line in found if line != "ok"] + broken

    def close(self) -> None:
        """Also right in a forked child: closing there would release the parent's locks, so it is left alone."""
        if os.getpid() == self._owner:
            self._connection.close()


def _create_private(path: Path) -> None:
    """Make the file before SQLite does: mode 0600 (which -wal and -shm inherit), and its name safe on disk."""
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
