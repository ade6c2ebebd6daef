"""The Telegram channel: sends prompts to every operator and receives taps and texts. The gate decides about replies.

Unknown senders get no answer. `api` transports messages, `messages` renders.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels.callback import Callback, Verb
from atlasbridge.channels.card import Card
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.commands import describe_commands, parse_command
from atlasbridge.channels.incoming import EDITED, NOT_OPEN, Doubt, Sent
from atlasbridge.channels.language import LANGUAGES, Reader, reading, t
from atlasbridge.channels.outbox import Params, Place, Refused, Unreachable
from atlasbridge.channels.settings import TelegramSettings
from atlasbridge.channels.telegram import messages
from atlasbridge.channels.telegram.api import Batch, BotApi, Poller
from atlasbridge.channels.telegram.messages import cut_text, file_of, in_topic, parse_marks, parse_toggle, reply_to
from atlasbridge.channels.templates import pickable, picked_value, render_left, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord, session_name
from atlasbridge.core.values import replace

FORWARDED = "Forwarded messages and messages from bots do not count as answers. Write the answer yourself."
SCHEDULED = "Scheduled and automatic messages do not count as answers. Write the answer now."
# marks of a text that another person or bot wrote
NOT_WRITTEN = ("forward_origin", "forward_date", "via_bot", "sender_business_bot")
REFERENCES = ("reply_to_message", "external_reply", "reply_to_story")  # marks of a reply, to any kind of message
MARKED = "Selected. Send them with the button below the list."
CHANGED = "The selection has changed. Check it, then send."
ONLY_TEXT = "Only text, buttons, photos, files and voice notes work here."
WHERE = "where"  # in a group: the bot sends the group's id in private

log = logging.getLogger(__name__)
NAME_LIMIT = 128
TOAST_LIMIT, TOASTS_AT_ONCE = 200, 4
TAP_LIFE_S = 150.0
DECISION_PATIENCE_S = 2.0  # wait for decisions before confirming a batch
GROUP_RATE = 17 / 60  # Telegram's limit is 20 messages a minute in a group; three can be sent at once
ALARM_EVERY_S = 3600.0
CONFLICT_AT = "telegram.conflict_at"
TAPS_LOST = (
    "I was offline for {span}. Taps older than {seconds} s are lost: "
    "if you tapped a button in that time, please tap it again."
)
CONFLICT = (
    "Another program is polling with this bot's token: a second AtlasBridge, or somebody who stole the token. "
    "Stop the other one, or make a new token with @BotFather."
)


class TelegramChannel(ChatChannel):
    name = "telegram"
    title = "Telegram"
    sign = "/"
    muted = "prompts arrive without a sound; reminders and notices do not arrive."
    piece = messages.INLINE_LIMIT
    hint = "start a chat with the bot, and see: atlasbridge hub status"
    hushed: ClassVar[Params] = {"disable_notification": True}

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = TelegramSettings.model_validate(dict(settings))
        self._topics = {str(group.chat_id): str(group.topic_id or "") for group in own.groups}
        self._api = BotApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._furnish(own, self._api, self._rate, [chat for chat, topic in self._topics.items() if not topic])
        self._api.is_known = self._shown.prompt_at
        self._connection = self._poller = Poller(self._api, clock, self.take, self.state_changed, own)
        self._marks: Newest[Place, int] = Newest(messages.KEPT)  # of each message, as far as this process knows them
        self._toasting = asyncio.Semaphore(TOASTS_AT_ONCE)  # many taps must not open many connections
        self._no_forums: set[str] = set()
        self._undecided: set[str] = set()  # the updates whose replies the gate has not decided about
        self._decided = asyncio.Event()

    # called by the hub

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """A tap always gets its toast. A text is answered only if it was refused; otherwise the message is edited."""
        origin = reply.token
        if not isinstance(origin, Asked):
            return
        self._undecided.discard(origin.update_id)
        if not self._undecided:
            self._decided.set()
        with reading(self.reader_of(origin.room)):
            sentence = self.answered(reply, outcome, origin.seen_before)
            if origin.token or (isinstance(outcome, Reject) and sentence):
                self.tell(origin, sentence or outcome.sentence)
        await self._settle(origin)

    def health(self) -> dict[str, Any]:
        last_ok_at = self._poller.last_ok_at
        return {
            **super().health(),
            "last_ok_s": None if last_ok_at is None else round(self.clock.now() - last_ok_at, 1),
        }

    # required by the base class

    async def _chats(self) -> list[str]:
        return [*map(str, self._own.allowed_users), *self._topics]

    def _paint(self, card: Card) -> Params:
        return messages.render(card)

    def _paint_file(self, title: str, name: str, content: bytes, picture: bool) -> Params:
        kind = "photo" if picture else "document"  # a person's own file is sent unchanged
        return {"caption": cut_text(escape_controls(title), messages.CAPTION_LIMIT), kind: (name, content)}

    def _paint_words(self, origin: Asked, label: str) -> Params:
        """The input field opens by itself. Telegram cannot edit a message with such a field."""
        held = cut_text(label, messages.PLACEHOLDER_LIMIT)
        field = {"force_reply": True, "selective": True, "input_field_placeholder": held}
        return super()._paint_words(origin, label) | self._answering(origin) | {"reply_markup": field}

    def _question(self, event: PromptRecord, session: SessionRecord) -> Card:
        return messages.question(event, session, self._host)

    def _owner(self, chat: str) -> str:
        return "" if chat in self._topics else f"telegram:{chat}"

    def _beside(self, place: Place) -> Params:
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        return reply_to(place[1]) | in_topic(self._threads.thread_of(place[0], record.session_id) if record else "")

    def _within(self, chat: str, session: SessionRecord | None, loud: bool = False) -> Params:
        own = self._threads.thread_of(chat, session.session_id) if session is not None else ""
        return in_topic(own or self._topics.get(chat, ""))

    def _inside(self, origin: Asked) -> Params:
        return in_topic(origin.thread)

    def _answering(self, origin: Asked) -> Params:
        return reply_to(origin.message)

    def _size(self, text: str) -> int:
        return messages.utf16_units(text)

    def tell(self, token: Any, sentence: str) -> None:
        """Answer a tap with a toast, and a text with a reply."""
        if token.token:
            self._toast(token, sentence)
        else:
            super().tell(token, sentence)

    def _toast(self, origin: Asked, sentence: str) -> None:
        if origin.token:
            text = cut_text(escape_controls(sentence), TOAST_LIMIT)
            self._tasks.hold(self._answer_tap({"callback_query_id": origin.token, "text": text}))

    async def _answer_tap(self, params: Params) -> None:
        try:
            async with self._toasting:
                await self._api.call("answerCallbackQuery", params)
        except (Refused, Unreachable) as fault:
            log.info("a tap could not be answered: %s", fault)

    def _rate(self, chat: str) -> float:
        return self._own.messages_per_s * (GROUP_RATE if chat in self._topics else 1.0)

    # topics: in groups that are forums and where the bot is allowed to manage topics

    async def make_thread(self, room: str, session: SessionRecord) -> str:
        if room in self._no_forums:
            return ""
        name = f"{session_name(session)} · {tool_name(session)} · {short_id(session.session_id)}"[:NAME_LIMIT]
        about = await self._try("getChat", {"chat_id": int(room)})
        made = (
            about
            and about.get("is_forum")
            and await self._try("createForumTopic", {"chat_id": int(room), "name": name})
        )
        if not made:
            self._no_forums.add(room)  # until the next start
            return ""
        return str(made["message_thread_id"])

    async def _thread_ended(self, room: str, thread: str) -> None:
        await self._try("closeForumTopic", {"chat_id": int(room), "message_thread_id": int(thread)})

    async def _try(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._api.call(method, params)
        except Refused as fault:
            log.info("%s: %s", method, fault)
            return None

    # called by the poller

    async def take(self, batch: Batch) -> None:
        """Return when the gate has decided about every reply of this batch, or after a timeout."""
        self.heard()
        for update in batch:
            update_id = str(update["update_id"])
            if self._is_allowed(*_kind_of(update)) and (news := await self._admit(update_id, update)) != "copy":
                await self._process_new(update_id, update, news)
        if self._undecided:
            self._decided.clear()
            try:
                async with asyncio.timeout(DECISION_PATIENCE_S):  # `wait_for` of Python 3.11 can lose a cancellation
                    await self._decided.wait()
            except TimeoutError:
                self._undecided.clear()

    def deliver(self, reply: InboundReply) -> None:
        self._undecided.add(reply.token.update_id)
        super().deliver(reply)

    async def state_changed(self, state: str, detail: str) -> None:
        if state == "ok":
            await self._recovered()
            return
        self.went_deaf(self._poller.last_ok_at)
        if state == "conflict" and self._is_alarm_due():
            self.hub_api.note("CHANNEL_CONFLICT", channel="telegram", detail=detail)
            await self.notify(CONFLICT)

    def _is_alarm_due(self) -> bool:
        """Two programs with one token get updates in turn, so warn at most once an hour."""
        now = self.clock.wall()
        due = now - float(self.hub_api.recall(CONFLICT_AT, "0")) >= ALARM_EVERY_S
        if due:
            self.hub_api.remember(CONFLICT_AT, str(now))
        return due

    async def _recovered(self) -> None:
        """Telegram drops taps after 150 s: say so after a longer outage, and show the open prompts again."""
        gap_s = await self.came_back()
        self._tasks.hold(self._announce_commands())
        records = [record for record in self.hub_api.open_prompts() if self._shown.places(record.prompt_id)]
        if gap_s <= TAP_LIFE_S or not records:
            return
        await self._notify(lambda: t(TAPS_LOST, span=render_left(gap_s), seconds=int(TAP_LIFE_S)), None)
        for record in records:
            for place in self._shown.places(record.prompt_id):
                with reading(self.reader_of(place[0])):
                    self._outbox.edit(place, self._paint(self._question(record, self._session(record))))

    async def _announce_commands(self) -> None:
        """Without a language code for everybody, and once for each language."""
        for tag in LANGUAGES:
            with reading(Reader(tag)):
                listed = [{"command": name, "description": what} for name, what in describe_commands("/").items()]
            await self._api.call(
                "setMyCommands", {"commands": listed} | ({"language_code": tag} if tag != "en" else {})
            )

    # what people do

    async def _process(self, update_id: str, update: Any, seen_before: bool) -> bool:
        kind, body = _kind_of(update)
        if not self._is_allowed(kind, body):
            return False
        message = body.get("message") or body
        origin = Asked(
            room=str(message.get("chat", {}).get("id") or 0),
            user=str(body.get("from", {}).get("id")),
            message=str(message.get("message_id") or 0),
            thread=str(message.get("message_thread_id") or ""),
            token=str(body["id"]) if kind == "callback_query" else "",
            at=float(message.get("date") or 0),
            update_id=update_id,
            seen_before=seen_before,
        )
        with reading(self.reader_of(origin.room)):
            return self._dispatch(kind, body, origin)

    def _dispatch(self, kind: str, body: dict[str, Any], origin: Asked) -> bool:
        match kind:
            case "callback_query":
                return self._on_press(origin, body.get("data"))
            case "message":
                return self._on_message(body, origin)
            case "edited_message" if self._replied_prompt(body)[0] or body["chat"]["id"] > 0:
                self.tell(origin, t(EDITED))
            case "my_chat_member":
                status = body.get("new_chat_member", {}).get("status")
                self._member_changed(origin.room, status not in ("kicked", "left"))
        return False

    def _is_allowed(self, kind: str, body: dict[str, Any]) -> bool:
        """Whether the sender is allowed (by id), and the chat is their private chat or a configured group."""
        sender = body.get("from", {})
        user_id = sender.get("id")
        if not kind:
            return False
        if user_id not in self._own.allowed_users:
            self._strangers.note(str(user_id))
            return False
        name = sender.get("first_name") or sender.get("username")
        self._people.learn(str(user_id), name, sender.get("language_code"))
        holder = body.get("message", body)
        chat = holder.get("chat", {})
        if chat.get("id") == user_id:
            return True
        topic_id = holder.get("message_thread_id")
        if any(g.chat_id == chat.get("id") and g.topic_id in (None, topic_id) for g in self._own.groups):
            return True
        self._meet_group(kind, body, user_id, topic_id)
        return False

    def _meet_group(self, kind: str, body: dict[str, Any], user_id: int, topic_id: int | None) -> None:
        """A group that is not configured gets no answer. The person who added the bot, or asks, gets its id in
        private."""
        status = body.get("new_chat_member", {}).get("status")
        added = kind == "my_chat_member" and status in ("member", "administrator")
        command = parse_command(str(body.get("text") or ""), self._poller.bot) if kind == "message" else None
        if added or (command is not None and command.name == WHERE):
            self._tell_where(user_id, body.get("chat", {}), topic_id)

    def _tell_where(self, user_id: int, chat: dict[str, Any], topic_id: int | None) -> None:
        """Send the group's id in private, because a group gets no messages before it is configured."""
        lines = ["[[channels.telegram.groups]]", f"chat_id = {chat.get('id')}"]
        lines += [f"topic_id = {topic_id}"] if topic_id is not None else []
        name = escape_controls(str(chat.get("title") or t("this chat")), keep_lines=False)[:60]
        told = t(
            "“{name}” has the number {number}. To let it take part, add to config.toml:", name=name, number=chat["id"]
        )
        then = t("then: {command}", command="atlasbridge hub reload")
        params = messages.Body().line(told).line("\n".join(lines), "pre").line(then).params()
        self._outbox.post(str(user_id), params)

    def _member_changed(self, chat: str, present: bool) -> None:
        """The bot was blocked or unblocked. After an unblock, show the open prompts in that chat."""
        if not present:
            self._outbox.gone.add(chat)
            log.warning("the bot was blocked in chat %s", chat)
            return
        self._outbox.gone.discard(chat)
        for record in self.hub_api.open_prompts():
            unseen = all(place[0] != chat for place in self._shown.places(record.prompt_id))
            if unseen and self._addressed(record, [chat]):
                self._tasks.hold(self._show_late(chat, record))

    async def _show_late(self, chat: str, record: PromptRecord) -> None:
        session = self._session(record)
        render = lambda where, short: self._paint_prompt(record, session, where, short)  # noqa: E731
        await self._delivery.send_to(chat, record, render, patient=True)

    def _turn_page(self, origin: Asked, record: PromptRecord, page: int) -> None:
        number = min(page, messages.pages_of(record) - 1)
        self._toast(origin, t("Page {number}.", number=number + 1))
        painted = messages.question(record, self._session(record), self._host, number)
        self._outbox.edit(origin.place, self._paint(painted))

    def _on_marks(self, origin: Asked, callback: Callback, record: PromptRecord, marked: object) -> bool:
        """Change one mark, or send all of them if they are the ones that the screen shows."""
        toggled = parse_toggle(callback.value, record) if callback.verb == Verb.TOGGLE else None
        marks = parse_marks(callback.value) if callback.verb == Verb.SEND else None
        if record.state not in OPEN or (toggled is None and marks is None):
            self.tell(origin, t(NOT_OPEN))
        elif toggled is not None:
            number, shown = toggled
            changed = self._marks[origin.place] = self._marks.get(origin.place, shown) ^ (1 << number)
            self._show_marks(origin, record, changed, t(MARKED))
        elif marks is not None and (current := self._marks.get(origin.place, marks)) != marks:
            self._show_marks(origin, record, current, t(CHANGED))
        elif marks is not None:
            places = [place for place, _ in pickable(record.prompt) if marks >> place & 1]
            return self._pass(origin, callback, record, picked_value(record.prompt, places))
        return False

    def _show_marks(self, origin: Asked, record: PromptRecord, marks: int, sentence: str) -> None:
        """Show the marks in the tapped message only: each chat has its own marks."""
        self._toast(origin, sentence)
        painted = self._question(record, self._session(record))
        self._outbox.edit(origin.place, self._paint(replace(painted, marks=marks)))

    def _on_message(self, message: dict[str, Any], origin: Asked) -> bool:
        text = message.get("text")
        replied, as_words = self._replied_prompt(message)
        command = self._read_command(str(text or ""), replied, self._poller.bot)
        if message["chat"]["id"] < 0 and not replied and command is None:
            return False  # a conversation between people in a group
        if any(mark in message for mark in NOT_WRITTEN):
            self.tell(origin, t(FORWARDED))
        elif message.get("is_from_offline"):
            self.tell(origin, t(SCHEDULED))
        elif message.get("photo") or message.get("document"):
            record = self.hub_api.prompt(replied) if replied else None
            caption = str(message.get("caption") or "")
            self._keep_file(origin, self._sent(message), caption, record.session_id if record else "")
        elif message.get("voice") or message.get("audio"):
            self._hear(origin, self._sent(message), self._meant(message, origin, replied))
        elif not isinstance(text, str):
            self.tell(origin, t(ONLY_TEXT))
        elif command is not None and command.name == WHERE:
            self._tell_where(int(origin.user), message["chat"], message.get("message_thread_id"))
        elif command is not None:
            self._command(origin, command)
        else:
            return self._on_text(origin, self._meant(message, origin, replied), text, as_words)
        return False

    def _meant(self, message: dict[str, Any], origin: Asked, replied: str) -> PromptRecord | Doubt:
        return self._target(origin, replied, any(mark in message for mark in REFERENCES))

    def _sent(self, message: dict[str, Any]) -> Sent:
        about, name = file_of(message)
        fetch = functools.partial(self._api.download, str(about.get("file_id")))
        return Sent(name, int(about.get("file_size") or 0), fetch)

    def _replied_prompt(self, message: dict[str, Any]) -> tuple[str, bool]:
        """Return the id of the prompt that this message replies to, or "", and whether a text was asked for."""
        replied = message.get("reply_to_message") or {}
        place = (str(message["chat"]["id"]), str(replied.get("message_id")))
        wanted = self._shown.words_wanted_at(place)
        return wanted or self._shown.prompt_at(place), bool(wanted)


def _kind_of(update: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of an update and its content; "" if it is none that we read."""
    kind = next((name for name in update if name != "update_id"), "")
    body = update.get(kind)
    return (kind, body) if isinstance(body, dict) else ("", {})
