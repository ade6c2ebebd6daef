"""Runs the chats in one server process: waits for the leader lock, loads the stored state, runs the channels and stops
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.escalation import Planner
from atlasbridge.core.daemon.receipts import Receipts
from atlasbridge.core.errors import AtlasBridgeError, StoreError, first_of
from atlasbridge.core.policy.escalation import EscalationPlan, Route, listeners
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import OPEN, Receipt
from atlasbridge.core.routing.policy import PolicySettings, decide_audience, decide_route
from atlasbridge.core.routing.router import ChannelWorker, ChatPlan, Job, PromptRouter, ReadPlan
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.fleet.server import reports
from atlasbridge.fleet.server.chat_api import ChatReplies, FleetHubApi
from atlasbridge.fleet.server.chat_cache import ChatCache, Directory, chat_policy
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import BOARD, LeaderLock, called_within, leader_lock
from atlasbridge.fleet.server.lists import GONE, FleetPrompt, Key

log = logging.getLogger(__name__)

ASK_S = 2.0  # how often a waiting process tries to get the leader lock
LOOK_S = 1.0  # how often the escalation policy is checked without a notification
CALM_S = 0.05
REST = 4  # pause after each round, as a multiple of its duration: the chats use a fifth of a processor at most
LONGEST_REST_S = 5.0
CLEAN_S = 3600.0
STOP_S = 2.0


class Chats:
    """Runs the chats. `read_plan` is called whenever the people of the server change."""

    def __init__(self, context: ServerContext, read_plan: ReadPlan) -> None:
        self._context = context
        self._read_plan = read_plan
        self._clock = context.database.clock
        self._router: PromptRouter | None = None
        self._keys: list[str] = []  # keys of the active channels; after a change all channels restart
        self.carries = False

    def health(self) -> dict[str, Any]:
        return {
            "carried_here": self.carries,
            "channels": self._router.health() if self.carries and self._router else [],
        }

    async def run(self) -> None:
        while True:
            try:
                async with leader_lock(self._context.database.url) as mine:
                    if mine is not None:
                        await self._carry(mine)
            except* StoreError as group:
                log.warning("the chats wait: %s", first_of(group))
            except* Exception:  # the channel boundary: after any fault there, the page and the links continue
                log.exception("the chats start again")
            await asyncio.sleep(ASK_S)

    async def _carry(self, mine: LeaderLock) -> None:
        log.info("this server carries the chats")
        cache = ChatCache(self._context.database, self._clock, self._context.identity.chat_secret, self._context.url)
        show_screen = partial(glance, self._context)
        server = FleetHubApi(self._context.database, cache, self._clock, show_screen, self._context.trace)
        router = self._router = server.router = PromptRouter(server, PolicySettings())
        try:
            await server.load()
            await cache.refresh()
            await cache.load_ended()
            escalation = ChatEscalation(cache, server, router, self._clock)
            server.look_again = lambda asked: escalation.changed((asked.chat_id,))
            self._keys = []
            self.carries = True
            async with asyncio.TaskGroup() as group:
                group.create_task(mine.lost(), name="chats-turn")
                group.create_task(server.write(), name="chats-notes")
                group.create_task(self._follow(cache, escalation, server), name="chats-escalation")
                group.create_task(_clean(server), name="chats-clean")
        finally:
            self.carries = False
            await router.stop(STOP_S)
            try:
                await server.flush()
            except StoreError as error:
                log.warning("notes of the chats were not written: %s", error)
            log.info("this server does not carry the chats any more")

    async def _follow(self, cache: ChatCache, escalation: ChatEscalation, server: FleetHubApi) -> None:
        mark = None
        replies = ChatReplies(self._context, cache, self._clock)
        with self._context.wakeups.waiting(BOARD) as called:
            while True:
                called.clear()
                began = self._clock.now()
                changed = {asked.chat_id for asked in await cache.refresh()}
                if cache.directory.mark != mark:
                    mark = cache.directory.mark
                    await self._use(self._plan(cache), cache.directory, escalation, server, replies)
                escalation.changed(changed)
                for machine_id in await escalation.look():
                    self._context.wakeups.tell(f"asks:{machine_id}")
                await self._carry_notices(escalation.channels, server)
                await asyncio.sleep(min(max(CALM_S, REST * (self._clock.now() - began)), LONGEST_REST_S))
                await called_within(called, LOOK_S)  # a step can be due

    async def _carry_notices(self, channels: Mapping[str, bool], server: FleetHubApi) -> None:
        """Send machines' notices to the people who can see something of the machine."""
        for one in await reports.uncarried_notices(self._context.database):
            place = SessionRecord(f"notice:{one['id']}", "notify", (), "", 0, 0, "", machine=one["machine"])
            readers = server.notices[place.session_id] = frozenset(one["readers"])
            for name, personal in channels.items():
                present = server.people_in(name)
                if present <= readers or (personal and present & readers):
                    told = f"{one['machine']}: {one['message']}"
                    server.router.tell(name, told, None if present <= readers else place)

    def _plan(self, cache: ChatCache) -> ChatPlan:
        try:
            return self._read_plan(cache.directory.by_channel())
        except AtlasBridgeError as error:  # valid at the start, but not now: an identity, for example
            log.error("the chats stand still: %s (%s)", error, error.hint)
            return ChatPlan()

    async def _use(
        self,
        plan: ChatPlan,
        directory: Directory,
        escalation: ChatEscalation,
        server: FleetHubApi,
        replies: ChatReplies,
    ) -> None:
        for name in plan.idle:
            log.warning("nobody takes part in %s: atlasbridge fleet people identity NAME %s:…", name, name)
        router = server.router
        router.policy = chat_policy(plan, directory)
        if (keys := [one.key for one in plan.channels]) != self._keys:
            self._keys = keys
            await router.stop(STOP_S)
            for one in plan.channels:
                router.add(ChannelWorker(one.name, True, partial(one.build, server), replies.answer, plan.worker))
            router.start()
        escalation.channels = {one.name: one.personal for one in plan.channels}
        escalation.start_over()


