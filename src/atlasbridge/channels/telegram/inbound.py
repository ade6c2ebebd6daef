"""What people do in Telegram, turned into replies and commands.  Strangers are told nothing; the gate decides the rest.

Every update is committed to the desk's inbox before it has any effect; a second copy of it has none.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels.limits import InboundWindow
from atlasbridge.channels.telegram.callbacks import SHOW, Callback, expand_callback, parse_callback
from atlasbridge.channels.telegram.commands import NOTHING_OPEN, SEVERAL, Command, active, parse_command
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.channels.telegram.shown import Shown
from atlasbridge.core.clock import Clock
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk, InboundReply
from atlasbridge.core.prompt.model import PromptRecord, PromptType
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
KEPT_UPDATES = 20_000
NOT_OURS = "This button is not one of mine."
SECRET = (
    "Secrets are never taken in a chat. Delete your message, then answer at the terminal or with: atlasbridge reply "
)
FORWARDED = "A forwarded message is not taken as an answer. Write it yourself."
EDITED = "An edit changes nothing that was already taken. Send a new message instead."
ONLY_TEXT = "Only text and buttons are taken here."
RESTARTED = "AtlasBridge restarted while this message came in. Send it again if it was not taken."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from, so that this very reply can be answered."""

    chat_id: int
    message_id: int
    topic_id: int | None = None
    query_id: str = ""
    seen_before: bool = False


Say = Callable[[Origin, str], Awaitable[None]]


