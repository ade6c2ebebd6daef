"""Shows a prompt to every operator of a chat. One must be reached; the others are retried in the background."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from atlasbridge.channels.base import TaskSet
from atlasbridge.channels.outbox import Outbox, Params, Place, Posted, Refused
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.newest import Newest
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, PromptRecord

# Records which message shows which prompt, and since when by the chat's own clock.

KEPT = 1000
READING_S = 1.0  # a person cannot read and answer faster, and Telegram's clock has whole seconds
Spot = tuple[str, str, float]  # chat, message, time of posting (0: unknown)


def encode_places(spots: list[Spot]) -> str:
    """The opaque message id that the store keeps: "chat/message/when chat/message/when"."""
    return " ".join(f"{chat}/{message}/{at:.6f}" if at else f"{chat}/{message}" for chat, message, at in spots)


def parse_places(text: str) -> list[Spot]:
    parts = [part.split("/") for part in text.split()]
    return [(part[0], part[1], float(part[2]) if len(part) > 2 else 0.0) for part in parts if len(part) > 1]


@dataclass(frozen=True, slots=True)
class Standing:
    """The prompts that a chat showed at a moment, and whether it is certain that the writer could have read them."""

    prompts: tuple[str, ...]
    certain: bool


@dataclass(slots=True)
class _Life:
    spots: list[Spot] = field(default_factory=list)
    sent_at: dict[str, float] = field(default_factory=dict)  # by chat: it may be shown since then, unconfirmed
    ended_at: float | None = None


class Shown:
    def __init__(self, hub_api: HubApi, channel: str, clock: Clock) -> None:
        self._hub_api, self._channel, self._clock = hub_api, channel, clock
        self._lives: OrderedDict[str, _Life] = OrderedDict()
        self._prompts: dict[Place, str] = {}
        self._references: Newest[Place, str] = Newest(KEPT)
        self._since = clock.wall()  # it is uncertain what was open before this process started
        self._ahead_s = 0.0  # how far the chat's clock is ahead of ours

    def load(self) -> None:
        """Load the open prompts that an earlier process showed."""
        for record in self._hub_api.open_prompts():
            for delivery in self._hub_api.deliveries(record.prompt_id, self._channel):
                self.places(record.prompt_id, delivery)

    def add(self, prompt_id: str, place: Place, at: float = 0.0) -> None:
        life = self._lives.setdefault(prompt_id, _Life())
        if place not in [spot[:2] for spot in life.spots]:
            life.spots.append((*place, at))
        self._prompts[place] = prompt_id
        while len(self._lives) > KEPT:
            for chat, message, _ in self._lives.popitem(last=False)[1].spots:
                self._prompts.pop((chat, message), None)

    def sending(self, prompt_id: str, chat: str) -> None:
        """From now on the chat may show the prompt: the service's confirmation can be late or lost."""
        self._lives.setdefault(prompt_id, _Life()).sent_at.setdefault(chat, self.chat_time())

    def refused(self, prompt_id: str, chat: str) -> None:
        """The service has refused the message, so the chat does not show the prompt."""
        if life := self._lives.get(prompt_id):
            life.sent_at.pop(chat, None)

    def posted(self, prompt_id: str, place: Place, at: float) -> None:
        """Record a new message, with its time by the chat's clock."""
        if at:
            self._ahead_s = at - self._clock.wall()
        self.add(prompt_id, place, at)

    def is_everybodys(self, record: PromptRecord) -> bool:
        """Whether every user of this channel is allowed to see the prompt."""
        return self._hub_api.readers(record.session_id, self._channel) is None

    def refer(self, prompt_id: str, place: Place) -> None:
        """Record a message that asks for the text of a choice. It does not show the prompt, but a reply to it answers
        the prompt."""
        self._references[place] = prompt_id

    def words_wanted_at(self, place: Place) -> str:
        return self._references.get(place, "")

    def end(self, prompt_id: str) -> None:
        """The prompt ends now: it was answered, expired or withdrawn."""
        life = self._lives.get(prompt_id)
        if life is not None and life.ended_at is None:
            life.ended_at = self.chat_time()

    def end_unless_open(self, prompt_id: str) -> None:
        """Nobody is told of the end of a prompt whose message was never confirmed."""
        record = self._hub_api.prompt(prompt_id)
        if record is None or record.state not in OPEN:
            self.end(prompt_id)

    def chat_time(self) -> float:
        return self._clock.wall() + self._ahead_s

    def spots(self, prompt_id: str) -> list[Spot]:
        life = self._lives.get(prompt_id)
        return list(life.spots) if life else []

    def places(self, prompt_id: str, message_id: str = "") -> list[Place]:
        for chat, message, at in parse_places(message_id):
            self.add(prompt_id, (chat, message), at)
        return [(chat, message) for chat, message, _ in self.spots(prompt_id)]

    def prompt_at(self, place: Place) -> str:
        """Return the id of the prompt that this message shows, or "" if there is none."""
        return self._prompts.get(place, "")

    def standing(self, chat: str, moment: float) -> Standing:
        """Return the prompts that this chat showed at the moment when a person wrote there."""
        found, certain = [], moment > self._since + self._ahead_s
        for prompt_id, life in self._lives.items():
            shown_at = [at for where, _, at in life.spots if where == chat]
            since = min(shown_at, default=life.sent_at.get(chat))
            if since is None or since > moment + READING_S:
                continue
            if not life.spots:
                self.end_unless_open(prompt_id)
            if life.ended_at is not None and life.ended_at < moment - READING_S:
                continue
            found.append(prompt_id)
            certain = certain and bool(shown_at) and since > 0 and moment - since > READING_S
        return Standing(tuple(found), certain)


