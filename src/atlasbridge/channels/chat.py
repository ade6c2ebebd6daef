"""What all chats share: send prompts to every operator, show receipts, receive replies, do what people ask.

Each chat channel adds its transport, its rendering and its parsing. The gate decides about replies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import platform
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, ClassVar

from atlasbridge.channels import card as cards
from atlasbridge.channels import grant_card, templates
from atlasbridge.channels.base import BaseChannel, TaskSet
from atlasbridge.channels.callback import Callback, Verb, expand_callback, parse_callback
from atlasbridge.channels.card import Card
from atlasbridge.channels.commands import (
    ABOUT_SESSION,
    NOT_OURS,
    Command,
    HubCommands,
    Spoken,
    is_about,
    is_told_beside,
    parse_command,
    press_later,
)
from atlasbridge.channels.delivery import Delivery, Shown
from atlasbridge.channels.excerpt import LAST_OUTPUT, cut_to, title_whole, whole_text
from atlasbridge.channels.incoming import (
    GONE,
    KEPT_TEXTS,
    NO_MARKS,
    NOT_OPEN,
    NOTHING_OPEN,
    WHICH_SESSION,
    Doubt,
    Received,
    SeenUpdates,
    Sent,
    Strangers,
    Throttle,
    find_target,
    offer,
    refuse_secret,
)
from atlasbridge.channels.language import (
    Reader,
    at_time,
    hub_says,
    known_language,
    language_key,
    reading,
    say_digest,
    say_label,
    t,
)
from atlasbridge.channels.outbox import EDIT, NOTICE, QUESTION, Connection, Outbox, Params, Place, Wire
from atlasbridge.channels.receipts import (
    STILL_OPEN,
    Outcome,
    People,
    is_end,
    is_timer,
    render_fate,
    timer_typed,
)
from atlasbridge.channels.templates import CHANGED, render_brief, render_left
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.operations import Caller, Refused
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.session.model import SessionRecord, SessionState, session_name
from atlasbridge.core.values import frozen, replace

# The summary of prompts that came and ended while the connection to the chat was down. Pure.

LOOK_BACK = 200
MOST_LISTED = 10
LINE_LIMIT = 90
SETTLED_ELSEWHERE = (
    "and 1 more, settled elsewhere: atlasbridge audit show|and {count} more, settled elsewhere: atlasbridge audit show"
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
    quoted = cut_to(first_line(record.prompt), LINE_LIMIT)
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


MOST_PIECES = 4  # a longer text is sent as a file
HELD_KEY = 12  # characters of a message's id that fit on a button
OPENING_S = 5.0  # a question waits at most this long for its session's thread


@frozen
class Asked:
    """A message or a press of a person: its room, the message that was written or pressed, and when by the chat's own
    clock. `token` is set for a press. `seen_before`: an earlier process received it, too."""

    room: str
    user: str
    message: str = ""
    thread: str = ""
    token: str = ""
    at: float = 0.0
    update_id: str = ""
    seen_before: bool = False

    @property
    def place(self) -> Place:
        return self.room, self.message


class SessionThreads:
    """One thread (or topic) per session in the group rooms of a chat. Replies in it are about that session. The hub's
    notes store the threads, so that a restarted hub continues them."""

    def __init__(self, channel: ChatChannel, rooms: Collection[str]) -> None:
        self._channel, self._hub_api, self._rooms = channel, channel.hub_api, frozenset(rooms)
        self._turn = asyncio.Lock()

    def thread_of(self, room: str, session_id: str) -> str:
        return self._hub_api.recall(self._key(room, session_id)) if room in self._rooms else ""

    def session_at(self, room: str, thread: str) -> str:
        """The session that commands and texts in this thread are about."""
        known = room in self._rooms and thread
        return self._hub_api.recall(f"{self._channel.name}.switch.{room}/{thread}") if known else ""

    async def open(self, session: SessionRecord) -> None:
        """Open the threads of a session. Without a thread, messages go to the room itself. A session that only some
        people are allowed to see gets no thread, because everyone in the room could read it."""
        missing = [room for room in self._rooms if not self.thread_of(room, session.session_id)]
        readers = self._hub_api.readers(session.session_id, self._channel.name)
        if not missing or readers is not None or self._has_ended(session):
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for room in missing:
                    known = self.thread_of(room, session.session_id)
                    if not known and (thread := await self._channel.make_thread(room, session)):
                        self._remember(room, thread, session.session_id, thread)
        except (TimeoutError, ChannelError) as fault:
            log.info("no thread for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    def forget_ended(self, session: SessionRecord) -> list[Place]:
        """Return the threads of a session that has ended."""
        found = [(room, self.thread_of(room, session.session_id)) for room in self._rooms]
        closed = [place for place in found if place[1]] if self._has_ended(session) else []
        for room, thread in closed:
            self._remember(room, thread, "", "", session.session_id)
        return closed

    def _remember(self, room: str, thread: str, about: str, value: str, session_id: str = "") -> None:
        self._hub_api.remember(self._key(room, session_id or about), value)
        self._hub_api.remember(f"{self._channel.name}.switch.{room}/{thread}", about)

    def _key(self, room: str, session_id: str) -> str:
        return f"{self._channel.name}.thread.{room}.{session_id}"

    def _has_ended(self, session: SessionRecord) -> bool:
        now = self._hub_api.session(session.session_id) or session
        return now.state is not SessionState.ACTIVE


class ChatChannel(BaseChannel):
    """`title` is the name of the service, `sign` starts a command there, `muted` describes what muting does. `piece` is
    the most text of one message. `confirms`: the service itself asks twice before a lasting answer; `threads`: people
    reply in a thread."""

    remote = True  # every message leaves this machine
    personal = True
    title: ClassVar[str]
    sign: ClassVar[str]
    muted: ClassVar[str]
    piece: ClassVar[int]
    confirms: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    hint: ClassVar[str]  # what the operator should do if a prompt reached no one
    hushed: ClassVar[Params] = {}  # parameters that make a message silent, if the service supports that

    def _furnish(self, own: Any, wire: Wire, rate: Callable[[str], float], threaded: Collection[str] = ()) -> None:
        """Create the parts that all chats need, after the channel has its settings and its wire. `threaded` are the
        rooms in which each session has a thread."""
        hub_api, clock, name = self.hub_api, self.clock, type(self).name
        self._host = own.host_name or platform.node() or "this machine"
        self._wire, self._session_notices = wire, bool(own.session_notices)
        self._operators = len(own.allowed_users)
        self._outbox = Outbox(wire, clock, rate, own.backoff_first_s)
        self._tasks = TaskSet(self.title)
        self._shown = Shown(hub_api, name, clock)
        self._delivery = Delivery(hub_api, clock, self._outbox, self._shown, self._tasks)
        self._commands = HubCommands(self)
        self._people = People(hub_api, name)
        self._throttle = Throttle(own.replies_per_minute)
        self._held: Newest[Place, str] = Newest(KEPT_TEXTS)  # texts that wait until the person chooses their prompt
        self._seen, self._strangers = SeenUpdates(hub_api, name), Strangers(hub_api, name)
        self._received = Received(self, getattr(own, "transcriber", ()))
        self._threads = SessionThreads(self, threaded)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._given: Newest[tuple[str, str], str] = Newest(KEPT_ENDS)
        self._ends: Newest[str, tuple[PromptRecord, Receipt]] = Newest(KEPT_ENDS)
        self._told_timers: Newest[str, None] = Newest(KEPT_ENDS)
        self._digests: Newest[tuple[str, str], asyncio.Future[Place]] = Newest(KEPT_ENDS)
        self._started: Newest[str, asyncio.Task[Any]] = Newest(KEPT_ENDS)  # by session: the notice that it started
        self._rooms: dict[str, str] = {}  # the direct messages of a person
        self._noted_at = float("-inf")
        self._deaf_since: float | None = None

    # implemented by each chat

    _connection: Connection

    @abstractmethod
    async def _process(self, update_id: str, update: Any, seen_before: bool) -> bool:
        """Do what an update asks. Return True if it is settled later: when its reply is decided or its work is done."""

    @abstractmethod
    async def _chats(self) -> list[str]:
        """The chats in which every operator is asked."""

    @abstractmethod
    def _paint(self, card: Card) -> Params:
        """Render the card as a message of the service."""

    @abstractmethod
    def _paint_file(self, title: str, name: str, content: bytes, picture: bool) -> Params: ...

    @abstractmethod
    def _question(self, event: PromptRecord, session: SessionRecord) -> Card: ...

    @abstractmethod
    def _beside(self, place: Place) -> Params:
        """Parameters that place a message, with sound, next to the message at `place`."""

    def _within(self, chat: str, session: SessionRecord | None, loud: bool = False) -> Params:
        """Parameters that put a message into its session's thread. `loud` shows it outside of the thread, too."""
        return {}

    def _inside(self, origin: Asked) -> Params:
        """Parameters that put a message where this one is."""
        return {}

    def _answering(self, origin: Asked) -> Params:
        """Parameters that make a message the answer to this one."""
        return {}

    async def make_thread(self, room: str, session: SessionRecord) -> str:
        """Open a thread and return its id, or "" if that room can have none."""
        return ""

    async def _thread_ended(self, room: str, thread: str) -> None:
        """The session of this thread has ended."""

    def _size(self, text: str) -> int:
        return len(text)

    def _toast(self, origin: Asked, sentence: str) -> None:
        """A word for a press, where the service shows one without a message."""

    def tell(self, token: Any, sentence: str) -> None:
        """Send this sentence to the sender of the reply with this token."""
        self._post(token, self._paint(cards.notice(sentence)) | self._answering(token))

    def _post(self, origin: Asked, params: Params) -> None:
        self._outbox.post(origin.room, params | self._inside(origin), EDIT)

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        card = cards.short_question(event, session) if short else self._question(event, session)
        quiet = self.hushed if self._is_silent(event.prompt_id, chat) else {}
        return self._paint(card) | quiet | self._within(chat, session, loud=True)

    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params:
        return self._paint(cards.ended(event, session, outcome, self._host))

    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str, rows: cards.Rows = ()) -> Params:
        return self._paint(cards.notice(message, session, self._host, rows)) | self._within(chat, session)

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
        await self._connection.run()

    async def _replay(self) -> None:
        """Process the updates that an earlier process received but did not finish, before any new one."""
        for update_id, update in self._seen.left_over():
            log.info("update %s is taken up again", update_id)
            if update is None or not await self._process(update_id, update, True):
                await self._seen.settle(update_id)

    async def _admit(self, update_id: str, update: Any) -> str:
        """Store the update in the inbox before it has any effect, so that a second copy has none."""
        return await self._seen.take(update_id, json.dumps(update, ensure_ascii=False))

    async def _process_new(self, update_id: str, update: Any, news: str) -> None:
        if not await self._process(update_id, update, news == "again"):
            await self._seen.settle(update_id)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Wait for the pending notice that the session started, so that the prompt comes after it."""
        if started := self._started.pop(session.session_id, None):
            await asyncio.wait([started], timeout=STARTED_S)
        await self._threads.open(session)
        if event.prompt.idle and not event.prompt.constraints.get("commands"):
            event = await self._with_changes(event)

        def render(chat: str, short: bool) -> Params:
            with reading(self.reader_of(chat)):
                return self._paint_prompt(event, session, chat, short)

        chats = self._addressed(event, await self._chats())
        return await self._delivery.send(event, chats, render, self.hint)

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
        return next((f"{self.name}:{user}" for user, room in self._rooms.items() if room == chat), "")

    def is_alone(self, chat: str, identity: str) -> bool:
        """Whether that person is the only reader of the chat."""
        return self._owner(chat) == identity

    def _is_silent(self, prompt_id: str, chat: str) -> bool:
        """Whether this prompt makes no sound in the chat: it is muted, or the tone of the prompt is silent for its
        owner."""
        tone = self.hub_api.tone(prompt_id, self.name)
        return self._commands.is_muted(chat) or not tone.sounds_for(self._owner(chat))

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Answer refusals only: an accepted reply shows in the message itself."""
        origin = reply.token
        if isinstance(origin, Asked):
            with reading(self.reader_of(origin.room)):
                sentence = self.answered(reply, outcome, origin.seen_before)
                if isinstance(outcome, Reject) and sentence:
                    self.tell(origin, sentence)
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
            self._ends[event.prompt_id] = (event, receipt)
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
        self._told_timers[event.prompt_id] = None
        return True

    def _remind(self, place: Place, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        if not self._commands.is_muted(place[0]):
            voted = escape_controls(hub_says(receipt.sentence), keep_lines=False)
            said = f"🗳 {voted}" if receipt.by else f"🔔 {t('Still waiting')}:"
            sentence = f"{said} “{first_line(event.prompt)}” · {session_name(session)}"
            notice = self._paint_notice(sentence, None, place[0], cards.to_snooze(event))
            hushed = self.hushed if self._is_silent(event.prompt_id, place[0]) else {}
            self._outbox.post(place[0], notice | self._beside(place) | hushed, EDIT)

    def _put_off(self, place: Place, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        """The prompt was postponed: it is still open, with a new deadline."""
        sentence = f"⏰ {session_name(session)}: {hub_says(self._people.rename(receipt.sentence, receipt.by))}"
        notice = self._paint_notice(sentence, None, place[0]) | self._beside(place) | self.hushed
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
        known = self._digests[key] = asyncio.get_running_loop().create_future()
        until = self.clock.now() + DIGEST_LIFE_S
        hushed = {} if loud and not self._commands.is_muted(chat) else self.hushed
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
                self._started[session.session_id] = task

    async def _notify(self, message: str | Callable[[], str], session: SessionRecord | None) -> None:
        """A sentence of the hub, or a text that is made for each reader."""
        if session is not None:
            await self._threads.open(session)
        chats = await self._chats()
        for chat in chats if session is None else self._readable(session.session_id, chats):
            if session is None or not self._commands.is_muted(chat):
                hushed = self.hushed if session is not None else {}  # the start or end of a session makes no sound
                begins = session is not None and session.state is SessionState.ACTIVE
                # before its first prompt, unless that would delay it behind many others
                first = begins and self._outbox.pending < FEW_PENDING
                with reading(self.reader_of(chat)):
                    told = hub_says(message) if isinstance(message, str) else message()
                    notice = self._paint_notice(told, session, chat) | hushed
                self._outbox.post(chat, notice, QUESTION if first else NOTICE)
        for room, thread in self._threads.forget_ended(session) if session is not None else ():
            await self._thread_ended(room, thread)

    async def close(self) -> None:
        await self._tasks.close()
        await self._outbox.close()
        await self._wire.close()

    def health(self) -> dict[str, Any]:
        connection = self._connection
        report = {
            "state": connection.state,
            "detail": connection.detail,
            "bot": connection.bot,
            "operators": self._operators,
            "unreachable_chats": sorted(self._outbox.gone),
            "pending": self._outbox.pending,
        }
        return report | ({"refused": list(self._outbox.refused)} if self._outbox.refused else {})

    # what people do

    def deliver(self, reply: InboundReply) -> None:
        self._given[reply.prompt_id, reply.identity] = reply.value
        self._replies.put_nowait(reply)

    def speak(self, identity: str, prompt_id: str, value: str, token: Any, **fields: Any) -> InboundReply:
        """Build a reply as this person would send it on this channel."""
        place = self.caller(identity).place
        return InboundReply(self.name, identity, prompt_id, value, token=token, place=place, **fields)

    def caller(self, identity: str) -> Caller:
        return Caller(identity, self.name, f"{self._people.call(identity)} in {self.title}")

    async def _press_later(self, origin: Asked, record: PromptRecord, callback: Callback) -> str:
        """Handle a "later" button; return the text for the person."""
        if not callback.nonce or not record.nonce.startswith(callback.nonce):
            return t(NOT_OURS)
        identity = self._identity(origin)
        outcome = await press_later(self.hub_api.by(self.caller(identity)), record, callback.value)
        if is_told_beside(outcome) and self._shown.places(record.prompt_id):
            self._toast(origin, "⏰")
            return ""
        return self._people.rename(hub_says(outcome.message), identity)

    def shows(self, chat: str, prompt_id: str) -> bool:
        places = self._shown.places(prompt_id)
        return any(room == chat or chat.startswith(f"{room}/") for room, _ in places)

    def had_read(self, token: Any, prompt_id: str) -> bool:
        if not isinstance(token, Asked) or token.seen_before:
            return False
        standing = self._shown.standing(token.room, token.at)
        known = [self.hub_api.prompt(one) for one in standing.prompts]
        return standing.certain and prompt_id in standing.prompts and all(one and one.state in OPEN for one in known)

    def is_within_limit(self, token: Any, record: PromptRecord | None) -> bool:
        """Whether the reply can be passed on; otherwise its sender is told, and the operators once."""
        sentence, warn = self._throttle.admit(record.session_id if record else "", self.clock.now())
        if sentence:
            self.tell(token, sentence)
        if warn and record is not None:
            self.hub_api.note("CHANNEL_RATE_LIMITED", channel=self.name, session_id=record.session_id)
            self._tasks.hold(self.notify(PAUSED, self._session(record)))
        return not sentence

    def _do(self, token: Asked, work: Awaitable[str]) -> bool:
        """Tell what became of a press and settle it when the work is done, so that the next process repeats it if this
        one dies. An empty text is not told. Return True: the press is settled later."""

        async def until_done() -> None:
            if told := await work:
                self.tell(token, told)
            await self._settle(token)

        self._tasks.hold(until_done())
        return True

    async def _settle(self, token: Asked) -> None:
        if token.update_id:
            await self._seen.settle(token.update_id)

    def _identity(self, origin: Asked) -> str:
        return f"{self.name}:{origin.user}"

    def _on_press(self, origin: Asked, data: object, marked: Sequence[str] | None = None) -> bool:
        """`marked` are the places that were marked in a list of the service. Return True if the press is settled
        later."""
        callback = parse_callback(data)
        record = self.hub_api.prompt(callback.prompt_id) if callback else None
        known, identity = self._shown.prompt_at(origin.place), self._identity(origin)
        if callback is None or (known and (record is None or known != record.prompt_id)):
            self.tell(origin, t(NOT_OURS))
            return False
        if record is None or self.hub_api.seen_by(identity).prompt(record.prompt_id) is None:
            return self._pass(origin, callback, None, callback.value)  # the gate refuses and logs it
        match callback.verb:
            case Verb.SHOW if record.prompt.idle:
                self._toast(origin, t("Here it is."))
                self._command(origin, Command("last", record.session_id))
            case Verb.SHOW:
                self._show_more(origin, record)
            case Verb.AGAIN:
                return self._do(origin, self.request_again(record, identity))
            case Verb.LATER:
                return self._do(origin, self._press_later(origin, record, callback))
            case Verb.GRANT:
                return self._on_grant(origin, callback, record)
            case Verb.THIS:
                return self._on_which(origin, callback, record)
            case Verb.TOGGLE | Verb.SEND:
                return self._on_marks(origin, callback, record, marked)
            case Verb.WRITE:
                self._tasks.hold(self._ask_for_words(origin, record, ""))
            case Verb.ALWAYS | Verb.PAGE if not (self.confirms and callback.verb == Verb.ALWAYS):
                self._turn(origin, callback, record)
            case _:
                return self._pass(origin, callback, record, expand_callback(callback, record)[2])
        return False

    def _turn(self, origin: Asked, callback: Callback, record: PromptRecord) -> None:
        """Show other buttons in the place of the first: another page, or the second press of a lasting answer."""
        value, card = expand_callback(callback, record)[2], self._question(record, self._session(record))
        lasting = [one for one in record.prompt.choices if one.always and one.value == value]
        if record.state not in OPEN:
            self.tell(origin, t(NOT_OPEN))
        elif callback.verb == Verb.PAGE and value.isdecimal():
            self._turn_page(origin, record, int(value))
        elif callback.verb == Verb.ALWAYS and lasting:
            self._toast(origin, t(templates.SURE))
            sure = replace(card, kind=t(templates.SURE), rows=cards.to_make_sure(record, lasting[0]))
            self._make_sure(origin, record, sure)
        else:
            self.tell(origin, t(NOT_OURS))

    def _make_sure(self, origin: Asked, record: PromptRecord, sure: Card) -> None:
        self._outbox.edit(origin.place, self._paint(sure))

    def _turn_page(self, origin: Asked, record: PromptRecord, page: int) -> None:
        self._outbox.edit(origin.place, self._paint(self._question(record, self._session(record))))

    def _on_grant(self, origin: Asked, callback: Callback, record: PromptRecord) -> bool:
        if expand_callback(callback, record)[:2] != (record.session_id, record.nonce):
            self.tell(origin, t(NOT_OURS))
        elif self.is_within_limit(origin, record):
            return self._do(origin, self._grant(origin, record, callback.value))
        return False

    async def _grant(self, origin: Asked, record: PromptRecord, value: str) -> str:
        """Post the offer next to the question, and replace it by the result."""
        told = await grant_card.press(self.hub_api, record, value, self.caller(self._identity(origin)))
        if isinstance(told, str):
            return told
        params = self._paint(cards.notice(told.text, rows=cards.to_grant(record, told.buttons)))
        if told.beside:
            self._post(origin, params | self._answering(replace(origin, token="")))
        else:
            self._outbox.edit(origin.place, params)
        self._toast(origin, told.toast)
        return ""

    def _on_which(self, origin: Asked, callback: Callback, record: PromptRecord) -> bool:
        """The person has chosen the prompt that an earlier text meant."""
        text = self._held.pop((origin.room, callback.value), None)
        if text is None:
            self.tell(origin, t(GONE))
            return False
        self.settle_which(origin.place, record)
        command = parse_command(text, "", self.sign)
        if command is not None and is_about(command):
            self._command(origin, Command(command.name, f"{record.prompt_id} {command.rest}"))
            return False
        return self._pass(origin, callback, record, text, templates.reads_as_words(record.prompt, text))

    def _on_marks(self, origin: Asked, callback: Callback, record: PromptRecord, marked: Sequence[str] | None) -> bool:
        known = {str(place): place for place, _ in templates.pickable(record.prompt)}
        if marked is None or not set(marked) <= set(known):
            self.tell(origin, t(NO_MARKS, title=self.title))
            return False
        places = sorted(known[one] for one in marked)
        return self._pass(origin, callback, record, templates.picked_value(record.prompt, places))

    def _pass(
        self, origin: Asked, callback: Callback, record: PromptRecord | None, value: str, as_text: bool = False
    ) -> bool:
        """Hand a press on to the gate, or ask for the words that its choice needs."""
        prompt_id, session_id, nonce = callback.prompt_id, callback.session_id, callback.nonce
        if record is not None:
            prompt_id, (session_id, nonce, _) = record.prompt_id, expand_callback(callback, record)
            live = record.state in OPEN and nonce == record.nonce and callback.verb != Verb.THIS
            if callback.verb != Verb.THIS and nonce == record.nonce:
                self._meet_copy(origin.place, record)
            if live and templates.needs_words(record.prompt, value):
                label = next(
                    say_label(value, choice.label) for choice in record.prompt.choices if choice.value == value
                )
                self._tasks.hold(self._ask_for_words(origin, record, label))
                return False
        if not self.is_within_limit(origin, record):
            return False
        return self._deliver(origin, prompt_id, value, session_id=session_id, nonce=nonce, as_text=as_text)

    def _deliver(self, origin: Asked, prompt_id: str, value: str, **fields: Any) -> bool:
        self.deliver(self.speak(self._identity(origin), prompt_id, value, origin, **fields))
        return True

    async def _ask_for_words(self, origin: Asked, record: PromptRecord, label: str) -> None:
        """Ask for the text that a choice needs. The answer is a reply to this message, which does not show the
        prompt."""
        self._toast(origin, t("Write your answer as a reply."))
        posted = await self._outbox.send(origin.room, self._paint_words(origin, templates.short_label(label)))
        self._shown.refer(record.prompt_id, (origin.room, posted.message))

    def _paint_words(self, origin: Asked, label: str) -> Params:
        wanted = t("Write your answer for “{label}” as a reply to this message.", label=label)
        return self._paint(cards.notice(f"✍ {wanted}")) | self._inside(origin)

    def _read_command(self, text: str, replied: str, bot_name: str = "") -> Command | None:
        """The command in a message. In a reply to a prompt, only commands about that prompt; others belong to the
        tool."""
        command = parse_command(text, bot_name, self.sign)
        if command is None or not replied:
            return command
        return Command(command.name, f"{replied} {command.rest}") if is_about(command) else None

    def _target(self, origin: Asked, replied: str, is_reply: bool) -> PromptRecord | Doubt:
        """A reply to a prompt's message answers that prompt only; a plain text answers the prompt that was shown before
        it."""
        if replied:
            return self.hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if is_reply:
            return offer(self.hub_api, self._shown, origin.room)
        chosen = self._commands.chosen(origin.room)
        return find_target(self.hub_api, self._shown, origin.room, origin.at, chosen, origin.seen_before)

    def _on_words(self, origin: Asked, text: str, place: Place) -> bool:
        """A text, as a reply to the message at `place` if that has an id."""
        wanted = self._shown.words_wanted_at(place)
        replied = wanted or self._shown.prompt_at(place)
        if command := self._read_command(text, replied):
            self._command(origin, command)
            return False
        return self._on_text(origin, self._target(origin, replied, bool(place[1])), text, bool(wanted))

    def _on_text(self, origin: Asked, target: PromptRecord | Doubt, text: str, as_words: bool = False) -> bool:
        if isinstance(target, Doubt):
            self._ask_which(origin, target.told(self.sign, self.threads), target.offered, text)
        elif target.prompt.secret:
            self.tell(origin, refuse_secret(target))
        elif self.is_within_limit(origin, target):
            as_text = as_words or templates.reads_as_words(target.prompt, text)
            return self._deliver(origin, target.prompt_id, text, session_id=target.session_id, as_text=as_text)
        return False

    def _ask_which(self, origin: Asked, sentence: str, offered: Sequence[PromptRecord], text: str) -> None:
        """Ask which prompt the text means, as a reply to it."""
        key = (origin.message or origin.update_id)[-HELD_KEY:]
        if offered:
            self._held[origin.room, key] = text
        rows = cards.to_choose([(record, self._session(record)) for record in offered], key)
        self._post(origin, self._paint(cards.notice(sentence, rows=rows)) | self._answering(origin))

    def _keep_file(self, origin: Asked, sent: Sent, caption: str, session_id: str) -> None:
        identity = self._identity(origin)
        meant = self._commands.meant(self._room(origin), identity)
        session = self.hub_api.seen_by(identity).session(session_id) if session_id else meant
        if session is None:
            self.tell(origin, t(WHICH_SESSION, sign=self.sign))
        else:
            self._tasks.hold(self._received.keep_file(origin, sent, caption, session, identity))

    def _hear(self, origin: Asked, sent: Sent, target: PromptRecord | Doubt | None) -> None:
        self._tasks.hold(self._received.hear(origin, sent, lambda heard: self._heard(origin, target, heard)))

    def _heard(self, origin: Asked, target: PromptRecord | Doubt | None, heard: str) -> None:
        """Show the transcript first; a press on the right prompt sends it."""
        if isinstance(target, PromptRecord) and target.prompt.secret:
            self.tell(origin, refuse_secret(target))
            return
        doubt = target if isinstance(target, Doubt) else Doubt("", (target,) if target else ())
        press = t("Tap to send it.") if doubt.offered else ""
        told = f"{press} {doubt.told(self.sign, self.threads)}".strip() or t(NOTHING_OPEN)
        self._ask_which(origin, f"🎙 “{heard}”\n{told}", doubt.offered, heard)

    # commands and long texts

    def _room(self, origin: Asked) -> str:
        """Treat a session's thread as a separate room, so that messages in it apply to that session."""
        room, thread = origin.room, origin.thread
        return f"{room}/{thread}" if self._threads.session_at(room, thread) else room

    def _command(self, origin: Asked, command: Command) -> None:
        """Run the command in the background, so that a slow session does not delay the next update."""
        self._tasks.hold(self._obey(origin, command))

    async def _obey(self, origin: Asked, command: Command) -> None:
        room = self._room(origin) if command.name in ABOUT_SESSION else origin.room
        self._send_spoken(origin, await self._commands.run(room, command, self._identity(origin), origin))

    def _send_spoken(self, origin: Asked, spoken: Spoken) -> None:
        if spoken.offered:
            self._ask_which(origin, spoken.text, spoken.offered, spoken.name)
        elif spoken.file is not None:
            self._post(origin, self._paint_file(spoken.text, spoken.name, spoken.file, spoken.picture))
        elif spoken.screen is not None:
            most = MOST_PIECES if spoken.split else 1
            self._send_quoted(origin, spoken.text, spoken.screen, spoken.name, most)
        elif spoken.text:
            shown = escape_controls(spoken.text)
            pieces = split_rows(shown.split("\n"), self.piece, self._size) or [""]
            if len(pieces) > MOST_PIECES:
                title = pieces[0].partition("\n")[0]
                self._post(origin, self._paint_file(title, "answer.txt", shown.encode(), False))
                return
            for piece in pieces:
                self._post(origin, self._paint(cards.notice(piece)))

    def _send_quoted(self, origin: Asked, title: str, text: str, name: str, most: int = 1) -> None:
        """Send a text of the tool as at most so many messages, otherwise as a file."""
        shown = escape_controls(text).rstrip()
        pieces = split_rows(shown.split("\n"), self.piece, self._size)
        if len(pieces) > most:
            self._post(origin, self._paint_file(title, name, shown.encode(), False))
            return
        for number, piece in enumerate(pieces or [""], 1):
            counted = title if len(pieces) < 2 else f"{title} ({templates.page_of(number, len(pieces))})"
            self._post(origin, self._paint(cards.quoted(counted, piece)))

    def _show_more(self, origin: Asked, record: PromptRecord) -> None:
        self._toast(origin, t("Here it is."))
        again = templates.offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt) if again else whole_text(record.prompt)
        if not again or len(whole) > LAST_OUTPUT:
            title = t("Last output:") if again else title_whole(record.prompt)
            self._send_quoted(origin, title, whole, "screen.txt")
        if again:
            params = self._paint(cards.asked_again(record)) | self._inside(origin)
            self._tasks.hold(self._delivery.send_to(origin.room, record, lambda *_: dict(params), patient=True))

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

    async def _open_rooms(
        self, users: Sequence[str], open_dm: Callable[[str], Awaitable[str]], has_others: bool = False
    ) -> None:
        """Open the direct messages of everybody, once. Raise ChannelError if nobody is reached."""
        faults = set()
        for user in users:
            try:
                self._rooms[user] = self._rooms.get(user) or await open_dm(user)
            except ChannelError as fault:
                faults.add(str(fault))
        if not self._rooms and not has_others:
            raise ChannelError("nobody was reached: " + "; ".join(sorted(faults)), self.hint)

    # connection state

    async def state_changed(self, state: str, detail: str) -> None:
        if state == "ok":
            self.heard()
            self._tasks.hold(self.came_back())
        else:
            self.went_deaf()

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
