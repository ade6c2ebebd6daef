"""A real PostgreSQL server in a folder of its own, on a socket of its own; killed and started again at will.

PostgreSQL does not run as root: there it is started as the user `postgres`, which its package makes.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

QUICK = "-c fsync=off -c full_page_writes=off -c max_connections=200 -c listen_addresses='' -c log_min_messages=fatal"


@cache
def programs() -> Path:
    """Where initdb and postgres are. One on the path can be a link into a folder that has the other programs, too."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")), Path(shutil.which("initdb") or "")]
    usable = [path.resolve() for path in found if path.is_file()]
    assert usable, "PostgreSQL is not installed: tools/install-extras does it"
    return usable[-1].parent


class Postgres:
    def __init__(self, folder: Path, options: str = QUICK) -> None:
        self.folder = folder
        self._options = options
        self._count = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            [str(programs() / words[0]), *words[1:]],
            user=_user(),
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def create(self) -> None:
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync", "--locale=C")

    def start(self) -> None:
        log = str(self.folder / "log")
        options = f"{self._options} -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", str(self.data), "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def kill_9(self) -> None:
        """The whole server, at once."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it went with its parent
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{number}").exists() for number in (pid, *children)):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def url(self, name: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{name}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty one."""
        self._count += 1
        name = f"server_{os.getpid()}_{self._count}"
        self._run("createdb", "-h", str(self.folder), "-U", "owner", name)
        return self.url(name)

    def sql(self, url: str, text: str) -> str:
        done = subprocess.run(
            [str(programs() / "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", url, "-c", text],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def _user() -> str | int | None:
    return "postgres" if os.getuid() == 0 and pwd.getpwnam("postgres") else None


@contextmanager
def postgres(options: str = QUICK) -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
            folder.chmod(0o755)
        server = Postgres(folder, options)
        server.create()
        server.start()
        yield server
        if (server.data / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Rows:
    """The rows of a database, kept in a second schema."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tables: dict[str, str] = {}  # each with the columns that have a value of their own

    async def keep(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            if not self._tables:
                await self._prepare(connection)
            await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            words = [
                f"DELETE FROM kept.{name}; INSERT INTO kept.{name} SELECT * FROM public.{name};"
                for name in self._tables
            ]
            await connection.execute("".join(words).encode())
            found = await connection.execute(
                "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
            )
            self._sequences = await found.fetchall()

    async def put_back(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """In one transaction, which waits for all that others are writing and lets none of it come in between."""
        tables = ", ".join(f"public.{name}" for name in self._tables)
        words = ["SET session_replication_role = replica;", f"LOCK TABLE {tables} IN EXCLUSIVE MODE;"]
        for name, columns in self._tables.items():
            words.append(f"DELETE FROM public.{name}; INSERT INTO public.{name} ({columns}) OVERRIDING SYSTEM VALUE")
            words.append(f" SELECT {columns} FROM kept.{name};")
        for name, value in self._sequences:
            words.append(f"SELECT setval('public.{name}', {value or 1}, {value is not None});")
        await connection.execute("".join(words).encode())

    async def _prepare(self, connection: psycopg.AsyncConnection[Any]) -> None:
        found = await connection.execute(
            "SELECT c.relname, string_agg(quote_ident(a.attname), ', ')"
            " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped"
            " AND a.attgenerated = '' GROUP BY c.relname"
        )
        self._tables = {str(name): str(columns) for name, columns in await found.fetchall()}
        await connection.execute("CREATE SCHEMA kept")
        for name in self._tables:
            await connection.execute(f"CREATE UNLOGGED TABLE kept.{name} (LIKE public.{name})".encode())
        await connection.commit()

    async def fail_over(self, breaks: bool = True) -> None:
        """Put the rows back below a running server. Its connections break, unless a pooler hides that."""
        name = str(psycopg.conninfo.conninfo_to_dict(self._url)["dbname"])
        other = psycopg.conninfo.make_conninfo(self._url, dbname="postgres")
        async with (
            await psycopg.AsyncConnection.connect(self._url) as replica,
            await psycopg.AsyncConnection.connect(other, autocommit=True) as control,
        ):
            if breaks:
                await control.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
                await _end_others(control, name, replica.info.backend_pid)
            while True:
                try:
                    await self.put_back(replica)
                    break
                except psycopg.errors.DeadlockDetected:  # with what the server does meanwhile
                    await replica.rollback()
            await replica.commit()
            await control.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())


async def _end_others(control: psycopg.AsyncConnection[Any], database: str, but: int) -> None:
    """Until there are none: one that begins passes the check first, is only a lock on the database then, and is listed
    among the connections last.
    """
    ended = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %(name)s AND pid <> %(but)s"""
    begin = """SELECT pid FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
        AND objid = (SELECT oid FROM pg_database WHERE datname = %(name)s) AND pid <> pg_backend_pid()"""
    while await (
        await control.execute(f"{ended} UNION ALL SELECT true FROM ({begin}) b", {"name": database, "but": but})
    ).fetchall():
        await asyncio.sleep(0.01)
