"""The lists on the page: open prompts, sessions, machines and past decisions, each limited to what the person is
allowed to see.

PostgreSQL filters and pages, so that a response stays small with thousands of open prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
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


# Permissions are checked once for each folder of a machine, not for each of its prompts.
_ALLOWED_PLACES = f"""WITH allowed AS MATERIALIZED (
    SELECT p.machine_id, p.folder FROM (SELECT DISTINCT machine_id, folder FROM prompts WHERE is_open) p
    JOIN machines m ON m.id = p.machine_id WHERE {ALLOWED}
)"""
_SHOWN = f"""p.machine_id, m.name AS machine, m.seen_at, m.connected_to <> '' AS connected, p.prompt_id,
    p.session_id, p.body, p.folder, p.label, p.tool, p.raised_at, p.expires_at, d.person AS deciding,
    {ALLOWED.replace("%(may)s", "'answer'")} AS may_answer, m.screens AND m.screens_here AS screens,
    p.seq, p.state, p.last_key_at, s.body AS session, s.state AS session_state"""
JOINED = "FROM prompts p JOIN machines m ON m.id = p.machine_id LEFT JOIN decisions d ON d.id = p.decision_id"
SESSION = "LEFT JOIN sessions s ON (s.machine_id, s.session_id) = (p.machine_id, p.session_id)"


async def find_prompts(database: Database, person: str, query: Mapping[str, str]) -> dict[str, Any]:
    """One page of the open prompts, each with its session."""
    given = {name: query[name] for name in _FILTERS if query.get(name)}
    where = " AND ".join(["p.is_open", *(_FILTERS[name] for name in given)])
    values = {**given, "person": person, "may": "see", "limit": _limit(query), "offset": _number(query, "offset")}
    joined = f"{JOINED} JOIN allowed a ON (a.machine_id, a.folder) = (p.machine_id, p.folder)"
    async with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"{_ALLOWED_PLACES} SELECT count(*) AS total {joined} WHERE {where}", values)
        counted = await cursor.fetchone()
        statement = f"""{_ALLOWED_PLACES} SELECT {_SHOWN} {joined} {SESSION} WHERE {where}
            ORDER BY p.raised_at, p.prompt_id LIMIT %(limit)s OFFSET %(offset)s"""
        await cursor.execute(statement, values)
        found = await cursor.fetchall()
    return {"total": counted["total"] if counted else 0, "prompts": found}


async def find_prompt(database: Database, person: str, machine_id: str, prompt_id: str) -> dict[str, Any] | None:
    """One prompt, open or not, if the person is allowed to see it."""
    query = f"""SELECT {_SHOWN} {JOINED} {SESSION}
        WHERE p.machine_id = %(machine)s AND p.prompt_id = %(prompt)s AND {ALLOWED}"""
    found = await database.rows(query, {"machine": machine_id, "prompt": prompt_id, "person": person, "may": "see"})
    return found[0] if found else None


async def list_sessions(
    database: Database, person: str, include_ended: bool, machine_id: str = "", session_id: str = ""
) -> list[dict[str, Any]]:
    """Active sessions, or all with `include_ended`. `machine_id` and `session_id` select one of them."""
    query = f"""SELECT s.machine_id, s.session_id, s.body, s.state, m.name AS machine
        FROM sessions s JOIN machines m ON m.id = s.machine_id,
        LATERAL (SELECT coalesce(s.body ->> 'cwd', '') AS folder) p
        WHERE (%(all)s OR (s.state = 'active' AND m.gone_at IS NULL)) AND {ALLOWED}
        AND (%(machine)s = '' OR (s.machine_id, s.session_id) = (%(machine)s, %(session)s))
        ORDER BY s.told_at DESC, s.session_id LIMIT {MOST_SESSIONS}"""
    return await database.rows(
        query, {"all": include_ended, "machine": machine_id, "session": session_id, "person": person, "may": "see"}
    )


async def list_machines(database: Database, person: str) -> list[dict[str, Any]]:
    """The machines of which the person is allowed to see at least one folder."""
    return await database.rows(
        f"""SELECT m.id AS machine_id, m.name, m.seen_at, m.connected_to <> '' AS connected, m.version, m.ephemeral,
        m.log_fault, m.policy AS rules, m.policy_fault AS rules_fault, m.held,
        CASE WHEN m.limited <> '' THEN m.limited ELSE m.went_back END AS notice,
        m.seen_at IS NULL OR m.seen_at < %(since)s AS silent,
        (SELECT count(*) FROM prompts o WHERE o.machine_id = m.id AND o.is_open) AS open_prompts
        FROM machines m WHERE m.gone_at IS NULL AND {ALLOWED_SOMEWHERE} ORDER BY m.name""",
        {"person": person, "may": "see", "since": database.now() - timedelta(seconds=SILENT_S)},
    )


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
SELECT page.id AS decision_id, page.machine, page.machine_id || '.' || page.prompt_id AS prompt_id, page.folder,
       p.body ->> 'excerpt' AS excerpt, page.person, page.value, page.made_at, page.settled_at, page.ok, page.stage,
       page.sentence AS message
FROM page JOIN prompts p USING (machine_id, prompt_id) ORDER BY page.made_at DESC
"""


async def list_history(database: Database, person: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Decisions of the fleet, newest first. `before` is the time of the last decision of the previous page."""
    limit, by, before = _limit(query), query.get("person", ""), _moment(query.get("before", ""))
    first_page = not by and before is None
    values = {"person": person, "may": "see", "by": by, "limit": limit, "places": limit if first_page else None}
    async with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_HISTORY, {**values, "before": before or "infinity"})
        return await cursor.fetchall()


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
