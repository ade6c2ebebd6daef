"""The machines of the server: invited, joined, entered, gone.  Who a machine is, is its key; its name is for people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.fleet_wire import from_text
from atlasbridge.core.ids import new_id
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.audit import note, note_stranger
from atlasbridge.fleet.server.database import Connection, Database, row, rows
from atlasbridge.fleet.server.signature import hashed, new_token

EPHEMERAL_S = 600.0  # so long an ephemeral machine may be silent before it is gone


@frozen
class Refused:
    """A machine's or a person's fault: the reason for machines, one sentence for people."""

    reason: str
    sentence: str


@frozen
class Entered:
    machine_id: str
    name: str
    generation: int
    acked: int


async def invite(
    database: Database, by: str, *, name: str = "", ephemeral: bool = False, ttl_s: float = 3600.0, uses: int = 1
) -> str:
    """A token; only its hash is kept."""
    token, now = new_token(), database.now()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO invitations (token_hash, made_by, made_at, expires_at, name, ephemeral, uses_left)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (hashed(token), by, now, now + timedelta(seconds=ttl_s), name, ephemeral, uses),
        )
        await note(connection, now, "INVITED", by=by, name=name, ephemeral=ephemeral, uses=uses, ttl_s=ttl_s)
    return token


async def join(database: Database, token: str, name: str, key: str, ephemeral: bool) -> tuple[str, str] | Refused:
    """(id, name) of the new machine.  A token is used up in the same transaction."""
    wanted = escape_controls(name[:64], keep_lines=False).strip() or "machine"
    if len(from_text(key)) != 32:
        return Refused("bad_key", "That is no key.")
    now, machine_id = database.now(), new_id()
    async with database.transaction() as connection:
        found = await row(
            connection,
            "UPDATE invitations SET uses_left = uses_left - 1, used_at = %s WHERE token_hash = %s AND uses_left > 0"
            " AND expires_at > %s AND (name = '' OR name = %s) RETURNING made_by, ephemeral",
            now,
            hashed(token),
            now,
            wanted,
        )
        if found is None:
            await note_stranger(database, connection, "JOIN_REFUSED", name=wanted, key=key)
            return Refused("bad_token", "This token is not valid: it was used, is too old, or is for another machine.")
        free = await _free_name(connection, wanted)
        await connection.execute(
            "INSERT INTO machines (id, name, public_key, ephemeral, joined_at, invited_by) VALUES (%s,%s,%s,%s,%s,%s)",
            (machine_id, free, key, ephemeral or found["ephemeral"], now, found["made_by"]),
        )
        await note(connection, now, "JOINED", machine=machine_id, name=free, key=key, invited_by=found["made_by"])
    return machine_id, free


async def _free_name(connection: Connection, wanted: str) -> str:
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('machine-name'))")
    taken = {one["name"] for one in await rows(connection, "SELECT name FROM machines WHERE gone_at IS NULL")}
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


async def key_of(database: Database, machine_id: str) -> str | Refused:
    """The key a machine must prove to have."""
    found = await database.rows("SELECT public_key, gone_why FROM machines WHERE id = %s", machine_id[:64])
    if not found:
        return Refused("unknown", "This server does not know this machine.")
    if found[0]["gone_why"]:
        return Refused("gone", f"This machine does not belong to the server any more ({found[0]['gone_why']}).")
    return str(found[0]["public_key"])


async def refuse_entry(database: Database, machine_id: str, reason: str) -> None:
    async with database.transaction() as connection:
        told = escape_controls(machine_id[:64], keep_lines=False)
        await note_stranger(database, connection, "ENTER_REFUSED", machine=told, reason=reason)


async def enter(database: Database, machine_id: str, about: dict[str, Any], server: str) -> Entered | Refused:
    """Its new link is the only one that may write from now on; a new epoch numbers anew."""
    epoch = str(about.get("epoch", ""))[:128]
    async with database.transaction() as connection:
        known = await row(
            connection,
            "SELECT name, epoch FROM machines WHERE id = %s AND gone_at IS NULL FOR UPDATE",
            machine_id,
        )
        if known is None:
            return Refused("gone", "This machine does not belong to the server any more.")
        if epoch and known["epoch"] != epoch:
            await _begin_epoch(connection, machine_id, epoch, database)
        found = await row(
            connection,
            "UPDATE machines SET generation = generation + 1, connected_to = %s, seen_at = %s, version = %s,"
            " screens = %s, policy = %s WHERE id = %s RETURNING generation, acked",
            server,
            database.now(),
            str(about.get("version", ""))[:40],
            bool(about.get("screens", False)),
            str(about.get("policy", ""))[:100],
            machine_id,
        )
    assert found is not None
    return Entered(machine_id, known["name"], int(found["generation"]), int(found["acked"]))


async def _begin_epoch(connection: Connection, machine_id: str, epoch: str, database: Database) -> None:
    """Another store, or joined anew: what the old one said is over, and numbers begin at one."""
    await connection.execute("UPDATE machines SET epoch = %s, acked = 0 WHERE id = %s", (epoch, machine_id))
    await connection.execute("UPDATE sessions SET seq = 0, state = 'gone' WHERE machine_id = %s", (machine_id,))
    await close_prompts(connection, machine_id, database)


async def close_prompts(connection: Connection, machine_id: str, database: Database) -> None:
    await connection.execute("UPDATE prompts SET seq = 0 WHERE machine_id = %s", (machine_id,))
    await connection.execute(
        "UPDATE prompts SET is_open = false, state = 'gone', ended_at = %s WHERE machine_id = %s AND is_open",
        (database.now(), machine_id),
    )


async def remove(database: Database, name_or_id: str, by: str, why: str) -> str | None:
    """Its key is worth nothing from now on, and every row of its ends.  Its id; None: there is none of that name."""
    now = database.now()
    async with database.transaction() as connection:
        found = await row(
            connection,
            "UPDATE machines SET gone_at = %s, gone_why = %s, connected_to = '', generation = generation + 1"
            " WHERE (name = %s OR id = %s) AND gone_at IS NULL RETURNING id, name",
            now,
            why,
            name_or_id,
            name_or_id,
        )
        if found is None:
            return None
        machine_id = str(found["id"])
        await close_prompts(connection, machine_id, database)
        await connection.execute(
            "UPDATE decisions SET settled_at = %s, ok = false, stage = 'gone', sentence = %s"
            " WHERE machine_id = %s AND settled_at IS NULL",
            (now, f"Not known: the machine {found['name']} is gone ({why}).", machine_id),
        )
        event = "REVOKED" if why == "revoked" else "LEFT"
        await note(connection, now, event, machine=machine_id, name=found["name"], by=by, why=why)
    return machine_id


async def reap(database: Database) -> list[str]:
    """Ephemeral machines that were not heard of for too long leave by themselves; logins and tokens that ended go."""
    now = database.now()
    silent = await database.rows(
        "SELECT id FROM machines WHERE ephemeral AND gone_at IS NULL AND coalesce(seen_at, joined_at) < %s",
        now - timedelta(seconds=EPHEMERAL_S),
    )
    gone = [machine_id for one in silent if (machine_id := await remove(database, one["id"], "timer", "silent"))]
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM logins WHERE expires_at < %s", (now,))
        await connection.execute("DELETE FROM invitations WHERE expires_at < %s", (now - timedelta(days=30),))
    return gone


async def parted(database: Database, entered: Entered) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE machines SET connected_to = '' WHERE id = %s AND generation = %s",
            (entered.machine_id, entered.generation),
        )


async def listing(database: Database, include_gone: bool = False) -> list[dict[str, Any]]:
    return await database.rows(
        "SELECT m.*, (SELECT count(*) FROM prompts p WHERE p.machine_id = m.id AND p.is_open) AS open_prompts,"
        " (SELECT count(*) FROM sessions s WHERE s.machine_id = m.id AND s.state = 'active') AS sessions"
        " FROM machines m WHERE %s OR gone_at IS NULL ORDER BY name, joined_at",
        include_gone,
    )


async def allow_screens(database: Database, name: str, allowed: bool) -> bool:
    found = await database.rows(
        "UPDATE machines SET screens_here = %s WHERE (name = %s OR id = %s) AND gone_at IS NULL RETURNING id",
        allowed,
        name,
        name,
    )
    return bool(found)
