"""The Slack channel: prompts as Block Kit messages to every approver, clicks, modals and threads in.

It carries; the gate decides.  The wire is in api and link, what people do is read in inbound.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Mapping
from typing import Any

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.commands import Command
from atlasbridge.channels.delivery import Delivery
from atlasbridge.channels.desk_commands import DeskCommands
from atlasbridge.channels.outbox import Outbox, Place
from atlasbridge.channels.shown import Shown
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.slack.actions import SIGN
from atlasbridge.channels.slack.api import SlackApi
from atlasbridge.channels.slack.inbound import Inbound, Origin
from atlasbridge.channels.slack.link import Link
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.wording import LAST_OUTPUT, offers_again
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
HINT = "invite the app to the channel, check its scopes, and see: atlasbridge hub status"
LATE = (Refusal.NOT_OPEN, Refusal.BAD_NONCE)  # of a copy: the first may have answered
MUTED = "no notices come; prompts still do, since Slack has no silent ones."
PAUSED = "Replies to this session are paused for a minute: there were too many."


class SlackChannel(BaseChannel):
    name = "slack"

    def __init__(self, settings: Mapping[str, Any], desk: Desk, clock: Clock) -> None:
        super().__init__(settings, desk, clock)
        own = self._own = SlackSettings.model_validate(dict(settings))
        self._host = own.host_name or platform.node() or "this machine"
        self._rooms: dict[str, str] = {}
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._tasks = TaskSet("Slack")
        self._shown = Shown(desk, "slack")
        self._api = SlackApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._outbox = Outbox(self._api, clock, lambda room: own.messages_per_s, own.backoff_first_s)
        self._delivery = Delivery(desk, clock, self._outbox, self._shown, self._tasks)
        self._commands = DeskCommands(desk, clock, "slack", SIGN, MUTED)
        self._inbound = Inbound(own, desk, clock, self._shown, self)
        self._link = Link(own, self._api, self)

    async def start(self) -> None:
        self._shown.load()
        self._tasks.hold(self._listen())

    async def _listen(self) -> None:
        try:
            await self._inbound.replay()
        except Exception:  # the channel boundary: one bad update must not make the channel deaf
            log.exception("what an earlier process had received could not be taken up")
        await self._link.run()

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        def render(room: str) -> dict[str, Any]:
            return blocks.render_prompt(event, session, self.clock.now(), self._host)

        return await self._delivery.send(event, await self._targets(), render, HINT)

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Only refusals are told apart: what was accepted shows in the message itself."""
        origin = reply.token
        if not isinstance(origin, Origin):
            return
        if isinstance(outcome, Reject) and not (origin.seen_before and outcome.reason in LATE):
            self.say(origin, outcome.sentence)
        await self._inbound.settle(origin)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self._session(event)
        for room, ts in self._shown.places(event.prompt_id, message_id):
            if receipt.stage == "reminder":
                notice = blocks.render_notice(receipt.sentence, session, self._host)
                self._outbox.post(room, notice | {"thread_ts": ts, "reply_broadcast": True})
            else:
                who = self._display(receipt.by)
                self._outbox.edit((room, ts), blocks.render_outcome(event, session, receipt, who, self._host))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            params = blocks.render_notice(message, session, self._host)
            self._tasks.hold(self._notify(params, session is not None))

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
            "unreachable_chats": sorted(self._outbox.gone),
            "pending": self._outbox.pending,
        }

    # what the link calls

    async def admit(self, kind: str, payload: dict[str, Any]) -> bool:
        return await self._inbound.admit(kind, payload)

    async def take(self, kind: str, payload: dict[str, Any]) -> None:
        await self._inbound.take(kind, payload)

    def state_changed(self, state: str) -> None:
        if state == "unauthorized":
            self.desk.note("CHANNEL_UNAUTHORIZED", channel="slack")
        if state == "ok":
            self._tasks.hold(self._learn_names())

    # what inbound calls

    def deliver(self, reply: InboundReply) -> None:
        self._replies.put_nowait(reply)

    def say(self, origin: Origin, sentence: str) -> None:
        """In the thread for written words; for a click, a message that only its presser sees."""
        where = {"thread_ts": origin.thread} if origin.thread else {"only_for": origin.user}
        if origin.room:
            self._outbox.post(origin.room, blocks.render_notice(sentence, None, self._host) | where)

    def show_more(self, place: Place, record: PromptRecord) -> None:
        thread = {"thread_ts": place[1]}
        screen, again = record.prompt.screen or record.prompt.excerpt, offers_again(record)
        if not again or len(screen) > LAST_OUTPUT:
            self._outbox.post(place[0], _screen_params("Last output:", screen) | thread)
        if again:
            params = blocks.render_again(record) | thread
            self._tasks.hold(self._delivery.send_to(place[0], record, lambda _: params, patient=True))

    def chosen(self, room: str) -> str:
        return self._commands.chosen(room)

    def command(self, user: str, command: Command) -> None:
        """A session that is slow to show its screen must not keep the next click from being acknowledged."""
        self._tasks.hold(self._obey(user, command))

    async def _obey(self, user: str, command: Command) -> None:
        """Answered in the person's direct messages, wherever it was said."""
        try:
            room = self._rooms.get(user) or await self._api.open_dm(user)
        except ChannelError as fault:
            log.warning("a command could not be answered: %s", fault)
            return
        self._rooms[user] = room
        spoken = await self._commands.run(room, command)
        if spoken.screen is None:
            self._outbox.post(room, blocks.render_notice(spoken.text, None, self._host))
        else:
            self._outbox.post(room, _screen_params(spoken.text, spoken.screen))

    async def open_modal(self, origin: Origin, trigger_id: str, record: PromptRecord) -> None:
        """The trigger lives three seconds: no queue, one try."""
        view = blocks.render_modal(record, self._session(record))
        try:
            await self._api.call("views.open", {"trigger_id": trigger_id, "view": view})
        except ChannelError as fault:
            log.warning("a text field could not be shown: %s", fault)
            self.say(origin, "The text field could not be shown. Reply in the thread of the prompt instead.")

    def warn(self, record: PromptRecord) -> None:
        self.desk.note("CHANNEL_RATE_LIMITED", channel="slack", session_id=record.session_id)
        self._tasks.hold(self.notify(PAUSED, self._session(record)))

    # the rest

    async def _targets(self) -> list[str]:
        """The approvers' direct messages and the channels that were opted in; people who cannot be reached are left."""
        faults: list[str] = []
        for user_id in self._own.allowed_users:
            if user_id not in self._rooms:
                try:
                    self._rooms[user_id] = await self._api.open_dm(user_id)
                except ChannelError as fault:
                    faults.append(str(fault))
        rooms = [*self._rooms.values(), *self._own.channels]
        if not rooms:
            raise ChannelError("nobody was reached: " + "; ".join(sorted(set(faults))), HINT)
        return rooms

    async def _learn_names(self) -> None:
        """So that people read who answered, not an id."""
        names = self._inbound.names
        for user_id in set(self._own.allowed_users) - names.keys():
            user = (await self._api.call("users.info", {"user": user_id})).get("user") or {}
            names[user_id] = visible(str(user.get("real_name") or user.get("name") or ""), keep_lines=False)[:40]

    async def _notify(self, params: dict[str, Any], about_session: bool) -> None:
        for room in await self._targets():
            if not (about_session and self._commands.is_muted(room)):
                self._outbox.post(room, params)

    def _session(self, event: PromptRecord) -> SessionRecord:
        found = self.desk.session(event.session_id)
        return found or SessionRecord(event.session_id, "?", (), "", 0, 0, "")

    def _display(self, identity: str) -> str:
        return self._inbound.names.get(identity.rpartition("/")[2]) or identity


def _screen_params(title: str, screen: str) -> dict[str, Any]:
    """Inside a message where it fits, else as a file."""
    return blocks.render_screen(title, screen) or {"text": title, "document": ("screen.txt", visible(screen))}
