"""`core.ports.HubApi` over the rows of all machines, for the chats that the server runs.

Chats read without waiting, so the answers come from the cache. `seen_by` gives a view that contains only what the
people who read a chat are allowed to see.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.operations import NO_PROMPT, Caller, HubAs, Kept, Operation, Refused
from atlasbridge.core.policy.escalation import HOUR_S, SHORTEST_SNOOZE_S, SNOOZE, ScheduledItem, Tone
from atlasbridge.core.prompt.gate import LEAVE, LEAVES, UNKNOWN, refuse_reply
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import replace
from atlasbridge.fleet.server import decisions
from atlasbridge.fleet.server.audit import EVENTS, note, note_alone
from atlasbridge.fleet.server.chat_cache import HERE, ChatCache
from atlasbridge.fleet.server.context import ServerContext, Trace
from atlasbridge.fleet.server.database import Database, rows
from atlasbridge.fleet.server.decisions import Decision, Proposal
from atlasbridge.fleet.server.lists import FleetPrompt, Key, chat_id, known_as

log = logging.getLogger(__name__)

# What the chats must not lose, stored in tables: shown messages, escalation steps, incoming updates and small notes.
#
# A process reads the tables once when it takes over the chats and then keeps a copy in memory, because only one process
# writes them.

INBOX_DAYS = 14
RETRY_S = 0.5

Place = tuple[Key, str]  # a prompt in a channel


class ChatStore:
    """The part of the chats' hub API that is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.shown: dict[Place, dict[str, str]] = {}  # the messages, each with the prompt's state that it shows
        self.over: Newest[Place, list[str]] = Newest(1000)
        self.steps: dict[Key, set[tuple[int, str]]] = {}
        self._wakes: dict[Key, list[ScheduledItem]] = {}  # when people want to be asked again
        self._heard: list[tuple[str, str]] = []  # (person, time) of sounds in the last hour before this process
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
                self._heard.append((person, iso(row["taken_at"].timestamp())))
        for row in await database.rows(
            "SELECT w.* FROM chat_wakes w JOIN prompts p ON (p.machine_id, p.prompt_id) = (w.machine_id, w.prompt_id)"
            " WHERE p.is_open ORDER BY w.made_at"
        ):
            self._keep_wake((row["machine_id"], row["prompt_id"]), row["person"], row["due_at"].timestamp())
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
        self._keep_wake(key, person, due_at)

    def _keep_wake(self, key: Key, person: str, due_at: float) -> None:
        self._wakes.setdefault(key, []).append(ScheduledItem("", chat_id(key), SNOOZE, iso(due_at), "", person))

    def forget(self, key: Key) -> None:
        """Drop a prompt that has ended and whose messages show this."""
        self.steps.pop(key, None)
        self._wakes.pop(key, None)

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


# The hub API of the chats.

AT_MACHINE = "Do that at the machine itself, not from the server."
AWAY = "server.away."


