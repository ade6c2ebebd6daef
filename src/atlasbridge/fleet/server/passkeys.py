"""Passkeys of the fleet's people: they enrol one on the page, and the page learns what an approval must sign.

The server only keeps which keys a browser can ask for, and passes signatures on. Each machine checks a signature
itself, with the keys that a person accepted in a terminal there: the server cannot add one.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from atlasbridge.core.audit.passkeys import (
    BEGUN_S,
    MOST,
    NOT_NEEDED,
    PasskeyRefused,
    challenge,
    check_new_key,
    clean_name,
    digest_answer,
    needs_none,
    read_origin,
)
from atlasbridge.core.operations import Refused
from atlasbridge.core.policy.approval import PROOF
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Reject
from atlasbridge.fleet.keys import hashed
from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.database import Database, row, rows
from atlasbridge.fleet.server.lists import read_asked

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NO_KEY = "You have no passkey for this page. Add one under Settings, Passkeys."
_OLDER = "Its machine does not accept a signature from here. Approve it on the page of that machine."


async def listing(database: Database, person: str) -> list[dict[str, Any]]:
    """A person's passkeys, each with the command that accepts it on a machine."""
    found = await database.rows("SELECT * FROM passkeys WHERE person = %s ORDER BY made_at, key_id", person)
    return [{**_told(one), "accept": _command(one)} for one in found]


def _told(key: Mapping[str, Any]) -> dict[str, Any]:
    told = {"key_id": key["key_id"], "name": key["name"], "rp_id": urlsplit(key["origin"]).hostname or ""}
    return {**told, "created_at": key["made_at"].isoformat(), "by": f"server:{key['person']}"}


def _command(key: Mapping[str, Any]) -> str:
    words = ["atlasbridge", "passkey", "accept", f"--name={key['name']}", "--", key["person"], key["origin"]]
    return shlex.join([*words, f"{key['key_id']}.{key['public_key']}"])


async def begin(database: Database, person: str, origin: str) -> dict[str, Any]:
    """Create a challenge for a new passkey of the page with this address. Raises PasskeyRefused."""
    rp_id = urlsplit(read_origin(origin)).hostname or ""
    made, now = secrets.token_hex(32), database.now()
    async with database.transaction() as connection:
        old = now - timedelta(seconds=BEGUN_S)
        await connection.execute("DELETE FROM passkey_attempts WHERE made_at < %s", (old,))
        query = "INSERT INTO passkey_attempts (challenge, person, made_at) VALUES (%s, %s, %s)"
        await connection.execute(query, (made, person, now))
        own = await rows(connection, "SELECT key_id FROM passkeys WHERE person = %s AND origin = %s", person, origin)
    keys = [str(one["key_id"]) for one in own]
    return {"challenge": made, "rp_id": rp_id, "keys": keys, "user": hashed(person)[:32]}


async def add(database: Database, person: str, given: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Keep a passkey that a browser has made. Raises PasskeyRefused."""
    rp_id, wanted, now = urlsplit(read_origin(origin)).hostname or "", str(given["challenge"]), database.now()
    async with database.transaction() as connection:
        query = (
            "DELETE FROM passkey_attempts WHERE challenge = %s AND person = %s AND made_at >= %s RETURNING challenge"
        )
        begun = await row(connection, query, wanted, person, now - timedelta(seconds=BEGUN_S))
    if begun is None:
        raise PasskeyRefused("This took too long. Start again.")
    key_id, public_key, _ = check_new_key(given, bytes.fromhex(wanted), rp_id, [origin])
    async with database.transaction() as connection:
        counted = await row(connection, "SELECT count(*) AS known FROM passkeys WHERE person = %s", person)
        if counted is not None and counted["known"] >= MOST:
            raise PasskeyRefused("There are too many passkeys; remove one first.")
        query = """INSERT INTO passkeys (key_id, person, name, origin, public_key, made_at)
            VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING *"""
        made = await row(connection, query, key_id, person, clean_name(given.get("name")), origin, public_key, now)
        if made is None:
            raise PasskeyRefused("This passkey is already enrolled.")
        await note(connection, now, "PASSKEY_ADDED", person=person, key_id=key_id, name=made["name"], origin=origin)
    return {**_told(made), "person": f"server:{person}"}


async def remove(database: Database, person: str, key_id: str) -> bool:
    """Forget a passkey. A machine that accepted it goes on accepting it until it is removed there, too."""
    async with database.transaction() as connection:
        query = "DELETE FROM passkeys WHERE key_id = %s AND person = %s RETURNING name"
        gone = await row(connection, query, key_id, person)
        if gone is not None:
            fields = {"person": person, "key_id": key_id, "name": gone["name"]}
            await note(connection, database.now(), "PASSKEY_REMOVED", **fields)
    return gone is not None


async def ask(
    database: Database, person: str, prompt: Mapping[str, Any], value: str, as_text: bool, origin: str
) -> dict[str, Any] | Refused:
    """What the browser must sign before it sends this answer. If that cannot be told here, nothing is signed: the
    machine then decides alone whether the answer needs a signature."""
    asked = read_asked(prompt, "", database.clock, origin).record
    answer = decide_answer(asked.prompt, value, as_text=as_text)
    if PROOF not in asked.prompt.constraints or isinstance(answer, Reject):
        return NOT_NEEDED
    signing = prompt["body"].get("signing")
    if not _is_complete(signing):
        return Refused("needs_passkey", _OLDER)
    if needs_none(map(str, signing["refusals"]), answer.kind.value, answer.value):
        return NOT_NEEDED
    query = "SELECT key_id FROM passkeys WHERE person = %s AND origin = %s ORDER BY made_at"
    keys = [str(one["key_id"]) for one in await database.rows(query, person, origin)]
    if not keys:
        return Refused("needs_passkey", _NO_KEY)
    accepted = [key for key in keys if key in signing["keys"]]  # as the machine knew when it asked
    signed = {**signing, "answer": digest_answer(signing["nonce"], answer.kind.value, answer.spoken)}
    wanted = challenge({name: str(prompt[name]) for name in ("prompt_id", "session_id")}, signed)
    rp_id = urlsplit(origin).hostname or ""
    return {"needed": True, "challenge": wanted.hex(), "rp_id": rp_id, "keys": accepted or keys}


def _is_complete(signing: Any) -> bool:
    if not isinstance(signing, dict) or not all(isinstance(signing.get(name), list) for name in ("refusals", "keys")):
        return False
    return all(_DIGEST.fullmatch(str(signing.get(name))) for name in ("question", "nonce"))