async def _clean(store: FleetHubApi) -> None:
    while True:
        await store.clean()
        await asyncio.sleep(CLEAN_S)


# A single view of a session's screen for a chat. As on the page, it needs permission, comes from the machine and is
# logged.

PATIENCE_S = 4.0


async def glance(context: ServerContext, session: Key, person: str) -> dict[str, Any] | None:
    """The session's screen as text. None if this person is not allowed to see it or the machine does not send it in
    time.
    """
    if not await reports.look(context.database, *session, person, first=True):
        return None
    try:
        with context.wakeups.waiting(f"screen:{session[0]}:{session[1]}") as called:
            context.wakeups.tell(f"job:{session[0]}")
            return await _frame(context, session, called)
    finally:
        await reports.look_away(context.database, *session, person)
        context.wakeups.tell(f"job:{session[0]}")


async def _frame(context: ServerContext, session: Key, called: asyncio.Event) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await reports.shown_screen(context.database, *session)
                if isinstance(found, dict) and isinstance(found.get("lines"), list):
                    return {"text": "\n".join(str(line) for line in found["lines"])}
                called.clear()
                await called.wait()
    except TimeoutError:
        return None


# Runs the escalation policy for the open prompts of all machines, and edits their messages when they end.
#
# As in a hub, `core.policy` decides what is due and `core.routing` sends it. Each step is stored before it is sent;
# only the process that stored it sends it.

FINAL = frozenset({"resolved", "withdrawn", "canceled", "failed", GONE})


def is_over(asked: FleetPrompt) -> bool:
    """Whether no further change is possible. After a timeout, the safe default can still follow."""
    return asked.state in FINAL or (asked.state == "expired" and not asked.record.decided_value)


def receipt_of(asked: FleetPrompt, receipts: Receipts) -> Receipt:
    """The receipt for a prompt that is no longer open."""
    if asked.state == GONE:
        return Receipt("withdrawn", f"The machine {asked.machine} has left the server.")
    return receipts.of(asked.record)


def routes_for(
    asked: FleetPrompt, session: SessionRecord, channels: Mapping[str, bool], policy: PolicySettings
) -> tuple[Route, ...]:
    """The routes on which a prompt can be shown: only people who are allowed to see it. In a room that several people
    read, all of them must be allowed. `channels` says whether each person has a chat of their own there.
    """
    audience = decide_audience(asked.record.prompt, session, ((name, True) for name in channels), policy)
    found = []
    for name in (*audience.ask, *audience.tell):
        route = decide_route(name, True, policy)
        people = tuple(person for person in route.people if person in asked.readers)
        if people and (channels[name] or people == route.people):
            found.append(replace(route, people=people))
    return tuple(found)


