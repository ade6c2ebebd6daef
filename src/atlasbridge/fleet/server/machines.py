"""The machines of the fleet: invitations, joining, connecting and removal, the rules for all machines, and the server's
own key. A machine is identified by its key; its name is for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.fleet_wire import DEAD_S, digest_open, from_text, rotation_text
from atlasbridge.core.ids import new_id, new_nonce
from atlasbridge.core.operations import Refused
from atlasbridge.core.prompt.model import digest_text
from atlasbridge.core.values import frozen
from atlasbridge.fleet.keys import hashed, new_key, new_token, public_of, sign
from atlasbridge.fleet.server.audit import note, note_stranger
from atlasbridge.fleet.server.database import Connection, Database, row, rows
from atlasbridge.fleet.server.operations import TeamRules

SENT = "sent"  # the stage of a decision that was sent and has no outcome yet
ARE_YOU_THERE = "are_you_there"
MOST_NAMED = 1000
EPHEMERAL_S = 600.0  # an ephemeral machine is removed after this time without a message


@frozen
class Entered:
    machine_id: str
    name: str
    generation: int
    acked: int
    epoch: str = ""  # of the machine's sequence numbers; after a change it sends everything again
    token: str = ""  # of this connection; proves at the next one that no store went back
    notice: str = ""  # a message for the people at the machine
    opened: tuple[str, ...] = ()  # at the start of an epoch: the prompts that were open here before


async def invite(
    database: Database, by: str, *, name: str = "", ephemeral: bool = False, ttl_s: float = 3600.0, uses: int = 1
) -> str:
    """Create an invitation token. Only its hash is stored."""
    token, now = new_token(), database.now()
    async with database.transaction() as connection:
        query = """INSERT INTO invitations (token_hash, made_by, made_at, expires_at, name, ephemeral, uses_left)
            VALUES (%s, %s, %s, %s, %s, %s, %s)"""
        await connection.execute(query, (hashed(token), by, now, now + timedelta(seconds=ttl_s), name, ephemeral, uses))
        await note(connection, now, "INVITED", by=by, name=name, ephemeral=ephemeral, uses=uses, ttl_s=ttl_s)
    return token


async def invitations(database: Database) -> list[dict[str, Any]]:
    """Invitations that can still be used."""
    query = """SELECT left(token_hash, 16) AS invitation_id, made_by AS by, made_at, expires_at AS until, name,
        ephemeral, uses_left FROM invitations WHERE uses_left > 0 AND expires_at > %s ORDER BY made_at"""
    return await database.rows(query, database.now())


async def revoke_invitation(database: Database, invitation_id: str, by: str) -> bool:
    async with database.transaction() as connection:
        query = "DELETE FROM invitations WHERE left(token_hash, 16) = %s AND uses_left > 0 RETURNING made_by"
        gone = await rows(connection, query, invitation_id)
        if gone:
            await note(connection, database.now(), "INVITED", by=by, revoked=invitation_id)
    return bool(gone)


async def join(database: Database, token: str, name: str, key: str, ephemeral: bool) -> tuple[str, str] | Refused:
    """Add a machine and return its id and name. The token is used up in the same transaction."""
    wanted = escape_controls(name[:64], keep_lines=False).strip() or "machine"
    if len(from_text(key)) != 32:
        return Refused("bad_key", "That is no key.")
    now, machine_id = database.now(), new_id()
    async with database.transaction() as connection:
        query = """UPDATE invitations SET uses_left = uses_left - 1, used_at = %s WHERE token_hash = %s AND
            uses_left > 0 AND expires_at > %s AND (name = '' OR name = %s) RETURNING made_by, ephemeral"""
        found = await row(connection, query, now, hashed(token), now, wanted)
        if found is None:
            await note_stranger(database, "JOIN_REFUSED", name=wanted, key=key)
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
    """The public key that a machine must prove to have."""
    found = await database.rows("SELECT public_key, gone_why FROM machines WHERE id = %s", machine_id[:64])
    if not found:
        return Refused("unknown", "This server does not know this machine.")
    if found[0]["gone_why"]:
        return Refused("gone", f"This machine does not belong to the server any more ({found[0]['gone_why']}).")
    return str(found[0]["public_key"])


async def refuse_entry(database: Database, machine_id: str, reason: str) -> None:
    told = escape_controls(machine_id[:64], keep_lines=False)
    await note_stranger(database, "ENTER_REFUSED", machine=told, reason=reason)


async def enter(
    database: Database,
    machine_id: str,
    about: dict[str, Any],
    server: str,
    address: str = "",
    is_there: bool = True,
) -> Entered | Refused:
    """Connect a machine. From now on only its new link is allowed to write.

    First the server compares what both sides know of their last connection and which prompts are open. Any difference
    starts a new epoch, in which the machine sends everything again. `is_there` says that the machine has answered on
    this connection, because messages that the network delivers late must not look like a second machine.
    """
    async with database.transaction() as connection:
        known = await row(connection, "SELECT * FROM machines WHERE id = %s AND gone_at IS NULL FOR UPDATE", machine_id)
        if known is None:
            return Refused("gone", "This machine does not belong to the fleet any more.")
        if about.get("leaving"):
            return await _enter_to_leave(connection, known)
        given = _presented(about, address, database)
        verdict = judge_return(known, given, _is_live(known, database))
        if verdict in ("restored", "cloned") and not known["held"] and not is_there:
            return Refused(ARE_YOU_THERE, "")
        if verdict in ("restored", "cloned", "expelled"):
            return await _hold(connection, known, given, verdict, database)
        notice = await _note_return(connection, known, given, verdict, database) if verdict else ""
        epoch, opened = str(known["epoch"]), tuple[str, ...]()
        if (
            verdict
            or given["epoch"] != epoch
            or not epoch
            or given["digest"] != await open_digest(connection, machine_id)
        ):
            epoch = f"{machine_id}/{new_nonce()}"
            opened = await _begin_epoch(connection, machine_id, epoch)
        token = f"{max(int(known['meetings']), meeting_of(given['token'])) + 1}.{new_nonce()}"
        query = """UPDATE machines SET generation = generation + 1, connected_to = %(server)s, seen_at = %(now)s,
            version = %(version)s, screens = %(screens)s, policy = %(policy)s, host = %(host)s,
            address = %(address)s, meetings = %(meetings)s, token_offered = %(token)s, accepts = '',
            token = CASE WHEN %(given)s = '' THEN token ELSE %(given)s END,
            others = '[]' WHERE id = %(id)s RETURNING generation, acked"""
        found = await row(
            connection,
            query,
            {
                "id": machine_id,
                "server": server,
                "now": database.now(),
                "version": str(about.get("version", ""))[:40],
                "screens": bool(about.get("screens", False)),
                "policy": str(about.get("policy", ""))[:100],
                "host": given["host"],
                "address": given["address"],
                "meetings": meeting_of(token),
                "given": given["token"],
                "token": token,
            },
        )
    assert found is not None
    return Entered(
        machine_id, known["name"], int(found["generation"]), int(found["acked"]), epoch, token, notice, opened
    )


async def _enter_to_leave(connection: Connection, known: dict[str, Any]) -> Entered | Refused:
    """Connect a machine that leaves. While several machines use one key, none of them can remove it for the others."""
    if known["held"] or known["expelled"]:
        return Refused(
            "expelled", f"Other machines had this key: {known['name']} stays on the list until it is revoked."
        )
    query = "UPDATE machines SET generation = generation + 1 WHERE id = %s RETURNING generation, acked"
    found = await row(connection, query, known["id"])
    assert found is not None
    return Entered(known["id"], known["name"], int(found["generation"]), int(found["acked"]))


def _presented(about: dict[str, Any], address: str, database: Database) -> dict[str, Any]:
    """The machine's description of itself. Invalid numbers count as 0."""
    numbers = {name: about[name] if type(about.get(name)) is int else 0 for name in ("told_until", "newest")}
    texts = {name: str(about.get(name, ""))[:200].replace("\x00", "") for name in ("epoch", "token", "digest", "host")}
    host = escape_controls(texts["host"][:64], keep_lines=False)
    return {**numbers, **texts, "host": host, "address": address[:64], "at": database.now().isoformat()}


