"""People, teams, permissions for machines and folders, and logins to the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.escalation import parse_quiet
from atlasbridge.core.scheduler.times import find_zone
from atlasbridge.core.values import frozen
from atlasbridge.fleet.keys import hashed, new_token
from atlasbridge.fleet.server.audit import note, note_stranger
from atlasbridge.fleet.server.database import Connection, Database, row, rows

LINK_S = 900.0
BROWSER_S = 30 * 86_400.0
TOKEN_S = 365 * 86_400.0
SEEN_S = 60.0  # precision of the time of last use
KINDS = ("browser", "token")
PREFIX = "abf_"  # starts each token, so that people and secret scanners recognise it

# The only place that decides permissions. `m` is the machine, `p` has the folder. Permission to answer includes seeing.
_ALLOWED = """(
    EXISTS (SELECT 1 FROM people who WHERE who.name = %(person)s AND who.gone_at IS NULL AND who.role = 'admin')
    OR EXISTS (
        SELECT 1 FROM rights r JOIN people who ON who.name = %(person)s AND who.gone_at IS NULL
        WHERE (r.holder = who.name OR r.holder IN (SELECT '@' || t.team FROM team_members t WHERE t.person = who.name))
          AND (r.may = 'answer' OR %(may)s = 'see')
          AND (r.machine_id = m.id OR (r.machine_id IS NULL AND m.name LIKE r.machine_like)) FOLDER
    )
)"""
ALLOWED = _ALLOWED.replace("FOLDER", "AND (p.folder LIKE r.folder_like OR p.folder LIKE r.folder_like || '/%%')")
ALLOWED_SOMEWHERE = _ALLOWED.replace("FOLDER", "")  # allowed in at least one folder of the machine


SCOPES = ("read", "ask", "answer", "admin")  # each includes the ones before it


@frozen
class Caller:
    """A person who is logged in, or a program with a person's token."""

    name: str
    role: str
    login: str  # the hash of the browser's or the program's token
    login_id: str = ""
    is_program: bool = False
    scope: str = "admin"  # the limit of this login; see `may`
    device: str = ""  # the name of the browser or of the token

    def may(self, scope: str) -> bool:
        """Whether both the login's scope and the person's role allow this scope."""
        own = SCOPES.index("admin" if self.role == "admin" else "answer")
        return min(SCOPES.index(self.scope), own) >= SCOPES.index(scope)


def bad_name(name: str) -> bool:
    return not name or not name.isprintable() or len(name) > 60 or name.startswith("@") or "," in name


async def add(database: Database, name: str, role: str, by: str) -> None:
    if bad_name(name):
        raise ConfigError(f"{name!r} is not a valid name for a person", "up to 60 characters, no comma, no @ in front")
    async with database.transaction() as connection:
        query = """INSERT INTO people (name, role, added_at) VALUES (%s, %s, %s)
            ON CONFLICT (name) DO UPDATE SET role = excluded.role, gone_at = NULL"""
        await connection.execute(query, (name, role, database.now()))
        await note(connection, database.now(), "PERSON_ADDED", person=name, role=role, by=by)


async def remove(database: Database, name: str, by: str) -> bool:
    """Remove a person: delete their permissions and log them out everywhere at once."""
    now = database.now()
    async with database.transaction() as connection:
        query = "UPDATE people SET gone_at = %s WHERE name = %s AND gone_at IS NULL RETURNING name"
        gone = await row(connection, query, now, name)
        if gone is not None:
            await connection.execute("UPDATE people SET identities = '{}' WHERE name = %s", (name,))
            for table in ("logins", "passkeys"):
                await connection.execute(f"DELETE FROM {table} WHERE person = %s".encode(), (name,))
            await connection.execute("DELETE FROM rights WHERE holder = %s", (name,))
            await connection.execute("DELETE FROM team_members WHERE person = %s", (name,))
            await note(connection, now, "PERSON_REMOVED", person=name, by=by)
    return gone is not None


