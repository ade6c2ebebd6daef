"""What machines report: prompts and sessions, live screens, and notices.

Rows are keyed by the authenticated machine, so a hub can only write its own rows. Repeated and late messages change
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Json, Jsonb

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.fleet_wire import OPEN_STATES
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.audit import SPARSE, look_at_head, note, read_head
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import Entered
from atlasbridge.fleet.server.people import ALLOWED, ALLOWED_SOMEWHERE

LONGEST_ID = 64
MOST_OPEN = 2000  # limit of open prompts for each machine
LONGEST_BODY = 400_000  # characters of one prompt
FULL = f"This machine has {MOST_OPEN:,} open prompts here; others are shown once some of these end."
_ROWS = ("sessions", "prompts", "hidden")

# Only the newest link of a machine can update it, and only while this database still has what the link acknowledged:
# after a failover to an older copy it has not. Only the data of an updated machine is stored. `look_at_head` handles a
# head that has to be anchored or that went back (`plain` is false).
_TAKE = f"""
WITH said AS (
    SELECT * FROM json_to_recordset(%(said)s) AS s (machine_id text, generation bigint, acked bigint, seq bigint,
                                                    entries bigint, hash text)
), known AS (
    SELECT m.id, m.epochs, said.seq, said.entries, said.hash,
           CASE WHEN said.entries > greatest(m.head_count, m.proved_count)
                THEN said.entries / {SPARSE} = greatest(m.head_count, m.proved_count) / {SPARSE}
                ELSE (said.entries, said.hash) = (m.head_count, m.head_hash) AND m.head_count >= m.proved_count
           END AS plain,
           (SELECT count(*) FROM prompts o WHERE o.machine_id = m.id AND o.is_open) AS opened
    FROM machines m JOIN said ON (m.id, m.generation) = (said.machine_id, said.generation)
    WHERE m.gone_at IS NULL AND m.acked >= said.acked
    ORDER BY m.id FOR NO KEY UPDATE OF m
), moved AS (
    UPDATE machines m SET seen_at = %(now)s, acked = greatest(m.acked, known.seq),
        head_count = CASE WHEN known.plain THEN known.entries ELSE m.head_count END,
        head_hash = CASE WHEN known.plain THEN known.hash ELSE m.head_hash END
    FROM known WHERE m.id = known.id
), told_sessions AS (
    INSERT INTO sessions (machine_id, session_id, seq, body, state, epochs, told_at)
    SELECT t.*, known.epochs, %(now)s
    FROM json_to_recordset(%(sessions)s) AS t (machine_id text, id text, seq bigint, body jsonb, state text)
    JOIN known ON known.id = t.machine_id ORDER BY t.machine_id, t.id
    ON CONFLICT (machine_id, session_id) DO UPDATE
    SET seq = excluded.seq, body = excluded.body, state = excluded.state, epochs = excluded.epochs,
        told_at = excluded.told_at
    WHERE (sessions.epochs, sessions.seq) < (excluded.epochs, excluded.seq)
), told_prompts AS (
    INSERT INTO prompts (machine_id, prompt_id, seq, raised_at, session_id, state, is_open, body, folder, label, tool,
                         expires_at, ended_at, last_key_at, epochs)
    SELECT t.*, known.epochs
    FROM json_to_recordset(%(prompts)s) AS t (machine_id text, id text, seq bigint, now timestamptz, session text,
        state text, is_open boolean, body jsonb, folder text, label text, tool text, expires timestamptz,
        ended timestamptz, last_key timestamptz)
    JOIN known ON known.id = t.machine_id
    WHERE NOT t.is_open OR known.opened < %(most)s
       OR EXISTS (SELECT 1 FROM prompts o WHERE (o.machine_id, o.prompt_id) = (t.machine_id, t.id))
    ORDER BY t.machine_id, t.id
    ON CONFLICT (machine_id, prompt_id) DO UPDATE
    SET seq = excluded.seq, state = excluded.state, is_open = excluded.is_open, body = excluded.body,
        folder = excluded.folder, label = excluded.label, tool = excluded.tool, expires_at = excluded.expires_at,
        ended_at = CASE WHEN excluded.is_open THEN NULL ELSE coalesce(prompts.ended_at, excluded.ended_at) END,
        last_key_at = excluded.last_key_at, epochs = excluded.epochs
    WHERE (prompts.epochs, prompts.seq) < (excluded.epochs, excluded.seq)
), hidden AS (
    UPDATE prompts p SET is_open = false, state = 'withdrawn', seq = t.seq, epochs = known.epochs,
        ended_at = coalesce(p.ended_at, %(now)s)
    FROM json_to_recordset(%(hidden)s) AS t (machine_id text, id text, seq bigint)
    JOIN known ON known.id = t.machine_id
    WHERE (p.machine_id, p.prompt_id) = (t.machine_id, t.id) AND (p.epochs, p.seq) < (known.epochs, t.seq)
)
SELECT id, plain, opened FROM known
"""


class Fenced(Exception):
    """Another link of this machine has replaced this one, the machine was removed, or the database went back to an
    earlier state, so this link must not write.
    """


Row = dict[str, Any]


@frozen
class Told:
    """One message of a machine, as rows."""

    entered: Entered
    acked: int
    seq: int
    head: Head | None
    sessions: list[Row]
    prompts: list[Row]
    hidden: list[Row]


async def take(database: Database, entered: Entered, message: Mapping[str, Any], acked: int = 0) -> int:
    """Store a whole message, if the database still has everything up to `acked`. Returns how many prompts of the
    machine were open before. Raises ValueError for an invalid message.
    """
    opened = await database.together(_take, _read(entered, acked, message, database.now()))
    if opened is None:
        raise Fenced
    return opened


async def _take(database: Database, messages: list[Told]) -> list[int | None]:
    now, newest = database.now(), _newest(messages)
    said = [
        {"machine_id": one.entered.machine_id, "generation": one.entered.generation, "acked": one.acked, "seq": one.seq}
        | (one.head._asdict() if one.head else {})
        for one in newest
    ]
    rows = {name: Json([row for one in newest for row in getattr(one, name)]) for name in _ROWS}
    found = await database.rows(_TAKE, {"said": Json(said), "now": now, "most": MOST_OPEN, **rows})
    plain = {one["id"]: one["plain"] for one in found}
    opened = {one["id"]: int(one["opened"]) for one in found}
    for one in newest:
        if plain.get(one.entered.machine_id) is False:
            async with database.transaction() as connection:
                await look_at_head(connection, one.entered.machine_id, one.head, now)
    return [opened.get(one.entered.machine_id) if one in newest else None for one in messages]


def _newest(messages: list[Told]) -> list[Told]:
    """The messages of each machine's newest link. An older link is not allowed to write."""
    last: dict[str, int] = {}
    for one in messages:
        last[one.entered.machine_id] = max(last.get(one.entered.machine_id, 0), one.entered.generation)
    return [one for one in messages if one.entered.generation == last[one.entered.machine_id]]


