"""Leads every open prompt of every machine up its escalation policy, and tells what became of it in the messages
that show it.

What is due is decided in `core.policy`; a step is written down before it is sent, and whoever wrote it sends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from atlasbridge.core.clock import Clock
from atlasbridge.core.policy.attention import decide_tone
from atlasbridge.core.policy.escalation import (
    EscalationPlan,
    EscalationPolicy,
    Life,
    Notification,
    Outlook,
    Route,
    decide_notifications,
)
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.answer import TIMER, quote_answer
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.routing.channel_worker import ChannelWorker, ChatPlan, Job
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.fleet.server.chats.cache import ChatCache
from atlasbridge.fleet.server.chats.chat_store import HOUR_S, ChatStore
from atlasbridge.fleet.server.chats.directory import escalation_for, routes_for
from atlasbridge.fleet.server.chats.hub_api import FleetHubApi
from atlasbridge.fleet.server.chats.mapping import GONE, FleetPrompt, Key

# What a chat's message is to say of a prompt, from the words of its machine.  Pure.

FINAL = frozenset({"resolved", "withdrawn", "canceled", "failed", GONE})
_STAGES = {
    PromptState.REPLY_RECEIVED: "received",
    PromptState.INJECTED: "typed",
    PromptState.RESOLVED: "taken",
    PromptState.EXPIRED: "expired",
    PromptState.CANCELED: "canceled",
    PromptState.WITHDRAWN: "withdrawn",
    PromptState.FAILED: "failed",
}
_SENTENCES = {
    "received": "Answered with {answer} by {who}.",
    "typed": "Sent {answer}, answered by {who}.",
    "default_typed": "Nobody answered in time: a timer typed the safe default {answer}.",
    "default_taken": "Nobody answered in time; the tool took the timer's safe default {answer}.",
    "taken": "The tool took {answer}, answered by {who}.",
    "expired": "Nobody answered in time.",
    "canceled": "Left as it is by {who}; nothing was typed.",
    "withdrawn": "It is not on that screen any more.",
    "failed": "It could not be answered.",
}


def is_over(asked: FleetPrompt) -> bool:
    """Nothing more will be said of it; a time that ran out may still be followed by the safe default."""
    return asked.state in FINAL or (asked.state == "expired" and not asked.record.decided_value)


def receipt_of(asked: FleetPrompt) -> Receipt:
    """For a prompt that is not open any more."""
    record = asked.record
    if asked.state == GONE:
        return Receipt("withdrawn", f"The machine {asked.machine} has left the server.")
    stage = _STAGES.get(record.state, "withdrawn")
    if stage == "typed" and record.decided_by == TIMER:
        stage = "default_typed"
    answer = quote_answer(record.decided_value) if record.decided_value else "an answer"
    said = "default_taken" if stage == "taken" and record.decided_by == TIMER else stage
    sentence = _SENTENCES[said].format(answer=answer, who=record.decided_by or "somebody")
    by, place = record.decided_by, record.decided_from
    return Receipt(stage, sentence, by, record.decided_value, place, record.decided_at)


REMINDER = Receipt("reminder", "Still waiting for an answer.")


class ChatEscalation:
    def __init__(self, cache: ChatCache, memory: ChatStore, server: FleetHubApi, clock: Clock) -> None:
        self._cache = cache
        self._memory = memory
        self._server = server
        self._clock = clock
        self.plan = ChatPlan()
        self.workers: dict[str, ChannelWorker] = {}
        self._look_at: dict[str, float] = {}
        self._notification: set[tuple[Key, str, str]] = set()  # (prompt, channel, state) that is on its way
        self._promised: set[Key] = set()
        server.look_again = lambda asked: self.changed((asked.chat_id,))

    def start_over(self) -> None:
        """Other channels, escalation or people: everything is looked at again."""
        self._look_at.clear()

    def changed(self, chat_ids: Iterable[str]) -> None:
        """They are not as they were: they are looked at now."""
        for chat_id in chat_ids:
            self._look_at.pop(chat_id, None)

    async def look(self) -> set[str]:
        """Whatever is due, of all prompts.  The machines whose prompts somebody is asked for, if they do not know."""
        fresh: list[Key] = []
        for asked in self._cache.open_asked():
            if self._look_at.get(asked.chat_id, 0.0) <= self._clock.now() and await self._escalate(asked):
                fresh.append(asked.key)
        if fresh:
            await self._memory.promise(fresh)
            self._promised.update(fresh)
        self._tell_endings()
        return {key[0] for key in fresh}

    # upwards

    async def _escalate(self, asked: FleetPrompt) -> bool:
        """Whether somebody is asked for it, now or later, and that was not known yet."""
        session = self._cache.session(asked.record.session_id)
        if session is None:
            return False
        routes = () if self._is_muted(asked, session) else self._routes(asked)
        escalation_policy = escalation_for(asked, self.plan, self._cache.directory, session)
        plan = self._decide(asked, escalation_policy, routes)
        by_name = {route.name: route for route in routes}
        for notification in plan.notices:
            await self._tell(notification, by_name[notification.channel], asked, session)
        self._look_at[asked.chat_id] = asked.record.deadline if plan.look_at is None else plan.look_at
        return bool(routes) and asked.key not in self._promised

    def _routes(self, asked: FleetPrompt) -> tuple[Route, ...]:
        chat_routes = tuple(chat_route for chat_route in self.plan.chat_routes if chat_route.name in self.workers)
        return routes_for(asked, chat_routes, self._cache.directory)

    def _is_muted(self, asked: FleetPrompt, session: SessionRecord) -> bool:
        idle = asked.record.prompt.idle and not self.plan.policy.notify_idle
        return idle or session.tool in self.plan.policy.muted_tools

    def _decide(
        self, asked: FleetPrompt, escalation_policy: EscalationPolicy, routes: tuple[Route, ...]
    ) -> EscalationPlan:
        now, wall = self._clock.now(), self._clock.wall()
        steady = now - wall
        wakes = tuple(steady + one.due_at for one in self._memory.wakes.get(asked.key, ()))
        done = frozenset(self._memory.steps.get(asked.key, ()))
        held = max((at for at in wakes if at > now), default=float("-inf"))
        life = Life(steady + asked.raised_at, asked.record.deadline, done, wakes=wakes, held_until=held)
        reached = {name for route in routes for name in route.people}
        outlook = Outlook(
            now,
            None if asked.last_key_at is None else steady + asked.last_key_at,
            away=any(self._server.away(name) for name in reached),
            quiet=self._cache.directory.book.quiet_now(wall, minute_of_day),
            spent=frozenset(name for name in reached if self._has_heard_enough(name, wall, escalation_policy.urgent)),
        )
        return decide_notifications(escalation_policy, life, routes, outlook, self.plan.presence)

    def _has_heard_enough(self, person: str, wall: float, urgent: bool) -> bool:
        """A sound a moment ago is the sound for what comes with it; and so many in an hour are enough."""
        together = not urgent and self._memory.heard_since(person, wall - self.plan.together_s) > 0
        most = self.plan.notices_per_hour
        return together or bool(most and self._memory.heard_since(person, wall - HOUR_S) >= most)

    async def _tell(self, notification: Notification, route: Route, asked: FleetPrompt, session: SessionRecord) -> None:
        reached = notification.who or route.people
        heard = [name for name in reached if notification.loud and name not in notification.silent]
        if not await self._memory.take_steps(asked.key, notification.steps, notification.channel, heard):
            return  # another process did
        directory = self._cache.directory
        tone = decide_tone(notification, directory.identities(notification.channel), directory.book)
        self._server.tones[asked.chat_id, notification.channel] = tone
        worker = self.workers[notification.channel]
        if notification.reminder:
            worker.put(Job(self._editing(notification.channel, asked, REMINDER, while_open=True)))
        else:
            worker.put(Job(self._asking(notification.channel, asked, session), wanted=lambda: self._is_open(asked)))

    def _asking(self, name: str, asked: FleetPrompt, session: SessionRecord) -> Callable[[Channel], Awaitable[None]]:
        async def ask(channel: Channel) -> None:
            if self._is_open(asked):
                message_id = await channel.send_prompt(asked.record, session)
                await self._memory.add_shown(asked.key, name, message_id, asked.state)

        return ask

    def _is_open(self, asked: FleetPrompt) -> bool:
        now = self._cache.asked(asked.chat_id)
        return now is not None and now.record.state in OPEN

    # what became of it

    def _tell_endings(self) -> None:
        """Edit what shows a prompt, in every channel, until its messages say how it is now."""
        for key, name in list(self._memory.shown):
            asked = self._cache.by_key(key)
            if asked is not None and asked.record.state not in OPEN:
                self._end(asked, name)
        for key in list(self._memory.steps):
            asked = self._cache.by_key(key)
            if asked is None or is_over(asked):
                self._forget(key, "" if asked is None else asked.chat_id)

    def _end(self, asked: FleetPrompt, name: str) -> None:
        told = {one.told for one in self._memory.shown[asked.key, name].values()}
        mark = (asked.key, name, asked.state)
        if told != {asked.state} and mark not in self._notification and name in self.workers:
            self._notification.add(mark)
            self.workers[name].put(Job(self._ending(name, asked), wanted=lambda: True))

    def _forget(self, key: Key, chat_id: str) -> None:
        self._memory.forget(key)
        self._promised.discard(key)
        self._look_at.pop(chat_id, None)
        for place in [one for one in self._server.tones if one[0] == chat_id]:
            del self._server.tones[place]

    def _ending(self, name: str, asked: FleetPrompt) -> Callable[[Channel], Awaitable[None]]:
        edit = self._editing(name, asked, receipt_of(asked))

        async def end(channel: Channel) -> None:
            try:
                await edit(channel)
                await self._memory.add_told(asked.key, name, asked.state, is_over(asked))
            finally:
                self._notification.discard((asked.key, name, asked.state))

        return end

    def _editing(
        self, name: str, asked: FleetPrompt, receipt: Receipt, while_open: bool = False
    ) -> Callable[[Channel], Awaitable[None]]:
        async def edit(channel: Channel) -> None:
            if not while_open or self._is_open(asked):
                for message_id in self._memory.message_ids(asked.key, name):
                    await channel.update_prompt(message_id, asked.record, receipt)

        return edit
