"""The part that Telegram, Slack and Discord share: send prompts to every operator, show receipts, receive replies.

Each chat channel adds its transport, its rendering and its parsing. The gate decides about replies.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from atlasbridge.channels.base import BaseChannel, TaskSet
from atlasbridge.channels.commands import NOT_OURS, HubCommands, press_later
from atlasbridge.channels.delivery import Delivery, Shown
from atlasbridge.channels.language import (
    Reader,
    at_time,
    hub_says,
    known_language,
    language_key,
    reading,
    say_digest,
    t,
)
from atlasbridge.channels.listening import Held, Throttle
from atlasbridge.channels.outbox import EDIT, NOTICE, QUESTION, ClosingWire, Outbox, Params, Place
from atlasbridge.channels.receipts import (
    STILL_OPEN,
    Outcome,
    People,
    is_end,
    is_timer,
    render_fate,
    timer_typed,
)
from atlasbridge.channels.templates import CHANGED, render_brief, render_left, session_name
from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.operations import Caller, Refused
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import replace

# The summary of prompts that came and ended while the connection to the chat was down. Pure.

LOOK_BACK = 200
MOST_LISTED = 10
LINE_LIMIT = 90
SETTLED_ELSEWHERE = (
    "and 1 more, which was settled elsewhere: atlasbridge audit show"
    "|and {count} more, which were settled elsewhere: atlasbridge audit show"
)


def find_missed(hub_api: HubApi, channel: str, since: float) -> list[PromptRecord]:
    """Return the prompts that came and ended since then and were never shown on this channel, oldest first."""
    found = []
    for record in hub_api.history(limit=LOOK_BACK):
        if parse_iso(record.created_at) < since:
            break
        if record.state not in OPEN and _was_for(hub_api, channel, record):
            found.append(record)
    return found[::-1]


def _was_for(hub_api: HubApi, channel: str, record: PromptRecord) -> bool:
    session = hub_api.session(record.session_id)
    if session is None or record.prompt.secret or record.prompt.idle:
        return False
    asked = session.channels is None or channel in session.channels
    return asked and not hub_api.deliveries(record.prompt_id, channel)


def render_missed(hub_api: HubApi, records: list[PromptRecord], call: Callable[[str], str]) -> str:
    """List the unanswered prompts first; only count the prompts that were answered elsewhere."""
    lost = [record for record in records if not record.decided_by or is_timer(record.decided_by)]
    lines = [_line(hub_api, record, call) for record in lost[:MOST_LISTED]]
    more = len(records) - len(lines)
    if more:
        lines.append(t(SETTLED_ELSEWHERE, count=more))
    return "\n".join(lines)


def _line(hub_api: HubApi, record: PromptRecord, call: Callable[[str], str]) -> str:
    session = hub_api.session(record.session_id)
    name = session_name(session) if session is not None else "?"
    asked = first_line(record.prompt)
    quoted = asked if len(asked) <= LINE_LIMIT else asked[: LINE_LIMIT - 1] + "…"
    moment = at_time(parse_iso(record.created_at))
    return (
        f"{moment} · {name} · “{quoted}”: {render_fate(record, call(record.decided_by) if record.decided_by else '')}"
    )


log = logging.getLogger(__name__)
PAUSED = "Replies to this session are paused for a minute: there were too many."
LATE = (Refusal.NOT_OPEN, Refusal.BAD_NONCE, Refusal.EXPIRED)
NOTE_EVERY_S = 15.0
KEPT_ENDS = 500
DIGEST_LIFE_S = 60.0
# how often the remaining time is updated: normally, near the deadline, and per open prompt
CURRENT_S, LAST_CURRENT_S, EACH_CURRENT_S = 30.0, 10.0, 5.0
MOST_CURRENT = 20
STARTED_S = 2.0
CHANGED_S = 2.0  # a message about a finished agent waits so long for what it has changed
FEW_PENDING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Where a reply came from. `seen_before`: an earlier process received it, too."""

    room: str
    user: str
    update_id: str = ""
    seen_before: bool = False


