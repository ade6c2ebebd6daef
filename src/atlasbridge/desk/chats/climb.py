"""Leads every open prompt of every machine up its ladder, and tells what became of it in the messages that show it.

What is due is decided in `core.policy`; a step is written down before it is sent, and whoever wrote it sends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from atlasbridge.core.clock import Clock
from atlasbridge.core.policy.attention import decide_tone
from atlasbridge.core.policy.ladder import Course, Ladder, Life, Outlet, Outlook, Telling, decide_course
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.routing.chat_plan import ChatPlan
from atlasbridge.core.routing.courier import Courier, Errand
from atlasbridge.core.scheduler.local_time import minute_of_day
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.desk.chats.endings import is_over, receipt_of
from atlasbridge.desk.chats.mirror import Mirror
from atlasbridge.desk.chats.notebook import HOUR_S, Notebook
from atlasbridge.desk.chats.outlets import ladder_for, outlets_for
from atlasbridge.desk.chats.port import ChatDesk
from atlasbridge.desk.chats.readout import FleetPrompt, Key

REMINDER = Receipt("reminder", "Still waiting for an answer.")


class ChatLadder:
    def __init__(self, mirror: Mirror, memory: Notebook, desk: ChatDesk, clock: Clock) -> None:
        self._mirror = mirror
        self._memory = memory
        self._desk = desk
        self._clock = clock
        self.plan = ChatPlan()
        self.couriers: dict[str, Courier] = {}
        self._look_at: dict[str, float] = {}
        self._telling: set[tuple[Key, str, str]] = set()  # (prompt, channel, state) that is on its way
        self._promised: set[Key] = set()
        desk.look_again = lambda asked: self.changed((asked.chat_id,))

    def start_over(self) -> None:
        """Other channels, ladders or people: everything is looked at again."""
        self._look_at.clear()

    def changed(self, chat_ids: Iterable[str]) -> None:
        """They are not as they were: they are looked at now."""
        for chat_id in chat_ids:
            self._look_at.pop(chat_id, None)

    async def look(self) -> set[str]:
        """Whatever is due, of all prompts.  The machines whose prompts somebody is asked for, if they do not know."""
        fresh: list[Key] = []
        for asked in self._mirror.open_asked():
            if self._look_at.get(asked.chat_id, 0.0) <= self._clock.now() and await self._climb(asked):
                fresh.append(asked.key)
        if fresh:
            await self._memory.promise(fresh)
            self._promised.update(fresh)
        self._tell_endings()
        return {key[0] for key in fresh}

    # upwards

    async def _climb(self, asked: FleetPrompt) -> bool:
        """Whether somebody is asked for it, now or later, and that was not known yet."""
        session = self._mirror.session(asked.record.session_id)
        if session is None:
            return False
        outlets = () if self._is_muted(asked, session) else self._outlets(asked)
        ladder = ladder_for(asked, self.plan, self._mirror.crowd, session)
        course = self._decide(asked, ladder, outlets)
        by_name = {outlet.name: outlet for outlet in outlets}
        for telling in course.notices:
            await self._tell(telling, by_name[telling.channel], asked, session)
        self._look_at[asked.chat_id] = asked.record.deadline if course.look_at is None else course.look_at
        return bool(outlets) and asked.key not in self._promised

    def _outlets(self, asked: FleetPrompt) -> tuple[Outlet, ...]:
        lanes = tuple(lane for lane in self.plan.lanes if lane.name in self.couriers)
        return outlets_for(asked, lanes, self._mirror.crowd)

    def _is_muted(self, asked: FleetPrompt, session: SessionRecord) -> bool:
        idle = asked.record.prompt.idle and not self.plan.policy.notify_idle
        return idle or session.tool in self.plan.policy.muted_tools

    def _decide(self, asked: FleetPrompt, ladder: Ladder, outlets: tuple[Outlet, ...]) -> Course:
        now, wall = self._clock.now(), self._clock.wall()
        steady = now - wall
        wakes = tuple(steady + one.due_at for one in self._memory.wakes.get(asked.key, ()))
        done = frozenset(self._memory.steps.get(asked.key, ()))
        held = max((at for at in wakes if at > now), default=float("-inf"))
        life = Life(steady + asked.raised_at, asked.record.deadline, done, wakes=wakes, held_until=held)
        reached = {name for outlet in outlets for name in outlet.people}
        outlook = Outlook(
            now,
            None if asked.last_key_at is None else steady + asked.last_key_at,
            away=any(self._desk.away(name) for name in reached),
            quiet=self._mirror.crowd.book.quiet_now(wall, minute_of_day),
            spent=frozenset(name for name in reached if self._has_heard_enough(name, wall, ladder.urgent)),
        )
        return decide_course(ladder, life, outlets, outlook, self.plan.presence)

    def _has_heard_enough(self, person: str, wall: float, urgent: bool) -> bool:
        """A sound a moment ago is the sound for what comes with it; and so many in an hour are enough."""
        together = not urgent and self._memory.heard_since(person, wall - self.plan.together_s) > 0
        most = self.plan.notices_per_hour
        return together or bool(most and self._memory.heard_since(person, wall - HOUR_S) >= most)

    async def _tell(self, telling: Telling, outlet: Outlet, asked: FleetPrompt, session: SessionRecord) -> None:
        reached = telling.who or outlet.people
        heard = [name for name in reached if telling.loud and name not in telling.silent]
        if not await self._memory.take_steps(asked.key, telling.steps, telling.channel, heard):
            return  # another process did
        crowd = self._mirror.crowd
        tone = decide_tone(telling, crowd.identities(telling.channel), crowd.book)
        self._desk.tones[asked.chat_id, telling.channel] = tone
        courier = self.couriers[telling.channel]
        if telling.reminder:
            courier.put(Errand(self._editing(telling.channel, asked, REMINDER, while_open=True)))
        else:
            courier.put(Errand(self._asking(telling.channel, asked, session), wanted=lambda: self._is_open(asked)))

    def _asking(self, name: str, asked: FleetPrompt, session: SessionRecord) -> Callable[[Channel], Awaitable[None]]:
        async def ask(channel: Channel) -> None:
            if self._is_open(asked):
                message_id = await channel.send_prompt(asked.record, session)
                await self._memory.add_shown(asked.key, name, message_id, asked.state)

        return ask

    def _is_open(self, asked: FleetPrompt) -> bool:
        now = self._mirror.asked(asked.chat_id)
        return now is not None and now.record.state in OPEN

    # what became of it

    def _tell_endings(self) -> None:
        """Edit what shows a prompt, in every channel, until its messages say how it is now."""
        for key, name in list(self._memory.shown):
            asked = self._mirror.by_key(key)
            if asked is not None and asked.record.state not in OPEN:
                self._end(asked, name)
        for key in list(self._memory.steps):
            asked = self._mirror.by_key(key)
            if asked is None or is_over(asked):
                self._forget(key, "" if asked is None else asked.chat_id)

    def _end(self, asked: FleetPrompt, name: str) -> None:
        told = {one.told for one in self._memory.shown[asked.key, name].values()}
        mark = (asked.key, name, asked.state)
        if told != {asked.state} and mark not in self._telling and name in self.couriers:
            self._telling.add(mark)
            self.couriers[name].put(Errand(self._ending(name, asked), wanted=lambda: True))

    def _forget(self, key: Key, chat_id: str) -> None:
        self._memory.forget(key)
        self._promised.discard(key)
        self._look_at.pop(chat_id, None)
        for place in [one for one in self._desk.tones if one[0] == chat_id]:
            del self._desk.tones[place]

    def _ending(self, name: str, asked: FleetPrompt) -> Callable[[Channel], Awaitable[None]]:
        edit = self._editing(name, asked, receipt_of(asked))

        async def end(channel: Channel) -> None:
            try:
                await edit(channel)
                await self._memory.add_told(asked.key, name, asked.state, is_over(asked))
            finally:
                self._telling.discard((asked.key, name, asked.state))

        return end

    def _editing(
        self, name: str, asked: FleetPrompt, receipt: Receipt, while_open: bool = False
    ) -> Callable[[Channel], Awaitable[None]]:
        async def edit(channel: Channel) -> None:
            if not while_open or self._is_open(asked):
                for message_id in self._memory.message_ids(asked.key, name):
                    await channel.update_prompt(message_id, asked.record, receipt)

        return edit