class FleetHubApi(ChatStore):
    """The hub API for chats. `look_again` makes the escalation policy check a prompt again; `show_screen` requests a
    session's screen from its machine for a person.
    """

    router: PromptRouter  # set later, because the router needs this object
    look_again: Callable[[FleetPrompt], None]

    def __init__(
        self,
        database: Database,
        cache: ChatCache,
        clock: Clock,
        show_screen: Callable[[Key, str], Awaitable[dict[str, Any] | None]],
        trace: Trace,
    ) -> None:
        super().__init__(database)
        self._cache = cache
        self._clock = clock
        self._show_screen = show_screen
        self._trace = trace
        self._person = ""
        self._audience: frozenset[str] = frozenset()  # everybody who reads this view; empty: the server itself
        self.notices: Newest[str, frozenset[str]] = Newest(1000)  # for each notice (instead of a session): its readers

    def seen_by(self, identity: str, alone: bool = True) -> FleetHubApi:
        directory, view = self._cache.directory, copy(self)
        others = frozenset[str]() if alone else directory.in_channel(identity.partition(":")[0])
        view._person = directory.find(identity)  # "" for a stranger, who is allowed to see nothing
        view._audience = others | {view._person}
        return view

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        directory = self._cache.directory
        may_see = self.notices.get(session_id) or self._cache.session_readers(session_id)
        if directory.in_channel(channel) <= may_see:
            return None
        return frozenset(one for one in directory.identities(channel) if directory.find(one) in may_see)

    def people_in(self, channel: str) -> frozenset[str]:
        return self._cache.directory.in_channel(channel)

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        opened = {record.session_id: record.prompt_id for record in self.open_prompts()}
        found = [one for one in self._cache.sessions() if self._sees(one.session_id)]
        shown = [one for one in found if include_ended or one.state is SessionState.ACTIVE]
        return [replace(one, open_prompt=opened.get(one.session_id, "")) for one in shown]

    def session(self, session_id: str) -> SessionRecord | None:
        found = self._cache.session(session_id)
        return found.record if found and self._audience <= found.readers else None

    def _sees(self, session_id: str) -> bool:
        return self._audience <= self._cache.session_readers(session_id)

    def open_prompts(self) -> list[PromptRecord]:
        return [asked.record for asked in self._cache.open_asked() if self._audience <= asked.readers]

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        asked = self._cache.asked(prompt_id)
        return asked.record if asked and self._audience <= asked.readers else None

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        asked = self._cache.asked(prompt_id)
        return self.message_ids(asked.key, channel) if asked else []

    def notified_steps(self, prompt_id: str) -> frozenset[tuple[int, str]]:
        asked = self._cache.asked(prompt_id)
        return frozenset(self.steps.get(asked.key, ())) if asked else frozenset()

    def wakes(self, prompt_id: str) -> list[ScheduledItem]:
        asked = self._cache.asked(prompt_id)
        return self._wakes.get(asked.key, []) if asked else []

    def sounds_since(self, at: str) -> list[tuple[str, str]]:
        """What the tables told of the last hour when this process took over the chats."""
        return self._heard

    def when_durable(self, consequence: Callable[[], object]) -> None:
        """Run the consequence at once, because rows are written before anything is sent."""
        consequence()

    def record_shown(self, prompt_id: str, channel: str, message_id: str) -> asyncio.Future[None]:
        asked = self._cache.asked(prompt_id)
        if asked is None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        self._trace(asked.key[1], f"channel.{channel}", asked.raised_at, self._clock.wall(), machine=asked.key[0])
        return asyncio.ensure_future(self.add_shown(asked.key, channel, message_id, asked.state))

    def audit_head(self) -> tuple[int, str]:
        return 0, ""

    def name_of(self, identity: str) -> str:
        return self._cache.directory.find(identity)

    def reads(self, identity: str) -> tuple[str, str]:
        return "", ""  # a person chooses with the chat's own command

    def tone(self, prompt_id: str, channel: str) -> Tone:
        return self.router.tone(prompt_id, channel)

    def away(self, person: str) -> bool:
        noted = self.recall(f"{AWAY}{person}")
        return noted == "ever" or bool(noted and float(noted) > self._clock.wall())

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        found = self._cache.all_asked()[::-1] if self._audience else []  # permissions belong to people
        return [
            one.record for one in found if self._audience <= one.readers and session_id in ("", one.record.session_id)
        ][:limit]

    # mostly only available at the machine itself

    def folder(self, session_id: str) -> str:
        return ""

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        """The current screen. Scrollback is only available at the machine."""
        found = self._cache.session(session_id)
        if found is None or past or not self._person or not self._audience <= found.readers:
            return None
        return await self._show_screen(found.key, self._person)

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        return False

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return []

    def agreed(self, prompt_id: str) -> list[str]:
        asked = self._cache.asked(prompt_id)
        return list(asked.agreed) if asked else []

    def by(self, caller: Caller) -> HubAs:
        return HubAs(self._perform, caller)

    async def _perform(self, operation: Operation[..., Any], caller: Caller, given: Mapping[str, Any]) -> Any:
        """Run the method `do_NAME` of an operation. Operations without one are only available at the machine itself."""
        function = getattr(self, f"do_{operation.key}", None)
        return Refused("unavailable", AT_MACHINE) if function is None else await function(caller, **given)

    async def do_snooze(self, caller: Caller, prompt_id: str, for_s: float) -> Kept | Refused:
        """Pause notifications of this prompt. The machine sets the prompt's deadline, so the pause must be shorter."""
        asked, person = self._cache.asked(prompt_id), self._cache.directory.find(caller.identity)
        if asked is None or person not in asked.readers:
            return NO_PROMPT
        left_s = asked.record.deadline - self._clock.now()
        if not SHORTEST_SNOOZE_S <= for_s < left_s:
            return Refused("bad_value", f"Its machine waits {max(0, int(left_s // 60))} more minutes at most.")
        await self.add_wake(asked.key, person, self._clock.wall() + for_s)  # stored before it is confirmed
        self.look_again(asked)
        return Kept("snoozed", f"{person} snoozed this for {int(for_s // 60)} minutes.", "")

    async def do_away(self, caller: Caller, for_s: float | None = None) -> bool:
        self.remember(f"{AWAY}{self._person}", "ever" if for_s is None else str(self._clock.wall() + for_s))
        for asked in self._cache.open_asked():
            self.look_again(asked)
        return True

    async def do_here(self, caller: Caller) -> bool:
        self.remember(f"{AWAY}{self._person}", "")
        return False