def meeting_of(token: str) -> int:
    number = token.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < 16 else 0


def exact_token(given: Mapping[str, Any]) -> str:
    """Tells two machines apart that have the same token, because one was copied after their last connection: the server
    has acknowledged more to one of them.
    """
    return f"{given['token']}@{given['told_until']}"


def judge_return(known: Mapping[str, Any], given: Mapping[str, Any], is_live: bool) -> str:
    """Whether a machine that connects again continues where it was.

    "" means that both stores agree. "server" and "accepted" mean that one store went back and the machine continues
    anyway. "restored", "cloned" and "expelled" mean that it has to wait until a person decides.
    """
    token, exact = given["token"], exact_token(given)
    if token and known["accepts"] in (token, exact):
        return "accepted"
    if token and (token in known["expelled"] or exact in known["expelled"]):
        return "expelled"
    if known["held"] == "restored" and token in (known["token"], known["token_offered"]):
        is_same = exact in [one["token"] for one in known["others"]]
        return "restored" if is_same else "cloned"  # beside the one that is held, its original has come back
    if known["held"]:
        return str(known["held"])
    if token not in (known["token"], known["token_offered"]) and known["token_offered"]:
        if meeting_of(token) > known["meetings"]:
            return "server"
        return "cloned" if is_live else "restored"
    if given["epoch"] != known["epoch"] or not known["epoch"]:
        return ""  # it sends everything anyway
    if given["newest"] < known["acked"]:
        return "cloned" if is_live else "restored"
    return "server" if given["told_until"] > known["acked"] else ""


