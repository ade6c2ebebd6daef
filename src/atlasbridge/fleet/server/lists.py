"""The lists on the page: open prompts, sessions, machines and past decisions, each limited to what the person is
allowed to see.

PostgreSQL filters and pages, so that a response stays small with thousands of open prompts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

from psycopg.rows import dict_row

from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.operations import fitting_constraints
from atlasbridge.core.policy.approval import CARD, PROOF, with_card
from atlasbridge.core.prompt.codec import decode_prompt, with_keys
from atlasbridge.core.prompt.model import (
    EXCERPT_LIMIT,
    Choice,
    Prompt,
    PromptRecord,
    PromptState,
    PromptType,
    Subject,
    parse_subject,
)
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import frozen, replace
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


async def find_prompts(database: Database, person: str, query: Mapping[str, Any]) -> dict[str, Any]:
    """One page of the open prompts, each with its session. `query` has the parameters of the operation."""
    given = {name: query[name] for name in _FILTERS if query[name]}
    where = " AND ".join(["p.is_open", *(_FILTERS[name] for name in given)])
    values = {**query, "person": person, "may": "see"}
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


# A page of history is looked for in the last decisions of all folders, which fills it for a person who sees many of
# them. Otherwise permissions are checked once for each folder, and each folder has an index of its newest decisions. So
# a page costs about the same after a million decisions, also for a person who can see none of them.
#
# Decisions of one batch have the same time, so their ids decide which comes first.
#
# The limits are written into the statements, because PostgreSQL plans a statement once for all its values.
LAST = 500  # decisions of all folders
_NEWEST_FIRST = "ORDER BY d.made_at DESC, d.id DESC"
_PAGE = f"""
SELECT d.id AS decision_id, place.machine, d.machine_id || '.' || d.prompt_id AS prompt_id, place.folder,
       p.body ->> 'excerpt' AS excerpt, d.person, d.value, d.made_at, d.settled_at, d.ok, d.stage, d.sentence AS message
FROM page JOIN decisions d ON d.id = page.id JOIN allowed place ON place.id = d.place_id
JOIN prompts p ON (p.machine_id, p.prompt_id) = (d.machine_id, d.prompt_id) {_NEWEST_FIRST}
"""
_OLDER = "(d.made_at, d.id) < (%(before)s, %(before_id)s)"
_ALLOWED_OF = f"""allowed AS MATERIALIZED (
    SELECT p.id, p.folder, m.name AS machine FROM places p JOIN machines m ON m.id = p.machine_id WHERE {{of}} {ALLOWED}
)"""
_LAST_OF_ALL = f"""
WITH last AS MATERIALIZED (
    SELECT d.id, d.place_id, d.made_at FROM decisions d WHERE {{by}} {_OLDER} {_NEWEST_FIRST} LIMIT {{last}}
), {_ALLOWED_OF.format(of="p.id = ANY(ARRAY(SELECT DISTINCT place_id FROM last)) AND")}, page AS (
    SELECT d.id FROM last d JOIN allowed ON allowed.id = d.place_id {_NEWEST_FIRST} LIMIT {{limit}}
){_PAGE}"""
# Only the folders with the newest decisions can have one on the page, and none that is older than the newest of each.
_OF_EACH_PLACE = f"""
WITH {_ALLOWED_OF.format(of="")}, newest AS MATERIALIZED (
    SELECT allowed.id, d.made_at FROM allowed CROSS JOIN LATERAL (
        SELECT d.id, d.made_at FROM decisions d WHERE d.place_id = allowed.id AND {{by}} {_OLDER} {_NEWEST_FIRST}
        LIMIT 1
    ) d {_NEWEST_FIRST} LIMIT {{limit}}
), oldest AS MATERIALIZED (
    SELECT CASE count(*) WHEN {{limit}} THEN min(made_at) ELSE '-infinity' END AS made_at FROM newest
), page AS (
    SELECT d.id FROM newest CROSS JOIN LATERAL (
        SELECT d.id, d.made_at FROM decisions d WHERE d.place_id = newest.id AND {{by}} {_OLDER}
        AND d.made_at >= (SELECT made_at FROM oldest) {_NEWEST_FIRST} LIMIT {{limit}}
    ) d {_NEWEST_FIRST} LIMIT {{limit}}
){_PAGE}"""


def history_statements(limit: int, by_person: bool) -> tuple[str, str]:
    """The second finds the rest where the first does not fill a page."""
    given = {"limit": limit, "last": max(LAST, limit), "by": "d.person = %(by)s AND" if by_person else ""}
    return _LAST_OF_ALL.format(**given), _OF_EACH_PLACE.format(**given)


async def list_history(
    database: Database, person: str, limit: int, by: str = "", before: str = "", before_id: str = ""
) -> list[dict[str, Any]]:
    """Decisions of the fleet, newest first. `before` and `before_id` are of the last decision of the previous page."""
    values = {"person": person, "may": "see", "by": by, "before": _before(before) or "infinity", "before_id": before_id}
    found: list[dict[str, Any]] = []
    for statement in history_statements(limit, bool(by)):
        found = await database.rows(statement, values)
        if len(found) == limit:
            break
    return found


def _before(given: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return None
    return found if found.tzinfo else None


# Converts rows to the values that channels and pages use. All functions are pure.
#
# Two machines can use the same id, so an id here is made from the machine and its own id.

SCORES = {"high": 0.9, "med": 0.7, "low": 0.5}
_PUBLIC = ("type", "excerpt", "screen", "choices", "evidence", "safe_default", "question", "whole", "says")
GONE = "gone"  # the server's state for prompts that a removed machine left open
_HEX = re.compile(r"[0-9a-f]{8}")

E = TypeVar("E", bound=Enum)
Key = tuple[str, str]  # the machine, and the id that it uses


@frozen
class FleetPrompt:
    """A prompt of a machine, as the chats use it."""

    key: Key
    seq: int
    machine: str
    folder: str
    state: str  # set by the machine or the server
    record: PromptRecord
    raised_at: float  # wall-clock time
    agreed: tuple[str, ...] = ()
    last_key_at: float | None = None  # wall-clock time
    readers: frozenset[str] = frozenset()  # chat users who are allowed to see it
    deciding: str = ""  # the person whose answer the machine has not confirmed yet

    @property
    def chat_id(self) -> str:
        return self.record.prompt_id


def chat_id(key: Key, own: bool = True) -> str:
    """The id that chats show. It starts like the machine's own id, so that people can type it there. The rest is a
    digest, which a machine cannot choose.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    first = key[1][:8].lower()
    text = (first if own and _HEX.fullmatch(first) else digest[:8]) + digest[8:32]
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def nonce_of(secret: str, key: Key) -> str:
    """The nonce of a prompt. It is the same in every server process and after a restart."""
    return hmac.digest(secret.encode(), "\0".join(("nonce", *key)).encode(), "sha256").hex()[:32]


