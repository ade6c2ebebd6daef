"""Decisions: a person proposes one here, the machine's hub decides, and the hub's outcome closes it.

If two people answer at once, one of them gets the row. A decision is sent until the hub has reported the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg.types.json import Json

from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import NO_PROMPT, Refused
from atlasbridge.core.prompt.redact import redact_data, redact_outgoing
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.audit import note, note_alone
from atlasbridge.fleet.server.database import Database, rows
from atlasbridge.fleet.server.machines import SENT, Entered
from atlasbridge.fleet.server.people import ALLOWED

LONGEST_VALUE = 4000
_MAY_ANSWER = ALLOWED.replace("%(person)s", "d.person").replace("%(may)s", "'answer'")

# All statements lock rows in the same order (prompts by key, decisions by id), so that two servers that update several
# rows at once do not deadlock.
_WIN = f"""
WITH wish AS (
    SELECT * FROM json_to_recordset(%s) AS d (id text, machine_id text, prompt_id text, person text, value text,
                                              as_text boolean, place text, request_key text, passkey jsonb,
                                              noted jsonb)
), wanted AS (
    SELECT p.machine_id, p.prompt_id FROM prompts p JOIN wish USING (machine_id, prompt_id)
    ORDER BY p.machine_id, p.prompt_id FOR NO KEY UPDATE OF p
), won AS (
    UPDATE prompts p SET decision_id = d.id
    FROM wanted JOIN wish d USING (machine_id, prompt_id) JOIN machines m ON m.id = d.machine_id
    WHERE (p.machine_id, p.prompt_id) = (d.machine_id, d.prompt_id) AND p.is_open AND p.decision_id IS NULL
      AND p.body -> 'constraints' ->> 'secret' IS DISTINCT FROM 'true' AND {_MAY_ANSWER}
      AND NOT EXISTS (SELECT 1 FROM decisions o WHERE (o.person, o.request_key) = (d.person, d.request_key))
    RETURNING d.*, p.folder, %s::timestamptz AS now
), placed AS (
    INSERT INTO places (machine_id, folder, decided_at)
    SELECT DISTINCT machine_id, folder, now FROM won ORDER BY machine_id, folder
    ON CONFLICT (machine_id, folder) DO UPDATE SET decided_at = excluded.decided_at RETURNING id, machine_id, folder
), made AS (
    INSERT INTO decisions (id, machine_id, prompt_id, person, value, as_text, place, request_key, passkey, made_at,
                           place_id)
    SELECT won.id, machine_id, prompt_id, person, value, as_text, place, request_key, passkey, now, placed.id
    FROM won JOIN placed USING (machine_id, folder)
), noted AS (
    INSERT INTO audit_pending (at, event, fields) SELECT now, 'DECIDED', noted FROM won
)
SELECT id FROM won
"""
_SEEN = f"""
SELECT p.state, p.body -> 'constraints' ->> 'secret' = 'true' AS secret, d.person AS first,
       {ALLOWED.replace("%(may)s", "'answer'")} AS may_answer
