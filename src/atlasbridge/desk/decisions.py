"""Decisions: proposed here by a person, decided by the machine's hub, and closed by its word.

Of two people at two desks one gets the row; a decision is sent until the hub has said what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.ids import new_id
from atlasbridge.core.values import frozen
from atlasbridge.desk.chronicle import note
from atlasbridge.desk.database import Connection, Database, row, rows
from atlasbridge.desk.machines import Entered, Refused
from atlasbridge.desk.people import ALLOWED

LONGEST_VALUE = 4000
SENT = "sent"  # the stage of a decision that went out to its machine and has no other yet
_MAY_ANSWER = ALLOWED.replace("%(person)s", "d.person").replace("%(may)s", "'answer'")


@frozen
class Proposal:
    """What a person wants answered."""

    machine_id: str
    prompt_id: str
    person: str
    value: str
    as_text: bool = False
    place: str = ""
    request_key: str = ""  # the same key again is the same decision


@frozen
class Decision:
    decision_id: str
    machine_id: str
    settled: bool = False
    ok: bool = False
    stage: str = ""
    sentence: str = ""


async def propose(database: Database, wish: Proposal) -> Decision | Refused:
    now, decision_id = database.now(), new_id()
    if len(wish.value) > LONGEST_VALUE:
        return Refused("bad_value", "That is too long.")
    async with database.transaction() as connection:
        known = await _same_request(connection, wish)
        if known is not None:
            return known
        refused = await _refuse(connection, wish)
        if refused is None:
            won = await row(
                connection,
                "UPDATE prompts SET decision_id = %s WHERE machine_id = %s AND prompt_id = %s AND is_open"
                " AND decision_id IS NULL RETURNING prompt_id",
                decision_id,
                wish.machine_id,
                wish.prompt_id,
            )
            refused = None if won else Refused("not_open", await _fate(connection, wish))
        ids = {"machine": wish.machine_id, "prompt_id": wish.prompt_id, "decided_by": wish.person}
        if refused is not None:
            await note(connection, now, "DECISION_REFUSED", **ids, reason=refused.reason)
            return refused
        await connection.execute(
            "INSERT INTO decisions (id, machine_id, prompt_id, person, value, as_text, place, request_key, made_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                decision_id,
                wish.machine_id,
                wish.prompt_id,
                wish.person,
                wish.value,
                wish.as_text,
                wish.place,
                wish.request_key or decision_id,
                now,
            ),
        )
        await note(connection, now, "DECIDED", **ids, decision=decision_id, value=wish.value, place=wish.place)
    return Decision(decision_id, wish.machine_id)


async def _same_request(connection: Connection, wish: Proposal) -> Decision | Refused | None:
    if not wish.request_key:
        return None
    known = await row(
        connection, "SELECT * FROM decisions WHERE person = %s AND request_key = %s", wish.person, wish.request_key
    )
    if known is None:
        return None
    if (known["machine_id"], known["prompt_id"]) != (wish.machine_id, wish.prompt_id):
        return Refused("bad_request", "The key of this request was used for another one.")
    return _decision(known)


async def _refuse(connection: Connection, wish: Proposal) -> Refused | None:
    """Whether there is such a prompt that this person may see, and may answer."""
    may_answer = ALLOWED.replace("%(may)s", "'answer'")
    cursor = await connection.execute(
        f"SELECT p.body -> 'constraints' ->> 'secret' = 'true', {may_answer} FROM prompts p"
        " JOIN machines m ON m.id = p.machine_id"
        f" WHERE p.machine_id = %(machine)s AND p.prompt_id = %(prompt)s AND {ALLOWED}",
        {"person": wish.person, "machine": wish.machine_id, "prompt": wish.prompt_id, "may": "see"},
    )
    found = await cursor.fetchone()
    if found is None:
        return Refused("unknown_prompt", "There is no such prompt.")
    secret, allowed = found
    if not allowed:
        return Refused("not_allowed", "You may see this, not answer it.")
    return Refused("secret", "A secret is answered at its machine, never here.") if secret else None


async def _fate(connection: Connection, wish: Proposal) -> str:
    found = await row(
        connection,
        "SELECT p.state, d.person, d.settled_at FROM prompts p LEFT JOIN decisions d ON d.id = p.decision_id"
        " WHERE p.machine_id = %s AND p.prompt_id = %s",
        wish.machine_id,
        wish.prompt_id,
    )
    if found and found["person"]:
        return f"{found['person']} was first."
    return f"It is not open any more ({found['state'] if found else 'unknown'})."


async def under_way(database: Database, machine_id: str) -> list[dict[str, Any]]:
    """What this machine has not said anything about yet, oldest first."""
    return await database.rows(
        "SELECT id, prompt_id, person, value, as_text, place, stage FROM decisions"
        " WHERE machine_id = %s AND settled_at IS NULL ORDER BY made_at, id",
        machine_id,
    )


async def release(database: Database, machine_id: str, ids: list[str]) -> set[str]:
    """Those of them that may go out, written down before they do: what was never sent ends here if its person may not
    answer any more; what was sent is the machine's to speak of."""
    await void_unallowed(database, machine_id)
    found = await database.rows(
        f"UPDATE decisions SET stage = '{SENT}' WHERE id = ANY(%s) AND settled_at IS NULL RETURNING id", ids
    )
    return {str(one["id"]) for one in found}


