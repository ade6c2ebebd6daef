"""Several writes, one commit: each of them whole or not at all, and what is to follow only when all are on disk.

It knows nothing of prompts; `journal.py` decides what belongs together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.store import audit_events
from atlasbridge.core.store.database import Database
from atlasbridge.core.store.fault import store_error


class Group:
    """One transaction, begun with the first write.  `refused`: why a write of it failed; "": none did."""

    def __init__(self, database: Database, exported: int) -> None:
        self.exported = exported  # entries that are certainly in audit.log
        self.begun = False
        self.refused = ""
        self.consequences: list[Callable[[], object]] = []
        self.head: Head | None = None  # of the audit log, with what this group has added to it; None: nothing yet
        self._database = database
        self._lost: sqlite3.Error | None = None  # SQLite gave the whole transaction up: nothing of it may be committed

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Any fault, also one of the body, takes back this write and none of those before it."""
        connection = self._database.connection
        try:
            self._begin(connection)
            connection.execute("SAVEPOINT one_write")
            head = self.head
            try:
                yield connection
            except BaseException:
                self.head = head
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

    def audit(self, ts: str, event: str, fields: Mapping[str, Any]) -> None:
        """One more entry of the log; where that stands now is written once, with the commit."""
        connection = self._database.connection
        self.head = audit_events.append(connection, self.head or audit_events.head(connection), ts, event, fields)

    def commit(self) -> None:
        """Everything is on disk when this returns; StoreError: nothing of it is."""
        connection = self._database.connection
        try:
            if self._lost is not None:
                raise self._lost
            if self.head is not None:
                audit_events.put_head(connection, self.head, self.exported)
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
