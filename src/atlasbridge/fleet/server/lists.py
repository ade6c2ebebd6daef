"""The lists on the page: open prompts, sessions, machines and past decisions, each limited to what the person is
allowed to see.

PostgreSQL filters and pages, so that a response stays small with thousands of open prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.people import ALLOWED, ALLOWED_SOMEWHERE

PAGE, MOST, MOST_SESSIONS = 50, 200, 500
SILENT_S = 60.0  # a machine is shown as silent after this time without a message

_FILTERS = {
    "machine": "m.name = %(machine)s",
    "folder": "starts_with(p.folder, %(folder)s)",
    "label": "p.label = %(label)s",
    "tool": "p.tool = %(tool)s",
    "q": "strpos(lower(concat_ws(' ', p.body ->> 'question', p.body ->> 'excerpt', m.name, p.folder, p.label)),"
    " lower(%(q)s)) > 0",
}


_SHOWN = f"""p.machine_id, m.name AS machine, m.seen_at, m.connected_to <> '' AS connected, p.prompt_id,
    p.session_id, p.body, p.folder, p.label, p.tool, p.raised_at, p.expires_at, d.person AS deciding,
    {ALLOWED.replace("%(may)s", "'answer'")} AS may_answer, m.screens AND m.screens_here AS screens,
    p.seq, p.state, p.last_key_at, s.body AS session, s.state AS session_state"""
JOINED = "FROM prompts p JOIN machines m ON m.id = p.machine_id LEFT JOIN decisions d ON d.id = p.decision_id"
SESSION = "LEFT JOIN sessions s ON (s.machine_id, s.session_id) = (p.machine_id, p.session_id)"


async def find_prompts(database: Database, person: str, query: Mapping[str, str]) -> dict[str, Any]:
    """One page of the open prompts, each with its session."""
    given = {name: query[name] for name in _FILTERS if query.get(name)}
    where = " AND ".join(["p.is_open", ALLOWED, *(_FILTERS[name] for name in given)])
    values = {**given, "person": person, "may": "see", "limit": _limit(query), "offset": _number(query, "offset")}
    async with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"SELECT count(*) AS total {JOINED} WHERE {where}", values)
        counted = await cursor.fetchone()
        await cursor.execute(
            f"SELECT {_SHOWN} {JOINED} {SESSION} WHERE {where}"
            " ORDER BY p.raised_at, p.prompt_id LIMIT %(limit)s OFFSET %(offset)s",
            values,
        )
        found = await cursor.fetchall()
    return {"total": counted["total"] if counted else 0, "prompts": found}


async def find_prompt(database: Database, person: str, machine_id: str, prompt_id: str) -> dict[str, Any] | None:
    """One prompt, open or not, if the person is allowed to see it."""
    found = await database.rows(
        f"SELECT {_SHOWN} {JOINED} {SESSION}"
        f" WHERE p.machine_id = %(machine)s AND p.prompt_id = %(prompt)s AND {ALLOWED}",
        {"machine": machine_id, "prompt": prompt_id, "person": person, "may": "see"},
    )
    return found[0] if found else None


async def list_sessions(
    database: Database, person: str, include_ended: bool, machine_id: str = "", session_id: str = ""
) -> list[dict[str, Any]]:
    """Active sessions, or all with `include_ended`. `machine_id` and `session_id` select one of them."""
    return await database.rows(
        f"""SELECT s.machine_id, s.session_id, s.body, s.state, m.name AS machine
        FROM sessions s JOIN machines m ON m.id = s.machine_id,
        LATERAL (SELECT coalesce(s.body ->> 'cwd', '') AS folder) p
        WHERE (%(all)s OR (s.state = 'active' AND m.gone_at IS NULL)) AND {ALLOWED}
          AND (%(machine)s = '' OR (s.machine_id, s.session_id) = (%(machine)s, %(session)s))
        ORDER BY s.told_at DESC, s.session_id LIMIT {MOST_SESSIONS}""",
        {
            "all": include_ended,
            "machine": machine_id,
            "session": session_id,
            "person": person,
            "may": "see",
        },
    )


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


async def list_machines(database: Database, person: str) -> list[dict[str, Any]]:
    """The machines of which the person is allowed to see at least one folder."""
    now = database.now()
    async with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            f"""SELECT m.id, m.name, m.seen_at, m.connected_to <> '' AS connected, m.version, m.ephemeral, m.log_fault,
            m.policy, m.policy_fault, m.held, m.went_back, m.went_back_at, m.limited,
            (SELECT count(*) FROM prompts o WHERE o.machine_id = m.id AND o.is_open) AS open_prompts
            FROM machines m WHERE m.gone_at IS NULL AND {ALLOWED_SOMEWHERE} ORDER BY m.name""",
            {"person": person, "may": "see"},
        )
        found = await cursor.fetchall()
    silent = [one["seen_at"] is None or (now - one["seen_at"]).total_seconds() > SILENT_S for one in found]
    return [{**_told(one), "silent": quiet} for one, quiet in zip(found, silent, strict=True)]


# Permissions are checked once for each folder of a machine, and each folder has an index of its newest decisions. A
# page of history costs the same after a million decisions, even for a person who can see none of them.
_HISTORY = f"""
WITH allowed AS MATERIALIZED (
    SELECT p.id, p.folder, m.name AS machine FROM places p JOIN machines m ON m.id = p.machine_id
    WHERE {ALLOWED} ORDER BY p.decided_at DESC LIMIT %(places)s
), page AS (
    SELECT d.*, allowed.folder, allowed.machine FROM allowed CROSS JOIN LATERAL (
        SELECT * FROM decisions d WHERE d.place_id = allowed.id
          AND (%(by)s = '' OR d.person = %(by)s) AND d.made_at < %(before)s
        ORDER BY d.made_at DESC LIMIT %(limit)s
    ) d ORDER BY d.made_at DESC LIMIT %(limit)s
)
SELECT page.id, page.machine, page.machine_id, page.prompt_id, page.folder, p.body ->> 'excerpt' AS excerpt,
       page.person, page.value, page.made_at, page.settled_at, page.ok, page.stage, page.sentence
FROM page JOIN prompts p USING (machine_id, prompt_id) ORDER BY page.made_at DESC
"""


async def list_history(database: Database, person: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Decisions of the fleet, newest first. `before` is the time of the last decision of the previous page."""
    limit, by, before = _limit(query), query.get("person", ""), _moment(query.get("before", ""))
    first_page = not by and before is None
    values = {"person": person, "may": "see", "by": by, "limit": limit, "places": limit if first_page else None}
    async with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_HISTORY, {**values, "before": before or "infinity"})
        return [_told(one) for one in await cursor.fetchall()]


def _moment(given: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return None
    return found if found.tzinfo else None


def _limit(query: Mapping[str, str]) -> int:
    return min(_number(query, "limit") or PAGE, MOST)


def _number(query: Mapping[str, str], name: str) -> int:
    given = query.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 9 else 0