class ChatEscalation:
    def __init__(self, cache: ChatCache, server: FleetHubApi, router: PromptRouter, clock: Clock) -> None:
        self._cache = cache
        self._server = server
        self._router = router
        self._clock = clock
        self._receipts = Receipts(server)
        self._planner = Planner(server, router, clock)
        self.channels: dict[str, bool] = {}  # active channels: whether each person has a chat of their own
        self._look_at: dict[str, float] = {}
        self._on_its_way: set[tuple[Key, str, str]] = set()  # (prompt, channel, state)
        self._promised: set[Key] = set()

    def start_over(self) -> None:
        """Check all prompts again, after channels, escalation policy or people have changed."""
        self._look_at.clear()

    def changed(self, chat_ids: Iterable[str]) -> None:
        """Check these prompts at the next look, because they have changed."""
        for chat_id in chat_ids:
            self._look_at.pop(chat_id, None)

    async def look(self) -> set[str]:
        """Send everything that is due. Returns the machines that must learn that the chats ask about their prompts."""
        fresh: list[Key] = []
        for asked in self._cache.open_asked():
            if self._look_at.get(asked.chat_id, 0.0) <= self._clock.now() and await self._escalate(asked):
                fresh.append(asked.key)
        if fresh:
            await self._server.promise(fresh)
            self._promised.update(fresh)
        self._tell_endings()
        return {key[0] for key in fresh}

    async def _escalate(self, asked: FleetPrompt) -> bool:
        """Send the due steps of one prompt. Returns whether the chats ask about it and its machine does not know."""
        found = self._cache.session(asked.record.session_id)
        if found is None:
            return False
        session = found.record
        routes = routes_for(asked, session, self.channels, self._router.policy)
        plan, by_name = self._decide(asked, session, routes), {route.name: route for route in routes}
        for one in plan.notices:
            heard = listeners(one, by_name[one.channel])
            if await self._server.take_steps(asked.key, one.steps, one.channel, heard):
                self._router.send(one, asked.record, session)
        self._look_at[asked.chat_id] = asked.record.deadline if plan.look_at is None else plan.look_at
        return bool(routes) and asked.key not in self._promised

    def _decide(self, asked: FleetPrompt, session: SessionRecord, routes: tuple[Route, ...]) -> EscalationPlan:
        key_at = asked.last_key_at
        return self._planner.decide(
            asked.record,
            session,
            self._planner.life(asked.record),
            routes,
            last_key_at=None if key_at is None else self._clock.now() - self._clock.wall() + key_at,
            away=any(self._server.away(name) for route in routes for name in route.people),
        )

    # endings

    def _tell_endings(self) -> None:
        """Edit the messages that show a prompt in every channel until they show its final state."""
        for key, name in list(self._server.shown):
            asked = self._cache.by_key(key)
            if asked is not None and asked.record.state not in OPEN:
                self._end(asked, name)
        for key in list(self._server.steps):
            asked = self._cache.by_key(key)
            if asked is None or is_over(asked):
                self._forget(key, "" if asked is None else asked.chat_id)

    def _end(self, asked: FleetPrompt, name: str) -> None:
        told = set(self._server.shown[asked.key, name].values())
        mark = (asked.key, name, asked.state)
        if told != {asked.state} and mark not in self._on_its_way and name in self.channels:
            self._on_its_way.add(mark)
            self._router.put(name, Job(self._ending(name, asked), wanted=lambda: True))

    def _ending(self, name: str, asked: FleetPrompt) -> Callable[[Channel], Awaitable[None]]:
        edit = self._router.editing(name, asked.record, receipt_of(asked, self._receipts))

        async def end(channel: Channel) -> None:
            try:
                await edit(channel)
                await self._server.add_told(asked.key, name, asked.state, is_over(asked))
            finally:
                self._on_its_way.discard((asked.key, name, asked.state))

        return end

    def _forget(self, key: Key, chat_id: str) -> None:
        self._server.forget(key)
        self._promised.discard(key)
        self._look_at.pop(chat_id, None)
        self._router.forget(chat_id)
