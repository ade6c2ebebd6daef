"""A pooler between the server and PostgreSQL: it works in session mode, and transaction mode is named."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.fleet import fleet_server_on, new_machine
from tests.support.postgres import Postgres
from tests.support.waiting import wait_for

from atlasbridge.core.errors import StoreError
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.migrate import migrate

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"


@contextmanager
def bouncer(server: Postgres, mode: str) -> Iterator[Path]:
    """The folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="pgb-"))
    folder.chmod(0o777)
    settings = {
        "listen_addr": "",
        "unix_socket_dir": folder,
        "listen_port": 6432,
        "auth_type": "any",
        "pool_mode": mode,
        "logfile": folder / "log",
        "max_client_conn": 200,
        "default_pool_size": 40,
    }
    lines = ["[databases]", f"* = host={server.folder} user=owner", "[pgbouncer]"]
    (folder / "settings").write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in settings.items())]))
    with subprocess.Popen([PROGRAM, "-q", str(folder / "settings")], user="postgres") as running:
        try:
            wait_for(lambda: _listens(folder))
            yield folder
        finally:
            running.kill()
    shutil.rmtree(folder, ignore_errors=True)


def _listens(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(folder / ".s.PGSQL.6432")) == 0


def through(url: str, folder: Path) -> str:
    return f"postgresql://owner@{urlsplit(url).path}?host={folder}&port=6432"


async def test_a_fleet_works_through_a_pooler_in_session_mode(server: Postgres, database: str, root: Path) -> None:
    with bouncer(server, "session") as folder:
        url = through(database, folder)
        opened = Database(url)
        await opened.open()
        await opened.check_session()
        await opened.close()
        async with fleet_server_on(url) as fleet_server:
            machine = await new_machine(fleet_server, root)
            alice = await fleet_server.person("alice", "admin")
            sitter = machine.sit()
            sitter.ask()
            (shown,) = await alice.sees(1)
            assert (await alice.decide(shown, "y"))["accepted"] and len(sitter.typed) == 1
            await machine.stop()


async def test_a_pooler_in_transaction_mode_is_named(server: Postgres, database: str) -> None:
    with bouncer(server, "transaction") as folder:
        opened = Database(through(database, folder))
        await opened.open()
        try:
            with pytest.raises(StoreError, match="notifications") as told:
                await opened.check_session()
            assert "session mode" in told.value.hint
        finally:
            await opened.close()


async def test_why_the_database_cannot_be_used_is_told_in_its_own_words(server: Postgres) -> None:
    opened = Database(server.url("no_such_database"))
    with pytest.raises(StoreError, match='database "no_such_database" does not exist'):
        await opened.open()


async def test_migrations_run_through_a_pooler(server: Postgres, database: str) -> None:
    with bouncer(server, "session") as folder:
        opened = Database(through(database, folder))
        await opened.open()
        try:
            assert await migrate(opened) >= 4
        finally:
            await opened.close()
