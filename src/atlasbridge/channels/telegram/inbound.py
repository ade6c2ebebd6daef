"""Turns the actions of people in Telegram into replies and commands. Unknown senders get no answer; the gate decides
the rest.

Every update is stored in the hub's inbox before it has any effect, so that a second copy has none.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable
from typing import Any, Protocol

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
from atlasbridge.channels.commands import NOT_OURS, Command, is_about, parse_command
from atlasbridge.channels.free_text import needs_words, reads_as_words
from atlasbridge.channels.language import Reader, reading, t
from atlasbridge.channels.listening import SeenUpdates, Strangers
from atlasbridge.channels.message_index import Shown
from atlasbridge.channels.outbox import Place
from atlasbridge.channels.receipts import People
from atlasbridge.channels.target import GONE, NOT_OPEN, Doubt, Held, find_target, offer, refuse_secret
from atlasbridge.channels.telegram.buttons import Picks, marked_value, parse_marks, parse_toggle
from atlasbridge.channels.telegram.messages import Origin, Voice
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)
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


class Integrations(Protocol):
    """The channel, as inbound calls it."""

    def reader_of(self, chat: str) -> Reader: ...
    def command(self, origin: Origin, command: Command, identity: str) -> None: ...
    def deliver(self, reply: InboundReply) -> None: ...
    def show_marks(self, origin: Origin, record: PromptRecord, marks: int, sentence: str) -> None: ...
    def turn_page(self, origin: Origin, record: PromptRecord, page: int) -> None: ...
    def make_sure(self, origin: Origin, record: PromptRecord, value: str) -> None: ...
    def ask_again(self, origin: Origin, record: PromptRecord, identity: str) -> None: ...
    def grant(self, origin: Origin, record: PromptRecord, value: str, identity: str) -> None: ...
    def settle_which(self, place: Place, record: PromptRecord) -> None: ...
    def tidy(self, place: Place, record: PromptRecord) -> None: ...
    def is_within_limit(self, token: Any, record: PromptRecord | None) -> bool: ...
    def speak(self, identity: str, prompt_id: str, value: str, token: Any, **fields: Any) -> InboundReply: ...
    def member_changed(self, chat_id: int, present: bool) -> None: ...
    def later(self, origin: Origin, record: PromptRecord, nonce: str, what: str, identity: str) -> None: ...
    def keep_file(self, origin: Origin, message: dict[str, Any], replied: str, identity: str) -> None: ...
    def hear(self, origin: Origin, message: dict[str, Any], then: Callable[[str], None]) -> None: ...
    def tell_where(self, user_id: int, chat: dict[str, Any], topic_id: int | None) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State that inbound shares with its channel."""

    shown: Shown
    people: People
    held: Held


