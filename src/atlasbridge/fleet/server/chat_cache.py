"""The rows that the chats need, cached in memory: channels read without waiting, and the cache fetches what has
changed.

The cache can be rebuilt from the tables at any time. `ChatStore` stores what must survive a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import short_id
from atlasbridge.core.policy.escalation import PeopleBook, Person, parse_quiet
from atlasbridge.core.prompt.model import OPEN
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import ChatPlan
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import frozen, replace
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.lists import FleetPrompt, Key, chat_id, read_asked, read_session
from atlasbridge.fleet.server.people import ALLOWED

# The people of the server who use chats: their identities, quiet hours and permissions.

HERE = "server"  # the channel in the identity of a person who answered at the server, such as "server:alice"

_CHAT_PEOPLE = "SELECT name FROM people WHERE gone_at IS NULL AND cardinality(identities) > 0"
_MAY_SEE = ALLOWED.replace("%(person)s", "x.name").replace("%(may)s", "'see'")
# A digest of everything that affects permissions. While it stays the same, permissions are not read again.
_RIGHTS = """
SELECT md5(concat_ws('/',
    (SELECT string_agg(concat_ws('|', name, role, gone_at, identities, quiet, zone), ',' ORDER BY name) FROM people),
    (SELECT string_agg(concat_ws('|', holder, machine, folder, may), ',' ORDER BY id) FROM rights),
    (SELECT string_agg(concat_ws('|', team, person), ',' ORDER BY team, person) FROM team_members),
    (SELECT string_agg(concat_ws('|', id, name), ',' ORDER BY id) FROM machines WHERE gone_at IS NULL))) AS mark
"""


@frozen
class Directory:
    book: PeopleBook = PeopleBook()
    teams: tuple[tuple[str, str], ...] = ()  # (team, person)
    mark: str = ""

    def find(self, identity: str) -> str:
        """The name of the person with this identity, or "". Machines use `server:NAME` for a person who answered at the
        server.
        """
        channel, _, who = identity.partition(":")
        if channel == HERE:
            return who
        person = self.book.find(identity)
        return person.name if person else ""

    def identities(self, channel: str) -> tuple[str, ...]:
        return tuple(sorted(one for one in self.book.by_identity if one.startswith(f"{channel}:")))

    def by_channel(self) -> dict[str, tuple[str, ...]]:
        return {name: self.identities(name) for name in {one.partition(":")[0] for one in self.book.by_identity}}

    def in_channel(self, channel: str) -> frozenset[str]:
        return frozenset(self.book.person_of(one) for one in self.identities(channel))

    def named(self, words: Iterable[str]) -> tuple[str, ...]:
        """The people with these names, and the members of `@team` names."""
        found: dict[str, None] = {}
        for word in words:
            members = [person for team, person in self.teams if f"@{team}" == word]
            found |= dict.fromkeys(members if word.startswith("@") else [word])
        return tuple(found)


async def load_directory(database: Database) -> Directory:
    query = """SELECT name, identities, quiet, zone FROM people WHERE gone_at IS NULL AND cardinality(identities) > 0
        ORDER BY name"""
    people = await database.rows(query)
    teams = await database.rows("SELECT team, person FROM team_members ORDER BY team, person")
    mark = await rights_mark(database)
    try:
        book = PeopleBook.of(*(_person(one) for one in people))
    except ValueError as error:  # only after a manual change of the rows
        raise StoreError(
            f"the people of the server make no sense: {error}", "see: atlasbridge fleet people list"
        ) from None
    return Directory(book, tuple((one["team"], one["person"]) for one in teams), mark)


def _person(row: dict[str, Any]) -> Person:
    return Person(row["name"], tuple(row["identities"]), tuple(map(parse_quiet, row["quiet"])), row["zone"])


async def rights_mark(database: Database) -> str:
    return str((await database.rows(_RIGHTS))[0]["mark"])


async def prompt_readers(database: Database, keys: list[Key]) -> dict[Key, frozenset[str]]:
    return await _readers(database, "prompts s", "s.prompt_id", "s.folder", keys)


async def session_readers(database: Database, keys: list[Key]) -> dict[Key, frozenset[str]]:
    return await _readers(database, "sessions s", "s.session_id", "coalesce(s.body ->> 'cwd', '')", keys)


async def _readers(
    database: Database, source: str, name: str, folder: str, keys: list[Key]
) -> dict[Key, frozenset[str]]:
    """The chat users who are allowed to see each item. Permissions depend on machine and folder, so each pair is
    checked once.
    """
    if not keys:
        return {}
    async with database.transaction() as connection:
        cursor = await connection.execute(
            f"""
            WITH found AS MATERIALIZED (
                SELECT s.machine_id, {name} AS name, {folder} AS folder
                FROM unnest(%(machines)s::text[], %(names)s::text[]) AS w (machine, name)
                JOIN {source} ON (s.machine_id, {name}) = (w.machine, w.name)
            ), places AS MATERIALIZED (SELECT DISTINCT machine_id, folder FROM found),
            allowed AS MATERIALIZED (
                SELECT p.machine_id, p.folder, x.name AS person
                FROM places p JOIN machines m ON m.id = p.machine_id, ({_CHAT_PEOPLE}) x WHERE {_MAY_SEE}
            )
            SELECT f.machine_id, f.name, a.person
            FROM found f JOIN allowed a ON (a.machine_id, a.folder) = (f.machine_id, f.folder)""",
            {"machines": [key[0] for key in keys], "names": [key[1] for key in keys]},
        )
        found: dict[Key, set[str]] = {key: set() for key in keys}
        for machine, own_id, person in await cursor.fetchall():
            found[machine, own_id].add(person)
    return {key: frozenset(names) for key, names in found.items()}


def chat_policy(plan: ChatPlan, directory: Directory) -> PolicySettings:
    """The plan's settings with the server's people. `@team` in an escalation policy becomes its members. The name of an
    empty team stays, because an empty list would mean everybody.
    """
    escalation = tuple(
        replace(one, steps=tuple(replace(step, who=directory.named(step.who) or step.who) for step in one.steps))
        for one in plan.policy.attention.escalation
    )
    attention = replace(plan.policy.attention, people=directory.book, escalation=escalation)
    allowed = {name: frozenset(known) for name, known in directory.by_channel().items()}
    return replace(plan.policy, allowed=allowed, attention=attention)


KEPT_ENDED = 1000  # ended prompts stay available, so that a late answer gets the outcome

_PROMPTS = """
SELECT p.machine_id, p.prompt_id, p.seq, p.state, m.name AS machine,
       CASE WHEN d.settled_at IS NULL THEN coalesce(d.person, '') ELSE '' END AS deciding
