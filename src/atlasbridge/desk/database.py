"""PostgreSQL for the desk: a pool of connections, one transaction after the other, and faults in our own words."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import TupleRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.errors import ConfigError, StoreError

log = logging.getLogger(__name__)

Connection = psycopg.AsyncConnection[TupleRow]
WAIT_S = 5.0  # for a free connection, or a server that starts again


class Database:
    """`clock`: times are always given to SQL, never asked of it."""

    def __init__(self, url: str, clock: Clock | None = None, most: int = 10) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigError(f"{url!r} is no PostgreSQL database", "write it as postgresql://user@host/name")
        self.url = url
        self._clock = clock or SystemClock()
        self._pool = AsyncConnectionPool(
            url, min_size=1, max_size=most, open=False, timeout=WAIT_S, check=AsyncConnectionPool.check_connection
        )

    async def open(self) -> None:
        try:
            await self._pool.open(wait=True, timeout=WAIT_S)
        except PoolTimeout:
            await self._pool.close()
            raise StoreError("PostgreSQL does not answer", "check the address, the user and the password") from None

    async def close(self) -> None:
        await self._pool.close()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Committed at its end, or not at all.  StoreError: PostgreSQL is away."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            raise StoreError(f"PostgreSQL is away: {_first_line(error)}", "it is tried again") from None

    async def rows(self, query: Any, *parameters: Any) -> list[dict[str, Any]]:
        async with self.transaction() as connection:
            return await rows(connection, query, *parameters)

    def figures(self) -> dict[str, int]:
        return dict(self._pool.get_stats())


async def rows(connection: Connection, query: Any, *parameters: Any) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchall() if cursor.description else []


async def row(connection: Connection, query: Any, *parameters: Any) -> dict[str, Any] | None:
    found = await rows(connection, query, *parameters)
    return found[0] if found else None


async def listen(url: str, channel: str, hear: Callable[[str], None], ready: Callable[[], None]) -> None:
    """Hear what other processes say until the connection ends (StoreError)."""
    try:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=int(WAIT_S))
        async with connection:
            await connection.execute(f"LISTEN {channel}")
            ready()
            async for notice in connection.notifies():
                hear(notice.payload)
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL is away: {_first_line(error)}", "it is tried again") from None
    raise StoreError("PostgreSQL closed the connection", "it is tried again")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
