"""Runs the escalation policy for the open prompts of all machines, and edits their messages when they end.

As in a hub, `core.policy` decides what is due and `core.routing` sends it. This module stores each step before it is
sent; only the process that stored it sends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.receipts import Receipts
from atlasbridge.core.policy.escalation import Attendance, EscalationPlan, Life, Outlook, Route, listeners
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import OPEN, Receipt
from atlasbridge.core.routing.channel_worker import Job
from atlasbridge.core.routing.policy import PolicySettings, decide_audience, decide_chat_route, decide_escalation
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.fleet.server.chats.cache import ChatCache
from atlasbridge.fleet.server.chats.hub_api import FleetHubApi
from atlasbridge.fleet.server.chats.mapping import GONE, FleetPrompt, Key

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
        route = decide_chat_route(name, True, policy)
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
        self._attendance = Attendance(router.policy.attention)
        self.channels: dict[str, bool] = {}  # active channels: whether each person has a chat of their own
        self._look_at: dict[str, float] = {}
        self._on_its_way: set[tuple[Key, str, str]] = set()  # (prompt, channel, state)
        self._promised: set[Key] = set()
        for person, at in server.heard:
            self._attendance.remember(person, clock.now() - max(0.0, clock.wall() - at))

    def start_over(self) -> None:
        """Check all prompts again, after channels, escalation policy or people have changed."""
        self._attendance.use(self._router.policy.attention)
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
        session = self._cache.session(asked.record.session_id)
        if session is None:
            return False
        routes = routes_for(asked, session, self.channels, self._router.policy)
        plan, by_name = self._decide(asked, session, routes), {route.name: route for route in routes}
        for one in plan.notices:
            heard = listeners(one, by_name[one.channel])
            if await self._server.take_steps(asked.key, one.steps, one.channel, heard):
                self._router.send(one, asked.record, session)
        self._look_at[asked.chat_id] = asked.record.deadline if plan.look_at is None else plan.look_at
        return bool(routes) and asked.key not in self._promised

    def _decide(self, asked: FleetPrompt, session: SessionRecord, routes: tuple[Route, ...]) -> EscalationPlan:
        now, wall = self._clock.now(), self._clock.wall()
        steady = now - wall
        wakes = tuple(steady + due_at for due_at in self._server.wakes.get(asked.key, ()))
        done = frozenset(self._server.steps.get(asked.key, ()))
        held = max((at for at in wakes if at > now), default=float("-inf"))
        life = Life(steady + asked.raised_at, asked.record.deadline, done, wakes=wakes, held_until=held)
        outlook = Outlook(
            now,
            None if asked.last_key_at is None else steady + asked.last_key_at,
            away=any(self._server.away(name) for route in routes for name in route.people),
            quiet=self._cache.directory.book.quiet_now(wall, minute_of_day),
        )
        policy = decide_escalation(asked.record.prompt, session, self._router.policy)
        return self._attendance.decide(policy, life, routes, outlook)

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
