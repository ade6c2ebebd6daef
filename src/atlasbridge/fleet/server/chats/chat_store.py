"""What the chats must not lose, stored in tables: shown messages, escalation steps, incoming updates and small notes.

A process reads the tables once when it takes over the chats and then keeps a copy in memory, because only one process
writes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from atlasbridge.core.errors import StoreError
from atlasbridge.core.policy.escalation import HOUR_S
from atlasbridge.fleet.server.audit import EVENTS, note
from atlasbridge.fleet.server.chats.mapping import Key
from atlasbridge.fleet.server.database import Database, rows

log = logging.getLogger(__name__)

INBOX_DAYS = 14
RETRY_S = 0.5

Place = tuple[Key, str]  # a prompt in a channel


class ChatStore:
    """The part of the chats' hub API that is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.shown: dict[Place, dict[str, str]] = {}  # the messages, each with the prompt's state that it shows
        self.over: dict[Place, list[str]] = {}
        self.steps: dict[Key, set[tuple[int, str]]] = {}
        self.wakes: dict[Key, list[float]] = {}  # when people want to be asked again
        self.heard: list[tuple[str, float]] = []  # (person, time) of sounds in the last hour before this process
        self._inbox: dict[str, dict[str, str]] = {}
        self._notes: dict[str, str] = {}
        self._unwritten: dict[str, str] = {}
        self._unnoted: list[tuple[str, dict[str, object]]] = []
        self._writing = asyncio.Event()

    async def load(self) -> None:
        """Load the state that the last process left. Steps that it recorded but never sent are deleted, so that they
        run again.
        """
        database = self._database
        for row in await database.rows("SELECT * FROM chat_deliveries WHERE NOT over"):
            place = ((row["machine_id"], row["prompt_id"]), row["channel"])
            self.shown.setdefault(place, {})[row["message_id"]] = row["told"]
        query = """DELETE FROM chat_steps s USING prompts p WHERE (p.machine_id, p.prompt_id) = (s.machine_id,
            s.prompt_id) AND p.is_open AND NOT EXISTS (SELECT 1 FROM chat_deliveries d WHERE (d.machine_id,
            d.prompt_id, d.channel) = (s.machine_id, s.prompt_id, s.channel))"""
        await database.rows(query)
        for row in await database.rows(
            "SELECT s.* FROM chat_steps s JOIN prompts p ON (p.machine_id, p.prompt_id) = (s.machine_id, s.prompt_id)"
            " WHERE p.is_open"
        ):
            self.steps.setdefault((row["machine_id"], row["prompt_id"]), set()).add((row["step"], row["channel"]))
        since = database.now() - timedelta(seconds=HOUR_S)
        for row in await database.rows("SELECT heard, taken_at FROM chat_steps WHERE taken_at > %s", since):
            for person in row["heard"]:
                self.heard.append((person, row["taken_at"].timestamp()))
        for row in await database.rows(
            "SELECT w.* FROM chat_wakes w JOIN prompts p ON (p.machine_id, p.prompt_id) = (w.machine_id, w.prompt_id)"
            " WHERE p.is_open ORDER BY w.made_at"
        ):
            self.wakes.setdefault((row["machine_id"], row["prompt_id"]), []).append(row["due_at"].timestamp())
        for row in await database.rows("SELECT * FROM chat_inbox WHERE NOT settled ORDER BY number"):
            self._inbox.setdefault(row["channel"], {})[row["update_id"]] = row["payload"]
        self._notes = {row["key"]: row["value"] for row in await database.rows("SELECT key, value FROM chat_notes")}

    # shown messages

    def message_ids(self, key: Key, channel: str) -> list[str]:
        return [*self.shown.get((key, channel), {}), *self.over.get((key, channel), ())]

    async def add_shown(self, key: Key, channel: str, message_id: str, state: str) -> None:
        """Record a message that shows a prompt. `state` is the prompt's state in that message."""
        query = """INSERT INTO chat_deliveries (machine_id, prompt_id, channel, message_id, shown_at, told)
            VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""
        await self._database.rows(query, *key, channel, message_id, self._database.now(), state)
        self.shown.setdefault((key, channel), {})[message_id] = state

    async def add_told(self, key: Key, channel: str, state: str, over: bool) -> None:
        """Record the state that the prompt's messages show now."""
        query = """UPDATE chat_deliveries SET told = %s, over = %s
            WHERE machine_id = %s AND prompt_id = %s AND channel = %s"""
        await self._database.rows(query, state, over, *key, channel)
        known = self.shown.pop((key, channel), {})
        if over:
            self.over[key, channel] = list(known)
            while len(self.over) > 1000:
                del self.over[next(iter(self.over))]
        else:
            self.shown[key, channel] = dict.fromkeys(known, state)

    # the escalation policy

    async def take_steps(self, key: Key, steps: Iterable[int], channel: str, heard: Iterable[str]) -> set[int]:
        """Record these steps and return the ones that are new. Only the process that wrote the row sends."""
        now = self._database.now()
        async with self._database.transaction() as connection:
            query = """INSERT INTO chat_steps (machine_id, prompt_id, step, channel, taken_at, heard)
                SELECT %s, %s, step, %s, %s, %s FROM unnest(%s::int[]) AS step ON CONFLICT DO NOTHING RETURNING step"""
            taken = await rows(connection, query, *key, channel, now, sorted(heard), list(steps))
            query = "UPDATE prompts SET chats_ask = true WHERE machine_id = %s AND prompt_id = %s AND NOT chats_ask"
            await connection.execute(query, key)
        mine = {int(row["step"]) for row in taken}
        self.steps.setdefault(key, set()).update((step, channel) for step in steps)
        return mine

    async def promise(self, keys: list[Key]) -> None:
        """Record that the chats ask people about these prompts, now or at a later step."""
        query = """UPDATE prompts p SET chats_ask = true FROM unnest(%s::text[], %s::text[]) AS w (machine, name)
            WHERE (p.machine_id, p.prompt_id) = (w.machine, w.name) AND NOT p.chats_ask"""
        await self._database.rows(query, [key[0] for key in keys], [key[1] for key in keys])

    async def add_wake(self, key: Key, person: str, due_at: float) -> None:
        query = """INSERT INTO chat_wakes (machine_id, prompt_id, person, due_at, made_at) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT DO NOTHING"""
        await self._database.rows(query, *key, person, datetime.fromtimestamp(due_at, UTC), self._database.now())
        self.wakes.setdefault(key, []).append(due_at)

    def forget(self, key: Key) -> None:
        """Drop a prompt that has ended and whose messages show this."""
        self.steps.pop(key, None)
        self.wakes.pop(key, None)

    # incoming updates

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        query = """INSERT INTO chat_inbox (channel, update_id, payload, at) VALUES (%s, %s, %s, %s)
            ON CONFLICT DO NOTHING RETURNING update_id"""
        fresh = await self._database.rows(query, channel, update_id, payload, self._database.now())
        if fresh:
            self._inbox.setdefault(channel, {})[update_id] = payload
        return bool(fresh)

    async def settle_update(self, channel: str, update_id: str) -> None:
        query = "UPDATE chat_inbox SET settled = true, payload = '' WHERE channel = %s AND update_id = %s"
        await self._database.rows(query, channel, update_id)
        self._inbox.get(channel, {}).pop(update_id, None)

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        return list(self._inbox.get(channel, {}).items())

    async def clean(self) -> None:
        query = "DELETE FROM chat_inbox WHERE at < %s"
        await self._database.rows(query, self._database.now() - timedelta(days=INBOX_DAYS))

    # small notes and audit entries: available at once, written a moment later

    def remember(self, key: str, value: str) -> None:
        if self._notes.get(key) != value:
            self._notes[key] = self._unwritten[key] = value
            self._writing.set()

    def recall(self, key: str, default: str = "") -> str:
        return self._notes.get(key, default)

    def note(self, event: str, **fields: object) -> None:
        if event in EVENTS:
            self._unnoted.append((event, fields))
            self._writing.set()

    async def write(self) -> None:
        """Write pending notes and entries until the task is cancelled."""
        while True:
            await self._writing.wait()
            self._writing.clear()
            try:
                await self.flush()
            except StoreError as error:
                log.warning("notes of the chats are written later: %s", error)
                await asyncio.sleep(RETRY_S)
                self._writing.set()

    async def flush(self) -> None:
        notes, entries = dict(self._unwritten), list(self._unnoted)
        if not notes and not entries:
            return
        async with self._database.transaction() as connection:
            for key, value in notes.items():
                query = """INSERT INTO chat_notes (key, value) VALUES (%s, %s)
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
                await connection.execute(query, (key, value))
            for event, fields in entries:
                await note(connection, self._database.now(), event, **fields)
        for key in [key for key, value in self._unwritten.items() if notes.get(key) == value]:
            del self._unwritten[key]
        del self._unnoted[: len(entries)]
