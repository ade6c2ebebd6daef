"""PostgreSQL for the server: connection pools, transactions, batched statements, notifications and the leader lock.
Faults of PostgreSQL become `StoreError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.rows import TupleRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.daemon.receipts import Flood
from atlasbridge.core.errors import ConfigError, StoreError
from atlasbridge.core.ids import new_nonce
from atlasbridge.core.prompt.model import digest_text

# Calls that arrive close together share one statement and one commit.
#
# A single call does not wait. Under load, a short pause separates two batches. Each batch starts after its calls
# arrived, so each call sees everything that was committed before it.

Call = TypeVar("Call")
Answer = TypeVar("Answer")

MOST = 200  # a limit, because the first call of a batch waits for the last one
PACE_S = 0.01


class Batch(Generic[Call, Answer]):
    """`work` answers several calls at once. If it raises `spoils`, each call is repeated alone, so that only the bad
    one fails.
    """

    def __init__(self, work: Callable[[list[Call]], Awaitable[Sequence[Answer]]], spoils: type[Exception]) -> None:
        self._work = work
        self._spoils = spoils
        self._turn = asyncio.Lock()
        self._next_at = 0.0
        self._calls: list[Call] = []
        self._answering: asyncio.Task[Sequence[Any]] | None = None

    async def __call__(self, call: Call) -> Answer:
        if self._answering is None or len(self._calls) == MOST:
            self._calls = []
            self._answering = asyncio.create_task(self._answer(self._calls), name="together")
        self._calls.append(call)
        answering, at = self._answering, len(self._calls) - 1
        found = (await asyncio.shield(answering))[at]  # a cancelled caller must not cancel the others
        if isinstance(found, self._spoils):
            raise found
        return found  # type: ignore[no-any-return]

    async def _answer(self, calls: list[Call]) -> Sequence[Any]:
        clock = asyncio.get_running_loop().time
        async with self._turn:
            if (early_s := self._next_at - clock()) > 0:
                await asyncio.sleep(early_s)
            self._next_at = clock() + PACE_S
            if calls is self._calls:
                self._answering = None  # later calls start a new batch
            try:
                return await self._work(calls)
            except self._spoils:
                return [await self._alone(call) for call in calls]

    async def _alone(self, call: Call) -> Answer | Exception:
        try:
            return (await self._work([call]))[0]
        except self._spoils as fault:
            return fault


log = logging.getLogger(__name__)

Connection = psycopg.AsyncConnection[TupleRow]
Pool = AsyncConnectionPool[Connection]
WAIT_S = 5.0  # how long to wait for a free connection or for a restarting database


class Unkeepable(ValueError):
    """The caller sent a value that no table can store: a NUL, a lone surrogate or an infinite number."""


# The tables were not made, or not for this user.
_UNPREPARED = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InsufficientPrivilege)


def _pool(url: str, most: int, setting: str = "", **given: Any) -> Pool:
    """`setting` is applied with a SET statement, because a pooler such as PgBouncer does not forward connection
    options.
    """

    async def configure(connection: Connection) -> None:
        if setting:
            await connection.execute(f"SET {setting}".encode())

    return AsyncConnectionPool(
        url, kwargs=given, min_size=1, max_size=most, open=False, timeout=WAIT_S, configure=configure
    )


class ServerClock:
    """PostgreSQL's wall clock. Between two reads, this computer's monotonic clock advances it."""

    def __init__(self, own: Clock) -> None:
        self.now = own.now
        self._ahead_s = own.wall() - own.now()  # until the first read

    def wall(self) -> float:
        return self.now() + self._ahead_s

    def set(self, at: float, asked_at: float) -> None:
        self._ahead_s = at - (asked_at + self.now()) / 2


class Database:
    """The connection to PostgreSQL. All times come from PostgreSQL's clock, so that all processes agree; tests pass
    their own `clock`.
    """

    def __init__(self, url: str, clock: Clock | None = None, most: int = 10, name: str = "atlasbridge") -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            kind = url.partition("://")[0] if "://" in url else "that"  # the rest of the URL can contain a password
            raise ConfigError(f"{kind!r} is no PostgreSQL database", "write it as postgresql://user@host/name")
        self.url = url
        self.clock = clock or ServerClock(SystemClock())
        self._name = {"application_name": name}  # the name in PostgreSQL's list of connections
        self._pool = _pool(url, most, **self._name)
        # A single statement needs no BEGIN and COMMIT. It is planned once, not for each set of values.
        generic = "plan_cache_mode = force_generic_plan"
        self._single = _pool(url, most, generic, autocommit=True, prepare_threshold=0, **self._name)
        # Notifications can be lost anyway, so they do not wait for the disk.
        self._notification = _pool(url, 1, "synchronous_commit = off", autocommit=True, **self._name)
        self.strangers: Flood[str] = Flood()  # events that anybody can cause, as this process counts them
        self._together: dict[Any, Batch[Any, Any]] = {}
        self._teller = 0  # the backend process that sends this process's notifications
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        try:
            for pool in (self._pool, self._single, self._notification):
                await pool.open(wait=True, timeout=WAIT_S)
        except PoolTimeout:
            await self.close()
            raise StoreError(
                f"PostgreSQL cannot be used: {await self._fault()}", "check the database's address"
            ) from None
        await self.set_clock()

    async def _fault(self) -> str:
        """PostgreSQL's own message about why no connection could be made."""
        try:
            connection = await psycopg.AsyncConnection.connect(self.url, connect_timeout=int(WAIT_S))
        except psycopg.Error as error:
            return _first_line(error)
        await connection.close()
        return "it did not answer in time"

    async def check_session(self) -> None:
        """Check that a connection is one PostgreSQL session, which notifications and advisory locks need."""
        name = f"atlasbridge_check_{new_nonce()[:16]}"
        heard = asyncio.Event()
        ready = asyncio.Event()
        listening = asyncio.create_task(self.listen(name, lambda _: heard.set(), ready.set))
        try:
            async with asyncio.timeout(WAIT_S):
                await ready.wait()
                self._teller = 0
                async with self._borrowed(self._single) as connection:
                    await connection.execute("SELECT pg_notify(%s, '')", (name,))
                await heard.wait()
        except TimeoutError:
            raise StoreError(
                "notifications of PostgreSQL do not arrive",
                "a pooler in between must work in session mode (PgBouncer: pool_mode = session), or be left out",
            ) from None
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def set_clock(self) -> None:
        """Read PostgreSQL's clock again, because clocks drift. Called from time to time."""
        if isinstance(self.clock, ServerClock):
            before = self.clock.now()
            (found,) = await self.rows("SELECT extract(epoch FROM clock_timestamp())::float8 AS at")
            self.clock.set(float(found["at"]), before)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for pool in (self._pool, self._single, self._notification):
            await pool.close()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.wall(), UTC)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction that is committed at the end of the block or rolled back. Raises StoreError if PostgreSQL is
        unavailable.
        """
        async with self._borrowed(self._pool) as connection:
            yield connection

    async def rows(self, query: Any, *parameters: Any) -> list[dict[str, Any]]:
        """Run one statement and commit it."""
        async with self._borrowed(self._single) as connection:
            return await rows(connection, query, *parameters)

    async def together(self, work: Callable[[Database, list[Call]], Awaitable[Sequence[Answer]]], call: Call) -> Answer:
        """Run `work` for this call together with all calls that arrive before it starts."""
        known = self._together.get(work) or self._together.setdefault(work, Batch(partial(work, self), Unkeepable))
        return await known(call)  # type: ignore[no-any-return]

    async def tell(self, channel: str, keys: list[str]) -> None:
        async with self._borrowed(self._notification) as connection:
            self._teller = connection.info.backend_pid
            await connection.execute("SELECT pg_notify(%s, key) FROM unnest(%s::text[]) AS key", (channel, keys))

    async def listen(self, channel: str, hear: Callable[[str], None], ready: Callable[[], None]) -> None:
        """Receive notifications of other processes until the connection ends, which raises StoreError."""
        self._teller = 0
        try:
            async with await _connect(self.url) as connection:
                await connection.execute(f"LISTEN {channel}")
                ready()
                async for notice in connection.notifies():
                    if notice.pid != self._teller:
                        hear(notice.payload)
        except psycopg.Error as error:
            raise _away(error) from None
        raise StoreError("PostgreSQL closed the connection", "it is tried again")

    @asynccontextmanager
    async def _borrowed(self, pool: Pool) -> AsyncIterator[Connection]:
        try:
            async with pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look(), name="look at connections")
            raise _away(error) from None
        except _UNPREPARED as error:
            hint = "the owner of the database runs: atlasbridge fleet migrate [--role USER]"
            raise StoreError(f"PostgreSQL refuses: {_first_line(error)}", hint) from None
        except (psycopg.DataError, psycopg.IntegrityError, UnicodeEncodeError) as error:
            raise Unkeepable(_first_line(error)) from None

    async def _look(self) -> None:
        """Drop broken connections from the pools, for example after PostgreSQL was restarted."""
        for pool in (self._pool, self._single, self._notification):
            await pool.check()


async def rows(connection: Connection, query: Any, *parameters: Any) -> list[dict[str, Any]]:
    """Run a query. `parameters` are positional values, or one mapping of named values."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, parameters[0] if parameters and isinstance(parameters[0], dict) else parameters)
        return await cursor.fetchall() if cursor.description else []