class Inbound:
    def __init__(
        self,
        settings: TelegramSettings,
        hub_api: HubApi,
        clock: Clock,
        memory: Memory,
        voice: Voice,
        integrations: Integrations,
    ) -> None:
        self._settings, self._hub_api, self._clock = settings, hub_api, clock
        self._shown, self._people, self._held = memory.shown, memory.people, memory.held
        self._voice, self._integrations = voice, integrations
        self._seen = SeenUpdates(hub_api, "telegram")
        self._strangers = Strangers(hub_api, "telegram")
        self._picks = Picks()
        self.bot_name = ""

    async def take(self, update: dict[str, Any]) -> None:
        kind = next((name for name in update if name != "update_id"), "")
        body = update.get(kind)
        if not isinstance(body, dict) or not self._is_allowed(kind, body):
            return
        news = await self._seen.take(str(update["update_id"]), json.dumps(update, ensure_ascii=False))
        if news != "copy":
            await self._handle(str(update["update_id"]), kind, body, seen_before=news == "again")

    async def replay(self) -> None:
        """Process the updates that an earlier process received but did not finish, before any new one."""
        for update_id, update in self._seen.left_over():
            kind = next((name for name in update or {} if name != "update_id"), "")
            if update is not None and self._is_allowed(kind, update[kind]):
                log.info("update %s is taken up again", update_id)
                await self._handle(update_id, kind, update[kind], seen_before=True)
            else:
                await self._seen.settle(update_id)  # withheld, or no longer allowed

    async def settle(self, origin: Origin) -> None:
        """The gate has decided about the reply."""
        if origin.update_id:
            await self._seen.settle(origin.update_id)

    async def _handle(self, update_id: str, kind: str, body: dict[str, Any], seen_before: bool) -> None:
        """Process the update. It is settled at once, unless work for it continues in the background."""
        asked = dataclasses.replace(_origin(body.get("message") or body), update_id=update_id, seen_before=seen_before)
        with reading(self._integrations.reader_of(str(asked.chat_id))):
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
                self._integrations.member_changed(int(body["chat"]["id"]), status not in ("kicked", "left"))
        return False

    def _is_allowed(self, kind: str, body: dict[str, Any]) -> bool:
        """Whether the sender is allowed (by id), and the chat is their private chat or a configured group."""
        sender = body.get("from", {})
        user_id = sender.get("id")
        if user_id not in self._settings.allowed_users:
            self._strangers.note(str(user_id))
            return False
        name = sender.get("first_name") or sender.get("username")
        self._people.learn(str(user_id), name, sender.get("language_code"))
        holder = body.get("message", body)
        chat = holder.get("chat", {})
        if chat.get("id") == user_id:
            return True
        topic_id = holder.get("message_thread_id")
        if any(g.chat_id == chat.get("id") and g.topic_id in (None, topic_id) for g in self._settings.groups):
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
        command = parse_command(str(body.get("text") or ""), self.bot_name) if kind == "message" else None
        if added or (command is not None and command.name == WHERE):
            self._integrations.tell_where(user_id, body.get("chat", {}), topic_id)

    def _on_tap(self, query: dict[str, Any], origin: Origin) -> bool:
        callback, identity = parse_callback(query.get("data")), f"telegram:{int(query['from']['id'])}"
        record = self._hub_api.prompt(callback.prompt_id) if callback else None
        known = self._shown.prompt_at(origin.place)
        if callback is None or (known and (record is None or known != record.prompt_id)):
            self._voice.say(origin, t(NOT_OURS))
        elif record is not None and self._hub_api.seen_by(identity).prompt(record.prompt_id) is None:
            return self._pass_tap(origin, callback, None, int(query["from"]["id"]))  # the gate refuses and logs it
        elif record is not None and callback.verb == LATER:
            self._integrations.later(origin, record, callback.nonce, callback.value, identity)
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
            self._integrations.command(
                origin, Command("last", record.session_id), f"telegram:{int(query['from']['id'])}"
            )
        else:
            return self._look(origin, callback, record, identity)
        return False

    def _look(self, origin: Origin, callback: Callback, record: PromptRecord, identity: str) -> bool:
        if callback.verb == SHOW:
            self._voice.show_more(origin, record)
        elif callback.verb == AGAIN:
            self._integrations.ask_again(origin, record, identity)
            return True
        elif record.state in OPEN and callback.verb == ALWAYS:
            _, _, value = expand_callback(callback, record)
            lasting = [choice.value for choice in record.prompt.choices if choice.always]
            if value in lasting:
                self._integrations.make_sure(origin, record, value)
            else:
                self._voice.say(origin, t(NOT_OURS))
        elif record.state in OPEN and callback.value.isdecimal():
            self._integrations.turn_page(origin, record, int(callback.value))
        else:
            self._voice.say(origin, t(NOT_OPEN))
        return False

    def _on_grant(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        session_id, nonce, value = expand_callback(callback, record)
        if (session_id, nonce) != (record.session_id, record.nonce):
            self._voice.say(origin, t(NOT_OURS))
        elif self._integrations.is_within_limit(origin, record):
            self._integrations.grant(origin, record, value, f"telegram:{user_id}")
            return True
        return False

    def _on_which(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        """The person has chosen the prompt that an earlier text meant."""
        text = self._held.take(str(origin.chat_id), callback.value)
        if text is None:
            self._voice.say(origin, t(GONE))
            return False
        self._integrations.settle_which(origin.place, record)
        meant = dataclasses.replace(callback, value=text)
        return self._pass_tap(origin, meant, record, user_id, as_text=reads_as_words(record.prompt, text))

    def _on_mark(self, origin: Origin, callback: Callback, record: PromptRecord, user_id: int) -> bool:
        """Change one mark, or send all of them if they are the ones that the screen shows."""
        toggled = parse_toggle(callback.value, record) if callback.verb == TOGGLE else None
        marks = parse_marks(callback.value) if callback.verb == SEND else None
        if record.state not in OPEN or (toggled is None and marks is None):
            self._voice.say(origin, t(NOT_OPEN))
        elif toggled is not None:
            self._integrations.show_marks(origin, record, self._picks.toggle(origin.place, *toggled), t(MARKED))
        elif marks is not None and (current := self._picks.current(origin.place, marks)) != marks:
            self._integrations.show_marks(origin, record, current, t(CHANGED))
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
                self._meet_copy(origin, record)
        if not self._integrations.is_within_limit(origin, record):
            return False
        if record is not None and record.state in OPEN and nonce == record.nonce and needs_words(record.prompt, value):
            label = next(choice.label for choice in record.prompt.choices if choice.value == value)
            self._voice.ask_for_words(origin, record, label)
            return False
        prompt_id = record.prompt_id if record else callback.prompt_id
        return self._deliver(origin, user_id, prompt_id, value, session_id=session_id, nonce=nonce, as_text=as_text)

    def _meet_copy(self, origin: Origin, record: PromptRecord) -> None:
        """An unconfirmed copy of the message was tapped: edit it like the others, at once if the prompt has ended."""
        if self._shown.prompt_at(origin.place) != record.prompt_id:
            self._shown.add(record.prompt_id, origin.place)
            if record.state not in OPEN:
                self._integrations.tidy(origin.place, record)

    def _deliver(self, origin: Origin, user_id: int, prompt_id: str, value: str, **fields: Any) -> bool:
        self._integrations.deliver(self._integrations.speak(f"telegram:{user_id}", prompt_id, value, origin, **fields))
        return True

    def _on_message(self, message: dict[str, Any], origin: Origin) -> bool:
        text = message.get("text")
        replied, as_words = self._replied_prompt(message)
        command = parse_command(str(text or ""), self.bot_name)
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
            self._integrations.tell_where(user_id, message["chat"], origin.topic_id)
        elif command is not None:
            self._integrations.command(origin, command, f"telegram:{user_id}")
        else:
            return self._on_text(origin, self._target(message, origin, replied), text, user_id, as_words)
        return False

    def _on_other(self, message: dict[str, Any], origin: Origin, replied: str, user_id: int) -> None:
        if message.get("photo") or message.get("document"):
            self._integrations.keep_file(origin, message, replied, f"telegram:{user_id}")
        elif message.get("voice") or message.get("audio"):
            target = self._target(message, origin, replied)
            self._integrations.hear(origin, message, lambda heard: self._heard(origin, target, heard))
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
        elif self._integrations.is_within_limit(origin, target):
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
            return self._hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if any(mark in message for mark in REFERENCES):
            return offer(self._hub_api, self._shown, chat)
        chosen = self._hub_api.recall(f"telegram.switch.{chat}")
        return find_target(self._hub_api, self._shown, chat, origin.at, chosen, origin.seen_before)

    def _replied_prompt(self, message: dict[str, Any]) -> tuple[str, bool]:
        """Return the id of the prompt that this message replies to, or "", and whether a text was asked for."""
        replied = message.get("reply_to_message") or {}
        place = (str(message["chat"]["id"]), str(replied.get("message_id")))
        wanted = self._shown.words_wanted_at(place)
        return wanted or self._shown.prompt_at(place), bool(wanted)

    def _session(self, record: PromptRecord) -> SessionRecord:
        found = self._hub_api.session(record.session_id)
        return found or SessionRecord(record.session_id, "?", (), "", 0, 0, "")


def _origin(message: dict[str, Any]) -> Origin:
    chat_id = int(message.get("chat", {}).get("id") or 0)
    at = float(message.get("date") or 0)
    return Origin(chat_id, int(message.get("message_id") or 0), message.get("message_thread_id"), at=at)
