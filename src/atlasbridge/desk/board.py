"""Prompts and sessions of all machines, as their hubs tell them.  Keyed by the machine that proved who it is: whatever
a hub says, it can only write rows of its own.  What is told again, or late, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from atlasbridge.core.fleet_wire import OPEN_STATES
from atlasbridge.desk.anchors import take_head
from atlasbridge.desk.database import Connection, Database, row
from atlasbridge.desk.machines import Entered

LONGEST_ID = 64
_PROMPT = """
INSERT INTO prompts (machine_id, prompt_id, session_id, seq, state, is_open, body, folder, label, tool, raised_at,
                     expires_at, ended_at, last_key_at)
VALUES (%(machine)s, %(id)s, %(session)s, %(seq)s, %(state)s, %(is_open)s, %(body)s, %(folder)s, %(label)s, %(tool)s,
        %(now)s, %(expires)s, %(ended)s, %(last_key)s)
ON CONFLICT (machine_id, prompt_id) DO UPDATE
SET seq = excluded.seq, state = excluded.state, is_open = excluded.is_open, body = excluded.body,
    folder = excluded.folder, label = excluded.label, tool = excluded.tool, expires_at = excluded.expires_at,
    ended_at = coalesce(prompts.ended_at, excluded.ended_at), last_key_at = excluded.last_key_at
WHERE prompts.seq < excluded.seq
"""
_HIDDEN = """
UPDATE prompts SET is_open = false, state = 'withdrawn', seq = %(seq)s, ended_at = coalesce(ended_at, %(now)s)
WHERE machine_id = %(machine)s AND prompt_id = %(id)s AND seq < %(seq)s
"""
_SESSION = """
INSERT INTO sessions (machine_id, session_id, seq, body, state)
VALUES (%(machine)s, %(id)s, %(seq)s, %(body)s, %(state)s)
ON CONFLICT (machine_id, session_id) DO UPDATE SET seq = excluded.seq, body = excluded.body, state = excluded.state
WHERE sessions.seq < excluded.seq
"""


class Fenced(Exception):
    """Another link of the same machine has taken over, or the machine was sent away: this one may not write."""


async def take(database: Database, entered: Entered, message: Mapping[str, Any]) -> int:
    """All of a batch in one transaction, with the number it reaches.  ValueError: it makes no sense."""
    seq, now = int(message["seq"]), database.now()
    prompts: list[dict[str, Any]] = []
    hidden: list[dict[str, Any]] = []
    sessions: list[dict[str, Any]] = []
    for item in message["items"]:
        values = {"machine": entered.machine_id, "id": _text(item["id"]), "seq": int(item["seq"]), "now": now}
        body = item.get("body")
        if item["kind"] == "session":
            sessions += [{**values, **_session(body)}] if body else []
        elif body:
            told = _prompt(body, float(item.get("ttl_s", 0.0)), values)
            prompts.append({**values, **told, "last_key": _last_key(item.get("key_age_s"), now)})
        else:
            hidden.append(values)
    async with database.transaction() as connection:
        known = await _advance(connection, entered, seq, database)
        async with connection.cursor() as cursor:
            for query, given in ((_SESSION, sessions), (_PROMPT, prompts), (_HIDDEN, hidden)):
                if given:
                    await cursor.executemany(query, given)
        await take_head(connection, entered, message.get("head"), now, known)
    return seq


async def _advance(connection: Connection, entered: Entered, seq: int, database: Database) -> dict[str, Any]:
    moved = await row(
        connection,
        "UPDATE machines SET seen_at = %s, acked = greatest(acked, %s)"
        " WHERE id = %s AND generation = %s AND gone_at IS NULL"
        " RETURNING head_count, head_hash, proved_count, proved_hash, log_fault",
        database.now(),
        seq,
        entered.machine_id,
        entered.generation,
    )
    if moved is None:
        raise Fenced
    return moved


def _session(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"body": Jsonb(_clean(dict(body))), "state": str(body.get("state", ""))[:20]}


def _prompt(body: Mapping[str, Any], ttl_s: float, values: Mapping[str, Any]) -> dict[str, Any]:
    state = str(body["state"])[:20]
    is_open = state in OPEN_STATES
    now = values["now"]
    return {
        "session": _text(body["session_id"]),
        "state": state,
        "is_open": is_open,
        "body": Jsonb(_clean(dict(body))),
        "folder": _clean(str(body.get("cwd", "")))[:1000],
        "label": _clean(str(body.get("label", "")))[:200],
        "tool": _clean(str(body.get("tool", "")))[:100],
        "expires": now + timedelta(seconds=min(max(ttl_s, 0.0), 30 * 86_400.0)),
        "ended": None if is_open else now,
    }


def _last_key(age_s: Any, now: datetime) -> datetime | None:
    """By our clock: when somebody typed at that terminal."""
    return None if age_s is None else now - timedelta(seconds=min(max(float(age_s), 0.0), 86_400.0))


def _text(given: object) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_ID or not given.isprintable():
        raise ValueError("an id is a short text")
    return given


def _clean(value: Any) -> Any:
    """PostgreSQL keeps no NUL, and no half of a pair, in a text."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(str(name)): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


async def chats_ask(database: Database, machine_id: str) -> set[str]:
    """The open prompts of a machine for which somebody is asked in a chat of the desk."""
    found = await database.rows(
        "SELECT prompt_id FROM prompts WHERE machine_id = %s AND is_open AND chats_ask", machine_id
    )
    return {str(one["prompt_id"]) for one in found}