def _is_live(known: Mapping[str, Any], database: Database) -> bool:
    seen = known["seen_at"]
    return bool(known["connected_to"]) and seen is not None and (database.now() - seen).total_seconds() < DEAD_S


_HELD = {
    "restored": "This machine was restored to an earlier state, or is a copy of another."
    " If that is right: atlasbridge fleet machines accept-restore {name}",
    "cloned": "Several machines use the key of {name}, and this is number {number} of them. Choose which one continues:"
    " atlasbridge fleet machines split {name} --keep NUMBER",
    "expelled": "Another machine continues as {name}. Leave the fleet and join again: atlasbridge fleet leave --force",
}


async def _hold(
    connection: Connection, known: dict[str, Any], given: dict[str, Any], verdict: str, database: Database
) -> Refused:
    """Refuse the machine until a person decides, because an answer must not reach the wrong machine. Of two clones,
    both have to wait.
    """
    name, machine_id = known["name"], known["id"]
    came = {key: given[key] for key in ("token", "host", "address", "at")}
    is_known = given["token"] in (known["token"], known["token_offered"])
    if is_known and not known["held"]:
        came["token"] = exact_token(given)
    fresh = not (is_known and known["held"]) and came["token"] not in [one["token"] for one in known["others"]]
    others = [*known["others"], came][-8:] if fresh else known["others"]
    refused = Refused(verdict, _HELD[verdict].format(name=name, number=_number(given, others)))
    if verdict == "expelled" or (known["held"] == verdict and not fresh):
        return refused
    query = "UPDATE machines SET held = %s, others = %s, generation = generation + 1, connected_to = '' WHERE id = %s"
    await connection.execute(query, (verdict, Jsonb(others), machine_id))
    event = "MACHINE_CLONED" if verdict == "cloned" else "MACHINE_RESTORED"
    places = {"host": known["host"], "address": known["address"]}
    their = {"other_host": given["host"], "other_address": given["address"]}
    await note(connection, database.now(), event, machine=machine_id, name=name, **places, **their)
    return refused


def _number(given: Mapping[str, Any], others: list[dict[str, Any]]) -> int:
    """The number that `sides` gives to this machine."""
    tokens = [exact_token(given), given["token"]]
    return next((number for number, one in enumerate(others, 2) if one["token"] in tokens), 1)


