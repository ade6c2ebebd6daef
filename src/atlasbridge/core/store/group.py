"""Several writes, one commit: each of them whole or not at all, and what is to follow only when all are on disk.

It knows nothing of prompts or of the audit log; `journal.py` decides what belongs together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atlasbridge.core.store.database import Database
from atlasbridge.core.store.fault import store_error


class Group:
    """One transaction, begun with the first write.  `refused`: why a write of it failed; "": none did."""

    def __init__(self, database: Database) -> None:
        self.begun = False
        self.refused = ""
        self.consequences: list[Callable[[], object]] = []
        self._database = database
        self._lost: sqlite3.Error | None = None  # SQLite gave the whole transaction up: nothing of it may be committed

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Any fault, also one of the body, takes back this write and none of those before it."""
        connection = self._database.connection
        try:
            self._begin(connection)
            connection.execute("SAVEPOINT one_write")
            try:
                yield connection
            except BaseException:
                self._take_back(connection)
                raise
            connection.execute("RELEASE one_write")
        except sqlite3.Error as error:
            self._note(connection, error)
            raise store_error(error) from error

    def _begin(self, connection: sqlite3.Connection) -> None:
        if self._lost is not None:
            raise self._lost
        if not self.begun:
            connection.execute("BEGIN IMMEDIATE")
            self.begun = True

    def _take_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO one_write")
            connection.execute("RELEASE one_write")

    def _note(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        self.refused = str(store_error(error))
        if self.begun and not connection.in_transaction:
            self._lost = self._lost or error

    def commit(self) -> None:
        """Everything is on disk when this returns; StoreError: nothing of it is."""
        connection = self._database.connection
        try:
            if self._lost is not None:
                raise self._lost
            if self.begun:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.refused = str(store_error(error))
            raise store_error(error) from error
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Leave everything as it was before the first write; after a commit nothing is left to give up."""
        try:
            if self._database.connection.in_transaction:
                self._database.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error) from error