OTHERS_PATIENCE_S = 1.0  # after the first operator was reached
KEPT_UNSHOWABLE = 100
Wanted = Callable[[], bool] | None
Render = Callable[[str, bool], Params]  # renders the prompt for this chat; True: as short as possible


class Delivery:
    def __init__(self, hub_api: HubApi, clock: Clock, outbox: Outbox, shown: Shown, tasks: TaskSet) -> None:
        self._hub_api, self._clock = hub_api, clock
        self._outbox, self._shown, self._tasks = outbox, shown, tasks
        self._unshowable: Newest[tuple[str, str], Refused] = Newest(KEPT_UNSHOWABLE)

    async def send(self, event: PromptRecord, chats: list[str], render: Render, hint: str) -> str:
        """Return as soon as one operator was reached. A second call for the same prompt skips chats that show it
        already."""
        shown_in = {place[0] for place in self._shown.places(event.prompt_id)}
        waiting = [chat for chat in chats if chat not in shown_in]
        sends = {self._tasks.hold(self.send_to(chat, event, render)): chat for chat in waiting}
        try:
            reached = bool(shown_in) or await _first_success(set(sends))
        except asyncio.CancelledError:
            for task in sends:
                task.cancel()
            raise
        if not reached:
            raise ChannelError(_why_nobody(set(sends)), hint)
        for task, chat in sends.items():
            self._tasks.hold(self._follow_up(task, chat, event, render))
        if sends:
            await asyncio.wait(set(sends), timeout=OTHERS_PATIENCE_S)
        return encode_places(self._shown.spots(event.prompt_id))

    async def send_to(self, chat: str, event: PromptRecord, render: Render, patient: bool = False) -> None:
        """If the service refuses the message, send a shorter one; if that is refused too, give up."""
        if known := self._unshowable.get((chat, event.prompt_id)):
            raise known
        wanted = (lambda: self._is_open(event.prompt_id)) if patient else None
        self._shown.sending(event.prompt_id, chat)
        try:
            posted = await self._send_whole_or_short(chat, event, render, wanted)
        except Refused:
            self._shown.refused(event.prompt_id, chat)
            raise
        except BaseException:  # also a send that was cancelled, because the prompt ended
            self._shown.end_unless_open(event.prompt_id)
            raise
        self._shown.posted(event.prompt_id, (chat, posted.message), posted.at)

    async def _send_whole_or_short(self, chat: str, event: PromptRecord, render: Render, wanted: Wanted) -> Posted:
        try:
            return await self._outbox.send(chat, render(chat, False), wanted)
        except Refused as fault:
            if fault.gone or fault.flood_s is not None:
                raise
        try:
            return await self._outbox.send(chat, render(chat, True), wanted)
        except Refused as fault:
            if not fault.gone and fault.flood_s is None:
                self._unshowable[chat, event.prompt_id] = fault
            raise

    async def _follow_up(self, task: asyncio.Task[Any], chat: str, event: PromptRecord, render: Render) -> None:
        """Retry chats after temporary errors while the prompt is open."""
        await asyncio.wait({task})
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not isinstance(fault, Refused):
            await self.send_to(chat, event, render, patient=True)

    def _is_open(self, prompt_id: str) -> bool:
        record = self._hub_api.prompt(prompt_id)
        return record is not None and record.state in OPEN and record.deadline > self._clock.now()


async def _first_success(tasks: set[asyncio.Task[Any]]) -> bool:
    """Return True at the first task that succeeds, or False if none does."""
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if any(task.exception() is None for task in done if not task.cancelled()):
            return True
    return False


def _why_nobody(tasks: set[asyncio.Task[Any]]) -> str:
    faults = {str(task.exception()) for task in tasks if not task.cancelled()}
    return "nobody was reached: " + ("; ".join(sorted(faults)) or "no operator is configured")