async def _note_return(
    connection: Connection, known: dict[str, Any], given: dict[str, Any], verdict: str, database: Database
) -> str:
    machine_id, now = known["id"], database.now()
    if verdict == "server":
        told = "The server's database was restored to an earlier state; the machine reported everything open again."
        await note(connection, now, "STORE_WENT_BACK", machine=machine_id, name=known["name"])
    else:
        told = "This machine was restored to an earlier state; it reported everything open to the server again."
        await note(connection, now, "RESTORE_USED", machine=machine_id, name=known["name"], host=given["host"])
        await connection.execute(
            "UPDATE decisions SET settled_at = %s, ok = false, stage = 'unknown', sentence = %s"
            f" WHERE machine_id = %s AND settled_at IS NULL AND stage = '{SENT}'",
            (
                now,
                f"Unknown: {known['name']} was restored to an earlier state before it answered.",
                machine_id,
            ),
        )
    query = "UPDATE machines SET went_back = %s, went_back_at = %s WHERE id = %s"
    await connection.execute(query, (told, now, machine_id))
    return told


async def open_digest(connection: Connection, machine_id: str) -> str:
    """The digest of what is open on the machine according to this database; see `fleet_wire.digest_open`."""
    prompts = await rows(connection, "SELECT prompt_id FROM prompts WHERE machine_id = %s AND is_open", machine_id)
    query = "SELECT session_id FROM sessions WHERE machine_id = %s AND state = 'active'"
    sessions = await rows(connection, query, machine_id)
    return digest_open((one["prompt_id"] for one in prompts), (one["session_id"] for one in sessions))


async def _begin_epoch(connection: Connection, machine_id: str, epoch: str) -> tuple[str, ...]:
    """Start a new epoch, because a store is new or went back: sequence numbers start again. Returns the prompts that
    were open, so that the machine reports each of them; `sweep` closes the ones that it does not report.
    """
    query = "UPDATE machines SET epoch = %s, epochs = epochs + 1, acked = 0 WHERE id = %s"
    await connection.execute(query, (epoch, machine_id))
    query = "SELECT prompt_id FROM prompts WHERE machine_id = %s AND is_open LIMIT %s"
    found = await rows(connection, query, machine_id, MOST_NAMED)
    return tuple(str(one["prompt_id"]) for one in found)


async def confirm(database: Database, entered: Entered, token: str) -> None:
    """Record that the machine has stored the token of this connection."""
    query = "UPDATE machines SET token = token_offered WHERE id = %s AND generation = %s AND token_offered = %s"
    await database.rows(query, entered.machine_id, entered.generation, token)


async def sweep(database: Database, entered: Entered) -> None:
    """Close what the machine did not report in this epoch. Called after it has reported everything that is open."""
    mine = (entered.machine_id, entered.machine_id, entered.generation)
    newest = "machine_id = %s AND epochs < (SELECT m.epochs FROM machines m WHERE m.id = %s AND m.generation = %s)"
    async with database.transaction() as connection:
        query = f"""UPDATE prompts SET is_open = false, state = 'gone', ended_at = coalesce(ended_at, %s)
            WHERE is_open AND {newest}"""
        await connection.execute(query, (database.now(), *mine))
        await connection.execute(f"UPDATE sessions SET state = 'gone' WHERE state = 'active' AND {newest}", mine)


async def accept_restore(database: Database, machine: str, by: str) -> str | None:
    """Let a restored machine in after a person has confirmed it. Returns its description, or None if none waits."""
    async with database.transaction() as connection:
        known = await _held(connection, machine)
        if known is None or not known["others"]:
            return None
        last = known["others"][-1]
        query = "UPDATE machines SET held = '', accepts = %s WHERE id = %s"
        await connection.execute(query, (last["token"], known["id"]))
        told = {"machine": known["id"], "name": known["name"], "host": last["host"], "address": last["address"]}
        await note(connection, database.now(), "RESTORE_ACCEPTED", by=by, **told)
    return _place(last)


