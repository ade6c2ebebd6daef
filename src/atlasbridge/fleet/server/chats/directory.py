"""The people of the server who are in chats: who has which identity, who wants quiet, who may see what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atlasbridge.core.errors import StoreError
from atlasbridge.core.policy.people import PeopleBook, Person, parse_quiet
from atlasbridge.core.routing.channel_worker import ChatPlan
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import frozen, replace
from atlasbridge.fleet.server.chats.mapping import Key
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.people import ALLOWED

HERE = "server"  # as whom a machine knows a person who answered at the server: "server:alice"

_CHAT_PEOPLE = "SELECT name FROM people WHERE gone_at IS NULL AND cardinality(identities) > 0"
_MAY_SEE = ALLOWED.replace("%(person)s", "x.name").replace("%(may)s", "'see'")
# Whatever can change what somebody may see; where it is the same, nothing is asked anew.
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
        """The person's name; "": nobody's.  A machine says `server:NAME` of who answered here."""
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
        """People, and the members of `@team`s."""
        found: dict[str, None] = {}
        for word in words:
            members = [person for team, person in self.teams if f"@{team}" == word]
            found |= dict.fromkeys(members if word.startswith("@") else [word])
        return tuple(found)


async def load_directory(database: Database) -> Directory:
    people = await database.rows(
        "SELECT name, identities, quiet, zone FROM people WHERE gone_at IS NULL AND cardinality(identities) > 0"
        " ORDER BY name"
    )
    teams = await database.rows("SELECT team, person FROM team_members ORDER BY team, person")
    mark = (await database.rows(_RIGHTS))[0]["mark"]
    try:
        book = PeopleBook.of(*(_person(one) for one in people))
    except ValueError as error:  # somebody changed the rows by hand
        raise StoreError(
            f"the people of the server make no sense: {error}", "see: atlasbridge fleet people list"
        ) from None
    return Directory(book, tuple((one["team"], one["person"]) for one in teams), str(mark))


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
    """Who of those in a chat may see each of them.  Rights go by machine and folder: each pair is judged once."""
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
    """The plan's settings with the server's people.  `@team` in an escalation policy means its members; a team of which
    nobody is left still means somebody in particular, not everybody."""
    escalation = tuple(
        replace(one, steps=tuple(replace(step, who=directory.named(step.who) or step.who) for step in one.steps))
        for one in plan.policy.attention.escalation
    )
    attention = replace(plan.policy.attention, people=directory.book, escalation=escalation)
    allowed = {name: frozenset(known) for name, known in directory.by_channel().items()}
    return replace(plan.policy, allowed=allowed, attention=attention)
