"""The life of the chats in one desk process: wait for the turn, take over what is there, carry, and let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.errors import AtlasBridgeError, StoreError
from atlasbridge.core.ports import Channel, Desk
from atlasbridge.core.routing.chat_plan import ChatPlan, ReadPlan
from atlasbridge.core.routing.courier import Courier, Errand
from atlasbridge.desk.chats.climb import ChatLadder
from atlasbridge.desk.chats.glance import glance
from atlasbridge.desk.chats.mirror import Mirror
from atlasbridge.desk.chats.notebook import Notebook
from atlasbridge.desk.chats.port import ChatDesk
from atlasbridge.desk.chats.replies import ChatReplies
from atlasbridge.desk.chats.turn import ChatTurn, turn
from atlasbridge.desk.office import Office
from atlasbridge.desk.wakeups import BOARD

log = logging.getLogger(__name__)

ASK_S = 2.0  # as often a process that waits asks whether it is its turn
LOOK_S = 1.0  # as often the ladder is looked at, even if nothing happened
CALM_S = 0.05
REST = 4  # after a long look a long rest: with thousands of prompts the chats take a fifth of a processor at most
LONGEST_REST_S = 5.0
CLEAN_S = 3600.0
STOP_S = 2.0


class Chats:
    """`read_plan` is called whenever the people of the desk change."""

    def __init__(self, office: Office, read_plan: ReadPlan, clock: Clock | None = None) -> None:
        self._office = office
        self._read_plan = read_plan
        self._clock = clock or SystemClock()
        self._ladder: ChatLadder | None = None
        self.carries = False

    def health(self) -> dict[str, Any]:
        found = self._ladder.couriers.values() if self.carries and self._ladder else ()
        return {"carried_here": self.carries, "channels": [courier.health() for courier in found]}

    async def run(self) -> None:
        while True:
            try:
                async with turn(self._office.database.url) as mine:
                    if mine is not None:
                        await self._carry(mine)
            except* StoreError as group:
                log.warning("the chats wait: %s", _first(group))
            except* Exception:  # the channel boundary: whatever goes wrong there, the page and the links go on
                log.exception("the chats begin anew")
            await asyncio.sleep(ASK_S)

    async def _carry(self, mine: ChatTurn) -> None:
        log.info("this desk carries the chats")
        mirror = Mirror(self._office.database, self._clock, self._office.identity.private_key)
        memory = Notebook(self._office.database)
        desk = ChatDesk(mirror, memory, self._clock)
        ladder = self._ladder = ChatLadder(mirror, memory, desk, self._clock)
        replies = ChatReplies(self._office, mirror, self._clock)
        desk.show_screen = partial(glance, self._office)
        desk.tell_people = lambda message: _notify(ladder, message)
        try:
            await memory.load()
            await mirror.refresh()
            await mirror.load_ended()
            self.carries = True
            async with asyncio.TaskGroup() as group:
                group.create_task(mine.lost(), name="chats-turn")
                group.create_task(memory.write(), name="chats-notes")
                group.create_task(self._follow(mirror, ladder, desk, replies), name="chats-ladder")
                group.create_task(_clean(memory), name="chats-clean")
        finally:
            self.carries = False
            await _stop(ladder)
            try:
                await memory.flush()
            except StoreError as error:
                log.warning("notes of the chats were not written: %s", error)
            log.info("this desk does not carry the chats any more")

    async def _follow(self, mirror: Mirror, ladder: ChatLadder, desk: ChatDesk, replies: ChatReplies) -> None:
        mark = None
        with self._office.wakeups.waiting(BOARD) as called:
            while True:
                called.clear()
                began = self._clock.now()
                changed = {asked.chat_id for asked in await mirror.refresh()}
                if mirror.crowd.mark != mark:
                    mark = mirror.crowd.mark
                    await self._use(self._plan(mirror), ladder, desk, replies)
                ladder.changed(changed)
                for machine_id in await ladder.look():
                    self._office.wakeups.tell(f"asks:{machine_id}")
                await asyncio.sleep(min(max(CALM_S, REST * (self._clock.now() - began)), LONGEST_REST_S))
                try:
                    async with asyncio.timeout(LOOK_S):
                        await called.wait()
                except TimeoutError:
                    pass  # a step may be due

    def _plan(self, mirror: Mirror) -> ChatPlan:
        try:
            return self._read_plan(mirror.crowd.by_channel())
        except AtlasBridgeError as error:  # it was good when the desk started: somebody's identity, say, is not
            log.error("the chats stand still: %s (%s)", error, error.hint)
            return ChatPlan()

    async def _use(self, plan: ChatPlan, ladder: ChatLadder, desk: ChatDesk, replies: ChatReplies) -> None:
        for name in plan.idle:
            log.warning("nobody takes part in %s: atlasbridge desk people identity NAME %s:…", name, name)
        if [lane.key for lane in plan.lanes] != [lane.key for lane in ladder.plan.lanes]:
            await _stop(ladder)
            ladder.couriers = {
                lane.name: Courier(lane.name, True, _builder(lane.build, desk), replies.answer, plan.courier)
                for lane in plan.lanes
            }
            for courier in ladder.couriers.values():
                courier.start()
        ladder.plan = plan
        ladder.start_over()


def _builder(build: Callable[[Desk], Channel], desk: ChatDesk) -> Callable[[], Channel]:
    return lambda: build(desk)


def _notify(ladder: ChatLadder, message: str) -> None:
    async def tell(channel: Channel) -> None:
        await channel.notify(message)

    for courier in ladder.couriers.values():
        courier.put(Errand(tell))


async def _stop(ladder: ChatLadder) -> None:
    couriers, ladder.couriers = list(ladder.couriers.values()), {}
    await asyncio.gather(*(courier.stop(STOP_S) for courier in couriers))


async def _clean(memory: Notebook) -> None:
    while True:
        await memory.clean()
        await asyncio.sleep(CLEAN_S)


def _first(group: BaseExceptionGroup[StoreError]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
