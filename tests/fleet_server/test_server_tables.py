"""The server's tables: made once by many at once, never changed without a backup, and served with the least rights."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.fleet import fleet_server_on
from tests.support.postgres import Postgres

from atlasbridge.core.audit.chain import Fault
from atlasbridge.core.errors import ConfigError, StoreError
from atlasbridge.core.store.database import Migration, load_migrations
from atlasbridge.fleet.server import audit, machines, people
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.migrate import FOLDER, grant_role, migrate

NEXT = Migration(len(load_migrations(FOLDER)) + 1, "colour", "ALTER TABLE machines ADD COLUMN colour text")
BROKEN = Migration(NEXT.version, "broken", "CREATE TABLE extra (x int); INSERT INTO nowhere VALUES (1)")


@pytest.fixture
async def tables(database: str):  # type: ignore[no-untyped-def]
    opened = Database(database)
    await opened.open()
    yield opened
    await opened.close()


async def test_many_who_start_at_once_make_the_tables_once(database: str) -> None:
    several = [Database(database) for _ in range(5)]
    await asyncio.gather(*(one.open() for one in several))
    assert set(await asyncio.gather(*(migrate(one) for one in several))) == {len(load_migrations(FOLDER))}
    assert len(await several[0].rows("SELECT * FROM server_schema")) == len(load_migrations(FOLDER))
    await asyncio.gather(*(one.close() for one in several))


async def test_older_tables_are_changed_only_when_they_were_saved(tables: Database) -> None:
    await migrate(tables)
    with pytest.raises(StoreError, match="must be brought to"):
        await migrate(tables, steps=[*load_migrations(FOLDER), NEXT])
    assert await migrate(tables, saved=True, steps=[*load_migrations(FOLDER), NEXT]) == NEXT.version
    assert await tables.rows("SELECT colour FROM machines") == []


async def test_newer_tables_are_refused(tables: Database) -> None:
    await migrate(tables, steps=[*load_migrations(FOLDER), NEXT])
    with pytest.raises(StoreError, match="knows"):
        await migrate(tables)


async def test_a_step_that_fails_changes_nothing(tables: Database) -> None:
    await migrate(tables)
    with pytest.raises(StoreError, match="nowhere"):
        await migrate(tables, saved=True, steps=[*load_migrations(FOLDER), BROKEN])
    assert (await tables.rows("SELECT to_regclass('extra') AS there"))[0]["there"] is None
    assert await migrate(tables) == len(load_migrations(FOLDER))


async def test_a_role_with_the_least_rights_serves_and_can_change_no_log(server: Postgres, tables: Database) -> None:
    await migrate(tables)
    server.sql(tables.url, "DROP ROLE IF EXISTS clerk")
    server.sql(tables.url, "CREATE ROLE clerk LOGIN")
    await grant_role(tables, "clerk")
    url = tables.url.replace("owner@", "clerk@")
    async with fleet_server_on(url) as fleet_server:
        await fleet_server.invite()
        await audit.seal(fleet_server.database)
        assert await audit.entries(fleet_server.database)
        for forbidden in (
            "UPDATE audit_entries SET entry = ''",
            "DELETE FROM audit_entries",
            "DELETE FROM heads",
            "DROP TABLE machines",
            "CREATE TABLE mine (x int)",
        ):
            with pytest.raises(StoreError, match="PostgreSQL refuses"):
                await fleet_server.database.rows(forbidden)
    server.sql(tables.url, "DROP OWNED BY clerk; DROP ROLE clerk")


async def test_a_role_that_may_not_make_tables_says_what_to_do(server: Postgres, tables: Database) -> None:
    server.sql(
        tables.url,
        "DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    )
    stranger = Database(tables.url.replace("owner@", "stranger@"))
    await stranger.open()
    with pytest.raises(ConfigError, match="may not change"):
        await migrate(stranger)
    await stranger.close()
    server.sql(tables.url, "DROP ROLE stranger")


async def test_a_database_without_tables_says_what_to_do(tables: Database) -> None:
    with pytest.raises(StoreError, match="people") as told:
        await people.listing(tables)
    assert "fleet migrate" in told.value.hint
    await migrate(tables)
    with pytest.raises(ConfigError, match="no user 'nobody_here'") as told_of_role:
        await grant_role(tables, "nobody_here")
    assert "createuser nobody_here" in told_of_role.value.hint


async def test_the_log_is_shown_with_what_no_server_has_sealed(tables: Database) -> None:
    await migrate(tables)
    await people.add(tables, "alice", "admin", "test")
    (line,) = await audit.entries(tables)
    assert "PERSON_ADDED" in line


async def test_the_fleet_servers_own_log_shows_a_change_and_a_cut(tables: Database) -> None:
    await migrate(tables)
    for number in range(3):
        await machines.invite(tables, "test", name=f"m{number}")
    whole = await audit.verify(tables)
    assert not isinstance(whole, Fault) and whole.entries == 3
    await tables.rows("ALTER TABLE audit_entries DISABLE TRIGGER ALL")
    await tables.rows("UPDATE audit_entries SET entry = replace(entry, 'm1', 'm9') WHERE seq = 2")
    changed = await audit.verify(tables)
    assert isinstance(changed, Fault) and changed.seq == 2
    await tables.rows("DELETE FROM audit_entries WHERE seq > 1")
    cut = await audit.verify(tables)
    assert isinstance(cut, Fault) and cut.seq == 2 and "missing" in cut.problem


async def test_entries_noted_by_many_at_once_are_sealed_each_once(tables: Database) -> None:
    await migrate(tables)
    await asyncio.gather(*(machines.invite(tables, f"person {number}") for number in range(30)))
    await asyncio.gather(*(audit.seal(tables) for _ in range(5)))
    whole = await audit.verify(tables)
    assert not isinstance(whole, Fault) and whole.entries == 30
    assert await tables.rows("SELECT 1 FROM audit_pending") == []
