"""The Telegram channel: sends prompts to every operator and receives taps and texts. The gate decides about replies.

Unknown senders get no answer. Every update is stored in the hub's inbox before it has any effect, so that a second copy
has none. `api` transports messages, `messages` renders.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from atlasbridge.channels import grant_card
from atlasbridge.channels.callback import (
    AGAIN,
    ALWAYS,
    GRANT,
    LATER,
    PAGE,
    SEND,
    SHOW,
    THIS,
    TOGGLE,
    Callback,
    expand_callback,
    parse_callback,
)
from atlasbridge.channels.chat import ChatChannel
from atlasbridge.channels.commands import NOT_OURS, Command, SessionCommands, describe_commands, is_about, parse_command
from atlasbridge.channels.language import LANGUAGES, Reader, reading, t
from atlasbridge.channels.listening import (
    GONE,
    NOT_OPEN,
    WHICH_SESSION,
    Doubt,
    Received,
    SeenUpdates,
    Sent,
    Strangers,
    find_target,
    offer,
    refuse_secret,
)
from atlasbridge.channels.outbox import Params, Place, Refused, Unreachable
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.settings import TelegramSettings
from atlasbridge.channels.telegram import messages
from atlasbridge.channels.telegram.api import Batch, BotApi, Poller
from atlasbridge.channels.telegram.messages import (
    Origin,
    Picks,
    Voice,
    file_of,
    in_topic,
    marked_value,
    pages_of,
    parse_marks,
    parse_toggle,
    render_ask_again,
    render_granting,
    render_snooze,
    render_sure,
    reply_to,
)
from atlasbridge.channels.templates import SURE, needs_words, reads_as_words, render_left, session_name, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord, SessionState

FORWARDED = "A forwarded message, or one that a bot wrote, is not taken as an answer. Write it yourself."
SCHEDULED = "A message that was scheduled or sent by itself answers nothing: it was written before. Write it now."
# marks of a text that another person or bot wrote
NOT_WRITTEN = ("forward_origin", "forward_date", "via_bot", "sender_business_bot")
REFERENCES = ("reply_to_message", "external_reply", "reply_to_story")  # marks of a reply, to any kind of message
EDITED = "An edit changes nothing that was already taken. Send a new message instead."
MARKED = "Marked. Send them with the button below the list."
CHANGED = "The marks have changed since. Look again, then send."
ONLY_TEXT = "Only text, buttons, photos, files and voice notes are taken here."
WHERE = "where"  # in a group: the bot sends the group's id in private


# One topic per session, in groups that are forums and where the bot is allowed to manage topics. The hub's notes store
# the topics, so that a restarted hub continues them.

log = logging.getLogger(__name__)
NAME_LIMIT = 128
OPENING_S = 5.0  # a question waits at most this long for its topic


class Forum:
    """`groups` are the group chats in the configuration."""

    def __init__(self, api: BotApi, hub_api: HubApi, groups: Iterable[str]) -> None:
        self._api, self._hub_api = api, hub_api
        self._kinds: dict[str, bool | None] = dict.fromkeys(groups)  # None: not checked yet whether it is a forum
        self._turn = asyncio.Lock()

    def topic_of(self, chat: str, session_id: str) -> int | None:
        known = self._hub_api.recall(_topic(chat, session_id)) if chat in self._kinds else ""
        return int(known) if known else None

    def room_of(self, chat: str, topic_id: int | None) -> str:
        room = f"{chat}/{topic_id}"
        return room if topic_id is not None and self._hub_api.recall(_chosen(room)) else chat

    async def open(self, session: SessionRecord) -> None:
        """Open the topics of a session. Without a topic, messages go to the group itself."""
        missing = [chat for chat in self._kinds if self.topic_of(chat, session.session_id) is None]
        if not missing or self._has_ended(session):
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for chat in missing:
                    await self._open(chat, session)
        except (TimeoutError, Unreachable) as fault:
            log.info("no topic for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    async def close_ended(self, session: SessionRecord) -> None:
        if not self._has_ended(session):
            return
        for chat in self._kinds:
            topic_id = self.topic_of(chat, session.session_id)
            if topic_id is not None:
                self._hub_api.remember(_chosen(f"{chat}/{topic_id}"), "")
                self._hub_api.remember(_topic(chat, session.session_id), "")
                await self._try("closeForumTopic", {"chat_id": int(chat), "message_thread_id": topic_id})

    async def _open(self, chat: str, session: SessionRecord) -> None:
        if self._kinds[chat] is None:
            about = await self._try("getChat", {"chat_id": int(chat)})
            self._kinds[chat] = bool(about and about.get("is_forum"))
        if not self._kinds[chat] or self.topic_of(chat, session.session_id) is not None:
            return
        name = f"{session_name(session)} · {tool_name(session)} · {short_id(session.session_id)}"[:NAME_LIMIT]
        made = await self._try("createForumTopic", {"chat_id": int(chat), "name": name})
        if made is None:
            self._kinds[chat] = False  # until the next start: the bot is not allowed to create topics there
            return
        topic_id = int(made["message_thread_id"])
        self._hub_api.remember(_topic(chat, session.session_id), str(topic_id))
        self._hub_api.remember(_chosen(f"{chat}/{topic_id}"), session.session_id)

    async def _try(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._api.call(method, params)
        except Refused as fault:
            log.info("%s: %s", method, fault)
            return None

    def _has_ended(self, session: SessionRecord) -> bool:
        now = self._hub_api.session(session.session_id) or session
        return now.state is not SessionState.ACTIVE


def _topic(chat: str, session_id: str) -> str:
    return f"telegram.topic.{chat}.{session_id}"


def _chosen(room: str) -> str:
    return f"telegram.switch.{room}"


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
    muted = "prompts come without a sound, reminders and notices not at all."

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = TelegramSettings.model_validate(dict(settings))
        self._topics = {str(group.chat_id): group.topic_id for group in own.groups}
        self._api = BotApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._furnish(own, self._api, self._rate)
        self._api.is_known = self._shown.prompt_at
        self._voice = Voice(self._api, self._outbox, self._delivery, self._shown, self._tasks, self._host)
        self._seen, self._strangers = SeenUpdates(hub_api, self.name), Strangers(hub_api, self.name)
        self._picks = Picks()
        self._bot_name = ""
        self._poller = Poller(self._api, clock, self, own.poll_timeout_s, own.backoff_first_s)
        self._received = Received(hub_api, self._tell, self, own.transcriber, self.title)
        groups = [str(group.chat_id) for group in own.groups if group.topic_id is None]
        self._forum = Forum(self._api, hub_api, groups)
        self._undecided: set[Origin] = set()
        self._decided = asyncio.Event()

    # called by the hub

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """A tap always gets its toast. A text is answered only if it was refused; otherwise the message is edited."""
        origin = reply.token
        if not isinstance(origin, Origin):
            return
        self._undecided.discard(origin)
        if not self._undecided:
            self._decided.set()
        with reading(self.reader_of(str(origin.chat_id))):
            sentence = self.answered(reply, outcome, origin.seen_before)
            if origin.query_id or (isinstance(outcome, Reject) and sentence):
                self._tell(origin, sentence or outcome.sentence)
        await self._settle(origin)

    def health(self) -> dict[str, Any]:
        poller = self._poller
        return {
            "state": poller.state,
            "detail": poller.detail,
            "bot": poller.me.get("username", ""),
            "operators": len(self._own.allowed_users),
            **self.common_health(),
            "last_ok_s": None if poller.last_ok_at is None else round(self.clock.now() - poller.last_ok_at, 1),
        }

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._open_topic(session)
        return await super().send_prompt(event, session)

    async def _open_topic(self, session: SessionRecord) -> None:
        """Open a topic only if every member of the group is allowed to see the session."""
        if self.hub_api.readers(session.session_id, self.name) is None:
            await self._forum.open(session)

    async def _notify(self, message: str | Callable[[], str], session: SessionRecord | None) -> None:
        if session is not None:
            await self._open_topic(session)
        await super()._notify(message, session)
        if session is not None:
            await self._forum.close_ended(session)

    # required by the base class

    async def _serve(self) -> None:
        await self._poller.run()

    async def _chats(self) -> list[str]:
        return [*map(str, self._own.allowed_users), *self._topics]

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        params = messages.render_short(event, session) if short else self._question(event, session)
        quiet = self._hushed if self._is_silent(event.prompt_id, chat) else {}
        return params | quiet | in_topic(self._topic(chat, session))

    def _question(self, event: PromptRecord, session: SessionRecord) -> Params:
        return messages.render_prompt(event, session, self._host)

    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params:
        keyboard = render_ask_again(event) if outcome.again else None
        return messages.render_outcome(event, session, outcome, self._host, keyboard)

    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str) -> Params:
        return messages.render_notice(message, session, self._host) | in_topic(self._topic(chat, session))

    def _paint_reminder(self, sentence: str, event: PromptRecord, chat: str) -> Params:
        return self._paint_notice(sentence, None, chat) | {"reply_markup": {"inline_keyboard": render_snooze(event)}}

    def _owner(self, chat: str) -> str:
        return "" if chat in self._topics else f"telegram:{chat}"

    @property
    def _hushed(self) -> Params:
        return {"disable_notification": True}

    def _beside(self, place: Place) -> Params:
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        topic_id = self._forum.topic_of(place[0], record.session_id) if record else None
        return reply_to(int(place[1])) | in_topic(topic_id)

    def _tell(self, token: Any, sentence: str) -> None:
        self._voice.say(token, sentence)

    @property
    def _hint(self) -> str:
        return "start a chat with the bot, and see: atlasbridge hub status"

    # carrying out

    def deliver(self, reply: InboundReply) -> None:
        self._undecided.add(reply.token)
        super().deliver(reply)

    def command(self, origin: Origin, command: Command, identity: str) -> None:
        """Run the command in the background, so that a slow session does not delay the poll."""
        self._tasks.hold(self._obey(origin, command, identity))

    async def _obey(self, origin: Origin, command: Command, identity: str) -> None:
        room = self._room(origin) if command.name in SessionCommands.NAMES else str(origin.chat_id)
        spoken = await self._commands.run(room, command, identity, origin)
        if spoken.file is not None:
            self._voice.send_file(origin, spoken.text, spoken.name, spoken.file, spoken.picture)
        elif spoken.screen is None:
            self._voice.tell(origin, spoken.text)
        elif spoken.split:
            self._voice.send_words(origin, spoken.text, spoken.screen, spoken.name)
        else:
            self._voice.send_screen(origin, spoken.text, spoken.screen)

    def keep_file(self, origin: Origin, message: dict[str, Any], replied: str, identity: str) -> None:
        record = self.hub_api.prompt(replied) if replied else None
        meant = self._commands.meant(self._room(origin), identity)
        session = self.hub_api.seen_by(identity).session(record.session_id) if record else meant
        if session is None:
            self._voice.say(origin, t(WHICH_SESSION, sign=self.sign))
        else:
            caption = str(message.get("caption") or "")
            self._tasks.hold(self._received.keep_file(origin, self._sent(message), caption, session, identity))

    def hear(self, origin: Origin, message: dict[str, Any], then: Callable[[str], None]) -> None:
        self._tasks.hold(self._received.hear(origin, self._sent(message), then))

    def _sent(self, message: dict[str, Any]) -> Sent:
        about, name = file_of(message)
        fetch = functools.partial(self._api.download, str(about.get("file_id")))
        return Sent(name, int(about.get("file_size") or 0), fetch)

    def show_marks(self, origin: Origin, record: PromptRecord, marks: int, sentence: str) -> None:
        """Show the marks in the tapped message only: each chat has its own marks."""
        self._voice.say(origin, sentence)
        painted = messages.render_prompt(record, self._session(record), self._host, marks)
        self._outbox.edit(origin.place, painted)

    def turn_page(self, origin: Origin, record: PromptRecord, page: int) -> None:
        number = min(page, pages_of(record) - 1)
        self._voice.say(origin, t("Page {number}.", number=number + 1))
        painted = messages.render_prompt(record, self._session(record), self._host, page=number)
        self._outbox.edit(origin.place, painted)

    def make_sure(self, origin: Origin, record: PromptRecord, value: str) -> None:
        """An answer that is not asked again takes a second tap, in the place of the first buttons."""
        self._voice.say(origin, t(SURE))
        painted = messages.render_prompt(record, self._session(record), self._host)
        painted["reply_markup"] = {"inline_keyboard": render_sure(record, value)}
        self._outbox.edit(origin.place, painted)

    def ask_again(self, origin: Origin, record: PromptRecord, identity: str) -> None:
        self._do(origin, self.request_again(record, identity))

    def later(self, origin: Origin, record: PromptRecord, nonce: str, what: str, identity: str) -> None:
        self._do(origin, self.put_off(identity, record, nonce, what))

    async def _settle(self, token: Any) -> None:
        if token.update_id:
            await self._seen.settle(token.update_id)

    def grant(self, origin: Origin, record: PromptRecord, value: str, identity: str) -> None:
        self._do(origin, self._grant(origin, record, value, identity))

    async def _grant(self, origin: Origin, record: PromptRecord, value: str, identity: str) -> str:
        """Post the offer next to the question, and replace it by the result."""
        told = await grant_card.press(self.hub_api, record, value, self.caller(identity))
        if isinstance(told, str):
            return told
        params = messages.render_notice(told.text, None, self._host)
        keyboard = render_granting(record, told.buttons)
        params |= {"reply_markup": {"inline_keyboard": keyboard}} if keyboard else {}
        if told.beside:
            self._voice.answer(origin, params | reply_to(origin.message_id))
        else:
            self._outbox.edit(origin.place, params)
        return told.toast

    def member_changed(self, chat_id: int, present: bool) -> None:
        """The bot was blocked or unblocked. After an unblock, show the open prompts in that chat."""
        chat = str(chat_id)
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

    def tell_where(self, user_id: int, chat: dict[str, Any], topic_id: int | None) -> None:
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

    # called by the poller

    async def take(self, batch: Batch) -> None:
        """Return when the gate has decided about every reply of this batch, or after a timeout."""
        self._bot_name = str(self._poller.me.get("username", ""))
        for update in batch:
            await self._take(update)
        if self._undecided:
            self._decided.clear()
            try:
                async with asyncio.timeout(DECISION_PATIENCE_S):  # `wait_for` of Python 3.11 can lose a cancellation
                    await self._decided.wait()
            except TimeoutError:
                self._undecided.clear()

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

    def _topic(self, chat: str, session: SessionRecord | None) -> int | None:
        own = self._forum.topic_of(chat, session.session_id) if session is not None else None
        return own if own is not None else self._topics.get(chat)

    def _room(self, origin: Origin) -> str:
        """Treat a session's topic as a separate room, so that messages in it apply to that session."""
        return self._forum.room_of(str(origin.chat_id), origin.topic_id)

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
                    self._outbox.edit(place, self._question(record, self._session(record)))

    async def _announce_commands(self) -> None:
        """Without a language code for everybody, and once for each language."""
        for tag in LANGUAGES:
            with reading(Reader(tag)):
                listed = [{"command": name, "description": what} for name, what in describe_commands("/").items()]
            await self._api.call(
                "setMyCommands", {"commands": listed} | ({"language_code": tag} if tag != "en" else {})
            )

    def _rate(self, chat: str) -> float:
        return self._own.messages_per_s * (GROUP_RATE if chat in self._topics else 1.0)

    # what people do

    async def _take(self, update: dict[str, Any]) -> None:
        kind = next((name for name in update if name != "update_id"), "")
        body = update.get(kind)
        if not isinstance(body, dict) or not self._is_allowed(kind, body):
            return
        news = await self._seen.take(str(update["update_id"]), json.dumps(update, ensure_ascii=False))
        if news != "copy":
            await self._handle(str(update["update_id"]), kind, body, seen_before=news == "again")

    async def _replay(self) -> None:
        """Process the updates that an earlier process received but did not finish, before any new one."""
        for update_id, update in self._seen.left_over():
            kind = next((name for name in update or {} if name != "update_id"), "")
            if update is not None and self._is_allowed(kind, update[kind]):
                log.info("update %s is taken up again", update_id)
                await self._handle(update_id, kind, update[kind], seen_before=True)
            else:
                await self._seen.settle(update_id)  # withheld, or no longer allowed

    async def _handle(self, update_id: str, kind: str, body: dict[str, Any], seen_before: bool) -> None:
        """Process the update. It is settled at once, unless work for it continues in the background."""
        asked = dataclasses.replace(_origin(body.get("message") or body), update_id=update_id, seen_before=seen_before)
        with reading(self.reader_of(str(asked.chat_id))):
            later = self._dispatch(kind, body, asked)
        if not later:
            await self._seen.settle(update_id)

    def _dispatch(self, kind: str, body: dict[str, Any], origin: Origin) -> bool:
        """Return True if the update is settled later: when its reply is decided or its work is done."""
        match kind:
            case "callback_query":
                return self._on_tap(body, dataclasses.replace(origin, query_id=str(body["id"])))
            case "message":
                return self._on_message(body, origin)
            case "edited_message" if self._replied_prompt(body)[0] or body["chat"]["id"] > 0:
                self._voice.say(origin, t(EDITED))
            case "my_chat_member":
                status = body.get("new_chat_member", {}).get("status")
                self.member_changed(int(body["chat"]["id"]), status not in ("kicked", "left"))
        return False

    def _is_allowed(self, kind: str, body: dict[str, Any]) -> bool:
        """Whether the sender is allowed (by id), and the chat is their private chat or a configured group."""
        sender = body.get("from", {})
        user_id = sender.get("id")
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
        added = kind == "my_chat_member" and body.get("new_chat_member", {}).get("status") in (
            "member",
            "administrator",
        )
        command = parse_command(str(body.get("text") or ""), self._bot_name) if kind == "message" else None
        if added or (command is not None and command.name == WHERE):
            self.tell_where(user_id, body.get("chat", {}), topic_id)

    def _on_tap(self, query: dict[str, Any], origin: Origin) -> bool:
        callback, identity = parse_callback(query.get("data")), f"telegram:{int(query['from']['id'])}"
        record = self.hub_api.prompt(callback.prompt_id) if callback else None
        known = self._shown.prompt_at(origin.place)
        if callback is None or (known and (record is None or known != record.prompt_id)):
            self._voice.say(origin, t(NOT_OURS))
        elif record is not None and self.hub_api.seen_by(identity).prompt(record.prompt_id) is None:
            return self._pass_tap(origin, callback, None, int(query["from"]["id"]))  # the gate refuses and logs it
        elif record is not None and callback.verb == LATER:
            self.later(origin, record, callback.nonce, callback.value, identity)
            return True
        elif record is None or callback.verb not in (SHOW, PAGE, AGAIN, TOGGLE, SEND, THIS, GRANT, ALWAYS):
            return self._pass_tap(origin, callback, record, int(query["from"]["id"]))
        elif callback.verb in (TOGGLE, SEND):
            return self._on_mark(origin, callback, record, int(query["from"]["id"]))
        elif callback.verb == GRANT:
            return self._on_grant(origin, callback, record, int(query["from"]["id"]))
        elif callback.verb == THIS:
            return self._on_which(origin, callback, record, int(query["from"]["id"]))
        elif callback.verb == SHOW and record.prompt.idle:
            self._voice.say(origin, t("Here it is."))
            self.command(origin, Command("last", record.session_id), f"telegram:{int(query['from']['id'])}")
        else:
            return self._look(origin, callback, record, identity)
        return False

    def _look(self, origin: Origin, callback: Callback, record: PromptRecord, identity: str) -> bool:
        if callback.verb == SHOW:
            self._voice.show_more(origin, record)
        elif callback.verb == AGAIN:
            self.ask_again(origin, record, identity)
            return True
        elif record.state in OPEN and callback.verb == ALWAYS:
            _, _, value = expand_callback(callback, record)
            lasting = [choice.value for choice in record.prompt.choices if choice.always]
            if value in lasting:
                self.make_sure(origin, record, value)
            else:
                self._voice.say(origin, t(NOT_OURS))
        elif record.state in OPEN and callback.value.isdecimal():
            self.turn_page(origin, record, int(callback.value))
        else:
            self._voice.say(origin, t(NOT_OPEN))
        return False

    def _on_grant(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        session_id, nonce, value = expand_callback(callback, record)
        if (session_id, nonce) != (record.session_id, record.nonce):
            self._voice.say(origin, t(NOT_OURS))
        elif self.is_within_limit(origin, record):
            self.grant(origin, record, value, f"telegram:{user_id}")
            return True
        return False

    def _on_which(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        """The person has chosen the prompt that an earlier text meant."""
        text = self._held.take(str(origin.chat_id), callback.value)
        if text is None:
            self._voice.say(origin, t(GONE))
            return False
        self.settle_which(origin.place, record)
        meant = dataclasses.replace(callback, value=text)
        return self._pass_tap(origin, meant, record, user_id, as_text=reads_as_words(record.prompt, text))

    def _on_mark(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        """Change one mark, or send all of them if they are the ones that the screen shows."""
        toggled = parse_toggle(callback.value, record) if callback.verb == TOGGLE else None
        marks = parse_marks(callback.value) if callback.verb == SEND else None
        if record.state not in OPEN or (toggled is None and marks is None):
            self._voice.say(origin, t(NOT_OPEN))
        elif toggled is not None:
            self.show_marks(origin, record, self._picks.toggle(origin.place, *toggled), t(MARKED))
        elif marks is not None and (current := self._picks.current(origin.place, marks)) != marks:
            self.show_marks(origin, record, current, t(CHANGED))
        elif marks is not None:
            meant = dataclasses.replace(callback, value=marked_value(record, marks))
            return self._pass_tap(origin, meant, record, user_id)
        return False

    def _pass_tap(
        self, origin: Origin, callback: Callback, record: PromptRecord | None, user_id: int, as_text: bool = False
    ) -> bool:
        session_id, nonce, value = callback.session_id, callback.nonce, callback.value
        if record is not None:
            session_id, nonce, value = expand_callback(callback, record)
            if callback.verb != THIS and nonce == record.nonce:
                self._meet_copy(origin.place, record)
        if not self.is_within_limit(origin, record):
            return False
        if record is not None and record.state in OPEN and nonce == record.nonce and needs_words(record.prompt, value):
            label = next(choice.label for choice in record.prompt.choices if choice.value == value)
            self._voice.ask_for_words(origin, record, label)
            return False
        prompt_id = record.prompt_id if record else callback.prompt_id
        return self._deliver(origin, user_id, prompt_id, value, session_id=session_id, nonce=nonce, as_text=as_text)

    def _deliver(self, origin: Origin, user_id: int, prompt_id: str, value: str, **fields: Any) -> bool:
        self.deliver(self.speak(f"telegram:{user_id}", prompt_id, value, origin, **fields))
        return True

    def _on_message(self, message: dict[str, Any], origin: Origin) -> bool:
        text = message.get("text")
        replied, as_words = self._replied_prompt(message)
        command = parse_command(str(text or ""), self._bot_name)
        if replied:  # only commands about this message; others belong to the tool
            command = Command(command.name, f"{replied} {command.rest}") if command and is_about(command) else None
        if origin.chat_id < 0 and not replied and command is None:
            return False  # a conversation between people in a group
        user_id = int(message["from"]["id"])
        if any(mark in message for mark in NOT_WRITTEN):
            self._voice.say(origin, t(FORWARDED))
        elif message.get("is_from_offline"):
            self._voice.say(origin, t(SCHEDULED))
        elif not isinstance(text, str):
            self._on_other(message, origin, replied, user_id)
        elif command is not None and command.name == WHERE:
            self.tell_where(user_id, message["chat"], origin.topic_id)
        elif command is not None:
            self.command(origin, command, f"telegram:{user_id}")
        else:
            return self._on_text(origin, self._target(message, origin, replied), text, user_id, as_words)
        return False

    def _on_other(self, message: dict[str, Any], origin: Origin, replied: str, user_id: int) -> None:
        if message.get("photo") or message.get("document"):
            self.keep_file(origin, message, replied, f"telegram:{user_id}")
        elif message.get("voice") or message.get("audio"):
            target = self._target(message, origin, replied)
            self.hear(origin, message, lambda heard: self._heard(origin, target, heard))
        else:
            self._voice.say(origin, t(ONLY_TEXT))

    def _heard(self, origin: Origin, target: PromptRecord | Doubt, heard: str) -> None:
        """Show the transcript first; a tap on the right prompt sends it."""
        if isinstance(target, PromptRecord) and target.prompt.secret:
            self._voice.say(origin, refuse_secret(target))
            return
        doubt = target if isinstance(target, Doubt) else Doubt("", (target,))
        more = f"{t('Tap to send it.') if doubt.offered else ''} {doubt.told('/')}".strip()
        self._ask_back(origin, Doubt(f"🎙 “{heard}”\n{more}", doubt.offered), heard)

    def _on_text(self, origin: Origin, target: PromptRecord | Doubt, text: str, user_id: int, as_words: bool) -> bool:
        if isinstance(target, Doubt):
            self._ask_back(origin, target, text)
        elif target.prompt.secret:
            self._voice.say(origin, refuse_secret(target))
        elif self.is_within_limit(origin, target):
            as_text = as_words or reads_as_words(target.prompt, text)
            fields = {"session_id": target.session_id, "as_text": as_text}
            return self._deliver(origin, user_id, target.prompt_id, text, **fields)
        return False

    def _ask_back(self, origin: Origin, doubt: Doubt, text: str) -> None:
        if not doubt.offered:
            self._voice.say(origin, doubt.told("/"))
            return
        self._held.keep(str(origin.chat_id), str(origin.message_id), text)
        self._voice.ask_which(origin, doubt.told("/"), [(record, self._session(record)) for record in doubt.offered])

    def _target(self, message: dict[str, Any], origin: Origin, replied: str) -> PromptRecord | Doubt:
        """A reply to a prompt's message answers that prompt only; a plain text answers the prompt that was shown before
        it."""
        chat = str(origin.chat_id)
        if replied:
            return self.hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if any(mark in message for mark in REFERENCES):
            return offer(self.hub_api, self._shown, chat)
        chosen = self.hub_api.recall(f"telegram.switch.{chat}")
        return find_target(self.hub_api, self._shown, chat, origin.at, chosen, origin.seen_before)

    def _replied_prompt(self, message: dict[str, Any]) -> tuple[str, bool]:
        """Return the id of the prompt that this message replies to, or "", and whether a text was asked for."""
        replied = message.get("reply_to_message") or {}
        place = (str(message["chat"]["id"]), str(replied.get("message_id")))
        wanted = self._shown.words_wanted_at(place)
        return wanted or self._shown.prompt_at(place), bool(wanted)


def _origin(message: dict[str, Any]) -> Origin:
    chat_id = int(message.get("chat", {}).get("id") or 0)
    at = float(message.get("date") or 0)
    return Origin(chat_id, int(message.get("message_id") or 0), message.get("message_thread_id"), at=at)