class Inbound:
    """`deliver` passes a reply on, `say` answers the sender, `command` and `show` are the channel's other doors."""

    def __init__(self, settings: TelegramSettings, desk: Desk, clock: Clock, shown: Shown) -> None:
        self._settings, self._desk, self._clock, self._shown = settings, desk, clock, shown
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._strangers: set[int] = set()
        self._window = InboundWindow(settings.replies_per_minute)
        self._warned_until: dict[str, float] = {}
        self.names: dict[int, str] = {}
        self.bot_name = ""
        self.deliver: Callable[[InboundReply], None]
        self.say: Say
        self.command: Callable[[Origin, Command], Awaitable[None]]
        self.show: Callable[[Origin, PromptRecord], Awaitable[None]]
        self.warn: Callable[[str, PromptRecord], Awaitable[None]]
        self.member_changed: Callable[[int, bool], Awaitable[None]]

    async def take(self, update: dict[str, Any]) -> None:
        update_id = int(update["update_id"])
        kind = next((name for name in update if name != "update_id"), "")
        body = update.get(kind)
        if update_id in self._seen or not isinstance(body, dict) or not self._is_allowed(body):
            return
        fresh = await self._desk.accept_update("telegram", str(update_id), self._payload(update))
        self._seen[update_id] = None
        while len(self._seen) > KEPT_UPDATES:
            self._seen.popitem(last=False)
        await self._dispatch(kind, body, seen_before=not fresh)

    async def _dispatch(self, kind: str, body: dict[str, Any], seen_before: bool) -> None:
        match kind:
            case "callback_query":
                await self._on_tap(body, seen_before)
            case "message":
                await self._on_message(body, seen_before)
            case "edited_message" if self._is_prompt_reply(body) or body["chat"]["id"] > 0:
                await self.say(_origin(body), EDITED)
            case "my_chat_member":
                status = body.get("new_chat_member", {}).get("status")
                await self.member_changed(int(body["chat"]["id"]), status not in ("kicked", "left"))

    def _is_allowed(self, body: dict[str, Any]) -> bool:
        """The sender by number, and the chat: their own private one, or a group that was opted in."""
        sender = body.get("from", {})
        user_id = sender.get("id")
        if user_id not in self._settings.allowed_users:
            if user_id not in self._strangers and len(self._strangers) < 1000:
                self._strangers.add(user_id)
                log.warning("a message from Telegram user %s, who is not allowed, was dropped", user_id)
                self._desk.note("CHANNEL_STRANGER", channel="telegram", identity=f"telegram:{user_id}")
            return False
        self.names[user_id] = visible(str(sender.get("first_name") or ""), keep_lines=False)[:40]
        holder = body.get("message", body)
        chat_id = holder.get("chat", {}).get("id")
        if chat_id == user_id:
            return True
        topic_id = holder.get("message_thread_id")
        return any(g.chat_id == chat_id and g.topic_id in (None, topic_id) for g in self._settings.groups)

    def _payload(self, update: dict[str, Any]) -> str:
        """What the inbox keeps.  While a secret is asked for, no person's text is written down anywhere."""
        if any(record.prompt.secret for record in self._desk.open_prompts()):
            return json.dumps({"update_id": update["update_id"], "kept": "ids only: a secret is being asked for"})
        return json.dumps(update, ensure_ascii=False)

    async def _on_tap(self, query: dict[str, Any], seen_before: bool) -> None:
        message = query.get("message") or {}
        origin = _origin(message, str(query["id"]), seen_before)
        callback = parse_callback(query.get("data"))
        if callback is None:
            await self.say(origin, NOT_OURS)
            return
        record = self._desk.prompt(callback.prompt_id)
        place = (origin.chat_id, origin.message_id)
        known = self._shown.prompt_at(place)
        if known and (record is None or known != record.prompt_id):
            await self.say(origin, NOT_OURS)
        elif callback.verb == SHOW and record is not None:
            await self.show(origin, record)
        else:
            await self._pass_tap(origin, callback, record, int(query["from"]["id"]))

    async def _pass_tap(self, origin: Origin, callback: Callback, record: PromptRecord | None, user_id: int) -> None:
        session_id, nonce, value = callback.session_id, callback.nonce, callback.value
        if record is not None:
            session_id, nonce, value = expand_callback(callback, record)
            if nonce == record.nonce:  # a copy whose sending was never confirmed is edited like the others
                self._shown.add(record.prompt_id, (origin.chat_id, origin.message_id))
        if not await self._is_within_limit(origin, record):
            return
        self.deliver(
            InboundReply(
                channel="telegram",
                identity=f"telegram:{user_id}",
                prompt_id=record.prompt_id if record else callback.prompt_id,
                value=value,
                session_id=session_id,
                nonce=nonce,
                token=origin,
            )
        )

    async def _on_message(self, message: dict[str, Any], seen_before: bool) -> None:
        origin, text = _origin(message, seen_before=seen_before), message.get("text")
        targeted = self._is_prompt_reply(message)
        command = None if targeted else parse_command(str(text or ""), self.bot_name)
        if origin.chat_id < 0 and not targeted and command is None:
            return  # talk among people in a group
        if not isinstance(text, str):
            await self.say(origin, ONLY_TEXT)
        elif "forward_origin" in message or "forward_date" in message:
            await self.say(origin, FORWARDED)
        elif command is not None:
            await self.command(origin, command)
        else:
            await self._on_text(origin, message, text)

    async def _on_text(self, origin: Origin, message: dict[str, Any], text: str) -> None:
        replied = message.get("reply_to_message")
        if replied is not None and self._is_prompt_reply(message):
            record = self._desk.prompt(self._shown.prompt_at((origin.chat_id, int(replied["message_id"]))))
            why = "That prompt is no longer open."
        elif origin.seen_before:
            record, why = None, RESTARTED
        else:
            record, why = self._guess_target(origin.chat_id)
        if record is None:
            await self.say(origin, why)
        elif record.prompt.secret:
            await self.say(origin, SECRET + f"{short_id(record.prompt_id)} -")
        elif await self._is_within_limit(origin, record):
            self._pass_text(origin, record, text, int(message["from"]["id"]))

    def _pass_text(self, origin: Origin, record: PromptRecord, text: str, user_id: int) -> None:
        self.deliver(
            InboundReply(
                channel="telegram",
                identity=f"telegram:{user_id}",
                prompt_id=record.prompt_id,
                value=text,
                session_id=record.session_id,
                as_text=record.prompt.type is PromptType.TYPE_FREE_TEXT,
                token=origin,
            )
        )

    def _guess_target(self, chat_id: int) -> tuple[PromptRecord | None, str]:
        """The prompt that a plain text means: certain, or none."""
        prompts, sessions = self._desk.open_prompts(), active(self._desk.sessions())
        chosen = self._desk.recall(f"telegram.switch.{chat_id}")
        if chosen and any(session.session_id == chosen for session in sessions):
            prompts = [record for record in prompts if record.session_id == chosen]
        elif len(sessions) > 1 and prompts:
            return None, SEVERAL
        if len(prompts) != 1:
            return None, SEVERAL if prompts else NOTHING_OPEN
        return prompts[0], ""

    def _is_prompt_reply(self, message: dict[str, Any]) -> bool:
        replied = message.get("reply_to_message") or {}
        place = (int(message["chat"]["id"]), int(replied.get("message_id") or 0))
        return bool(self._shown.prompt_at(place))

    async def _is_within_limit(self, origin: Origin, record: PromptRecord | None) -> bool:
        session_id, now = (record.session_id if record else ""), self._clock.now()
        wait_s = self._window.admit(session_id, now)
        if wait_s <= 0:
            return True
        await self.say(origin, f"Too many replies in a minute for this session. Wait {int(wait_s) + 1} seconds.")
        if record is not None and self._warned_until.get(session_id, 0.0) <= now:
            self._warned_until[session_id] = now + wait_s
            await self.warn(
                f"Replies to this session are paused for {int(wait_s) + 1} s: too many in a minute.", record
            )
        return False


def _origin(message: dict[str, Any], query_id: str = "", seen_before: bool = False) -> Origin:
    chat_id = int(message.get("chat", {}).get("id") or 0)
    topic_id = message.get("message_thread_id")
    return Origin(chat_id, int(message.get("message_id") or 0), topic_id, query_id, seen_before)