async def sides(database: Database, name: str) -> list[str]:
    """Descriptions of the machines that use this key. Each is told its number, because only a person can say which
    one is the copy.
    """
    async with database.transaction() as connection:
        known = await _held(connection, name)
    if known is None:
        return []
    others = (f"{_place(one)}, refused since {one['at'][:19]} UTC" for one in known["others"])
    return [f"{_place(known)}, the last one that was let in", *others]


async def split(database: Database, name: str, keep: int, by: str) -> str | None:
    """Keep the machine with this number; all others have to join again. Returns a description of the kept one."""
    async with database.transaction() as connection:
        known = await _held(connection, name)
        if known is None or not 0 <= keep <= len(known["others"]):
            return None
        own = [one for one in (known["token"], known["token_offered"]) if one]
        theirs = [one["token"] for one in known["others"]]
        kept = own if keep == 0 else [theirs[keep - 1]]
        gone = [one for one in (*own, *theirs) if one not in kept and one]
        query = "UPDATE machines SET held = '', accepts = %s, others = '[]', expelled = expelled || %s WHERE id = %s"
        await connection.execute(query, ("" if keep == 0 else kept[0], gone, known["id"]))
        place = _place(known if keep == 0 else known["others"][keep - 1])
        await note(connection, database.now(), "SPLIT", machine=known["id"], name=known["name"], kept=place, by=by)
    return place


async def _held(connection: Connection, name: str) -> dict[str, Any] | None:
    query = "SELECT * FROM machines WHERE (name = %s OR id = %s) AND held <> '' AND gone_at IS NULL FOR UPDATE"
    return await row(connection, query, name, name)


def _place(side: Mapping[str, Any]) -> str:
    return " at ".join(part for part in (side["host"], side["address"]) if part) or "a machine"


async def close_prompts(connection: Connection, machine_id: str, database: Database) -> None:
    query = "UPDATE prompts SET is_open = false, state = 'gone', ended_at = %s WHERE machine_id = %s AND is_open"
    await connection.execute(query, (database.now(), machine_id))


async def remove(database: Database, name_or_id: str, by: str, why: str) -> str | None:
    """Remove a machine: revoke its key and close its prompts and decisions. Returns its id, or None if the name is
    unknown.
    """
    now = database.now()
    async with database.transaction() as connection:
        query = """UPDATE machines SET gone_at = %s, gone_why = %s, connected_to = '', generation = generation + 1
            WHERE (name = %s OR id = %s) AND gone_at IS NULL RETURNING id, name"""
        found = await row(connection, query, now, why, name_or_id, name_or_id)
        if found is None:
            return None
        machine_id = str(found["id"])
        await close_prompts(connection, machine_id, database)
        query = """UPDATE decisions SET settled_at = %s, ok = false, stage = 'gone', sentence = %s
            WHERE machine_id = %s AND settled_at IS NULL"""
        await connection.execute(query, (now, f"Unknown: the machine {found['name']} is gone ({why}).", machine_id))
        event = "REVOKED" if why == "revoked" else "LEFT"
        await note(connection, now, event, machine=machine_id, name=found["name"], by=by, why=why)
    return machine_id


async def reap(database: Database) -> list[str]:
    """Remove ephemeral machines that were silent for too long, and delete expired logins and old invitations."""
    now = database.now()
    query = "SELECT id FROM machines WHERE ephemeral AND gone_at IS NULL AND coalesce(seen_at, joined_at) < %s"
    silent = await database.rows(query, now - timedelta(seconds=EPHEMERAL_S))
    gone = [machine_id for one in silent if (machine_id := await remove(database, one["id"], "timer", "silent"))]
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM logins WHERE expires_at < %s", (now,))
        await connection.execute("DELETE FROM invitations WHERE expires_at < %s", (now - timedelta(days=30),))
    return gone


async def set_limited(database: Database, entered: Entered, why: str) -> None:
    await database.rows("UPDATE machines SET limited = %s WHERE id = %s", why, entered.machine_id)