def read_asked(row: Mapping[str, Any], secret: str, clock: Clock, url: str) -> FleetPrompt:
    """`url`: of the fleet's page, where its people open the prompt and sign an approval."""
    body, key = row["body"], (str(row["machine_id"]), str(row["prompt_id"]))
    session = (key[0], str(row["session_id"]))
    raised, expires = _wall(row["raised_at"]), _wall(row["expires_at"]) or _wall(row["raised_at"])
    record = PromptRecord(
        chat_id(key),
        chat_id(session),
        _at_page(read_prompt(body), f"{url}/#prompt/{key[0]}.{key[1]}"),
        known_as(PromptState, row["state"], PromptState.WITHDRAWN),
        nonce_of(secret, key),
        iso(raised),
        iso(expires),
        clock.now() + expires - clock.wall(),
        decided_by=_text(body.get("decided_by"), 200),
        decided_at=_moment(body.get("decided_at")),
        decided_value=_text(body.get("decided_value"), 1000),
        decided_from=_text(body.get("decided_from"), 200),
    )
    return FleetPrompt(
        key,
        int(row["seq"]),
        str(row["machine"]),
        str(row["folder"]),
        str(row["state"]),
        record,
        raised,
        tuple(_text(name, 200) for name in _list(body.get("agreed"))[:MOST]),
        _wall(row["last_key_at"]) or None,
    )


def _at_page(prompt: Prompt, card: str) -> Prompt:
    """With the prompt's address here, instead of the one on the machine's own page."""
    constraints = {name: value for name, value in prompt.constraints.items() if name != CARD}
    if isinstance(proof := constraints.get(PROOF), dict):
        constraints[PROOF] = {**proof, "page": card}
    return with_card(replace(prompt, constraints=constraints), card)


def known_as(kind: type[E], word: object, otherwise: E) -> E:
    """The member of an enum that a machine names. One that is not known here is something else, such as an end."""
    try:
        return kind(word)
    except ValueError:
        return otherwise


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Read a prompt as a machine sent it. Of one that makes no sense only its text is left, so that one faulty machine
    does not break a chat.
    """
    given = {name: body[name] for name in _PUBLIC if name in body}
    subject, constraints = _subject(body.get("subject")), fitting_constraints(body.get("constraints"))
    rest = {"score": SCORES.get(_text(body.get("confidence")), 0.5), "constraints": constraints}
    try:
        prompt = with_keys(decode_prompt({**given, **rest}), body.get("keys"))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        said = (_text(body.get("excerpt")), _text(body.get("screen")))
        question = _text(body.get("question"))
        prompt = Prompt(PromptType.TYPE_UNKNOWN, 0.5, *said, (), constraints, question=question, whole=False)
    choices = tuple(
        Choice(one.value[:200], one.label[:1000], one.steps, one.refuses, one.always, one.default, one.detail[:4000])
        for one in prompt.choices[:MOST]
    )
    whole = prompt.whole and len(prompt.choices) <= MOST
    return replace(prompt, excerpt=prompt.excerpt[:EXCERPT_LIMIT], choices=choices, subject=subject, whole=whole)


def _subject(told: Any) -> Subject | None:
    """The subject of a prompt. The machine sends only what people are allowed to see: all of it is shown, and no rule
    or grant is made of it here."""
    found = parse_subject(told)
    return found and replace(found, shown=found.text, text="")


def read_session(row: Mapping[str, Any]) -> SessionRecord:
    body, key = row["body"], (str(row["machine_id"]), str(row["session_id"]))
    return SessionRecord(
        chat_id(key),
        _text(body.get("tool"), 100),
        tuple(_text(word, 1000) for word in _list(body.get("command"))[:MOST]),
        _text(body.get("cwd"), 1000),
        0,
        0,
        _moment(body.get("started_at")),
        known_as(SessionState, row["state"], SessionState.TERMINATED),
        label=_text(body.get("label"), 200),
        machine=str(row["machine"]),
    )


def _text(value: Any, most: int | None = None) -> str:
    return value[:most] if isinstance(value, str) else ""


def _moment(value: Any) -> str:
    """The time, if it has the format that machines use, or "" otherwise."""
    try:
        parse_iso(_text(value, 40))
    except (ValueError, OverflowError):
        return ""
    return _text(value, 40)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wall(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