async def void_unallowed(database: Database, machine_id: str = "") -> list[str]:
    """The ids of decisions that wait for their machine and whose person has lost the right meanwhile."""
    now = database.now()
    async with database.transaction() as connection:
        found = await rows(
            connection,
            "UPDATE decisions d SET settled_at = %s, ok = false, stage = 'not_allowed', sentence = %s"
            " FROM prompts p JOIN machines m ON m.id = p.machine_id"
            " WHERE (p.machine_id, p.prompt_id) = (d.machine_id, d.prompt_id) AND d.settled_at IS NULL"
            f" AND d.stage = '' AND (%s = '' OR d.machine_id = %s) AND NOT {_MAY_ANSWER}"
            " RETURNING d.id, d.machine_id, d.prompt_id, d.person",
            now,
            "It was not sent: by then this person was not allowed to answer it any more.",
            machine_id,
            machine_id,
        )
        for one in found:
            await connection.execute(
                "UPDATE prompts SET decision_id = NULL WHERE machine_id = %s AND prompt_id = %s AND decision_id = %s",
                (one["machine_id"], one["prompt_id"], one["id"]),
            )
            ids = {"machine": one["machine_id"], "prompt_id": one["prompt_id"], "decision": one["id"]}
            await note(connection, now, "SETTLED", **ids, decided_by=one["person"], ok=False, stage="not_allowed")
    return [str(one["id"]) for one in found]


async def settle(database: Database, entered: Entered, message: Mapping[str, Any]) -> bool:
    """The machine's word closes it.  False: it was closed already, or is not this machine's to speak of."""
    now, ok = database.now(), bool(message["ok"])
    stage = str(message["stage"] if ok else message["reason"])[:40]
    sentence, decision_id = str(message["sentence"]).replace("\x00", "")[:1000], str(message["id"])
    async with database.transaction() as connection:
        found = await row(
            connection,
            "UPDATE decisions SET settled_at = %s, ok = %s, stage = %s, sentence = %s"
            " WHERE id = %s AND machine_id = %s AND settled_at IS NULL RETURNING prompt_id, person, value",
            now,
            ok,
            stage,
            sentence,
            decision_id,
            entered.machine_id,
        )
        if found is None:
            await _note_forged(connection, entered, decision_id, database)
            return False
        if not ok or stage == "voted":  # the prompt may still be open: others, or the same person, may try again
            await connection.execute(
                "UPDATE prompts SET decision_id = NULL WHERE machine_id = %s AND prompt_id = %s AND decision_id = %s",
                (entered.machine_id, found["prompt_id"], decision_id),
            )
        ids = {"machine": entered.machine_id, "prompt_id": found["prompt_id"], "decision": decision_id}
        await note(connection, now, "SETTLED", **ids, decided_by=found["person"], ok=ok, stage=stage)
    return True


async def _note_forged(connection: Connection, entered: Entered, decision_id: str, database: Database) -> None:
    other = await row(connection, "SELECT machine_id FROM decisions WHERE id = %s", decision_id)
    if other is None or other["machine_id"] != entered.machine_id:
        await note(
            connection, database.now(), "FORGED", machine=entered.machine_id, what=f"decision {decision_id[:40]}"
        )


async def find(database: Database, decision_id: str, person: str) -> Decision | None:
    found = await database.rows("SELECT * FROM decisions WHERE id = %s AND person = %s", decision_id, person)
    return _decision(found[0]) if found else None


def _decision(found: Mapping[str, Any]) -> Decision:
    return Decision(
        found["id"],
        found["machine_id"],
        found["settled_at"] is not None,
        bool(found["ok"]),
        found["stage"],
        found["sentence"],
    )