async def part_all(database: Database) -> None:
    """After a restore no machine is connected, whatever the backup says."""
    await database.rows("UPDATE machines SET connected_to = '' WHERE connected_to <> ''")


async def parted(database: Database, entered: Entered) -> None:
    query = "UPDATE machines SET connected_to = '' WHERE id = %s AND generation = %s"
    await database.rows(query, entered.machine_id, entered.generation)


async def listing(database: Database, include_gone: bool = False) -> list[dict[str, Any]]:
    query = """SELECT m.*, (SELECT count(*) FROM prompts p WHERE p.machine_id = m.id AND p.is_open) AS open_prompts,
        (SELECT count(*) FROM sessions s WHERE s.machine_id = m.id AND s.state = 'active') AS sessions
        FROM machines m WHERE %s OR gone_at IS NULL ORDER BY name, joined_at"""
    return await database.rows(query, include_gone)


async def allow_screens(database: Database, name: str, allowed: bool) -> bool:
    query = "UPDATE machines SET screens_here = %s WHERE (name = %s OR id = %s) AND gone_at IS NULL RETURNING id"
    found = await database.rows(query, allowed, name, name)
    return bool(found)


# Rules for all machines: each gets the newest rules, identified by their digest, and reports whether it accepted them.


async def set_rules(database: Database, body: str, by: str) -> str:
    """Store the rules and return their digest. The caller has validated them, and each machine validates them again."""
    digest, now = digest_text(body), database.now()
    async with database.transaction() as connection:
        query = """INSERT INTO rulebook (digest, body, by_whom, made_at) VALUES (%s, %s, %s, %s)
            ON CONFLICT (digest) DO UPDATE SET by_whom = excluded.by_whom, made_at = excluded.made_at"""
        await connection.execute(query, (digest, body, by, now))
        await note(connection, now, "RULES_SET", digest=digest, by=by)
    return digest


async def newest_rules(database: Database) -> TeamRules | None:
    found = await database.rows("SELECT digest, body, by_whom FROM rulebook ORDER BY made_at DESC LIMIT 1")
    return TeamRules(found[0]["digest"], found[0]["body"], found[0]["by_whom"]) if found else None


async def rules_taken(database: Database, entered: Entered, message: Mapping[str, Any]) -> None:
    digest, fault = str(message["digest"])[:100], str(message.get("fault", ""))[:400]
    query = "UPDATE machines SET policy = %s, policy_fault = %s WHERE id = %s"
    await database.rows(query, digest, fault, entered.machine_id)


# The key by which machines know the server.


@frozen
class Identity:
    private_key: str
    public_key: str
    chat_secret: str = ""  # for the nonces of buttons in chats
    keys: tuple[tuple[str, str, str], ...] = ()  # (old key, new key, signature by the old key) of each rotation

    def sign(self, text: bytes) -> str:
        return sign(self.private_key, text)


async def identity_of(connection: Connection) -> Identity:
    found = await row(connection, "SELECT private_key, public_key, chat_secret FROM desk_identity")
    assert found is not None  # created with the tables
    known = await rows(connection, "SELECT old_key, new_key, endorsed FROM server_keys ORDER BY made_at")
    keys = tuple((one["old_key"], one["new_key"], one["endorsed"]) for one in known)
    return Identity(found["private_key"], found["public_key"], found["chat_secret"], keys)


async def rotate_key(database: Database, by: str) -> str:
    """Replace the server's key and return the new public one. The old private key is deleted."""
    async with database.transaction() as connection:
        await connection.execute("SELECT 1 FROM desk_identity FOR UPDATE")
        old, now = await identity_of(connection), database.now()
        private = new_key()
        public = public_of(private)
        query = "INSERT INTO server_keys (old_key, new_key, endorsed, made_at) VALUES (%s, %s, %s, %s)"
        await connection.execute(query, (old.public_key, public, old.sign(rotation_text(old.public_key, public)), now))
        await connection.execute("UPDATE desk_identity SET private_key = %s, public_key = %s", (private, public))
        await note(connection, now, "KEY_ROTATED", old=old.public_key, new=public, by=by)
    return public
