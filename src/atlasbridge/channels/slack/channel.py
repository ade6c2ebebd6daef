"""The Slack channel: sends prompts to every approver and receives clicks, modals and thread replies.

The gate decides about replies. `api` and `link` transport messages; `inbound` parses the actions of people.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

from atlasbridge.channels import grant_card
from atlasbridge.channels.chat import ChatChannel
from atlasbridge.channels.commands import Command, SessionCommands, Spoken
from atlasbridge.channels.excerpt import LAST_OUTPUT, title_whole, whole_text
from atlasbridge.channels.language import reading, t
from atlasbridge.channels.outbox import EDIT, Outbox, Params, Place
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.received import WHICH, Received, Sent
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.slack.api import SlackApi
from atlasbridge.channels.slack.blocks import SECTION_LIMIT, SIGN
from atlasbridge.channels.slack.inbound import Inbound, Memory, Origin
from atlasbridge.channels.slack.link import Link
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.channels.target import Doubt
from atlasbridge.channels.templates import offers_again, page_of, session_name, tool_name
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord, SessionState

# One thread per session, in the configured channels: it contains the session's prompts and notices, and replies in it
# are about that session. Direct messages have no threads, because a question in a thread is easy to miss there. The
# hub's notes store the threads, so that a restarted hub continues them.

log = logging.getLogger(__name__)
OPENING_S = 5.0  # a question waits at most this long for its thread


class Threads:
    """`rooms` are the channels with threads; `paint` renders the first message of a thread."""

    def __init__(
        self, outbox: Outbox, hub_api: HubApi, rooms: Iterable[str], paint: Callable[[SessionRecord], Params]
    ) -> None:
        self._outbox, self._hub_api, self._paint = outbox, hub_api, paint
        self._rooms = frozenset(rooms)
        self._turn = asyncio.Lock()

    def thread_of(self, room: str, session_id: str) -> str:
        """Return the timestamp of the first message of the session's thread, or "" if it has none."""
        return self._hub_api.recall(_thread(room, session_id)) if room in self._rooms else ""

    def session_at(self, room: str, thread: str) -> str:
        return self._hub_api.recall(f"slack.switch.{room_of(room, thread)}") if room in self._rooms and thread else ""

    def inside(self, room: str, session: SessionRecord | None, loud: bool = False) -> Params:
        """Parameters that put a message into its session's thread. `loud` shows it in the channel, too."""
        thread = self.thread_of(room, session.session_id) if session is not None else ""
        return ({"thread_ts": thread} | ({"reply_broadcast": True} if loud else {})) if thread else {}

    def root_of(self, place: Place, session_id: str) -> str:
        """Return the thread for replies to this message: its session's thread, or the message's own thread."""
        return self.thread_of(place[0], session_id) or place[1]

    async def open(self, session: SessionRecord) -> None:
        """Open the threads of a session. Without a thread, messages go to the channel itself. A session that only some
        people are allowed to see gets no thread, because everyone in the channel could read it."""
        if self._hub_api.readers(session.session_id, "slack") is not None:
            return
        missing = [room for room in self._rooms if not self.thread_of(room, session.session_id)]
        now = self._hub_api.session(session.session_id) or session
        if not missing or now.state is not SessionState.ACTIVE:
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for room in missing:
                    await self._open(room, session)
        except (TimeoutError, ChannelError) as fault:
            log.info("no thread for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    async def _open(self, room: str, session: SessionRecord) -> None:
        if self.thread_of(room, session.session_id):
            return
        posted = await self._outbox.send(room, self._paint(session))
        self._hub_api.remember(_thread(room, session.session_id), posted.message)
        self._hub_api.remember(f"slack.switch.{room_of(room, posted.message)}", session.session_id)

    def forget_ended(self, session: SessionRecord) -> None:
        now = self._hub_api.session(session.session_id) or session
        for room in self._rooms if now.state is not SessionState.ACTIVE else ():
            if thread := self.thread_of(room, session.session_id):
                self._hub_api.remember(f"slack.switch.{room_of(room, thread)}", "")
                self._hub_api.remember(_thread(room, session.session_id), "")


def room_of(room: str, thread: str) -> str:
    """Treat a session's thread as a separate room, so that commands in it apply to that session."""
    return f"{room}/{thread}"


def beginning(session: SessionRecord, tool: str) -> str:
    return f"🧵 {session_name(session)} · {tool} · {short_id(session.session_id)} · {session.cwd}"


def _thread(room: str, session_id: str) -> str:
    return f"slack.thread.{room}.{session_id}"


MOST_PIECES = 4  # a longer text is sent as a file


class SlackChannel(ChatChannel):
    name = "slack"
    title = "Slack"
    sign = SIGN
    muted = "no reminders or notices come; prompts still do, since Slack has no silent ones."

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = SlackSettings.model_validate(dict(settings))
        self._rooms: dict[str, str] = {}
        self._api = SlackApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._furnish(own, self._api, lambda room: own.messages_per_s)
        memory = Memory(self._shown, self._people, self._throttle, self._held)
        self._inbound = Inbound(own, hub_api, clock, memory, self)
        self._link = Link(own, self._api, self)
        self._received = Received(hub_api, self._tell, self, own.transcriber, self.title)
        self._threads = Threads(self._outbox, hub_api, own.channels if own.threads else (), self._paint_thread)

    # called by the hub

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Answer refusals only: an accepted reply shows in the message itself."""
        origin = reply.token
        if not isinstance(origin, Origin):
            return
        with reading(self.reader_of(origin.room)):
            sentence = self.answered(reply, outcome, origin.seen_before)
            if isinstance(outcome, Reject) and sentence:
                self._tell(origin, sentence)
        await self._inbound.settle(origin)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._threads.open(session)
        return await super().send_prompt(event, session)

    async def _notify(self, message: str | Callable[[], str], session: SessionRecord | None) -> None:
        if session is not None:
            await self._threads.open(session)
        await super()._notify(message, session)
        if session is not None:
            self._threads.forget_ended(session)

    async def close(self) -> None:
        await self._tasks.close()
        await self._outbox.close()
        await self._api.close()

    def health(self) -> dict[str, Any]:
        return {
            "state": self._link.state,
            "detail": self._link.detail,
            "bot": self._link.bot_user,
            "operators": len(self._own.allowed_users),
            **self.common_health(),
        }

    # required by the base class

    async def _serve(self) -> None:
        await self._link.run()

    async def _replay(self) -> None:
        await self._inbound.replay()

    async def _chats(self) -> list[str]:
        """The direct messages of the approvers and the configured channels, without people who cannot be reached."""
        faults: list[str] = []
        for user_id in self._own.allowed_users:
            if user_id not in self._rooms:
                try:
                    self._rooms[user_id] = await self._api.open_dm(user_id)
                except ChannelError as fault:
                    faults.append(str(fault))
        rooms = [*self._rooms.values(), *self._own.channels]
        if not rooms:
            raise ChannelError("nobody was reached: " + "; ".join(sorted(set(faults))), self._hint)
        return rooms

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        painted = blocks.render_short(event, session) if short else blocks.render_prompt(event, session, self._host)
        return painted | self._threads.inside(chat, session, loud=True)

    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params:
        return blocks.render_outcome(event, session, outcome, self._host, outcome.again)

    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str) -> Params:
        return blocks.render_notice(message, session, self._host) | self._threads.inside(chat, session)

    def _paint_thread(self, session: SessionRecord) -> Params:
        return blocks.render_notice(beginning(session, tool_name(session)), None, self._host)

    def _paint_reminder(self, sentence: str, event: PromptRecord, chat: str) -> Params:
        notice = self._paint_notice(sentence, None, chat)
        return {**notice, "blocks": [*notice["blocks"], blocks.render_snooze(event)]}

    def _owner(self, chat: str) -> str:
        user = next((user for user, room in self._rooms.items() if room == chat), "")
        return f"slack:{self._own.team_id}/{user}" if user else ""

    def _beside(self, place: Place) -> Params:
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        return {"thread_ts": self._root(place, record), "reply_broadcast": True}

    def _root(self, place: Place, record: PromptRecord | None) -> str:
        return self._threads.root_of(place, record.session_id) if record else place[1]

    def _tell(self, token: Any, sentence: str) -> None:
        self.say(token, sentence)

    @property
    def _hint(self) -> str:
        return "invite the app to the channel, check its scopes, and see: atlasbridge hub status"

    @property
    def _session_notices(self) -> bool:
        return self._own.session_notices

    # called by the link

    async def admit(self, kind: str, payload: dict[str, Any]) -> bool:
        self.heard()
        return await self._inbound.admit(kind, payload)

    async def take(self, kind: str, payload: dict[str, Any]) -> None:
        await self._inbound.take(kind, payload)

    def state_changed(self, state: str) -> None:
        if state == "unauthorized":
            self.hub_api.note("CHANNEL_UNAUTHORIZED", channel="slack")
        if state == "ok":
            self.heard()
            self._tasks.hold(self._learn_names())
            self._tasks.hold(self.came_back())
        else:
            self.went_deaf()

    # called by inbound

    def say(self, origin: Origin, sentence: str) -> None:
        """Answer a text in its thread, and a click with a message that only the person sees."""
        where = {"thread_ts": origin.thread} if origin.thread else {"only_for": origin.user}
        if origin.room:
            self._outbox.post(origin.room, blocks.render_notice(sentence, None, self._host) | where, EDIT)

    def ask_which(self, origin: Origin, doubt: Doubt) -> None:
        if not doubt.offered:
            self.say(origin, doubt.told(SIGN))
            return
        offered = [(record, self._session(record)) for record in doubt.offered]
        asked = blocks.render_which(doubt.told(SIGN, threads=True), offered, origin.ts)
        self._outbox.post(origin.room, asked | {"thread_ts": origin.thread}, EDIT)

    def ask_again(self, origin: Origin, record: PromptRecord) -> None:
        self._do(origin, self._say_it(origin, self.request_again(record, self._identity(origin))))

    def later(self, origin: Origin, record: PromptRecord, nonce: str, what: str) -> None:
        self._do(origin, self._say_it(origin, self.put_off(self._identity(origin), record, nonce, what)))

    def _do(self, origin: Origin, work: Coroutine[Any, Any, None]) -> None:
        """Settle the click when the work is done, so that the next process repeats it if this one dies."""

        async def until_done() -> None:
            await work
            await self._inbound.settle(origin)

        self._tasks.hold(until_done())

    async def _say_it(self, origin: Origin, sentence: Awaitable[str]) -> None:
        self.say(origin, await sentence)

    def _identity(self, origin: Origin) -> str:
        return f"slack:{self._own.team_id}/{origin.user}"

    def grant(self, origin: Origin, place: Place, record: PromptRecord, value: str) -> None:
        self._do(origin, self._grant(origin, place, record, value))

    async def _grant(self, origin: Origin, place: Place, record: PromptRecord, value: str) -> None:
        """Post the offer in the question's thread, and replace it by the result."""
        told = await grant_card.press(self.hub_api, record, value, self.caller(self._identity(origin)))
        if isinstance(told, str):
            self.say(origin, told)
            return
        params = blocks.render_granting(record, told.text, told.buttons)
        if told.beside:
            self._outbox.post(place[0], params | {"thread_ts": self._root(place, record)}, EDIT)
        else:
            self._outbox.edit(place, params)

    def show_more(self, place: Place, record: PromptRecord) -> None:
        thread, again = {"thread_ts": self._root(place, record)}, offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt) if again else whole_text(record.prompt)
        if not again or len(whole) > LAST_OUTPUT:
            title = t("Last output:") if again else title_whole(record.prompt)
            self._outbox.post(place[0], _screen_params(title, whole) | thread, EDIT)
        if again:
            params = blocks.render_again(record) | thread
            self._tasks.hold(self._delivery.send_to(place[0], record, lambda *_: params, patient=True))

    def chosen(self, room: str) -> str:
        return self._commands.chosen(room)

    def session_at(self, room: str, thread: str) -> str:
        return self._threads.session_at(room, thread)

    def keep_file(self, origin: Origin, file: dict[str, Any], caption: str, session_id: str) -> None:
        identity = f"slack:{self._own.team_id}/{origin.user}"
        meant = self._commands.meant(origin.room, identity)
        session = self.hub_api.seen_by(identity).session(session_id) if session_id else meant
        if session is None:
            self.say(origin, t(WHICH, sign=SIGN))
            return
        self._tasks.hold(self._received.keep_file(origin, self._sent(file), caption, session, identity))

    def hear(self, origin: Origin, file: dict[str, Any], then: Callable[[str], None]) -> None:
        self._tasks.hold(self._received.hear(origin, self._sent(file), then))

    def _sent(self, file: dict[str, Any]) -> Sent:
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        fetch = functools.partial(self._api.download, url, str(file.get("mimetype")))
        return Sent(str(file.get("name") or "file"), int(file.get("size") or 0), fetch)

    def command(self, user: str, command: Command, origin: Origin | None = None) -> None:
        """Run the command in the background, so that a slow session does not delay the acknowledgement of the next
        click."""
        self._tasks.hold(self._obey(user, command, origin))

    async def _obey(self, user: str, command: Command, origin: Origin | None) -> None:
        """Answer in the session's thread if the command came from there, otherwise in the person's direct messages."""
        identity = f"slack:{self._own.team_id}/{user}"
        if origin and command.name in SessionCommands.NAMES and self.session_at(origin.room, origin.thread):
            await self._speak(room_of(origin.room, origin.thread), command, identity, origin, origin.thread)
            return
        try:
            room = self._rooms.get(user) or await self._api.open_dm(user)
        except ChannelError as fault:
            log.warning("a command could not be answered: %s", fault)
            return
        self._rooms[user] = room
        await self._speak(room, command, identity, origin)

    async def _speak(self, room: str, command: Command, identity: str, origin: Origin | None, thread: str = "") -> None:
        chat = origin.room if origin and thread else room
        with reading(self.reader_of(chat)):
            for params in self._spoken(await self._commands.run(room, command, identity, origin)):
                self._outbox.post(chat, params | ({"thread_ts": thread} if thread else {}), EDIT)

    def _spoken(self, spoken: Spoken) -> list[Params]:
        """Render the complete text as a few messages if it fits, otherwise as a file."""
        if spoken.file is not None:
            return [{"text": spoken.text, "document": (spoken.name, spoken.file)}]
        if spoken.screen is None:
            pieces = split_rows(escape_controls(spoken.text).split("\n"), SECTION_LIMIT, len) or [""]
            if len(pieces) > MOST_PIECES:
                return [
                    {"text": pieces[0].partition("\n")[0], "document": ("answer.txt", escape_controls(spoken.text))}
                ]
            return [blocks.render_notice(piece, None, self._host) for piece in pieces]
        if not spoken.split:
            return [_screen_params(spoken.text, spoken.screen)]
        rows = escape_controls(spoken.screen).rstrip().split("\n")
        pieces = split_rows(rows, blocks.QUOTE_LIMIT, len) or [t("(nothing)")]
        if len(pieces) > MOST_PIECES:
            return [{"text": spoken.text, "document": (spoken.name, escape_controls(spoken.screen))}]
        several = len(pieces) > 1
        counted = [f" ({page_of(number, len(pieces))})" if several else "" for number in range(1, len(pieces) + 1)]
        return [_screen_params(spoken.text + count, piece) for count, piece in zip(counted, pieces, strict=True)]

    async def open_modal(self, origin: Origin, trigger_id: str, record: PromptRecord, label: str) -> None:
        """One attempt without a queue, because the trigger expires after three seconds."""
        view = blocks.render_modal(record, self._session(record), label)
        try:
            await self._api.call("views.open", {"trigger_id": trigger_id, "view": view})
        except ChannelError as fault:
            log.warning("a text field could not be shown: %s", fault)
            self.say(origin, t("The text field could not be shown. Reply in the thread of the prompt instead."))

    async def _learn_names(self) -> None:
        """Load the names of people, so that messages show a name instead of an id."""
        for user_id in self._own.allowed_users:
            asked = {"user": user_id, "include_locale": "true"}
            user = (await self._api.call("users.info", asked)).get("user") or {}
            profile = user.get("profile") or {}
            called = profile.get("display_name") or user.get("real_name") or user.get("name")
            self._people.learn(f"{self._own.team_id}/{user_id}", called, user.get("locale"), user.get("tz"))


def _screen_params(title: str, screen: str) -> dict[str, Any]:
    """Show the screen in a message if it fits, otherwise as a file."""
    return blocks.render_screen(title, screen) or {"text": title, "document": ("screen.txt", escape_controls(screen))}
