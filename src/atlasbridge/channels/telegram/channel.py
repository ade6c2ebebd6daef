"""The Telegram channel: prompts out to every operator, taps and texts in.  It carries; the gate decides.

The wire is in api, poller and outbox; what people do is read in inbound; how things look is in templates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram import templates
from atlasbridge.channels.telegram.api import BotApi, Refused, Unreachable
from atlasbridge.channels.telegram.commands import COMMANDS
from atlasbridge.channels.telegram.delivery import Delivery, topic_param
from atlasbridge.channels.telegram.desk_commands import DeskCommands
from atlasbridge.channels.telegram.inbound import Inbound, Origin
from atlasbridge.channels.telegram.outbox import Outbox
from atlasbridge.channels.telegram.poller import Batch, Poller
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.channels.telegram.shown import Shown
from atlasbridge.channels.wording import render_left
from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.ports import Desk, InboundReply, Receipt
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)
TAP_LIFE_S = 150.0
DECISION_PATIENCE_S = 2.0  # before a batch is confirmed
TOAST_LIMIT = 200
LAST_POLL, LAST_POLL_EVERY_S = "telegram.last_poll", 15.0
CONFLICT = (
    "Another program is polling with this bot's token: a second AtlasBridge, or somebody who stole the token. "
    "Stop the other one, or make a new token with @BotFather."
)


class TelegramChannel(BaseChannel):
    name = "telegram"

    def __init__(self, settings: Mapping[str, Any], desk: Desk, clock: Clock) -> None:
        super().__init__(settings, desk, clock)
        self._own = TelegramSettings.model_validate(dict(settings))
        own = self._own
        self._api = BotApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._outbox = Outbox(self._api, clock, own.messages_per_s, own.backoff_first_s)
        self._shown = Shown(desk)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._undecided: set[Origin] = set()
        self._decided = asyncio.Event()
        self._tasks = TaskSet("Telegram")
        self._noted_poll_at = float("-inf")
        self._deaf_since: float | None = None
        self._poller = Poller(
            self._api,
            clock,
            self._take,
            self._state_changed,
            self._note_poll,
            poll_timeout_s=own.poll_timeout_s,
            backoff_first_s=own.backoff_first_s,
        )
        self._commands = DeskCommands(desk, clock, self._outbox)
        self._delivery = Delivery(own, desk, clock, self._outbox, self._shown, self._tasks, self._commands.is_muted)
        self._inbound = self._wire_inbound()

    def _wire_inbound(self) -> Inbound:
        inbound = Inbound(self._own, self.desk, self.clock, self._shown)
        inbound.deliver, inbound.say = self._deliver, self._say
        inbound.command, inbound.show = self._commands.run, self._show_more
        inbound.warn, inbound.member_changed = self._warn, self._member_changed
        return inbound

    # what the hub calls

    async def start(self) -> None:
        self._shown.load()
        last = self.desk.recall(LAST_POLL)
        if last:  # on the steady clock's scale, so that both kinds of gap are measured alike
            self._deaf_since = self.clock.now() - max(0.0, self.clock.wall() - parse_iso(last))
        self._tasks.hold(self._poller.run())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return await self._delivery.send(event, session)

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        origin = reply.token
        if not isinstance(origin, Origin):
            return
        refused = isinstance(outcome, Reject)
        self._undecided.discard(origin)
        if not self._undecided:
            self._decided.set()
        if origin.query_id or (refused and not _is_late_copy(origin, outcome)):
            await self._say(origin, outcome.sentence)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self._session(event)
        for place in self._shown.places(event.prompt_id, message_id):
            if receipt.stage == "reminder":
                params = templates.render_notice(receipt.sentence, session, self._delivery.host)
                link = {"message_id": place[1], "allow_sending_without_reply": True}
                self._outbox.post(place[0], "sendMessage", params | {"reply_parameters": link})
            else:
                who = self._display(receipt.by)
                self._outbox.edit(place, templates.render_outcome(event, session, receipt, who, self._delivery.host))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        params = templates.render_notice(message, session, self._delivery.host)
        for chat_id, topic in self._delivery.targets():
            if session is None or (self._own.session_notices and not self._commands.is_muted(chat_id)):
                self._outbox.post(chat_id, "sendMessage", params | topic_param(topic))

    async def close(self) -> None:
        await self._tasks.close()
        await self._outbox.close()
        await self._api.close()

    def health(self) -> dict[str, Any]:
        poller = self._poller
        return {
            "state": poller.state,
            "detail": poller.detail,
            "bot": poller.me.get("username", ""),
            "operators": len(self._own.allowed_users),
            "unreachable_chats": sorted(self._outbox.gone),
            "pending": self._outbox.pending,
            "last_ok_s": None if poller.last_ok_at is None else round(self.clock.now() - poller.last_ok_at, 1),
        }

    def _session(self, event: PromptRecord) -> SessionRecord:
        sessions = self.desk.sessions(include_ended=True)
        found = [session for session in sessions if session.session_id == event.session_id]
        return found[0] if found else SessionRecord(event.session_id, "?", (), "", 0, 0, "")

    def _display(self, identity: str) -> str:
        channel, _, user_id = identity.partition(":")
        known = self._inbound.names.get(int(user_id)) if channel == "telegram" and user_id.isdecimal() else None
        return known or identity

    # receiving

    async def _take(self, batch: Batch) -> None:
        """Returns when the gate has decided every reply of this batch, or takes too long."""
        self._inbound.bot_name = str(self._poller.me.get("username", ""))
        for update in batch:
            await self._inbound.take(update)
        if self._undecided:
            self._decided.clear()
            try:
                await asyncio.wait_for(self._decided.wait(), DECISION_PATIENCE_S)
            except TimeoutError:
                self._undecided.clear()

    def _deliver(self, reply: InboundReply) -> None:
        self._undecided.add(reply.token)
        self._replies.put_nowait(reply)

    async def _say(self, origin: Origin, sentence: str) -> None:
        """A toast for a tap, a reply for a text; neither keeps the poll waiting."""
        if origin.query_id:
            self._tasks.hold(self._toast(origin, templates.cut_text(sentence, TOAST_LIMIT)))
            return
        link = {"message_id": origin.message_id, "allow_sending_without_reply": True}
        params = templates.render_notice(sentence, None, self._delivery.host) | {"reply_parameters": link}
        self._outbox.post(origin.chat_id, "sendMessage", params | topic_param(origin.topic_id))

    async def _toast(self, origin: Origin, text: str) -> None:
        try:
            await self._api.call("answerCallbackQuery", {"callback_query_id": origin.query_id, "text": text})
        except (Refused, Unreachable) as fault:
            log.info("a tap could not be answered: %s", fault)

    async def _show_more(self, origin: Origin, record: PromptRecord) -> None:
        await self._say(origin, "Here it is.")
        self._commands.send_screen(origin, "Last output:", record.prompt.screen or record.prompt.excerpt)

    async def _warn(self, sentence: str, record: PromptRecord) -> None:
        self.desk.note("CHANNEL_RATE_LIMITED", channel="telegram", session_id=record.session_id)
        await self.notify(sentence, self._session(record))

    async def _member_changed(self, chat_id: int, present: bool) -> None:
        """Blocked, or back: whoever comes back is shown what is open."""
        if not present:
            self._outbox.gone.add(chat_id)
            log.warning("the bot was blocked in chat %d", chat_id)
            return
        self._outbox.gone.discard(chat_id)
        for record in self.desk.open_prompts():
            if all(place[0] != chat_id for place in self._shown.places(record.prompt_id)):
                self._tasks.hold(self._delivery.send_to((chat_id, None), record, self._session(record), patient=True))

    # the connection

    async def _state_changed(self, state: str, detail: str) -> None:
        if state == "ok":
            await self._recovered()
        else:
            if self._deaf_since is None:
                self._deaf_since = self._poller.last_ok_at or self.clock.now()
            if state == "conflict":
                self.desk.note("CHANNEL_CONFLICT", channel="telegram", detail=detail)
                await self.notify(CONFLICT)

    async def _recovered(self) -> None:
        """After more than 150 s of deafness taps are gone for good: say so, and show the open prompts anew."""
        gap_s = 0.0 if self._deaf_since is None else self.clock.now() - self._deaf_since
        self._deaf_since = None
        self._tasks.hold(self._announce_commands())
        records = [record for record in self.desk.open_prompts() if self._shown.places(record.prompt_id)]
        if gap_s <= TAP_LIFE_S or not records:
            return
        await self.notify(
            f"I was offline for {render_left(gap_s)}. Taps older than {int(TAP_LIFE_S)} s are lost: "
            "if you tapped a button in that time, please tap it again."
        )
        for record in records:
            params = templates.render_prompt(record, self._session(record), self.clock.now(), self._delivery.host)
            for place in self._shown.places(record.prompt_id):
                self._outbox.edit(place, params)

    def _note_poll(self) -> None:
        """Durable, but seldom: a restart measures with it how long nobody listened."""
        now = self.clock.now()
        if now - self._noted_poll_at >= LAST_POLL_EVERY_S:
            self._noted_poll_at = now
            self.desk.remember(LAST_POLL, iso(self.clock.wall()))

    async def _announce_commands(self) -> None:
        listed = [{"command": name, "description": what} for name, what in COMMANDS.items()]
        await self._api.call("setMyCommands", {"commands": listed})


def _is_late_copy(origin: Origin, outcome: Receipt | Reject) -> bool:
    """The same message once more after a restart: its first copy may have answered, so a refusal says nothing new."""
    late = (Refusal.NOT_OPEN, Refusal.BAD_NONCE)
    return origin.seen_before and isinstance(outcome, Reject) and outcome.reason in late