FROM prompts p JOIN machines m ON m.id = p.machine_id LEFT JOIN decisions d ON d.id = p.decision_id
WHERE p.machine_id = %(machine)s AND p.prompt_id = %(prompt)s AND {ALLOWED}
"""
_RELEASE = f"""
WITH due AS (
    SELECT d.id, d.stage = '{SENT}' OR {_MAY_ANSWER} AS goes, {_MAY_ANSWER} AS is_allowed
    FROM decisions d JOIN prompts p USING (machine_id, prompt_id) JOIN machines m ON m.id = d.machine_id
    WHERE d.machine_id = ANY(%s) AND d.settled_at IS NULL AND d.id <> ALL(%s) ORDER BY d.id FOR NO KEY UPDATE OF d
)
UPDATE decisions d SET stage = CASE WHEN due.goes THEN '{SENT}' ELSE d.stage END
FROM due WHERE d.id = due.id RETURNING d.*, due.goes, due.is_allowed
"""
_CLOSE = """
WITH said AS (
    SELECT * FROM json_to_recordset(%s) AS s (id text, machine_id text, ok boolean, stage text, sentence text)
), waiting AS (
    SELECT d.id FROM decisions d JOIN said USING (id, machine_id) WHERE d.settled_at IS NULL
    ORDER BY d.id FOR NO KEY UPDATE OF d
), closed AS (
    UPDATE decisions d SET settled_at = %s, ok = said.ok, stage = said.stage, sentence = said.sentence
    FROM waiting JOIN said USING (id) WHERE d.id = waiting.id AND d.settled_at IS NULL
    RETURNING d.id, d.machine_id, d.prompt_id, d.person, d.ok, d.stage, d.settled_at
), still_open AS (  -- perhaps: others, or the same person, may try again
    SELECT p.machine_id, p.prompt_id, closed.id FROM prompts p JOIN closed USING (machine_id, prompt_id)
    WHERE NOT closed.ok OR closed.stage = 'voted' ORDER BY p.machine_id, p.prompt_id FOR NO KEY UPDATE OF p
), freed AS (
    UPDATE prompts p SET decision_id = NULL FROM still_open o
    WHERE (p.machine_id, p.prompt_id, p.decision_id) = (o.machine_id, o.prompt_id, o.id)
), noted AS (
    INSERT INTO audit_pending (at, event, fields)
    SELECT settled_at, 'SETTLED', jsonb_build_object('machine', machine_id, 'prompt_id', prompt_id, 'decision', id,
                                                     'decided_by', person, 'ok', ok, 'stage', stage) FROM closed
)
SELECT id, machine_id FROM closed
"""


@frozen
class Proposal:
    """The answer that a person wants to give."""

    machine_id: str
    prompt_id: str
    person: str
    value: str
    as_text: bool = False
    place: str = ""
    request_key: str = ""  # a repeated key means the same decision
    passkey: dict[str, str] | None = None  # a signature for the machine, which alone checks it


@frozen
class Decision:
    decision_id: str
    machine_id: str
    settled: bool = False
    ok: bool = False
    stage: str = ""
    sentence: str = ""
    prompt_id: str = ""


async def propose(database: Database, wish: Proposal) -> Decision | Refused:
    if len(wish.value) > LONGEST_VALUE:
        return Refused("bad_value", "That is too long.")
    decision_id = new_id()
    won = await database.together(_propose, _wished(decision_id, wish))
    return Decision(decision_id, wish.machine_id, prompt_id=wish.prompt_id) if won else await _explain(database, wish)


async def _propose(database: Database, wishes: list[dict[str, Any]]) -> list[bool]:
    won = {one["id"] for one in await database.rows(_WIN, Json(wishes), database.now())}
    return [wish["id"] in won for wish in wishes]


def _wished(decision_id: str, wish: Proposal) -> dict[str, Any]:
    told = {"machine": wish.machine_id, "prompt_id": wish.prompt_id, "decided_by": wish.person}
    told |= {"decision": decision_id, "value": wish.value, "place": wish.place}
    row: dict[str, Any] = {name: getattr(wish, name) for name in Proposal.__match_args__}
    named = {"id": decision_id, "request_key": wish.request_key or decision_id}
    return {**row, **named, "noted": redact_data(told)}


async def _explain(database: Database, wish: Proposal) -> Decision | Refused:
    """Why this proposal did not win: it is a repeat, the person is not allowed to answer, or it came too late."""
    same = "SELECT * FROM decisions WHERE person = %s AND request_key = %s"
    for known in await database.rows(same, wish.person, wish.request_key):
        if (known["machine_id"], known["prompt_id"]) != (wish.machine_id, wish.prompt_id):
            return Refused("bad_request", "The key of this request was used for another one.")
        return _decision(known)
    names = {"person": wish.person, "machine": wish.machine_id, "prompt": wish.prompt_id, "may": "see"}
    refused = _refusal(await database.rows(_SEEN, names))
    ids = {"machine": wish.machine_id, "prompt_id": wish.prompt_id, "decided_by": wish.person}
    await note_alone(database, "DECISION_REFUSED", **ids, reason=refused.reason)
    return refused


def _refusal(seen: list[dict[str, Any]]) -> Refused:
    if not seen:
        return NO_PROMPT
    (found,) = seen
    if not found["may_answer"]:
        return Refused("not_allowed", "You can see this, but not answer it.")
    if found["secret"]:
        return Refused("secret", "Answer secrets at the machine, never here.")
    first, state = found["first"], found["state"]
    return Refused("not_open", f"{first} answered first." if first else f"This prompt is no longer open ({state}).")


async def release(database: Database, machine_id: str, sent: Iterable[str]) -> list[dict[str, Any]]:
    """The open decisions of this machine that are not in `sent`, oldest first. They are marked as sent before they go
    out. `goes` is false for a decision that was never sent and whose person is no longer allowed to answer. One that
    was sent goes again, because its outcome is not known; without `is_allowed` the machine only says what became of it.
    """
    return await database.together(_release, (machine_id, frozenset(sent)))


async def _release(database: Database, calls: list[tuple[str, frozenset[str]]]) -> list[list[dict[str, Any]]]:
    known: dict[str, frozenset[str]] = {}
    for machine_id, sent in calls:  # a link that takes over has not sent anything yet
        known[machine_id] = known.get(machine_id, sent) & sent
    found = await database.rows(_RELEASE, list(known), [one for sent in known.values() for one in sent])
    found.sort(key=lambda one: (one["made_at"], one["id"]))
    return [
        [one for one in found if one["machine_id"] == machine_id and one["id"] not in sent]
        for machine_id, sent in calls
    ]


async def void_unallowed(database: Database, machine_id: str = "") -> list[str]:
    """Refuse the unsent decisions of people who have lost the permission to answer, and return their ids."""
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
            "It was not sent: this person was no longer allowed to answer it.",
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


async def settle(database: Database, entered: Entered, message: Mapping[str, Any]) -> None:
    """Close the decision with the machine's outcome, unless it is closed already or belongs to another machine."""
    ok, decision_id = bool(message["ok"]), str(message["id"])
    said = {
        "id": decision_id,
        "machine_id": entered.machine_id,
        "ok": ok,
        "stage": redact_outgoing(str(message["stage"] if ok else message["reason"])[:40]),
        "sentence": str(message["sentence"]).replace("\x00", "")[:1000],
    }
    if not await database.together(_settle, said):
        await _note_forged(database, entered, decision_id)


