"""Migrates the server's tables to the newest schema: forward only, and one process at a time.

A new database is set up at once. An older one is changed only after somebody has confirmed a backup, and one that is
newer than this AtlasBridge is refused. A database user without permission to change tables can still run the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from atlasbridge.core.errors import ConfigError, StoreError
from atlasbridge.core.store.database import Migration, load_migrations
from atlasbridge.fleet.keys import new_key, public_of
from atlasbridge.fleet.server.database import Connection, Database, row

FOLDER = Path(__file__).with_name("migrations")
LOCK = 0x61746C61  # an advisory lock: one process migrates, the others wait


async def version_of(connection: Connection) -> int:
    known = await row(connection, "SELECT to_regclass('server_schema') IS NOT NULL AS there")
    if not known or not known["there"]:
        return 0
    found = await row(connection, "SELECT coalesce(max(version), 0) AS version FROM server_schema")
    return int(found["version"]) if found else 0


async def migrate(database: Database, saved: bool = False, steps: Sequence[Migration] | None = None) -> int:
    """Migrate and return the version. `saved` confirms that there is a backup."""
    known = load_migrations(FOLDER) if steps is None else tuple(steps)
    async with database.transaction() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        current = await version_of(connection)
        _refuse(current, len(known), saved)
        try:
            for step in known[current:]:
                await _apply(connection, step, database)
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigError(
                f"this user may not change the tables: {str(error).splitlines()[0]}",
                "run: atlasbridge fleet migrate --database postgresql://OWNER@…",
            ) from None
    return len(known)


def _refuse(current: int, newest: int, saved: bool) -> None:
    if current > newest:
        raise StoreError(
            f"the database has schema {current}, this AtlasBridge knows {newest} at most",
            "Install the newer AtlasBridge again.",
        )
    if 0 < current < newest and not saved:
        raise StoreError(
            f"the database has schema {current} and must be brought to {newest}",
            "Save it (pg_dump), then run: atlasbridge fleet migrate --saved",
        )


async def _apply(connection: Connection, step: Migration, database: Database) -> None:
    if step.version == 1:
        query = """CREATE TABLE server_schema (version integer PRIMARY KEY, name text NOT NULL,
            applied_at timestamptz NOT NULL)"""
        await connection.execute(query)
    await connection.execute(step.sql.encode())
    query = "INSERT INTO server_schema (version, name, applied_at) VALUES (%s, %s, %s)"
    await connection.execute(query, (step.version, step.name, database.now()))
    if step.version == 1:
        key = new_key()
        await connection.execute(
            "INSERT INTO desk_identity (private_key, public_key) VALUES (%s, %s)", (key, public_of(key))
        )


# The permissions that a database user needs to run the server. They exclude creating tables and changing audit entries.
WRITES = "machines, invitations, people, team_members, rights, logins, sessions, prompts, decisions, proofs, rulebook"
WRITES += ", places, notices"
CHATS = "chat_deliveries, chat_steps, chat_wakes, chat_inbox, chat_notes"
ROLE_RIGHTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    f"GRANT INSERT, UPDATE ON {WRITES} TO {{role}}",
    "GRANT DELETE ON team_members, rights, logins, invitations, prompts, sessions, decisions, proofs TO {role}",
    "GRANT DELETE ON places, notices TO {role}",
    "GRANT INSERT, DELETE ON oidc_attempts, passkeys, passkey_attempts TO {role}",
    "GRANT INSERT ON heads, audit_entries TO {role}",
    "GRANT INSERT, DELETE ON audit_pending TO {role}",
    "GRANT UPDATE ON audit_head TO {role}",
    "GRANT INSERT, UPDATE, DELETE ON looks, screens TO {role}",
    f"GRANT INSERT, UPDATE, DELETE ON {CHATS} TO {{role}}",
    "GRANT INSERT, UPDATE, DELETE ON push_subscriptions, push_messages TO {role}",
    "GRANT INSERT ON push_key TO {role}",
)


async def grant_role(database: Database, role: str) -> None:
    async with database.transaction() as connection:
        found = await row(connection, "SELECT current_schema() AS name")
        names = {"schema": sql.Identifier(found["name"] if found else "public"), "role": sql.Identifier(role)}
        try:
            for statement in ROLE_RIGHTS:
                await connection.execute(sql.SQL(statement).format(**names))
        except psycopg.errors.UndefinedObject:
            raise ConfigError(f"PostgreSQL has no user {role!r}", f"make it first: createuser {role}") from None
