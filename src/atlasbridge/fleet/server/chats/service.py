"""Runs the chats in one server process: waits for the leader lock, loads the stored state, runs the channels and stops
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError, StoreError
from atlasbridge.core.routing.channel_worker import ChannelWorker, ChatPlan, ReadPlan
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.fleet.server import notices, screens
from atlasbridge.fleet.server.chats.cache import ChatCache, Directory, chat_policy
from atlasbridge.fleet.server.chats.chat_store import ChatStore
from atlasbridge.fleet.server.chats.escalation import ChatEscalation
from atlasbridge.fleet.server.chats.hub_api import ChatReplies, FleetHubApi
from atlasbridge.fleet.server.chats.mapping import Key
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import BOARD, LeaderLock, turn

log = logging.getLogger(__name__)

ASK_S = 2.0  # how often a waiting process tries to get the leader lock
LOOK_S = 1.0  # how often the escalation policy is checked without a notification
CALM_S = 0.05
REST = 4  # pause after each round, as a multiple of its duration: the chats use a fifth of a processor at most
LONGEST_REST_S = 5.0
CLEAN_S = 3600.0
STOP_S = 2.0
NOTICES_KEPT = 1000


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
                async with turn(self._context.database.url) as mine:
                    if mine is not None:
                        await self._carry(mine)
            except* StoreError as group:
                log.warning("the chats wait: %s", _first(group))
            except* Exception:  # the channel boundary: after any fault there, the page and the links continue
                log.exception("the chats start again")
            await asyncio.sleep(ASK_S)

    async def _carry(self, mine: LeaderLock) -> None:
        log.info("this server carries the chats")
        cache = ChatCache(self._context.database, self._clock, self._context.identity.chat_secret)
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
                try:
                    async with asyncio.timeout(LOOK_S):
                        await called.wait()
                except TimeoutError:
                    pass  # a step can be due

    async def _carry_notices(self, channels: Mapping[str, bool], server: FleetHubApi) -> None:
        """Send machines' notices to the people who can see something of the machine."""
        for one in await notices.uncarried(self._context.database):
            place = SessionRecord(f"notice:{one['id']}", "notify", (), "", 0, 0, "", machine=one["machine"])
            readers = server.notices[place.session_id] = frozenset(one["readers"])
            while len(server.notices) > NOTICES_KEPT:
                del server.notices[next(iter(server.notices))]
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
        if (keys := [chat_route.key for chat_route in plan.chat_routes]) != self._keys:
            self._keys = keys
            await router.stop(STOP_S)
            for one in plan.chat_routes:
                router.add(ChannelWorker(one.name, True, partial(one.build, server), replies.answer, plan.worker))
            router.start()
        escalation.channels = {one.name: one.personal for one in plan.chat_routes}
        escalation.start_over()


async def _clean(store: ChatStore) -> None:
    while True:
        await store.clean()
        await asyncio.sleep(CLEAN_S)


def _first(group: BaseExceptionGroup[StoreError]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


# A single view of a session's screen for a chat. As on the page, it needs permission, comes from the machine and is
# logged.

PATIENCE_S = 4.0


async def glance(context: ServerContext, session: Key, person: str) -> dict[str, Any] | None:
    """The session's screen as text. None if this person is not allowed to see it or the machine does not send it in
    time.
    """
    if not await screens.look(context.database, *session, person, first=True):
        return None
    try:
        with context.wakeups.waiting(f"screen:{session[0]}:{session[1]}") as called:
            context.wakeups.tell(f"job:{session[0]}")
            return await _frame(context, session, called)
    finally:
        await screens.look_away(context.database, *session, person)
        context.wakeups.tell(f"job:{session[0]}")


async def _frame(context: ServerContext, session: Key, called: asyncio.Event) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await screens.shown(context.database, *session)
                if isinstance(found, dict) and isinstance(found.get("lines"), list):
                    return {"text": "\n".join(str(line) for line in found["lines"])}
                called.clear()
                await called.wait()
    except TimeoutError:
        return None