class ChatChannel(BaseChannel):
    """`title` is the name of the service, `sign` starts a command there, `muted` describes what muting does."""

    remote = True  # every message leaves this machine
    personal = True
    title: ClassVar[str]
    sign: ClassVar[str]
    muted: ClassVar[str]

    def _furnish(self, own: Any, wire: ClosingWire, rate: Callable[[str], float]) -> None:
        """Create the parts that all chats need, after the channel has its settings and its wire."""
        hub_api, clock, name = self.hub_api, self.clock, type(self).name
        self._host = own.host_name or platform.node() or "this machine"
        self._wire, self._session_notices = wire, bool(own.session_notices)
        self._outbox = Outbox(wire, clock, rate, own.backoff_first_s)
        self._tasks = TaskSet(self.title)
        self._shown = Shown(hub_api, name, clock)
        self._delivery = Delivery(hub_api, clock, self._outbox, self._shown, self._tasks)
        self._commands = HubCommands(hub_api, clock, name, self.sign, self.muted, self)
        self._people = People(hub_api, name)
        self._throttle = Throttle(own.replies_per_minute)
        self._held = Held()
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._given: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._ends: OrderedDict[str, tuple[PromptRecord, Receipt]] = OrderedDict()
        self._told_timers: OrderedDict[str, None] = OrderedDict()
        self._digests: OrderedDict[tuple[str, str], asyncio.Future[Place]] = OrderedDict()
        self._started: OrderedDict[str, asyncio.Task[Any]] = OrderedDict()  # by session: the notice that it started
        self._noted_at = float("-inf")
        self._deaf_since: float | None = None

    # implemented by each chat

    @abstractmethod
    async def _serve(self) -> None:
        """Listen until cancelled."""

    @abstractmethod
    async def _replay(self) -> None:
        """Process the updates that an earlier process received but did not finish."""

    @abstractmethod
    async def _chats(self) -> list[str]:
        """The chats in which every operator is asked."""

    @abstractmethod
    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params: ...

    @abstractmethod
    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params: ...

    @abstractmethod
    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str) -> Params: ...

    @abstractmethod
    def _beside(self, place: Place) -> Params:
        """Parameters that place a message, with sound, next to the message at `place`."""

    @abstractmethod
    def _tell(self, token: Any, sentence: str) -> None:
        """Send this sentence to the sender of the reply with this token."""

    # called by the hub

    async def start(self) -> None:
        self._shown.load()
        if last := self.hub_api.recall(f"{self.name}.last_poll"):
            # Convert to the monotonic clock, so that both kinds of gap are measured on the same scale.
            self._deaf_since = self.clock.now() - max(0.0, self.clock.wall() - parse_iso(last))
        self._tasks.hold(self._listen())
        self._tasks.hold(self._keep_current())

    async def _keep_current(self) -> None:
        """Update the remaining time: more often near the deadline, less often when many prompts are open."""
        while True:
            records = [one for one in self.hub_api.open_prompts() if self._shown.places(one.prompt_id)]
            now = self.clock.wall()
            left_s = min((parse_iso(one.expires_at) - now for one in records), default=CURRENT_S)
            await asyncio.sleep(max(LAST_CURRENT_S if left_s < CURRENT_S else CURRENT_S, EACH_CURRENT_S * len(records)))
            for record in records:
                self._write_current(self.hub_api.prompt(record.prompt_id))

    def _write_current(self, record: PromptRecord | None) -> None:
        """Skip lists with marks or pages, because a person could be using them."""
        if record is None or record.state not in OPEN or record.prompt.idle:
            return
        if record.prompt.constraints.get("multi_select") or len(record.prompt.choices) > MOST_CURRENT:
            return
        for place in self._shown.places(record.prompt_id):
            self._paint_again(place, record, self._session(record))

    def reader_of(self, chat: str) -> Reader:
        """Who reads the chat: the language that was chosen there, else what the configuration or the service says."""
        owner = self._owner(chat)
        language, zone = self.hub_api.reads(owner) if owner else ("", "")
        told = self._people.reads(owner)
        chosen = self.hub_api.recall(language_key(self.name, chat))
        return Reader(known_language(chosen, language, told.language), zone or told.zone)

    def _paint_again(self, place: Place, event: PromptRecord, session: SessionRecord) -> None:
        with reading(self.reader_of(place[0])):
            self._outbox.edit(place, self._paint_prompt(event, session, place[0], False))

    async def _listen(self) -> None:
        try:
            await self._replay()
        except Exception:  # the channel boundary: one bad update must not stop the channel from receiving
            log.exception("what an earlier process had received could not be taken up")
        await self._serve()

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Wait for the pending notice that the session started, so that the prompt comes after it."""
        if started := self._started.pop(session.session_id, None):
            await asyncio.wait([started], timeout=STARTED_S)
        if event.prompt.idle and not event.prompt.constraints.get("commands"):
            event = await self._with_changes(event)

        def render(chat: str, short: bool) -> Params:
            with reading(self.reader_of(chat)):
                return self._paint_prompt(event, session, chat, short)

        chats = self._addressed(event, await self._chats())
        return await self._delivery.send(event, chats, render, self._hint)

    async def _with_changes(self, event: PromptRecord) -> PromptRecord:
        """What an agent that has finished leaves behind, in one line; nothing where that takes too long."""
        try:
            async with asyncio.timeout(CHANGED_S):
                found = await self.hub_api.by(Caller("", self.name, self.title)).changes(event.session_id)
        except TimeoutError:
            return event
        if isinstance(found, Refused) or not found.count:
            return event
        constraints = {**event.prompt.constraints, CHANGED: found}
        return replace(event, prompt=replace(event.prompt, constraints=constraints))

    def _addressed(self, event: PromptRecord, known: list[str]) -> list[str]:
        """Return the chats of the people whom this prompt is for now, or all readable chats if they have none of their
        own."""
        chats = self._readable(event.session_id, known)
        only = self.hub_api.tone(event.prompt_id, self.name).only
        return chats if only is None else [chat for chat in chats if self._owner(chat) in only] or chats

    def _readable(self, session_id: str, chats: list[str]) -> list[str]:
        """Return the chats in which every reader is allowed to see the session."""
        readers = self.hub_api.readers(session_id, self.name)
        return chats if readers is None else [chat for chat in chats if self._owner(chat) in readers]

    def _owner(self, chat: str) -> str:
        """The identity of the only person who reads this chat, or "" if several people read it."""
        return ""

    def is_alone(self, chat: str, identity: str) -> bool:
        """Whether that person is the only reader of the chat."""
        return self._owner(chat) == identity

    def _is_silent(self, prompt_id: str, chat: str) -> bool:
        """Whether this prompt makes no sound in the chat: it is muted, or the tone of the prompt is silent for its
        owner."""
        tone = self.hub_api.tone(prompt_id, self.name)
        return self._commands.is_muted(chat) or not tone.sounds_for(self._owner(chat))

    @property
    def _hushed(self) -> Params:
        """Parameters that make a message silent, if the service supports that."""
        return {}

    @property
    @abstractmethod
    def _hint(self) -> str:
        """What the operator should do if the prompt reached no one."""

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Answer refusals only: an accepted reply shows in the message itself."""
        origin = reply.token
        if isinstance(origin, Asked):
            with reading(self.reader_of(origin.room)):
                sentence = self.answered(reply, outcome, origin.seen_before)
                if isinstance(outcome, Reject) and sentence:
                    self._tell(origin, sentence)
            await self._settle(origin)

    def answered(self, reply: InboundReply, outcome: Receipt | Reject, seen_before: bool) -> str:
        """Return the text for the sender of a reply, or "" if an earlier copy of it has probably been answered."""
        if isinstance(outcome, Receipt):
            self._throttle.forgive(reply.session_id)
            return hub_says(self._people.own(outcome.sentence))
        self._given.pop((reply.prompt_id, reply.identity), None)
        if outcome.reason is Refusal.BAD_VALUE and not reply.nonce:
            self._throttle.forgive(reply.session_id)
        if seen_before and outcome.reason in LATE:
            return ""  # a copy after a restart: the first copy has probably been answered
        return self._explain(reply.prompt_id, outcome)

    def _explain(self, prompt_id: str, refusal: Reject) -> str:
        """Tell the sender of a late reply who answered first, and with what."""
        record = self.hub_api.prompt(prompt_id)
        if record is None:
            return hub_says(refusal.sentence)
        end = self._ends.get(record.prompt_id)
        if end is None and (record.decided_value or self._given.get((record.prompt_id, record.decided_by))):
            end = (record, Receipt("taken", "", record.decided_by))
        if end is not None and refusal.reason in LATE:
            return f"{t('Too late.')} {self._judge(*end).title}"
        return hub_says(self._people.rename(refusal.sentence, record.decided_by))

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session, places = self._session(event), self._shown.places(event.prompt_id, message_id)
        if is_end(receipt):
            self._shown.end(event.prompt_id)
            given = self._given.get((event.prompt_id, receipt.by or event.decided_by), "")
            receipt = replace(receipt, answer=receipt.answer or event.decided_value or given)
            _keep(self._ends, event.prompt_id, (event, receipt), KEPT_ENDS)
        news = is_end(receipt) and self._is_news(event, receipt)
        for place in places:
            with reading(self.reader_of(place[0])):
                if receipt.stage == "reminder":
                    self._remind(place, event, session, receipt)
                elif receipt.stage in STILL_OPEN:
                    self._put_off(place, event, session, receipt)
                else:
                    self._tell_end(place, event, session, receipt, news)

    def _tell_end(
        self, place: Place, event: PromptRecord, session: SessionRecord, receipt: Receipt, news: bool
    ) -> None:
        outcome = self._judge(event, receipt)
        self._outbox.edit(place, self._paint_outcome(event, session, outcome))
        if news:
            sentence = f"{outcome.title}\n“{first_line(event.prompt)}” · {session_name(session)}"
            notice = self._paint_notice(sentence, None, place[0])
            self._outbox.post(place[0], notice | self._beside(place), EDIT)

    def _judge(self, event: PromptRecord, receipt: Receipt) -> Outcome:
        given = self._given.get((event.prompt_id, receipt.by or event.decided_by), "")
        return self._people.outcome(event, receipt, self.clock.wall(), given, receipt.stage == "expired")

    def _is_news(self, event: PromptRecord, receipt: Receipt) -> bool:
        """Whether a timer's decision needs a new message. It is sent once, because an edit makes no sound."""
        typed = timer_typed(event, receipt)
        by_timer = typed and receipt.stage in ("default_typed", "taken")
        nobody = receipt.stage == "expired" and not typed and not event.prompt.idle
        if not (by_timer or nobody) or event.prompt_id in self._told_timers:
            return False
        _keep(self._told_timers, event.prompt_id, None, KEPT_ENDS)
        return True

    def _remind(self, place: Place, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        if not self._commands.is_muted(place[0]):
            voted = escape_controls(hub_says(receipt.sentence), keep_lines=False)
            said = f"🗳 {voted}" if receipt.by else f"🔔 {t('Still waiting')}:"
            sentence = f"{said} “{first_line(event.prompt)}” · {session_name(session)}"
            notice = self._paint_reminder(sentence, event, place[0])
            hushed = self._hushed if self._is_silent(event.prompt_id, place[0]) else {}
            self._outbox.post(place[0], notice | self._beside(place) | hushed, EDIT)

    def _paint_reminder(self, sentence: str, event: PromptRecord, chat: str) -> Params:
        """Render a reminder. Chats with buttons add buttons to snooze the prompt."""
        return self._paint_notice(sentence, None, chat)

    def _put_off(self, place: Place, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        """The prompt was postponed: it is still open, with a new deadline."""
        sentence = f"⏰ {hub_says(self._people.rename(receipt.sentence, receipt.by))}"
        notice = self._paint_notice(sentence, None, place[0]) | self._beside(place) | self._hushed
        self._outbox.post(place[0], notice, EDIT)
        self._paint_again(place, event, session)

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        for chat in await self._chats():
            with reading(self.reader_of(chat)):
                self._tasks.hold(self._digest((key, chat), f"🗂 {say_digest(text)}", loud))

    async def _digest(self, key: tuple[str, str], text: str, loud: bool) -> None:
        """Post the digest once, then edit it. A second call during the first post waits for the message id."""
        chat = key[1]
        params = self._paint_notice(text, None, chat)
        known = self._digests.get(key)
        if known is not None:
            self._outbox.edit(await asyncio.shield(known), params)
            return
        known = asyncio.get_running_loop().create_future()
        _keep(self._digests, key, known, KEPT_ENDS)
        until = self.clock.now() + DIGEST_LIFE_S
        hushed = {} if loud and not self._commands.is_muted(chat) else self._hushed
        try:
            posted = await self._outbox.send(chat, params | hushed, lambda: self.clock.now() < until, EDIT)
            known.set_result((chat, posted.message))
        finally:
            if not known.done():
                self._digests.pop(key, None)
                known.cancel()

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or session.session_id.startswith("notice:") or self._session_notices:
            task = self._tasks.hold(self._notify(message, session))
            if session is not None and session.state is SessionState.ACTIVE:
                _keep(self._started, session.session_id, task, KEPT_ENDS)

    async def _notify(self, message: str | Callable[[], str], session: SessionRecord | None) -> None:
        """A sentence of the hub, or a text that is made for each reader."""
        chats = await self._chats()
        for chat in chats if session is None else self._readable(session.session_id, chats):
            if session is None or not self._commands.is_muted(chat):
                hushed = self._hushed if session is not None else {}  # the start or end of a session makes no sound
                begins = session is not None and session.state is SessionState.ACTIVE
                # before its first prompt, unless that would delay it behind many others
                first = begins and self._outbox.pending < FEW_PENDING
                with reading(self.reader_of(chat)):
                    told = hub_says(message) if isinstance(message, str) else message()
                    notice = self._paint_notice(told, session, chat) | hushed
                self._outbox.post(chat, notice, QUESTION if first else NOTICE)

    async def close(self) -> None:
        await self._tasks.close()
        await self._outbox.close()
        await self._wire.close()

    def common_health(self) -> dict[str, Any]:
        report: dict[str, Any] = {"unreachable_chats": sorted(self._outbox.gone), "pending": self._outbox.pending}
        if self._outbox.refused:
            report["refused"] = list(self._outbox.refused)
        return report

    # called by inbound

    def deliver(self, reply: InboundReply) -> None:
        _keep(self._given, (reply.prompt_id, reply.identity), reply.value, KEPT_ENDS)
        self._replies.put_nowait(reply)

    def speak(self, identity: str, prompt_id: str, value: str, token: Any, **fields: Any) -> InboundReply:
        """Build a reply as this person would send it on this channel."""
        place = self.caller(identity).place
        return InboundReply(self.name, identity, prompt_id, value, token=token, place=place, **fields)

    def caller(self, identity: str) -> Caller:
        return Caller(identity, self.name, f"{self._people.call(identity)} in {self.title}")

    async def put_off(self, identity: str, record: PromptRecord, nonce: str, what: str) -> str:
        """Handle a "later" button; return the text for the person."""
        if not nonce or not record.nonce.startswith(nonce):
            return t(NOT_OURS)
        return self._people.rename(await press_later(self.hub_api.by(self.caller(identity)), record, what), identity)

    def is_within_limit(self, token: Any, record: PromptRecord | None) -> bool:
        """Whether the reply can be passed on; otherwise its sender is told, and the operators once."""
        sentence, warn = self._throttle.admit(record.session_id if record else "", self.clock.now())
        if sentence:
            self._tell(token, sentence)
        if warn and record is not None:
            self.hub_api.note("CHANNEL_RATE_LIMITED", channel=self.name, session_id=record.session_id)
            self._tasks.hold(self.notify(PAUSED, self._session(record)))
        return not sentence

    def _do(self, token: Any, work: Awaitable[str]) -> None:
        """Tell what became of a press and settle it when the work is done, so that the next process repeats it if this
        one dies. An empty text is not told."""

        async def until_done() -> None:
            if told := await work:
                self._tell(token, told)
            await self._settle(token)

        self._tasks.hold(until_done())

    @abstractmethod
    async def _settle(self, token: Any) -> None:
        """The update with this token has been processed."""

    def settle_which(self, place: Place, record: PromptRecord) -> None:
        """The person chose a prompt: replace the question and its buttons by the choice."""
        meant = f"↪ {render_brief(record.prompt, self._session(record))}"
        self._outbox.edit(place, self._paint_notice(meant, None, place[0]))

    def _meet_copy(self, place: Place, record: PromptRecord) -> None:
        """An unconfirmed copy of the message was pressed: edit it like the others, with the final title if the prompt
        has ended."""
        if self._shown.prompt_at(place) != record.prompt_id:
            self._shown.add(record.prompt_id, place)
            if record.state not in OPEN and (end := self._ends.get(record.prompt_id)):
                self._outbox.edit(place, self._paint_outcome(record, self._session(record), self._judge(*end)))

    async def request_again(self, record: PromptRecord, identity: str) -> str:
        """Ask the hub to raise the prompt again if it is still on the screen; return the text for the person."""
        asked = await self.hub_api.by(self.caller(identity)).again(record.prompt_id)
        return hub_says(asked.message) if isinstance(asked, Refused) else t("Asked again.")

    # connection state

    def heard(self) -> None:
        """Store the time of the last contact, at most every few seconds. After a restart it tells how long the channel
        was offline."""
        now = self.clock.now()
        if now - self._noted_at >= NOTE_EVERY_S:
            self._noted_at = now
            self.hub_api.remember(f"{self.name}.last_poll", iso(self.clock.wall()))

    def went_deaf(self, since: float | None = None) -> None:
        if self._deaf_since is None:
            self._deaf_since = since or self.clock.now()

    async def came_back(self) -> float:
        """Report the prompts that came and ended while the channel was offline; return the length of the gap in
        seconds."""
        if self._deaf_since is None:
            return 0.0
        gap_s = self.clock.now() - self._deaf_since
        self._deaf_since = None
        missed = find_missed(self.hub_api, self.name, self.clock.wall() - gap_s)
        if missed:
            await self._notify(lambda: self._render_missed(missed, gap_s), None)
        return gap_s

    def _render_missed(self, missed: list[PromptRecord], gap_s: float) -> str:
        offline = t("I was offline for {span}. Meanwhile:", span=render_left(gap_s))
        return f"📭 {offline}\n{render_missed(self.hub_api, missed, self._people.call)}"

    def _session(self, event: PromptRecord) -> SessionRecord:
        found = self.hub_api.session(event.session_id)
        return found or SessionRecord(event.session_id, "?", (), "", 0, 0, "")


def _keep(book: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    book[key] = value
    book.move_to_end(key)
    while len(book) > most:
        book.popitem(last=False)
