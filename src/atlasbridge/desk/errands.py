"""What a machine's link is to do besides decisions: one look for all of it, at every link from time to time."""

from __future__ import annotations

from typing import Any

from atlasbridge.core.values import frozen
from atlasbridge.desk.database import Database
from atlasbridge.desk.machines import Entered

_LOOK = """
SELECT m.id, m.generation, m.proved_count AS proved,
       ARRAY(SELECT p.prompt_id FROM prompts p WHERE p.machine_id = m.id AND p.is_open AND p.chats_ask) AS asks,
       ARRAY(SELECT p.id FROM proofs p WHERE p.machine_id = m.id AND p.done_at IS NULL) AS proofs,
       EXISTS (SELECT 1 FROM looks l WHERE l.machine_id = m.id)
       OR EXISTS (SELECT 1 FROM screens s WHERE s.machine_id = m.id) AS is_watched,
       coalesce((SELECT r.digest FROM rulebook r ORDER BY r.made_at DESC LIMIT 1), '') AS rules
FROM machines m WHERE m.id = ANY(%s) AND m.gone_at IS NULL
"""


@frozen
class Errands:
    asks: frozenset[str]  # the open prompts for which somebody is asked in a chat of the desk
    proofs: tuple[str, ...]  # requests for a proof of its audit log
    proved: int  # so far that log was followed
    is_watched: bool  # somebody looks at one of its screens, or did
    rules: str  # the digest of the newest


async def look(database: Database, entered: Entered) -> Errands | None:
    """None: another link has taken its place, or the machine was sent away."""
    return await database.together(_look, entered)


async def _look(database: Database, links: list[Entered]) -> list[Errands | None]:
    found = await database.rows(_LOOK, [one.machine_id for one in links])
    current = {(one["id"], one["generation"]): _errands(one) for one in found}
    return [current.get((one.machine_id, one.generation)) for one in links]


def _errands(found: dict[str, Any]) -> Errands:
    asks, proofs = frozenset(found["asks"]), tuple(found["proofs"])
    return Errands(asks, proofs, found["proved"], found["is_watched"], found["rules"])
