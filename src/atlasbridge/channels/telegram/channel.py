"""The Telegram channel: prompts out to every operator, taps and texts in.  It carries; the gate decides.

The wire is in api and poller; what people do is read in inbound; how things look is in templates.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Mapping
from typing import Any

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.commands import Command, describe_commands
from atlasbridge.channels.delivery import Delivery, Render
from atlasbridge.channels.desk_commands import DeskCommands
from atlasbridge.channels.outbox import Outbox
from atlasbridge.channels.shown import Shown
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram import templates
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.telegram.inbound import Inbound
from atlasbridge.channels.telegram.poller import Batch, Poller
from atlasbridge.channels.telegram.settings import TelegramSettings
from atlasbridge.channels.telegram.voice import Origin, Voice, in_topic, reply_to
from atlasbridge.channels.wording import render_left
from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)
TAP_LIFE_S = 150.0
DECISION_PATIENCE_S = 2.0  # before a batch is confirmed
GROUP_RATE = 17 / 60  # Telegram takes 20 messages a minute in a group; three of them may come at once
LAST_POLL, LAST_POLL_EVERY_S = "telegram.last_poll", 15.0
HINT = "start a chat with the bot, and see: atlasbridge hub status"
CONFLICT = (
    "Another program is polling with this bot's token: a second AtlasBridge, or somebody who stole the token. "
    "Stop the other one, or make a new token with @BotFather."
)
MUTED = "prompts come without a sound, and notices not at all."
PAUSED = "Replies to this session are paused for a minute: there were too many."


class TelegramChannel(BaseChannel):
    name = "telegram"

    def __init__(self, settings: Mapping[str, Any], desk: Desk, clock: Clock) -> None:
        super().__init__(settings, desk, clock)
        own = self._own = TelegramSettings.model_validate(dict(settings))
        self._host = own.host_name or platform.node() or "this machine"
        self._topics = {str(group.chat_id): group.topic_id for group in own.groups}
        self._chats = [*map(str, own.allowed_users), *self._topics]
        self._api = BotApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._outbox = Outbox(self._api, clock, self._rate, own.backoff_first_s)
        self._tasks = TaskSet("Telegram")
        self._shown = Shown(desk, "telegram")
        self._delivery = Delivery(desk, clock, self._outbox, self._shown, self._tasks)
        self._commands = DeskCommands(desk, clock, "telegram", "/", MUTED)
        self._voice = Voice(self._api, self._outbox, self._delivery, self._tasks, self._host)
        self._inbound = Inbound(own, desk, clock, self._shown, self._voice, self)
        self._poller = Poller(self._api, clock, self, own.poll_timeout_s, own.backoff_first_s)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._undecided: set[Origin] = set()
        self._decided = asyncio.Event()
        self._noted_poll_at = float("-inf")
        self._deaf_since: float | None = None

    # what the hub calls

    async def start(self) -> None:
        self._shown.load()
        last = self.desk.recall(LAST_POLL)
        if last:  # on the steady clock's scale, so that both kinds of gap are measured alike
            self._deaf_since = self.clock.now() - max(0.0, self.clock.wall() - parse_iso(last))
        self._tasks.hold(self._listen())

    async def _listen(self) -> None:
        try:
            await self._inbound.replay()
        except Exception:  # the channel boundary: one bad update must not make the channel deaf
            log.exception("what an earlier process had received could not be taken up")
        await self._poller.run()

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return await self._delivery.send(event, self._chats, self._render(event, session), HINT)

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """A tap always gets its toast; a text is only answered when it was refused: the message itself is edited."""
        origin = reply.token
        if not isinstance(origin, Origin):
            return
        self._undecided.discard(origin)
        if not self._undecided:
            self._decided.set()
        if origin.query_id or (isinstance(outcome, Reject) and not _is_late_copy(origin, outcome)):
            self._voice.say(origin, outcome.sentence)
        await self._inbound.settle(origin)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self._session(event)
        for place in self._shown.places(event.prompt_id, message_id):
            if receipt.stage == "reminder":
                params = templates.render_notice(receipt.sentence, session, self._host)
                self._outbox.post(place[0], params | reply_to(int(place[1])) | in_topic(self._topics.get(place[0])))
            else:
                who = self._display(receipt.by)
                self._outbox.edit(place, templates.render_outcome(event, session, receipt, who, self._host))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        params = templates.render_notice(message, session, self._host)
        for chat in self._chats:
            if session is None or (self._own.session_notices and not self._commands.is_muted(chat)):
                self._outbox.post(chat, params | in_topic(self._topics.get(chat)))

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

    # what inbound calls

    def deliver(self, reply: InboundReply) -> None:
        self._undecided.add(reply.token)
        self._replies.put_nowait(reply)

    def command(self, origin: Origin, command: Command) -> None:
        """A session that is slow to show its screen must not keep the poll waiting."""
        self._tasks.hold(self._obey(origin, command))

    async def _obey(self, origin: Origin, command: Command) -> None:
        spoken = await self._commands.run(str(origin.chat_id), command)
        if spoken.screen is None:
            self._voice.answer(origin, templates.render_notice(spoken.text, None, ""))
        else:
            self._voice.send_screen(origin, spoken.text, spoken.screen)

    def show_marks(self, origin: Origin, record: PromptRecord, marks: int, sentence: str) -> None:
        """In the message that was tapped: every chat marks for itself."""
        self._voice.say(origin, sentence)
        now, session = self.clock.now(), self._session(record)
        self._outbox.edit(origin.place, templates.render_prompt(record, session, now, self._host, marks))

    def warn(self, record: PromptRecord) -> None:
        self.desk.note("CHANNEL_RATE_LIMITED", channel="telegram", session_id=record.session_id)
        self._tasks.hold(self.notify(PAUSED, self._session(record)))

    def member_changed(self, chat_id: int, present: bool) -> None:
        """Blocked, or back: whoever comes back is shown what is open."""
        chat = str(chat_id)
        if not present:
            self._outbox.gone.add(chat)
            log.warning("the bot was blocked in chat %s", chat)
            return
        self._outbox.gone.discard(chat)
        for record in self.desk.open_prompts():
            if all(place[0] != chat for place in self._shown.places(record.prompt_id)):
                render = self._render(record, self._session(record))
                self._tasks.hold(self._delivery.send_to(chat, record, render, patient=True))

    # what the poller calls

    async def take(self, batch: Batch) -> None:
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

    def heard(self) -> None:
        """Durable, but seldom: a restart measures with it how long nobody listened."""
        now = self.clock.now()
        if now - self._noted_poll_at >= LAST_POLL_EVERY_S:
            self._noted_poll_at = now
            self.desk.remember(LAST_POLL, iso(self.clock.wall()))

    async def state_changed(self, state: str, detail: str) -> None:
        if state == "ok":
            await self._recovered()
            return
        if self._deaf_since is None:
            self._deaf_since = self._poller.last_ok_at or self.clock.now()
        if state == "conflict":
            self.desk.note("CHANNEL_CONFLICT", channel="telegram", detail=detail)
            await self.notify(CONFLICT)

    # the rest

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
            params = templates.render_prompt(record, self._session(record), self.clock.now(), self._host)
            for place in self._shown.places(record.prompt_id):
                self._outbox.edit(place, params)

    async def _announce_commands(self) -> None:
        listed = [{"command": name, "description": what} for name, what in describe_commands("/").items()]
        await self._api.call("setMyCommands", {"commands": listed})

    def _render(self, event: PromptRecord, session: SessionRecord) -> Render:
        def render(chat: str) -> dict[str, Any]:
            params = templates.render_prompt(event, session, self.clock.now(), self._host)
            quiet = {"disable_notification": True} if self._commands.is_muted(chat) else {}
            return params | quiet | in_topic(self._topics.get(chat))

        return render

    def _rate(self, chat: str) -> float:
        return self._own.messages_per_s * (GROUP_RATE if chat in self._topics else 1.0)

    def _session(self, event: PromptRecord) -> SessionRecord:
        found = self.desk.session(event.session_id)
        return found or SessionRecord(event.session_id, "?", (), "", 0, 0, "")

    def _display(self, identity: str) -> str:
        channel, _, user_id = identity.partition(":")
        known = self._inbound.names.get(int(user_id)) if channel == "telegram" and user_id.isdecimal() else None
        return known or identity


def _is_late_copy(origin: Origin, outcome: Reject) -> bool:
    """The same message once more after a restart: its first copy may have answered, so a refusal says nothing new."""
    return origin.seen_before and outcome.reason in (Refusal.NOT_OPEN, Refusal.BAD_NONCE)