FROM (SELECT machine_id, prompt_id FROM prompts WHERE is_open
      UNION SELECT machine_id, prompt_id FROM chat_deliveries WHERE NOT over) AS live
JOIN prompts p USING (machine_id, prompt_id) JOIN machines m ON m.id = p.machine_id
LEFT JOIN decisions d ON d.id = p.decision_id
"""
_BODIES = """
SELECT p.machine_id, p.prompt_id, p.session_id, p.seq, p.state, p.body, p.folder, p.raised_at, p.expires_at,
       p.last_key_at, m.name AS machine
FROM prompts p JOIN machines m ON m.id = p.machine_id
JOIN unnest(%s::text[], %s::text[]) AS w (machine, name) ON (w.machine, w.name) = (p.machine_id, p.prompt_id)
"""
_SESSIONS = """
SELECT s.machine_id, s.session_id, s.seq, s.state, m.name AS machine
FROM (SELECT machine_id, session_id FROM sessions WHERE state = 'active'
      UNION SELECT machine_id, session_id FROM prompts WHERE is_open) AS live
JOIN sessions s USING (machine_id, session_id) JOIN machines m ON m.id = s.machine_id AND m.gone_at IS NULL
"""
_SESSION_BODIES = """
SELECT s.machine_id, s.session_id, s.body, s.state, m.name AS machine
FROM sessions s JOIN machines m ON m.id = s.machine_id
JOIN unnest(%s::text[], %s::text[]) AS w (machine, name) ON (w.machine, w.name) = (s.machine_id, s.session_id)
"""


@frozen
class FleetSession:
    key: Key
    mark: tuple[Any, ...]  # while it stays the same, the session is not read again
    record: SessionRecord
    readers: frozenset[str] = frozenset()


class ChatCache:
    def __init__(self, database: Database, clock: Clock, secret: str, url: str) -> None:
        self._database = database
        self._clock = clock
        self._secret = secret  # the secret for the nonces
        self._url = url
        self.directory = Directory()
        self._prompts: dict[str, FleetPrompt] = {}
        self._by_key: dict[Key, str] = {}
        self._sessions: dict[str, FleetSession] = {}
        self._running: frozenset[str] = frozenset()
        self._short: dict[str, set[str]] = {}

    async def refresh(self) -> list[FleetPrompt]:
        """Fetch what has changed, and return the prompts that are new or different."""
        anew = await rights_mark(self._database) != self.directory.mark
        if anew:
            self.directory = await load_directory(self._database)
        await self._fetch_sessions(anew)
        changed = await self._fetch_prompts(anew)
        self._forget_old()
        return changed

    # prompts

    def asked(self, prompt_id: str) -> FleetPrompt | None:
        """Find a prompt by its full or short id. Returns None if a short id is ambiguous."""
        if prompt_id in self._prompts:
            return self._prompts[prompt_id]
        begun = self._short.get(prompt_id, set())
        return self._prompts[next(iter(begun))] if len(begun) == 1 else None

    def by_key(self, key: Key) -> FleetPrompt | None:
        return self._prompts.get(self._by_key.get(key, ""))

    def all_asked(self) -> list[FleetPrompt]:
        return list(self._prompts.values())

    def open_asked(self) -> list[FleetPrompt]:
        return [one for one in self._prompts.values() if one.record.state in OPEN]

    async def _fetch_prompts(self, anew: bool) -> list[FleetPrompt]:
        listed = {(row["machine_id"], row["prompt_id"]): row for row in await self._database.rows(_PROMPTS)}
        known = {asked.key: asked for asked in self._prompts.values()}
        stale = [key for key, row in listed.items() if _mark(row) != _mark_of(known.get(key))]
        stale += [key for key, one in known.items() if key not in listed and one.record.state in OPEN]
        fetched = await self._database.rows(_BODIES, [key[0] for key in stale], [key[1] for key in stale])
        wanted = list({*stale, *(known if anew else ())})
        readers = await prompt_readers(self._database, wanted)
        changed = []
        for row in fetched:
            asked = read_asked(row, self._secret, self._clock, self._url)
            deciding = listed.get(asked.key, {}).get("deciding", "")
            changed.append(replace(asked, readers=readers.get(asked.key, frozenset()), deciding=deciding))
        self._keep(changed)
        rest = [one for one in known.values() if anew and one.key not in set(stale)]
        self._keep([replace(one, readers=readers.get(one.key, frozenset())) for one in rest])
        return changed

    def _keep(self, found: Iterable[FleetPrompt]) -> None:
        for given in sorted(found, key=lambda one: one.raised_at):
            asked = self._named(given)
            self._prompts.pop(asked.chat_id, None)  # moves it to the end, so that old prompts come first
            self._prompts[asked.chat_id] = asked
            self._by_key[asked.key] = asked.chat_id
            self._short.setdefault(short_id(asked.chat_id), set()).add(asked.chat_id)

    def _named(self, asked: FleetPrompt) -> FleetPrompt:
        """The first prompt with a short id keeps it, so that another machine's prompt cannot make it ambiguous."""
        known = self._by_key.get(asked.key)
        taken = self._short.get(short_id(asked.chat_id), set()) - {asked.chat_id}
        if known is None and not taken:
            return asked
        return replace(asked, record=replace(asked.record, prompt_id=known or chat_id(asked.key, own=False)))

    def _forget_old(self) -> None:
        ended = [one for one in self._prompts.values() if one.record.state not in OPEN]
        for asked in ended[: max(0, len(ended) - KEPT_ENDED)]:
            del self._prompts[asked.chat_id]
            del self._by_key[asked.key]
            same = self._short[short_id(asked.chat_id)]
            same.discard(asked.chat_id)
            if not same:
                del self._short[short_id(asked.chat_id)]

    async def load_ended(self) -> None:
        """Load ended prompts that were shown recently, because people can still tap their buttons after a restart."""
        query = """SELECT DISTINCT machine_id, prompt_id FROM (SELECT machine_id, prompt_id FROM chat_deliveries
            WHERE over ORDER BY shown_at DESC LIMIT %s) AS last"""
        rows = await self._database.rows(query, KEPT_ENDED)
        keys = [(row["machine_id"], row["prompt_id"]) for row in rows]
        fetched = await self._database.rows(_BODIES, [key[0] for key in keys], [key[1] for key in keys])
        readers = await prompt_readers(self._database, keys)
        found = [read_asked(row, self._secret, self._clock, self._url) for row in fetched]
        self._keep([replace(one, readers=readers.get(one.key, frozenset())) for one in found])

    # sessions

    def sessions(self) -> list[SessionRecord]:
        return [self._sessions[one].record for one in self._running if one in self._sessions]

    def session(self, session_id: str) -> FleetSession | None:
        """Find a session by its full or short id."""
        if session_id in self._sessions:
            return self._sessions[session_id]
        begun = [one for name, one in self._sessions.items() if len(session_id) >= 8 and name.startswith(session_id)]
        return begun[0] if len(begun) == 1 else None

    def session_readers(self, session_id: str) -> frozenset[str]:
        found = self._sessions.get(session_id)
        return found.readers if found else frozenset()

    async def _fetch_sessions(self, anew: bool) -> None:
        listed = {(row["machine_id"], row["session_id"]): row for row in await self._database.rows(_SESSIONS)}
        marks = {key: (row["seq"], row["state"], row["machine"]) for key, row in listed.items()}
        known = {one.key: one.mark for one in self._sessions.values()}
        stale = [key for key in listed if known.get(key) != marks[key]]
        for row in await self._database.rows(_SESSION_BODIES, [key[0] for key in stale], [key[1] for key in stale]):
            key, record = (row["machine_id"], row["session_id"]), read_session(row)
            self._sessions[record.session_id] = FleetSession(
                key, marks[key], record, self.session_readers(record.session_id)
            )
        self._running = frozenset(chat_id(key) for key, row in listed.items() if row["state"] == "active")
        wanted = [one.key for one in self._sessions.values()] if anew else stale
        for key, names in (await session_readers(self._database, wanted)).items():
            if found := self._sessions.get(chat_id(key)):
                self._sessions[chat_id(key)] = replace(found, readers=names)
        # those that have ended stay as long as their prompts
        needed = {chat_id(key) for key in listed} | {asked.record.session_id for asked in self._prompts.values()}
        self._sessions = {name: one for name, one in self._sessions.items() if name in needed}


def _mark(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["seq"], row["state"], row["machine"], row["deciding"]


def _mark_of(asked: FleetPrompt | None) -> tuple[Any, ...] | None:
    return None if asked is None else (asked.seq, asked.state, asked.machine, asked.deciding)