async def allow(database: Database, holder: str, machine: str, folder: str, may: str, by: str) -> None:
    """Give a permission. A pattern with `*` matches names. A plain name means the machine that has it now, not a later
    one.
    """
    async with database.transaction() as connection:
        await _known_holder(connection, holder)
        meant = None if "*" in machine else await _machine_called(connection, machine)
        query = """INSERT INTO rights (holder, machine, folder, may, machine_id) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (holder, machine, folder, may) DO UPDATE SET machine_id = excluded.machine_id"""
        await connection.execute(query, (holder, machine, folder.rstrip("/") or "*", may, meant))
        await note(
            connection, database.now(), "PERSON_ADDED", person=holder, machine=machine, folder=folder, may=may, by=by
        )


async def _known_holder(connection: Connection, holder: str) -> None:
    """Check that the holder is a person, or a team with at least one member."""
    if holder.startswith("@"):
        query = (
            "SELECT 1 FROM team_members t JOIN people p ON p.name = t.person AND p.gone_at IS NULL WHERE t.team = %s"
        )
        if not await row(connection, query, holder[1:]):
            raise ConfigError(
                f"the team {holder} has no members", f"add one: atlasbridge fleet people team {holder[1:]} NAME"
            )
    elif not await row(connection, "SELECT 1 FROM people WHERE name = %s AND gone_at IS NULL", holder):
        raise ConfigError(f"there is no person named {holder!r}", "add them: atlasbridge fleet people add NAME")


async def _machine_called(connection: Connection, name: str) -> str:
    found = await row(connection, "SELECT id FROM machines WHERE name = %s AND gone_at IS NULL", name)
    if found is None:
        raise ConfigError(
            f"there is no machine {name!r}", "list them: atlasbridge fleet machines; or give a pattern such as 'ci-*'"
        )
    return str(found["id"])


async def deny(database: Database, holder: str, machine: str, folder: str, by: str) -> int:
    async with database.transaction() as connection:
        query = "DELETE FROM rights WHERE holder = %s AND machine = %s AND folder = %s RETURNING id"
        gone = await rows(connection, query, holder, machine, folder.rstrip("/") or "*")
        await note(connection, database.now(), "PERSON_REMOVED", person=holder, machine=machine, folder=folder, by=by)
    return len(gone)


async def set_team(database: Database, team: str, person: str, member: bool, by: str) -> None:
    if not team or not team.isprintable() or len(team) > 60 or "," in team:
        raise ConfigError(f"{team!r} is not a valid name for a team", "up to 60 characters, no comma")
    async with database.transaction() as connection:
        if member:
            await _known_holder(connection, person)
            query = """INSERT INTO team_members (team, person) SELECT %s, name FROM people WHERE name = %s
                ON CONFLICT DO NOTHING"""
            await connection.execute(query, (team, person))
        elif not await rows(
            connection, "DELETE FROM team_members WHERE team = %s AND person = %s RETURNING team", team, person
        ):
            raise ConfigError(f"{person!r} is not in the team {team!r}", "list them: atlasbridge fleet people list")
        event = "PERSON_ADDED" if member else "PERSON_REMOVED"
        await note(connection, database.now(), event, person=person, team=team, by=by)


async def set_identity(database: Database, name: str, identity: str, has: bool, by: str) -> None:
    """Set the identity by which a chat knows a person. An identity belongs to one person."""
    channel, colon, who = identity.partition(":")
    if not (colon and channel and who) or not identity.isprintable() or len(identity) > 200 or " " in identity:
        raise ConfigError(
            f"{identity!r} is not an identity", "write it as telegram:1001, slack:T1/U2 or matrix:@ada:host"
        )
    if channel == "telegram" and not who.isdecimal():
        raise ConfigError(f"{identity!r}: Telegram knows people by numbers", "write it as telegram:1001")
    if channel == "server":
        raise ConfigError(f"{identity!r}: the server knows its people by name", "write it as telegram:1001 or the like")
    async with database.transaction() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('identities'))")
        query = "SELECT name FROM people WHERE %s = ANY(identities) AND gone_at IS NULL"
        other = await row(connection, query, identity)
        if has and other is not None and other["name"] != name:
            raise ConfigError(f"{identity} belongs to {other['name']!r}", "an identity belongs to one person")
        query = """UPDATE people SET identities = array_remove(identities, %s) || %s::text[]
            WHERE name = %s AND gone_at IS NULL RETURNING name"""
        changed = await row(connection, query, identity, [identity] if has else [], name)
        if changed is None:
            raise ConfigError(f"there is no person named {name!r}", "add them: atlasbridge fleet people add NAME")
        event = "PERSON_ADDED" if has else "PERSON_REMOVED"
        await note(connection, database.now(), event, person=name, identity=identity, by=by)


