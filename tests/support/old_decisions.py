"""A history of decisions without the years that it took, and how PostgreSQL reads a page of it."""

from __future__ import annotations

from datetime import datetime

import psycopg

from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.lists import PAGE, history_statements


async def add_decisions(
    database: Database, machine_id: str, count: int, folder: str, until: datetime | None = None
) -> None:
    """As so many answers in that folder would have left them, one for each second before now."""
    given = {"machine": machine_id, "count": count, "folder": folder, "now": until or database.now()}
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO places (machine_id, folder, decided_at) VALUES (%(machine)s, %(folder)s, %(now)s)", given
        )
        await connection.execute(
            "INSERT INTO prompts (machine_id, prompt_id, session_id, seq, state, is_open, body, folder, raised_at,"
            " ended_at)"
            " SELECT %(machine)s, %(folder)s || n, 's', n, 'resolved', false, '{\"excerpt\": \"Go?\"}', %(folder)s,"
            " %(now)s - n * interval '1 second', %(now)s - n * interval '1 second'"
            " FROM generate_series(1, %(count)s) n",
            given,
        )
        await connection.execute(
            "INSERT INTO decisions (id, machine_id, prompt_id, person, value, request_key, made_at, settled_at, ok,"
            " place_id)"
            " SELECT %(folder)s || n, %(machine)s, %(folder)s || n, 'alice', 'y', %(folder)s || n,"
            " %(now)s - n * interval '1 second', %(now)s - n * interval '1 second', true,"
            " (SELECT id FROM places WHERE machine_id = %(machine)s AND folder = %(folder)s)"
            " FROM generate_series(1, %(count)s) n",
            given,
        )


async def history_plans(url: str, person: str, by: str, limit: int = PAGE) -> list[str]:
    """Of each statement of a page, the one plan that PostgreSQL has for all its values."""
    values = {"person": person, "may": "see", "by": by, "before": "infinity", "before_id": ""}
    places = {name: f"${number}" for number, name in enumerate(values, 1)}
    found = []
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        for statement in history_statements(limit, bool(by)):
            prepared = f"PREPARE page (text, text, text, timestamptz, text) AS {statement % places}"
            await connection.execute(prepared.encode())
            explained = psycopg.AsyncClientCursor(connection).mogrify(
                "EXPLAIN (ANALYZE, BUFFERS) EXECUTE page (%s, %s, %s, %s, %s)", list(values.values())
            )
            lines = await (await connection.execute(explained.encode())).fetchall()
            found.append("\n".join(str(line) for (line,) in lines))
            await connection.execute("DEALLOCATE page")
    return found
