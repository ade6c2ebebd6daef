"""What SQLite says when it fails, in words that tell a person what to do; and which versions are known to fail."""

from __future__ import annotations

import sqlite3
from typing import Final

from atlasbridge.core.errors import StoreError

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
    """The same fault as one of ours; an extended code is reduced to its primary code."""
    what, hint = _WORDS.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF, _OTHER)
    return StoreError(f"{what} ({error})", hint)


def sqlite_warning(version: tuple[int, int, int] = sqlite3.sqlite_version_info) -> str:
    """What a person should know about this version of SQLite, or "".

    The WAL-reset fault (sqlite.org/wal.html) was repaired in 3.51.3 and in the maintenance releases 3.50.7 and 3.44.6.
    It needs two connections that write or checkpoint at the same moment; the hub is the only one here.
    """
    repaired = {50: 7, 44: 6}
    major, minor, patch = version
    if (major, minor, patch) >= (3, 51, 3) or patch >= repaired.get(minor, 1000):
        return ""
    return (
        f"SQLite {major}.{minor}.{patch} has the WAL-reset fault: a database that two programs write at once can be "
        "damaged. AtlasBridge writes with one connection only; do not write its database with other programs."
    )