async def set_quiet(database: Database, name: str, spans: tuple[str, ...], zone: str, by: str) -> None:
    """Set the hours in which a person wants no sound, in their time zone."""
    try:
        for span in spans:
            parse_quiet(span)
        find_zone(zone)
    except ValueError as error:
        raise ConfigError(str(error), "write it as: fleet people quiet NAME 22:00-07:00 --zone Europe/Berlin") from None
    async with database.transaction() as connection:
        query = "UPDATE people SET quiet = %s, zone = %s WHERE name = %s AND gone_at IS NULL RETURNING name"
        changed = await row(connection, query, list(spans), zone, name)
        if changed is None:
            raise ConfigError(f"there is no person named {name!r}", "add them: atlasbridge fleet people add NAME")
        await note(connection, database.now(), "PERSON_ADDED", person=name, quiet=list(spans), zone=zone, by=by)


async def listing(database: Database) -> list[dict[str, Any]]:
    query = "SELECT name, role, identities, quiet, zone FROM people WHERE gone_at IS NULL ORDER BY name"
    people = await database.rows(query)
    rights = await database.rows("SELECT holder, machine, folder, may FROM rights ORDER BY id")
    teams = await database.rows("SELECT team, person FROM team_members ORDER BY team, person")
    return [
        {
            **person,
            "teams": [one["team"] for one in teams if one["person"] == person["name"]],
            "rights": [
                {name: one[name] for name in ("may", "machine", "folder", "holder")}
                for one in rights
                if one["holder"] == person["name"]
                or any(f"@{team['team']}" == one["holder"] for team in teams if team["person"] == person["name"])
            ],
        }
        for person in people
    ]


# Logins: a link is exchanged once for a browser login. A program has a token with a scope.


async def login_link(database: Database, person: str) -> str:
    """Create a login token that can be exchanged once, within 15 minutes."""
    token = new_token()
    async with database.transaction() as connection:
        await _insert_login(connection, database, token, person, "link", LINK_S)
    return token


async def _insert_login(
    connection: Connection,
    database: Database,
    token: str,
    person: str,
    kind: str,
    ttl_s: float,
    name: str = "",
    scope: str = "admin",
) -> str:
    now = database.now()
    query = """INSERT INTO logins (token_hash, person, kind, made_at, expires_at, name, scope)
        VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id"""
    found = await row(connection, query, hashed(token), person, kind, now, now + timedelta(seconds=ttl_s), name, scope)
    return str(found["id"]) if found else ""


async def trade_link(database: Database, token: str, place: str) -> str | None:
    """Exchange a login link for a browser token. The link cannot be used again."""
    async with database.transaction() as connection:
        query = "DELETE FROM logins WHERE token_hash = %s AND kind = 'link' AND expires_at > %s RETURNING person"
        found = await row(connection, query, hashed(token), database.now())
        if found is None:
            await note_stranger(database, "LOGIN_REFUSED", place=place)
            return None
        return await let_in(connection, database, str(found["person"]), place, BROWSER_S, "link")


async def let_in(connection: Connection, database: Database, person: str, place: str, ttl_s: float, proof: str) -> str:
    """Create a browser login. `proof` says how the person was identified."""
    browser = new_token()
    await _insert_login(connection, database, browser, person, "browser", ttl_s, place)
    await note(connection, database.now(), "LOGGED_IN", person=person, place=place, proof=proof)
    return browser


