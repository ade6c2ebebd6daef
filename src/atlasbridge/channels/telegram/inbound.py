"""What people do in Telegram, turned into replies and commands.  Strangers are told nothing; the gate decides the rest.

Every update is committed to the desk's inbox before it has any effect; a second copy of it has none.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import Any, Protocol

from atlasbridge.channels import listening
from atlasbridge.channels.commands import Command, parse_command
from atlasbridge.channels.listening import SeenUpdates, Strangers, Throttle, guess_target
from atlasbridge.channels.shown import Shown
from atlasbridge.channels.telegram.callbacks import SEND, SHOW, TOGGLE, Callback, expand_callback, parse_callback
from atlasbridge.channels.telegram.picking import Picks, marked_value, parse_marks, parse_toggle
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.channels.telegram.voice import Origin, Voice
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord, PromptType
from atlasbridge.core.prompt.reply import InboundReply
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
SEVERAL = (
    "Multiple active sessions. Please reply directly to the prompt message,\n"
    "or target a session with /switch <session_id>."
)
NOT_OURS = "This button is not one of mine."
FORWARDED = "A forwarded message is not taken as an answer. Write it yourself."
EDITED = "An edit changes nothing that was already taken. Send a new message instead."
MARKED = "Marked. Send them with the button below the list."
CHANGED = "The marks have changed since. Look again, then send."
ONLY_TEXT = "Only text and buttons are taken here."


class Doors(Protocol):
    """Where inbound things go: the channel."""

    def command(self, origin: Origin, command: Command) -> None: ...
    def deliver(self, reply: InboundReply) -> None: ...
    def show_marks(self, origin: Origin, record: PromptRecord, marks: int, sentence: str) -> None: ...
    def warn(self, record: PromptRecord) -> None: ...
    def member_changed(self, chat_id: int, present: bool) -> None: ...


class Inbound:
    def __init__(
        self, settings: TelegramSettings, desk: Desk, clock: Clock, shown: Shown, voice: Voice, doors: Doors
    ) -> None:
        self._settings, self._desk, self._clock = settings, desk, clock
        self._shown, self._voice, self._doors = shown, voice, doors
        self._seen = SeenUpdates(desk, "telegram")
        self._strangers = Strangers(desk, "telegram")
        self._throttle = Throttle(settings.replies_per_minute)
        self._picks = Picks()
        self.names: dict[int, str] = {}
        self.bot_name = ""

    async def take(self, update: dict[str, Any]) -> None:
        kind = next((name for name in update if name != "update_id"), "")
        body = update.get(kind)
        if not isinstance(body, dict) or not self._is_allowed(body):
            return
        news = await self._seen.take(str(update["update_id"]), json.dumps(update, ensure_ascii=False))
        if news != "copy":
            await self._handle(str(update["update_id"]), kind, body, seen_before=news == "again")

    async def replay(self) -> None:
        """What an earlier process received and died over, before anything new is heard."""
        for update_id, update in self._seen.left_over():
            kind = next((name for name in update or {} if name != "update_id"), "")
            if update is not None and self._is_allowed(update[kind]):
                log.info("update %s is taken up again", update_id)
                await self._handle(update_id, kind, update[kind], seen_before=True)
            else:
                await self._seen.settle(update_id)  # a withheld one comes again from the server, if at all

    async def settle(self, origin: Origin) -> None:
        """The gate has decided it."""
        if origin.update_id:
            await self._seen.settle(origin.update_id)

    async def _handle(self, update_id: str, kind: str, body: dict[str, Any], seen_before: bool) -> None:
        """Settled at once, unless it became a reply: then when that is decided."""
        asked = dataclasses.replace(_origin(body.get("message") or body), update_id=update_id, seen_before=seen_before)
        if not self._dispatch(kind, body, asked):
            await self._seen.settle(update_id)

    def _dispatch(self, kind: str, body: dict[str, Any], origin: Origin) -> bool:
        """True: a reply was passed on."""
        match kind:
            case "callback_query":
                return self._on_tap(body, dataclasses.replace(origin, query_id=str(body["id"])))
            case "message":
                return self._on_message(body, origin)
            case "edited_message" if self._replied_prompt(body) or body["chat"]["id"] > 0:
                self._voice.say(origin, EDITED)
            case "my_chat_member":
                status = body.get("new_chat_member", {}).get("status")
                self._doors.member_changed(int(body["chat"]["id"]), status not in ("kicked", "left"))
        return False

    def _is_allowed(self, body: dict[str, Any]) -> bool:
        """The sender by number, and the chat: their own private one, or a group that was opted in."""
        sender = body.get("from", {})
        user_id = sender.get("id")
        if user_id not in self._settings.allowed_users:
            self._strangers.note(str(user_id))
            return False
        self.names[user_id] = visible(str(sender.get("first_name") or ""), keep_lines=False)[:40]
        holder = body.get("message", body)
        chat_id = holder.get("chat", {}).get("id")
        if chat_id == user_id:
            return True
        topic_id = holder.get("message_thread_id")
        return any(g.chat_id == chat_id and g.topic_id in (None, topic_id) for g in self._settings.groups)

    def _on_tap(self, query: dict[str, Any], origin: Origin) -> bool:
        callback = parse_callback(query.get("data"))
        record = self._desk.prompt(callback.prompt_id) if callback else None
        known = self._shown.prompt_at(origin.place)
        if callback is None or (known and (record is None or known != record.prompt_id)):
            self._voice.say(origin, NOT_OURS)
        elif callback.verb == SHOW and record is not None:
            self._voice.show_more(origin, record)
        elif callback.verb in (TOGGLE, SEND):
            return self._on_mark(origin, callback, record, int(query["from"]["id"]))
        else:
            return self._pass_tap(origin, callback, record, int(query["from"]["id"]))
        return False

    def _on_mark(self, origin: Origin, callback: Callback, record: PromptRecord | None, user_id: int) -> bool:
        """One mark more or less; or all of them sent, if they are what the screen shows."""
        toggled = parse_toggle(callback.value, record) if record and callback.verb == TOGGLE else None
        marks = parse_marks(callback.value) if callback.verb == SEND else None
        if record is None or record.state not in OPEN or (toggled is None and marks is None):
            self._voice.say(origin, listening.NOT_OPEN)
        elif toggled is not None:
            self._doors.show_marks(origin, record, self._picks.toggle(origin.place, *toggled), MARKED)
        elif marks is not None and (current := self._picks.current(origin.place, marks)) != marks:
            self._doors.show_marks(origin, record, current, CHANGED)
        elif marks is not None:
            meant = dataclasses.replace(callback, value=marked_value(record, marks))
            return self._pass_tap(origin, meant, record, user_id)
        return False

    def _pass_tap(self, origin: Origin, callback: Callback, record: PromptRecord | None, user_id: int) -> bool:
        session_id, nonce, value = callback.session_id, callback.nonce, callback.value
        if record is not None:
            session_id, nonce, value = expand_callback(callback, record)
            if nonce == record.nonce:  # a copy whose sending was never confirmed is edited like the others
                self._shown.add(record.prompt_id, origin.place)
        if not self._is_within_limit(origin, record):
            return False
        prompt_id = record.prompt_id if record else callback.prompt_id
        return self._deliver(origin, user_id, prompt_id, value, session_id=session_id, nonce=nonce)

    def _deliver(self, origin: Origin, user_id: int, prompt_id: str, value: str, **fields: Any) -> bool:
        self._doors.deliver(InboundReply("telegram", f"telegram:{user_id}", prompt_id, value, token=origin, **fields))
        return True

    def _on_message(self, message: dict[str, Any], origin: Origin) -> bool:
        text = message.get("text")
        replied = self._replied_prompt(message)
        command = None if replied else parse_command(str(text or ""), self.bot_name)
        if origin.chat_id < 0 and not replied and command is None:
            return False  # talk among people in a group
        if not isinstance(text, str):
            self._voice.say(origin, ONLY_TEXT)
        elif "forward_origin" in message or "forward_date" in message:
            self._voice.say(origin, FORWARDED)
        elif command is not None:
            self._doors.command(origin, command)
        else:
            return self._on_text(origin, replied, text, int(message["from"]["id"]))
        return False

    def _on_text(self, origin: Origin, replied: str, text: str, user_id: int) -> bool:
        record, why = self._target(origin, replied)
        if record is None:
            self._voice.say(origin, why)
        elif record.prompt.secret:
            self._voice.say(origin, listening.refuse_secret(record))
        elif self._is_within_limit(origin, record):
            as_text = record.prompt.type is PromptType.TYPE_FREE_TEXT
            fields = {"session_id": record.session_id, "as_text": as_text}
            return self._deliver(origin, user_id, record.prompt_id, text, **fields)
        return False

    def _target(self, origin: Origin, replied: str) -> tuple[PromptRecord | None, str]:
        if replied:
            return self._desk.prompt(replied), listening.NOT_OPEN
        if origin.seen_before:  # a guess made twice could answer two prompts
            return None, listening.RESTARTED
        return guess_target(self._desk, self._desk.recall(f"telegram.switch.{origin.chat_id}"), SEVERAL)

    def _replied_prompt(self, message: dict[str, Any]) -> str:
        """The id of the prompt whose message this one replies to, or ""."""
        replied = message.get("reply_to_message") or {}
        return self._shown.prompt_at((str(message["chat"]["id"]), str(replied.get("message_id"))))

    def _is_within_limit(self, origin: Origin, record: PromptRecord | None) -> bool:
        sentence, warn = self._throttle.admit(record.session_id if record else "", self._clock.now())
        if sentence:
            self._voice.say(origin, sentence)
        if warn and record is not None:
            self._doors.warn(record)
        return not sentence


def _origin(message: dict[str, Any]) -> Origin:
    chat_id = int(message.get("chat", {}).get("id") or 0)
    return Origin(chat_id, int(message.get("message_id") or 0), message.get("message_thread_id"))