async def row(connection: Connection, query: Any, *parameters: Any) -> dict[str, Any] | None:
    found = await rows(connection, query, *parameters)
    return found[0] if found else None


def _away(error: Exception) -> StoreError:
    return StoreError(f"PostgreSQL is away: {_first_line(error)}", "it is tried again")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# The leader lock: one of several server processes serves the chats. It is an advisory lock that belongs to a
# connection.
#
# PostgreSQL releases the lock when the process ends for any reason. A process that hangs loses it, too, because its
# connection must stay active.

LOCK = 0x61746C63
BEAT_S = 3.0
SILENT_S = 15.0  # PostgreSQL releases the lock of a connection that is idle for this long
_KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


async def _connect(url: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
    """A connection of its own, whose end is noticed soon."""
    wait_s = int(WAIT_S)
    return await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=wait_s, **_KEEP_ALIVE)


class LeaderLock:
    """The lock while this process has it. `lost` raises StoreError as soon as the lock can be lost."""

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
async def leader_lock(url: str) -> AsyncIterator[LeaderLock | None]:
    """Try to take the leader lock. Yields None if another process has it. Raises StoreError if PostgreSQL is
    unavailable.
    """
    async with contextlib.AsyncExitStack() as stack:
        try:
            connection = await _connect(url)
            stack.push_async_callback(connection.close)
            with contextlib.suppress(psycopg.errors.UndefinedObject):  # PostgreSQL 13 does not have this setting
                await connection.execute(f"SET idle_session_timeout = '{int(SILENT_S)}s'")
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,))
            found = await cursor.fetchone()
        except psycopg.Error as error:
            raise _away(error) from None
        yield LeaderLock(connection) if found and found[0] else None