async def add_token(database: Database, person: str, name: str, scope: str, by: str) -> tuple[str, str]:
    """Create a token. Returns its secret, of which only the hash is stored, and its id."""
    if not name or not name.isprintable() or len(name) > 64:
        raise ConfigError(f"{name!r} is not a valid name for a token", "up to 64 characters")
    token = new_token()
    async with database.transaction() as connection:
        if person.startswith("@"):
            raise ConfigError(f"{person} is a team", "a token belongs to a person")
        await _known_holder(connection, person)
        known = "SELECT 1 FROM logins WHERE person = %s AND name = %s AND kind = 'token'"
        if await row(connection, known, person, name):
            raise ConfigError(f"{person} already has a token {name!r}", "revoke it first, or choose another name")
        token_id = await _insert_login(connection, database, token, person, "token", TOKEN_S, name, scope)
        now = database.now()
        await note(connection, now, "TOKEN_CREATED", person=person, name=name, scope=scope, token=token_id, by=by)
    return f"{PREFIX}{token}", token_id


async def logins(database: Database, person: str = "", kinds: tuple[str, ...] = KINDS) -> list[dict[str, Any]]:
    """Active browser logins and tokens, of one person or of everybody."""
    query = """SELECT l.id, l.person, l.kind, l.name, l.made_at, l.seen_at, l.expires_at, l.token_hash,
        CASE WHEN p.role = 'admin' OR l.scope <> 'admin' THEN l.scope ELSE 'answer' END AS scope
        FROM logins l JOIN people p ON p.name = l.person AND p.gone_at IS NULL
        WHERE (%s = '' OR l.person = %s) AND l.kind = ANY(%s) AND l.expires_at > %s ORDER BY l.made_at, l.id"""
    return await database.rows(query, person, person, list(kinds), database.now())


async def end_login(
    database: Database, login_id: str, by: str, person: str = "", kinds: tuple[str, ...] = KINDS
) -> bool:
    """End a login everywhere at once. With `person`, only if it belongs to that person."""
    async with database.transaction() as connection:
        query = """DELETE FROM logins WHERE id = %s AND kind = ANY(%s) AND (%s = '' OR person = %s)
            RETURNING person, name, kind"""
        gone = await row(connection, query, login_id, list(kinds), person, person)
        if gone is not None:
            event = "TOKEN_REVOKED" if gone["kind"] == "token" else "LOGGED_OUT"
            given = {"person": gone["person"], "name": gone["name"], "login": login_id}
            await note(connection, database.now(), event, **given, by=by)
    return gone is not None


async def who(database: Database, token: str) -> Caller | None:
    return await database.together(_who, hashed(token.removeprefix(PREFIX)))


async def _who(database: Database, tokens: list[str]) -> list[Caller | None]:
    now = database.now()
    query = """SELECT p.name, p.role, l.token_hash, l.id, l.kind, l.scope, l.name AS device,
        l.seen_at IS NULL OR l.seen_at < %s AS stale
        FROM logins l JOIN people p ON p.name = l.person AND p.gone_at IS NULL
        WHERE l.token_hash = ANY(%s) AND l.kind <> 'link' AND l.expires_at > %s"""
    found = await database.rows(query, now - timedelta(seconds=SEEN_S), tokens, now)
    if stale := [one["token_hash"] for one in found if one["stale"]]:
        await database.rows("UPDATE logins SET seen_at = %s WHERE token_hash = ANY(%s)", now, stale)
    known = {
        one["token_hash"]: Caller(
            one["name"], one["role"], one["token_hash"], one["id"], one["kind"] == "token", one["scope"], one["device"]
        )
        for one in found
    }
    return [known.get(one) for one in tokens]


async def is_logged_in(database: Database, caller: Caller) -> bool:
    """Whether the login is still valid. An open stream has to check this itself."""
    query = """SELECT 1 AS there FROM logins l JOIN people p ON p.name = l.person AND p.gone_at IS NULL
        WHERE l.token_hash = %s AND l.expires_at > %s"""
    found = await database.rows(query, caller.login, database.now())
    return bool(found)