# A reply from a chat becomes a proposal like one from the page: the same row selects the winner, and the machine
# decides.
#
# This class checks only what is specific to a chat (the identity and the nonce of a button). PostgreSQL checks
# permissions and selects the winner.

AGAIN_S = 1.0
WAIT_S = 8.0  # a chat drops a later toast
_REASONS = {"secret": Refusal.NOT_ALLOWED, "unknown_prompt": Refusal.UNKNOWN_PROMPT, "bad_request": Refusal.BAD_VALUE}


class ChatReplies:
    def __init__(self, context: ServerContext, cache: ChatCache, clock: Clock) -> None:
        self._context = context
        self._cache = cache
        self._clock = clock

    async def answer(self, reply: InboundReply) -> Receipt | Reject:
        asked = self._cache.asked(reply.prompt_id)
        person = self._cache.directory.find(reply.identity) if not reply.identity.startswith(f"{HERE}:") else ""
        seen = asked if asked is not None and person in asked.readers else None  # else it is reported as unknown
        record = None if seen is None else seen.record
        refusal = refuse_reply(record, reply, allowed=True, now=self._clock.now())
        if refusal is not None or seen is None:
            refusal = refusal or UNKNOWN
            await self._note(asked, reply, person, refusal)
            return refusal
        key = reply.request_key or new_id()
        leaves = reply.nonce and reply.value in LEAVES  # a button's own word, which the prompt could offer, too
        value = LEAVE if leaves else reply.value
        wish = Proposal(*seen.key, person, value, reply.as_text, reply.place or reply.channel, key)
        try:
            made = await self._propose(wish)
        except StoreError as error:
            log.warning("what became of an answer is asked about again: %s", error)
            made = await self._find_out(person, key)
        if isinstance(made, Refused):
            return Reject(_reason(made.reason), made.message)
        if made is None:
            return Reject(Refusal.UNAVAILABLE, "Your answer did not arrive. Answer again.")
        return self._tell(seen, reply, person, made)

    async def _propose(self, wish: Proposal) -> Decision | Refused | None:
        made = await decisions.propose(self._context.database, wish)
        return made if isinstance(made, Refused) else await self._context.pass_on(made, wish.person, WAIT_S)

    async def _find_out(self, person: str, key: str) -> Decision | None:
        """Ask the database until it says whether the answer was stored, because the connection broke while it was
        written.
        """
        while True:
            await asyncio.sleep(AGAIN_S)
            try:
                return await decisions.find_by_key(self._context.database, person, key)
            except StoreError as error:
                log.warning("what became of an answer is not known yet: %s", error)

    async def _note(self, asked: FleetPrompt | None, reply: InboundReply, person: str, refusal: Reject) -> None:
        """Record the refusal with the server's names of the machine and the prompt."""
        machine, prompt_id = asked.key if asked else ("", reply.prompt_id[:64])
        who = person or escape_controls(reply.identity[:80], keep_lines=False)
        await note_alone(
            self._context.database,
            "DECISION_REFUSED",
            machine=machine,
            prompt_id=escape_controls(prompt_id, keep_lines=False),
            decided_by=who,
            reason="not_allowed" if asked and person not in asked.readers else refusal.reason.value,
            place=reply.channel,
        )

    def _tell(self, asked: FleetPrompt, reply: InboundReply, person: str, decision: Decision) -> Receipt | Reject:
        by, machine = f"{HERE}:{person}", escape_controls(asked.machine, keep_lines=False)
        stage, sentence = decision.stage, escape_controls(decision.sentence, keep_lines=False)
        if not decision.settled:
            stage, sentence = "received", f"Sent to {machine}, which has not answered yet."
        elif not decision.ok:
            return Reject(_reason(stage), sentence)
        return Receipt(stage, sentence, by, reply.value, reply.place)


def _reason(reason: str) -> Refusal:
    return _REASONS.get(reason) or known_as(Refusal, reason, Refusal.UNAVAILABLE)
