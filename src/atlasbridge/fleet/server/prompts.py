"""Prompts and sessions of all machines, as their hubs report them.

Rows are keyed by the authenticated machine, so a hub can only write its own rows. Repeated and late messages change
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Json

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.fleet_wire import OPEN_STATES
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.anchors import SPARSE, look_at_head, read_head
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import Entered

LONGEST_ID = 64
MOST_OPEN = 2000  # limit of open prompts for each machine
LONGEST_BODY = 400_000  # characters of one prompt
FULL = f"This machine has {MOST_OPEN:,} open prompts here; further ones are not shown until some of them end."
_ROWS = ("sessions", "prompts", "hidden")

# Only the newest link of a machine can update it, and only the data of an updated machine is stored. `look_at_head`
# handles a head that has to be anchored or that went back (`plain` is false).
_TAKE = f"""
WITH said AS (
    SELECT * FROM json_to_recordset(%(said)s) AS s (machine_id text, generation bigint, seq bigint, entries bigint,
                                                    hash text)
), known AS (
    SELECT m.id, m.epochs, said.seq, said.entries, said.hash,
           CASE WHEN said.entries > greatest(m.head_count, m.proved_count)
                THEN said.entries / {SPARSE} = greatest(m.head_count, m.proved_count) / {SPARSE}
                ELSE (said.entries, said.hash) = (m.head_count, m.head_hash) AND m.head_count >= m.proved_count
           END AS plain,
           (SELECT count(*) FROM prompts o WHERE o.machine_id = m.id AND o.is_open) AS opened
    FROM machines m JOIN said ON (m.id, m.generation) = (said.machine_id, said.generation) WHERE m.gone_at IS NULL
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
    """Another link of this machine has replaced this one or the machine was removed, so this link must not write."""


Row = dict[str, Any]


@frozen
class Told:
    """One message of a machine, as rows."""

    entered: Entered
    seq: int
    head: Head | None
    sessions: list[Row]
    prompts: list[Row]
    hidden: list[Row]


async def take(database: Database, entered: Entered, message: Mapping[str, Any]) -> int:
    """Store a whole message. Returns how many prompts of the machine were open before. Raises ValueError for an invalid
    message.
    """
    opened = await database.together(_take, _read(entered, message, database.now()))
    if opened is None:
        raise Fenced
    return opened


async def _take(database: Database, messages: list[Told]) -> list[int | None]:
    now, newest = database.now(), _newest(messages)
    said = [
        {"machine_id": one.entered.machine_id, "generation": one.entered.generation, "seq": one.seq}
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
                await look_at_head(connection, one.entered, one.head, now)
    return [opened.get(one.entered.machine_id) if one in newest else None for one in messages]


def _newest(messages: list[Told]) -> list[Told]:
    """The messages of each machine's newest link. An older link is not allowed to write."""
    last: dict[str, int] = {}
    for one in messages:
        last[one.entered.machine_id] = max(last.get(one.entered.machine_id, 0), one.entered.generation)
    return [one for one in messages if one.entered.generation == last[one.entered.machine_id]]


def _read(entered: Entered, message: Mapping[str, Any], now: datetime) -> Told:
    newest: dict[tuple[bool, str], Mapping[str, Any]] = {}
    for item in message["items"]:
        key = (item["kind"] == "session", _text(item["id"]))
        if key not in newest or int(newest[key]["seq"]) < int(item["seq"]):
            newest[key] = item
    told = Told(entered, int(message["seq"]), read_head(message.get("head")), [], [], [])
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
    lesser: tuple[dict[str, Any], ...] = ({"screen": "", "evidence": []}, {"subject": None, "choices": []})
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
