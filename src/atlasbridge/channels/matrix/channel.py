"""The Matrix channel: messages to one room, reactions and replies from it. The gate decides about replies."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from atlasbridge.channels import grant_card
from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.excerpt import LAST_OUTPUT, first_line
from atlasbridge.channels.grant_card import GrantWords
from atlasbridge.channels.language import common_reader, hub_says, reading, say_digest, t
from atlasbridge.channels.listening import SeenUpdates, Strangers
from atlasbridge.channels.matrix import templates
from atlasbridge.channels.matrix.api import IS_ENCRYPTED, MatrixApi
from atlasbridge.channels.matrix.settings import MatrixSettings
from atlasbridge.channels.outbox import Backoff
from atlasbridge.channels.receipts import STILL_OPEN, People
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.templates import SURE, Role, session_name, sure_label
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import Caller
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord

# Grants in a room: a reaction to the question requests an offer, and keycap reactions to the offer decide. The hub
# stores which offer belongs to which prompt, so a restart loses none.


class RoomGrants:
    def __init__(self, hub_api: HubApi, api: MatrixApi, edit: Callable[[str, str], None]) -> None:
        self._hub_api, self._api, self._edit = hub_api, api, edit

    def knows(self, meant: str, record: PromptRecord | None, key: str) -> bool:
        """Whether this reaction is about a grant: the clock on a question, or any reaction to an offer."""
        if record is not None:
            return templates.is_while(key) and templates.offers_grant(record.prompt)
        return bool(meant and self._hub_api.recall(_note(meant)))

    async def take(self, meant: str, record: PromptRecord | None, key: str, caller: Caller) -> None:
        if record is not None:
            await self._show(meant, record, await grant_card.press(self._hub_api, record, "", caller))
            return
        kept = json.loads(self._hub_api.recall(_note(meant)))
        value, offered = templates.grant_choice(kept["values"], key), self._hub_api.prompt(kept["prompt_id"])
        if value is not None and offered is not None:
            await self._show(meant, offered, await grant_card.press(self._hub_api, offered, value, caller))

    async def _show(self, beside: str, record: PromptRecord, words: GrantWords | str) -> None:
        if isinstance(words, str):
            await self._say(templates.reply_message(beside, words, loud=False))
            return
        event_id = beside
        if words.beside:
            event_id = await self._say(templates.reply_message(beside, templates.render_grant(words), loud=False))
        else:
            self._edit(beside, templates.render_grant(words))
        values = [value for _, value in words.buttons]
        self._hub_api.remember(_note(event_id), json.dumps({"prompt_id": record.prompt_id, "values": values}))
        for key in templates.KEYCAPS[: len(values)] if words.beside else ():
            await self._api.send("m.reaction", templates.reaction(event_id, key), f"grant.{new_id()}")

    async def _say(self, content: dict[str, object]) -> str:
        return await self._api.send("m.room.message", content, f"grant.{new_id()}")


def _sure(event_id: str) -> str:
    return f"matrix.sure.{event_id}"


def _note(event_id: str) -> str:
    return f"matrix.grant.{event_id}"


log = logging.getLogger(__name__)
SINCE = "matrix.since"
EDIT_LIFE_S = 3600.0
ENCRYPTED = "This room is encrypted, and I cannot read it. Use a room without encryption."
WHICH = "Reply to the question's own message, or react to it."


class MatrixChannel(BaseChannel):
    name: ClassVar[str] = "matrix"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = MatrixSettings.model_validate(dict(settings))
        self._api = MatrixApi(own.homeserver, own.access_token.get_secret_value(), own.room, own.request_timeout_s)
        self._host = own.host_name or platform.node() or "this machine"
        self._tasks = TaskSet("matrix")
        self._seen = SeenUpdates(hub_api, self.name)
        self._strangers = Strangers(hub_api, self.name)
        self._people = People(hub_api, self.name)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._me, self._state, self._detail = "", "starting", ""
        self._encrypted: bool | None = None  # None: not checked yet
        self._digests: dict[str, str] = {}
        self._edits: dict[str, str] = {}
        self._grants = RoomGrants(hub_api, self._api, self._edit)

    async def start(self) -> None:
        self._tasks.hold(self._listen())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._refuse_encrypted()
        loud = self.hub_api.tone(event.prompt_id, self.name).loud
        with self._reading():
            content = templates.text_message(templates.render_prompt(event, session, self._host), loud)
        event_id = await self._api.send("m.room.message", content, f"ask.{event.prompt_id}")
        self._tasks.hold(self._offer(event, event_id))
        return event_id

    def _reading(self) -> AbstractContextManager[None]:
        """For the people who read the room."""
        identities = [f"matrix:{one}" for one in self._own.allowed_users]
        return reading(common_reader(self.hub_api, identities, self._own.language))

    async def _refuse_encrypted(self) -> None:
        """Raise ChannelError for an encrypted room, because replies there cannot be read."""
        if self._encrypted is None:
            self._encrypted = await self._api.is_encrypted()
        if self._encrypted:
            self._state, self._detail = "fault", IS_ENCRYPTED
            raise ChannelError(IS_ENCRYPTED, "use a room without encryption: atlasbridge setup --channel matrix")

    async def _offer(self, event: PromptRecord, event_id: str) -> None:
        """Add our own reactions, so that a person only has to tap one."""
        for number, key in enumerate(templates.reactions(event.prompt)):
            await self._api.send("m.reaction", templates.reaction(event_id, key), f"offer.{event.prompt_id}.{number}")
        if templates.offers_grant(event.prompt):
            await self._api.send(
                "m.reaction", templates.reaction(event_id, templates.WHILE), f"offer.{event.prompt_id}.while"
            )

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """An accepted reply shows in the prompt's message. A refused reply gets an answer with the reason."""
        if not isinstance(reply.token, str):
            return
        await self._seen.settle(reply.token)
        if isinstance(outcome, Reject):
            with self._reading():
                sentence = hub_says(self._people.rename(outcome.sentence, reply.identity))
            await self._say(templates.reply_message(reply.token, sentence, loud=True), f"refused.{reply.token}")

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self.hub_api.session(event.session_id)
        if session is not None:
            with self._reading():
                await self._update(message_id, event, session, receipt)

    async def _update(self, message_id: str, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        if receipt.stage in STILL_OPEN[1:]:
            told = f"⏰ {session_name(session)}: {hub_says(self._people.rename(receipt.sentence, receipt.by))}"
            await self._say(templates.reply_message(message_id, told, loud=False), f"{receipt.stage}.{new_id()}")
            return
        if receipt.stage == "reminder":
            loud = self.hub_api.tone(event.prompt_id, self.name).loud
            asked = f"“{first_line(event.prompt)}” · {session_name(session)}"
            told = f"🗳 {hub_says(receipt.sentence)} · {asked}" if receipt.by else f"🔔 {t('Still waiting')}: {asked}"
            await self._say(templates.reply_message(message_id, told, loud), f"remind.{new_id()}")
            return
        outcome = self._people.outcome(event, receipt, self.clock.wall())
        body = f"{outcome.title}\n{outcome.detail}\n\n{templates.render_prompt(event, session, self._host)}"
        self._edit(message_id, body)
        if receipt.stage in ("expired", "default_typed"):
            await self._say(
                templates.reply_message(message_id, f"{outcome.title} · {session_name(session)}", loud=True),
                f"end.{receipt.stage}.{event.prompt_id}",
            )

    def _edit(self, event_id: str, body: str) -> None:
        """Edit the message in the background and retry after errors. Only the newest text is sent."""
        running = event_id in self._edits
        self._edits[event_id] = body
        if not running:
            self._tasks.hold(self._edit_until_done(event_id))

    async def _edit_until_done(self, event_id: str) -> None:
        backoff, until = Backoff(self._own.backoff_first_s), self.clock.now() + EDIT_LIFE_S
        while self.clock.now() < until:
            body = self._edits[event_id]
            try:
                await self._say(templates.edit_message(event_id, body), f"edit.{new_id()}")
            except ChannelError as fault:
                log.warning("%s", fault)
                await asyncio.sleep(backoff.next_wait())
                continue
            if self._edits[event_id] is body:
                break
        del self._edits[event_id]

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            with self._reading():
                told = hub_says(message)
            named = f"{session_name(session)}: {told}" if session is not None else told
            await self._say(
                templates.text_message(escape_controls(named)[: templates.LONGEST], session is None),
                f"note.{new_id()}",
            )

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        with self._reading():
            body = say_digest(escape_controls(text)[: templates.LONGEST])
        if key in self._digests:
            self._edit(self._digests[key], body)
        else:
            self._digests = {key: await self._say(templates.text_message(body, loud), f"digest.{new_id()}")}

    async def _say(self, content: dict[str, Any], txn: str) -> str:
        return await self._api.send("m.room.message", content, txn)

    async def close(self) -> None:
        await self._tasks.close()
        await self._api.close()

    def health(self) -> dict[str, Any]:
        return {"state": self._state, "detail": self._detail, "bot": self._me}

    # receiving

    async def _listen(self) -> None:
        for update_id, event in self._seen.left_over():
            if isinstance(event, dict):
                await self._take(update_id, event)
        backoff = Backoff(self._own.backoff_first_s)
        while True:
            try:
                self._me = self._me or await self._api.whoami()
                self._encrypted = await self._api.is_encrypted() if self._encrypted is None else self._encrypted
                since = self.hub_api.recall(SINCE)
                token, events = await self._api.sync(since, self._own.poll_timeout_s)
                self._encrypted = self._encrypted or any(one.get("type") == "m.room.encryption" for one in events)
                self._state, self._detail = ("fault", IS_ENCRYPTED) if self._encrypted else ("ok", "")
                for event in events:
                    await self._hear(event)
                self.hub_api.remember(SINCE, token)
                backoff.reset()
            except ChannelError as fault:
                self._state, self._detail = "reconnecting", str(fault)
                log.warning("%s", fault)
                await asyncio.sleep(backoff.next_wait())

    async def _hear(self, event: dict[str, Any]) -> None:
        sender, event_id = str(event.get("sender", "")), str(event.get("event_id", ""))
        if (
            sender == self._me
            or not event_id
            or event.get("type") not in ("m.reaction", "m.room.message", "m.room.encrypted")
        ):
            return
        if sender not in self._own.allowed_users:
            self._strangers.note(sender[:255])
            return
        kept = {name: event.get(name) for name in ("type", "sender", "content")}
        if await self._seen.take(event_id, json.dumps(kept)) != "copy":
            with self._reading():
                await self._take(event_id, event)

    async def _take_grant(self, event_id: str, meant: str, record: PromptRecord | None, said: str, sender: str) -> None:
        """Settle the update when the work is done, so that the next process repeats it if this one dies."""
        await self._grants.take(meant, record, said, Caller(f"matrix:{sender}", "matrix", sender))
        await self._seen.settle(event_id)

    async def _take(self, event_id: str, event: dict[str, Any]) -> None:
        meant, said, is_reaction = templates.parse_target(event)
        record = self.hub_api.prompt_for_message(self.name, meant) if meant else None
        if is_reaction and self._grants.knows(meant, record, said):
            self._tasks.hold(self._take_grant(event_id, meant, record, said, str(event.get("sender"))))
            return
        sure = json.loads(self.hub_api.recall(_sure(meant)) or "{}") if record is None and meant else {}
        if sure:
            await self._take_sure(event_id, event, sure, said if is_reaction else "")
            return
        if record is None:
            await self._seen.settle(event_id)
            self._help(event_id, event, is_reaction)
            return
        button = templates.find_reaction(record.prompt, said) if is_reaction else None
        if button is not None and button.role is Role.ALWAYS:
            self._tasks.hold(self._make_sure(event_id, meant, record, button.value))
            return
        if button is not None and button.role is Role.SHOW:
            await self._seen.settle(event_id)
            shown = escape_controls(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:]
            self._tasks.hold(self._say(templates.reply_message(meant, shown, loud=False), f"show.{event_id}"))
            return
        if is_reaction and button is None:
            await self._seen.settle(event_id)
            return
        self._reply(event_id, event, record, button.value if button else said, record.nonce if is_reaction else "")

    def _reply(self, event_id: str, event: dict[str, Any], record: PromptRecord, value: str, nonce: str) -> None:
        self._replies.put_nowait(
            InboundReply(
                channel=self.name,
                identity=f"matrix:{event.get('sender')}",
                prompt_id=record.prompt_id,
                value=value,
                session_id=record.session_id,
                nonce=nonce,
                place="Matrix",
                token=event_id,
            )
        )

    async def _make_sure(self, event_id: str, meant: str, record: PromptRecord, value: str) -> None:
        """An answer that is not asked again takes a second reaction, to a message of its own."""
        choice = next(one for one in record.prompt.choices if one.value == value)
        body = f"{t(SURE)}\n{templates.YES} {sure_label(choice)}"
        asked = await self._say(templates.reply_message(meant, body, loud=False), f"sure.{event_id}")
        self.hub_api.remember(_sure(asked), json.dumps({"prompt_id": record.prompt_id, "value": value}))
        await self._api.send("m.reaction", templates.reaction(asked, templates.YES), f"sure.{event_id}.yes")
        await self._seen.settle(event_id)

    async def _take_sure(self, event_id: str, event: dict[str, Any], sure: dict[str, str], key: str) -> None:
        record = self.hub_api.prompt(sure["prompt_id"])
        if record is None or key.translate(templates.PLAIN) != templates.YES:
            await self._seen.settle(event_id)
            return
        self._reply(event_id, event, record, sure["value"], record.nonce)

    def _help(self, event_id: str, event: dict[str, Any], is_reaction: bool) -> None:
        if is_reaction:
            return
        sentence = t(ENCRYPTED if event.get("type") == "m.room.encrypted" else WHICH)
        self._tasks.hold(self._say(templates.reply_message(event_id, sentence, loud=False), f"help.{event_id}"))