async def _settle(database: Database, said: list[dict[str, Any]]) -> list[bool]:
    closed = {(one["id"], one["machine_id"]) for one in await database.rows(_CLOSE, Json(said), database.now())}
    return [(one["id"], one["machine_id"]) in closed for one in said]


async def _note_forged(database: Database, entered: Entered, decision_id: str) -> None:
    mine = "SELECT 1 FROM decisions WHERE id = %s AND machine_id = %s"
    if not await database.rows(mine, decision_id, entered.machine_id):
        what = f"decision {decision_id[:40]}"
        await note_alone(database, "FORGED", machine=entered.machine_id, what=what)


async def find(database: Database, decision_id: str, person: str) -> Decision | None:
    found = await database.together(_find, decision_id)
    return _decision(found) if found and found["person"] == person else None


async def find_by_key(database: Database, person: str, request_key: str) -> Decision | None:
    """The decision of a request whose response was lost. None means that the request never arrived."""
    found = await database.rows("SELECT * FROM decisions WHERE person = %s AND request_key = %s", person, request_key)
    return _decision(found[0]) if found else None


async def _find(database: Database, ids: list[str]) -> list[dict[str, Any] | None]:
    found = {one["id"]: one for one in await database.rows("SELECT * FROM decisions WHERE id = ANY(%s)", ids)}
    return [found.get(one) for one in ids]


def _decision(found: Mapping[str, Any]) -> Decision:
    return Decision(
        found["id"],
        found["machine_id"],
        found["settled_at"] is not None,
        bool(found["ok"]),
        found["stage"],
        found["sentence"],
        found["prompt_id"],
    )
