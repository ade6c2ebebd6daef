"""Whose turn it is: of several server processes one carries the chats.  A lock of PostgreSQL, held by a connection.

It ends with the process, however that ends.  A process that hangs loses it, too: its connection must be heard of.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import psycopg

from atlasbridge.core.errors import StoreError
from atlasbridge.fleet.server.database import WAIT_S, Database

LOCK = 0x61746C63
BEAT_S = 3.0
SILENT_S = 15.0  # so long without a word, and PostgreSQL gives the lock to another
_KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class LeaderLock:
    """`lost` ends (StoreError) when it is not this process's turn any more."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        self._connection = connection

    async def lost(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                async with asyncio.timeout(BEAT_S):
                    await self._connection.execute("SELECT 1")
            except (psycopg.Error, TimeoutError):
                raise StoreError("another server may carry the chats now", "this one waits for its turn") from None


@contextlib.asynccontextmanager
async def turn(url: str) -> AsyncIterator[LeaderLock | None]:
    """None: another process has it.  StoreError: PostgreSQL is away."""
    try:
        connection = await psycopg.AsyncConnection.connect(
            url, autocommit=True, connect_timeout=int(WAIT_S), **_KEEP_ALIVE
        )
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL is away: {error}".splitlines()[0], "it is tried again") from None
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        try:
            with contextlib.suppress(psycopg.errors.UndefinedObject):  # PostgreSQL 13 does not know it
                await connection.execute(f"SET idle_session_timeout = '{int(SILENT_S)}s'")
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,))
            found = await cursor.fetchone()
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL is away: {error}".splitlines()[0], "it is tried again") from None
        yield LeaderLock(connection) if found and found[0] else None


async def carried(database: Database) -> bool:
    """Whether any process carries the chats just now."""
    found = await database.rows(
        "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = %s"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        LOCK,
    )
    return bool(found)