def _read(entered: Entered, acked: int, message: Mapping[str, Any], now: datetime) -> Told:
    newest: dict[tuple[bool, str], Mapping[str, Any]] = {}
    for item in message["items"]:
        key = (item["kind"] == "session", _text(item["id"]))
        if key not in newest or int(newest[key]["seq"]) < int(item["seq"]):
            newest[key] = item
    told = Told(entered, acked, int(message["seq"]), read_head(message.get("head")), [], [], [])
    for (is_session, name), item in newest.items():
        values = {"machine_id": entered.machine_id, "id": name, "seq": int(item["seq"])}
        body = item.get("body")
        if is_session:
            told.sessions.extend([{**values, **_session(body)}] if body else [])
        elif body:
            prompt = _prompt(bounded(body), float(item.get("ttl_s", 0.0)), now)
            told.prompts.append({**values, **prompt, "last_key": _last_key(item.get("key_age_s"), now)})
        else:
            told.hidden.append(values)
    return told


def bounded(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Shorten a body that is too long: drop the least important fields first and mark the rest as incomplete."""
    lesser: tuple[dict[str, Any], ...] = (
        {"screen": "", "evidence": []},
        {"subject": None, "choices": [], "keys": None},
    )
    for left_out in lesser:
        if len(json.dumps(body)) <= LONGEST_BODY:
            return body
        body = {**body, **left_out, "whole": False}
    kept = ("state", "session_id", "cwd", "label", "tool", "type", "constraints", "excerpt")
    short = {name: body[name] for name in kept if name in body and len(json.dumps(body[name])) < LONGEST_BODY // 20}
    return {**short, "whole": False}


def _session(body: Mapping[str, Any]) -> Row:
    return {"body": _kept(body), "state": str(body.get("state", ""))[:20]}


def _prompt(body: Mapping[str, Any], ttl_s: float, now: datetime) -> Row:
    state = str(body["state"])[:20]
    is_open = state in OPEN_STATES
    return {
        "now": now.isoformat(),
        "session": _text(body["session_id"]),
        "state": state,
        "is_open": is_open,
        "body": _kept(body),
        "folder": _clean(str(body.get("cwd", "")))[:1000],
        "label": _clean(str(body.get("label", "")))[:200],
        "tool": _clean(str(body.get("tool", "")))[:100],
        "expires": (now + timedelta(seconds=min(max(ttl_s, 0.0), 30 * 86_400.0))).isoformat(),
        "ended": None if is_open else now.isoformat(),
    }


def _last_key(age_s: Any, now: datetime) -> str | None:
    """When a person last typed at that terminal, by the server's clock."""
    return None if age_s is None else (now - timedelta(seconds=min(max(float(age_s), 0.0), 86_400.0))).isoformat()


def _text(given: object) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_ID or not given.isprintable():
        raise ValueError("an id is a short text")
    return given


def _kept(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body in a form that a table can store. A search for escapes is cheaper than cleaning every text."""
    text = json.dumps(body)  # ASCII, so odd characters are escapes
    return _clean(dict(body)) if "\\u0000" in text or "\\ud" in text else dict(body)


def _clean(value: Any) -> Any:
    """Replace NULs and lone surrogates, which PostgreSQL does not store in a text."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(str(name)): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


# Live screens: which person watches which session, and the last screen of that session.
#
# The tables are unlogged and not backed up. A screen is deleted when nobody watches it any more.

LOOK_S = 20.0


async def look(database: Database, machine_id: str, session_id: str, person: str, first: bool) -> bool:
    """Record for a short time that a person watches a session. False: the session is unknown, or this person is not
    allowed to see it.
    """
    now = database.now()
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT 1 FROM machines m JOIN sessions s ON s.machine_id = m.id AND s.session_id = %(session)s,"
            " LATERAL (SELECT coalesce(s.body ->> 'cwd', '') AS folder) p"
            f" WHERE m.id = %(machine)s AND m.gone_at IS NULL AND m.screens AND m.screens_here AND {ALLOWED}",
            {"machine": machine_id, "session": session_id, "person": person, "may": "see"},
        )
        if await cursor.fetchone() is None:
            return False
        query = """INSERT INTO looks (machine_id, session_id, person, until) VALUES (%s, %s, %s, %s)
            ON CONFLICT (machine_id, session_id, person) DO UPDATE SET until = excluded.until"""
        await connection.execute(query, (machine_id, session_id, person, now + timedelta(seconds=LOOK_S)))
        if first:
            await note(connection, now, "SCREEN_WATCHED", machine=machine_id, session_id=session_id, person=person)
    return True


async def look_away(database: Database, machine_id: str, session_id: str, person: str) -> None:
    query = "DELETE FROM looks WHERE machine_id = %s AND session_id = %s AND person = %s"
    await database.rows(query, machine_id, session_id, person)


async def watched(database: Database, machine_id: str) -> set[str]:
    """The sessions of this machine that are being watched now. Deletes the screens of all others."""
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM looks WHERE machine_id = %s AND until < %s", (machine_id, database.now()))
        cursor = await connection.execute("SELECT DISTINCT session_id FROM looks WHERE machine_id = %s", (machine_id,))
        found = {str(one[0]) for one in await cursor.fetchall()}
        query = "DELETE FROM screens WHERE machine_id = %s AND NOT session_id = ANY(%s)"
        await connection.execute(query, (machine_id, list(found)))
    return found


async def take_screen(database: Database, entered: Entered, message: Mapping[str, Any]) -> None:
    """Store a screen, but only while somebody watches the session."""
    mine = (entered.machine_id, str(message["session_id"]))
    query = """INSERT INTO screens (machine_id, session_id, body) SELECT %s, %s, %s
        WHERE EXISTS (SELECT 1 FROM looks WHERE machine_id = %s AND session_id = %s AND until > %s)
        ON CONFLICT (machine_id, session_id) DO UPDATE SET body = excluded.body"""
    await database.rows(query, *mine, Jsonb(message.get("screen")), *mine, database.now())


async def shown_screen(database: Database, machine_id: str, session_id: str) -> Any:
    query = "SELECT body FROM screens WHERE machine_id = %s AND session_id = %s"
    found = await database.rows(query, machine_id, session_id)
    return found[0]["body"] if found else None


# Notices that machines send to people (`atlasbridge notify`), and the deletion of old rows.

LONGEST_NOTICE = 2000
SHOWN_NOTICES = 20
MOST_IN_A_MINUTE = 30  # for each machine, because any program there can send them
BATCH = 1000

# Each statement deletes one batch, oldest first. The order makes sure that no row refers to a deleted one.
_OLD = """DELETE FROM {table} c USING (
        SELECT machine_id, prompt_id FROM prompts WHERE NOT is_open AND ended_at < %(before)s
        ORDER BY ended_at LIMIT %(batch)s
    ) p WHERE (c.machine_id, c.prompt_id) = (p.machine_id, p.prompt_id) {and_more}"""
_DECIDED = "AND c.settled_at IS NOT NULL"
_PROMPTS = """
DELETE FROM prompts p USING (
    SELECT machine_id, prompt_id FROM prompts WHERE NOT is_open AND ended_at < %(before)s
        ORDER BY ended_at LIMIT %(batch)s
) o WHERE (p.machine_id, p.prompt_id) = (o.machine_id, o.prompt_id)
  AND NOT EXISTS (SELECT 1 FROM decisions d WHERE (d.machine_id, d.prompt_id) = (p.machine_id, p.prompt_id))
RETURNING 1 AS gone
"""
_SESSIONS = """
DELETE FROM sessions s USING (
    SELECT machine_id, session_id FROM sessions WHERE state <> 'active' AND told_at < %(before)s
        ORDER BY told_at LIMIT %(batch)s
) o WHERE (s.machine_id, s.session_id) = (o.machine_id, o.session_id)
  AND NOT EXISTS (SELECT 1 FROM prompts p WHERE (p.machine_id, p.session_id) = (s.machine_id, s.session_id))
RETURNING 1 AS gone
"""
_PLACES = """
DELETE FROM places l WHERE decided_at < %(before)s
  AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.place_id = l.id)
"""
_NOTICES = "DELETE FROM notices WHERE at < %(before)s"
_PROOFS = "DELETE FROM proofs WHERE done_at < %(before)s"


async def take_notice(database: Database, entered: Entered, message: str) -> None:
    """Store a notice for the page and the chats. The number per minute is limited."""
    now = database.now()
    since = now - timedelta(minutes=1)
    text = escape_controls(message[:LONGEST_NOTICE]).strip()
    query = """INSERT INTO notices (machine_id, at, message) SELECT %s, %s, %s WHERE %s <> ''
        AND (SELECT count(*) FROM notices WHERE machine_id = %s AND at > %s) < %s"""
    await database.rows(query, entered.machine_id, now, text, text, entered.machine_id, since, MOST_IN_A_MINUTE)


async def newest_notices(database: Database, person: str) -> list[dict[str, Any]]:
    query = f"""SELECT n.id AS notice_id, m.name AS machine, n.at, n.message
        FROM notices n JOIN machines m ON m.id = n.machine_id
        WHERE {ALLOWED_SOMEWHERE} ORDER BY n.id DESC LIMIT {SHOWN_NOTICES}"""
    return await database.rows(query, {"person": person, "may": "see"})


async def uncarried_notices(database: Database) -> list[dict[str, Any]]:
    """The notices that the chats have not sent yet, each with the people in chats who can see something of its machine.
    They are marked as sent.
    """
    allowed = ALLOWED_SOMEWHERE.replace("%(person)s", "x.name").replace("%(may)s", "'see'")
    query = f"""UPDATE notices n SET carried = true FROM machines m
        WHERE m.id = n.machine_id AND n.id IN (SELECT id FROM notices WHERE NOT carried ORDER BY id LIMIT 100)
        RETURNING n.id, n.machine_id, m.name AS machine, n.message, ARRAY(
        SELECT x.name FROM people x WHERE x.gone_at IS NULL AND cardinality(x.identities) > 0 AND {allowed}
        ) AS readers"""
    return await database.rows(query)


async def clean(database: Database, keep_s: float) -> int:
    """Delete one batch of old rows and return how many prompts and sessions it removed. Audit entries are never
    deleted.
    """
    given = {"before": database.now() - timedelta(seconds=keep_s), "batch": BATCH}
    gone = 0
    async with database.transaction() as connection:
        for table, more in (
            ("chat_deliveries", ""),
            ("chat_steps", ""),
            ("chat_wakes", ""),
            ("decisions", _DECIDED),
        ):
            await connection.execute(_OLD.format(table=table, and_more=more), given)
        for query in (_PROMPTS, _SESSIONS):
            cursor = await connection.execute(query, given)
            gone += cursor.rowcount
        for query in (_PLACES, _NOTICES, _PROOFS):
            await connection.execute(query, given)
    return gone
