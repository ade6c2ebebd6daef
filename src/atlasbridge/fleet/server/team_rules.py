"""Rules for all machines: the newest is sent to each, by its digest; each says whether it took it, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.model import digest_text
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import Entered


@frozen
class TeamRules:
    digest: str
    body: str
    by: str


async def set_rules(database: Database, body: str, by: str) -> str:
    """The digest.  Whether the rules make sense is checked before, and again by every machine."""
    digest, now = digest_text(body), database.now()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO rulebook (digest, body, by_whom, made_at) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (digest) DO UPDATE SET by_whom = excluded.by_whom, made_at = excluded.made_at",
            (digest, body, by, now),
        )
        await note(connection, now, "RULES_SET", digest=digest, by=by)
    return digest


async def newest(database: Database) -> TeamRules | None:
    found = await database.rows("SELECT digest, body, by_whom FROM rulebook ORDER BY made_at DESC LIMIT 1")
    return TeamRules(found[0]["digest"], found[0]["body"], found[0]["by_whom"]) if found else None


async def taken(database: Database, entered: Entered, message: Mapping[str, Any]) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE machines SET policy = %s, policy_fault = %s WHERE id = %s",
            (str(message["digest"])[:100], str(message.get("fault", ""))[:400], entered.machine_id),
        )