async def carried(database: Database) -> bool:
    """Whether any process serves the chats now."""
    query = """SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = %s
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    found = await database.rows(query, LOCK)
    return bool(found)


# Notifications between server processes, with LISTEN and NOTIFY. One can be lost while PostgreSQL restarts. Therefore
# all waiters wake up after a reconnect, and each also checks at regular intervals.

CHANNEL = "atlasbridge_server"
BOARD = "board"  # something on the page has changed
RETRY_S = 0.5
GATHER_S = 0.02  # the first notification is sent at once, later ones are collected for this long
LONGEST_KEY = 200  # PostgreSQL allows 8000 bytes, and machines choose parts of a key


async def called_within(called: asyncio.Event, seconds: float) -> bool:
    """Whether a notification comes in this time. One can be lost, so a caller looks again in any case."""
    try:
        async with asyncio.timeout(seconds):
            await called.wait()
    except TimeoutError:
        return False
    return True


class Wakeups:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._to_tell: set[str] = set()
        self._notification = asyncio.Event()
        self.breaks = -1  # how often the connection was made again

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="listen")
            group.create_task(self._tell(), name="notify")

    @contextlib.contextmanager
    def waiting(self, *keys: str) -> Iterator[asyncio.Event]:
        """An event that is set by every notification for one of these keys."""
        event = asyncio.Event()
        keys = tuple(map(_bounded, keys))
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]

    def tell(self, *keys: str) -> None:
        """Wake up all waiters for these keys: here at once, in other processes a moment later. Call it after the
        commit.
        """
        for key in map(_bounded, keys):
            self._hear(key)
            self._to_tell.add(key)
        self._notification.set()

    def _hear(self, key: str) -> None:
        for event in self._waiting.get(key, ()):
            event.set()

    def _wake_all(self) -> None:
        self.breaks += 1
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._database.listen(CHANNEL, self._hear, self._wake_all)
            except StoreError as error:
                log.warning("other servers are not heard: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _tell(self) -> None:
        while True:
            await self._notification.wait()
            self._notification.clear()
            keys, self._to_tell = sorted(self._to_tell), set()
            try:
                await self._database.tell(CHANNEL, keys)
            except (StoreError, Unkeepable) as error:
                log.warning("other servers were not told: %s", error)
            await asyncio.sleep(GATHER_S)


def _bounded(key: str) -> str:
    """A short form of the key that is the same in all processes, because a machine can choose parts of it."""
    return key if len(key) <= LONGEST_KEY and key.isprintable() else f"digest:{digest_text(ascii(key))}"
